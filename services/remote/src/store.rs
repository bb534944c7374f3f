//! The store: opening, keyspaces, and operations across keyspaces.

use std::fmt;
use std::sync::Arc;

use slatedb::object_store::ObjectStore;

use crate::batch::Batch;
use crate::catalogue;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::location::Location;
use crate::open;
use crate::options::Options;
use crate::shared::{Database, KeyspaceState, Shared};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;

/// The properties of a keyspace that are known without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceInfo {
    /// Its name.
    pub name: String,
    /// The name of its engine in the store from which it was copied, empty if it was not.
    pub engine_copied: String,
}

/// A store on objects: opened by URL, cloned freely.
///
/// **One writer a store.** Opening a store for writing replaces the current writer, in any process
/// on any machine: all of its later writes fail with [`Error::Fenced`].
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

impl Store {
    /// Opens a store for writing, and creates it if it does not exist.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let url = format!("slatedb+file://{}", directory.path().display());
    /// use adamant_remote::Store;
    ///
    /// // slatedb+s3://BUCKET/PREFIX, slatedb+file:///DIRECTORY
    /// let store = Store::open(&url)?;
    /// store.keyspace("towns")?.put("Bern", "134,000")?;
    /// store.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An invalid URL, unreachable objects, other content than a store, damage.
    pub fn open(url: &str) -> Result<Self> {
        Self::open_with(url, Options::new())
    }

    /// As [`Store::open`], with options.
    ///
    /// # Errors
    /// As [`Store::open`], and [`Error::Missing`].
    pub fn open_with(url: &str, options: Options) -> Result<Self> {
        let location = Location::parse(url, options.create && !options.read_only)?;
        Ok(Self { shared: open::open(location, &options, false)? })
    }

    /// Opens a store for reading beside its writer, which it follows: see [`Options::poll_ms`].
    ///
    /// # Errors
    /// As [`Store::open`], and [`Error::Missing`].
    pub fn open_read_only(url: &str) -> Result<Self> {
        Self::open_with(url, Options::new().read_only(true))
    }

    /// A store in the caller's objects, whose names begin with `path`.
    ///
    /// # Errors
    /// As [`Store::open_with`].
    pub fn open_objects(
        objects: Arc<dyn ObjectStore>,
        path: &str,
        options: Options,
    ) -> Result<Self> {
        let location = Location::of_objects(objects, path)?;
        Ok(Self { shared: open::open(location, &options, false)? })
    }

    /// A store in memory, for tests.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn in_memory() -> Result<Self> {
        Self::open_with("slatedb+memory://", Options::new().flush_ms(1))
    }

    /// A handle to what was opened.
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// A new keyspace that was copied, and the name of the engine that it had.
    pub(crate) fn create_copied(&self, name: &str, engine: &str) -> Result<Keyspace> {
        let state = self.shared.create_keyspace(name, engine)?;
        Ok(Keyspace::new(&self.shared, state))
    }

    /// Whether a copy into the store has begun and not ended.
    pub(crate) fn is_unfinished(&self) -> Result<bool> {
        self.shared.is_unfinished()
    }

    /// Marks that a copy into the store has begun, or that it has ended.
    pub(crate) fn mark_unfinished(&self, is_unfinished: bool) -> Result<()> {
        self.shared.mark_unfinished(is_unfinished)
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.shared.url
    }

    /// A keyspace, created if there is none with that name.
    ///
    /// # Errors
    /// A name of invalid length, as [`Keyspace::put`].
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        loop {
            if let Some(state) = self.shared.find_keyspace(name)? {
                return Ok(Keyspace::new(&self.shared, state));
            }
            match self.create_keyspace(name) {
                // Another thread was first, and it may be gone again.
                Err(Error::KeyspaceExists { .. }) => {}
                outcome => return outcome,
            }
        }
    }

    /// A new keyspace.
    ///
    /// # Errors
    /// [`Error::KeyspaceExists`]; as [`Store::keyspace`].
    pub fn create_keyspace(&self, name: &str) -> Result<Keyspace> {
        let state = self.shared.create_keyspace(name, "")?;
        Ok(Keyspace::new(&self.shared, state))
    }

    /// An existing keyspace.
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`]; as [`Store::keyspace`].
    pub fn open_keyspace(&self, name: &str) -> Result<Keyspace> {
        let found = self.shared.find_keyspace(name)?;
        let state = found.ok_or_else(|| Error::UnknownKeyspace { name: name.to_owned() })?;
        Ok(Keyspace::new(&self.shared, state))
    }

    /// All keyspaces by name. Entries are not counted: see [`Keyspace::len`].
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        self.shared.check_open()?;
        let keyspaces = match &self.shared.database {
            Database::Writer(_) => self.shared.catalogue.read().keyspaces.clone(),
            Database::Reader(reader) => {
                let failed = Error::of_slate(self.url());
                self.shared.block(catalogue::load(&**reader, &failed))?
            }
        };
        let info = |(name, state): (String, Arc<KeyspaceState>)| KeyspaceInfo {
            name,
            engine_copied: state.engine.clone(),
        };
        Ok(keyspaces.into_iter().map(info).collect())
    }

    /// Drops a keyspace with all its entries, in one commit; false if there is none with that name.
    /// Its objects shrink later.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.shared.drop_keyspace(name)
    }

    /// An empty batch.
    pub fn batch(&self) -> Batch {
        Batch::new(&self.shared)
    }

    /// Begins a serializable transaction.
    ///
    /// # Errors
    /// A store that is closed, fenced or read-only.
    pub fn begin(&self) -> Result<Transaction> {
        Transaction::begin(&self.shared)
    }

    /// Runs a closure in a serializable transaction and commits it; runs it again, from the start,
    /// when another commit changed what it read or wrote. On `Err` none of it happened.
    ///
    /// ```
    /// use adamant_remote::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let accounts = store.keyspace("accounts")?;
    /// accounts.put("ada", [100])?;
    /// store.transaction(|tx| {
    ///     let ada = tx.get(&accounts, "ada")?.map_or(0, |value| value[0]);
    ///     tx.put(&accounts, "ada", [ada - 10])?;
    ///     tx.put(&accounts, "bob", [10])
    /// })?;
    /// assert_eq!(accounts.get("ada")?, Some([90].into()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the closure; those of [`Transaction::commit`] except conflicts.
    pub fn transaction<T, E: From<Error>>(
        &self,
        mut work: impl FnMut(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        loop {
            let mut transaction = self.begin()?;
            let made = work(&mut transaction)?;
            match transaction.commit() {
                Ok(()) => return Ok(made),
                // The commit that it conflicted with succeeded: the store always makes progress.
                Err(error) if error.is_conflict() => std::thread::yield_now(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// All keyspaces as they are now, unaffected by later commits.
    ///
    /// # Errors
    /// A store that is closed, fenced or read-only.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::open(&self.shared)
    }

    /// Has nothing to do for commits that have returned: they are in the objects. Waits for the
    /// pending commits of other threads.
    ///
    /// # Errors
    /// A store that is closed, fenced or read-only.
    pub fn sync(&self) -> Result<()> {
        self.shared.sync()
    }

    /// Closes the store; other handles return [`Error::Closed`] from then on. Dropping the last
    /// handle leaves no promise unkept, but the next opening has more to read.
    ///
    /// # Errors
    /// It is closed already; unreachable objects; [`Error::Fenced`], if it is detected here.
    pub fn close(self) -> Result<()> {
        self.shared.close()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("url", &self.shared.url).finish_non_exhaustive()
    }
}
