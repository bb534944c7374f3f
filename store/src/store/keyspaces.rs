//! The keyspaces of a store: made, opened, listed, dropped, renamed and converted by name.

use std::sync::Arc;

use crate::common::keyspace_options::KeyspaceOptions;
use crate::common::state::KeyspaceState;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::layout::KIND_PLAIN;
use crate::limits::check_plain;
use crate::store::handle::Store;
use crate::store::inspect::{self, KeyspaceInfo};

impl Store {
    /// Opens the keyspace with this name, or creates it if there is none.
    ///
    /// A name is 1 to 255 bytes of UTF-8, any characters. Creating a keyspace is a commit of its
    /// own.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// assert_eq!(store.keyspace("towns")?.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The name is empty or too long, the store is closed or has no space; [`Error::WrongKind`] if
    /// its entries expire, see [`Store::expiring`].
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.keyspace_with(name, KeyspaceOptions::new())
    }

    /// Like [`Store::keyspace`], with options. Those of the engine `lsm` that differ from the ones
    /// that the keyspace has are recorded with it, in one commit; the others stay.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let log = store.keyspace_with("log", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// assert_eq!(log.engine(), Engine::Lsm);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::keyspace`]; [`Error::WrongEngine`] if the keyspace uses another engine than the
    /// requested one, or options that only another engine has are set;
    /// [`Error::Lsm`] for an option with a value that it cannot have.
    pub fn keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        loop {
            if let Some(state) = self.shared.open_keyspace(name)? {
                return self.keyspace_of(state, options);
            }
            // If another thread creates it just now, the next round finds it.
            let (engine, own) = options.of_new(name)?;
            if let Some(state) = self.shared.create_keyspace(name, (engine, KIND_PLAIN), &own)? {
                return Ok(Keyspace::new(&self.shared, state));
            }
        }
    }

    fn keyspace_of(&self, state: Arc<KeyspaceState>, options: KeyspaceOptions) -> Result<Keyspace> {
        check_plain(&state.name, state.kind)?;
        options.give(&self.shared, &state)?;
        Ok(Keyspace::new(&self.shared, state))
    }

    /// Creates a keyspace.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// store.create_keyspace("towns")?;
    /// assert!(store.create_keyspace("towns").is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::KeyspaceExists`] if there is one with this name; otherwise as [`Store::keyspace`].
    pub fn create_keyspace(&self, name: &str) -> Result<Keyspace> {
        self.create_keyspace_with(name, KeyspaceOptions::new())
    }

    /// Creates a keyspace, with options.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let log = store.create_keyspace_with("log", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// assert_eq!(log.engine(), Engine::Lsm);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::create_keyspace`].
    pub fn create_keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let (engine, own) = options.of_new(name)?;
        let state = self.shared.create_keyspace(name, (engine, KIND_PLAIN), &own)?;
        let state = state.ok_or_else(|| Error::KeyspaceExists { name: name.into() })?;
        Ok(Keyspace::new(&self.shared, state))
    }

    /// Opens an existing keyspace.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// assert!(store.open_keyspace("towns").is_err());
    /// store.create_keyspace("towns")?;
    /// assert!(store.open_keyspace("towns")?.is_empty()?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none with this name; otherwise as
    /// [`Store::keyspace`].
    pub fn open_keyspace(&self, name: &str) -> Result<Keyspace> {
        self.keyspace_of(self.shared.existing_keyspace(name)?, KeyspaceOptions::new())
    }

    /// Opens an existing keyspace of any kind, to read its stored bytes: a value in an expiring
    /// keyspace begins with its deadline, see `docs/format/expiring.md`. Only a keyspace of the
    /// kind [`KeyspaceKind::Plain`](crate::KeyspaceKind::Plain) can be written through this handle.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// store.expiring("sessions")?.put("42", "ada", None)?;
    /// assert!(store.open_keyspace("sessions").is_err());
    /// let stored = store.open_stored("sessions")?;
    /// assert_eq!(stored.get("42")?, Some("\0\0\0\0\0\0\0\0ada".into()));
    /// assert!(stored.put("43", "bob").is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open_keyspace`], except for the kind.
    pub fn open_stored(&self, name: &str) -> Result<Keyspace> {
        Ok(Keyspace::lent(&self.shared, self.shared.existing_keyspace(name)?))
    }

    /// All keyspaces, by name. O(keyspaces).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// store.keyspace("towns")?.put("Bern", "134,000")?;
    /// let found = store.keyspaces()?;
    /// assert_eq!((&found[0].name[..], found[0].entries), ("towns", 1));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed, or its catalogue damaged.
    pub fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        inspect::keyspaces(&self.shared)
    }

    /// Drops a keyspace and frees all it held, in one commit; false if there is none with this
    /// name. From then on its handles return [`Error::KeyspaceDropped`]. An expiring keyspace is
    /// dropped with its deadlines. O(entries).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let towns = store.keyspace("towns")?;
    /// assert!(store.drop_keyspace("towns")?);
    /// assert!(towns.get("Bern").is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The name is empty or too long, or the store is closed; [`Error::WrongKind`] for a keyspace
    /// of deadlines.
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.shared.drop_keyspace(name, None)
    }

    /// Renames a keyspace, in one commit. Its entries stay in place, also for open snapshots. Its
    /// handles stay valid and go on returning the name that they were opened by. An expiring
    /// keyspace is renamed with its deadlines. O(log keyspaces).
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let inbox = store.keyspace("inbox")?;
    /// inbox.put("1", "hello")?;
    /// store.rename_keyspace("inbox", "archive")?;
    /// assert_eq!(store.open_keyspace("archive")?.get("1")?, Some("hello".into()));
    /// assert_eq!(inbox.len()?, 1);
    /// assert!(store.open_keyspace("inbox").is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none with this name; [`Error::KeyspaceExists`] if the
    /// new name, or the one for its deadlines, is taken, even by the keyspace itself;
    /// [`Error::WrongKind`] for a keyspace of deadlines; a name is empty or too long, or the store
    /// is closed.
    pub fn rename_keyspace(&self, name: &str, new_name: &str) -> Result<()> {
        self.shared.rename_keyspace(name, new_name)
    }

    /// Exchanges the names of two keyspaces, of any engines, in one commit: from then on opening
    /// either name gives the other's entries. As with [`Store::rename_keyspace`], handles stay with
    /// the keyspace that they were opened for, and deadlines go with their entries. O(log
    /// keyspaces).
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// store.keyspace("prices")?.put("tea", "3")?;
    /// store.keyspace("prices of tomorrow")?.put("tea", "4")?;
    /// store.swap_keyspaces("prices", "prices of tomorrow")?;
    /// assert_eq!(store.open_keyspace("prices")?.get("tea")?, Some("4".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is no keyspace with one of the names; a name is empty or
    /// too long, or the store is closed; as [`Store::rename_keyspace`]. Then nothing was changed.
    pub fn swap_keyspaces(&self, name: &str, other_name: &str) -> Result<()> {
        self.shared.exchange_keyspaces(name, other_name, None)
    }

    /// Converts a keyspace to another engine, in one commit; false if it uses that engine already.
    /// Values stay compressed as they are ([`Store::compress_values`]), except that `lsm` gets them
    /// plain and compresses them in its own way.
    /// Its handles stay valid. Deadlines of expiring entries stay in the default engine. Entries
    /// stay in their blocks: the commit writes, and needs space for, only the nodes of the new
    /// tree. Readers and writers wait meanwhile. O(n log n).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// use adamant::Engine;
    ///
    /// store.keyspace("towns")?.put("Bern", "134,000")?;
    /// assert!(store.convert_keyspace("towns", Engine::Critbit)?);
    /// assert_eq!(store.keyspace("towns")?.get("Bern")?, Some("134,000".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none with this name; [`Error::WrongKind`] for a
    /// keyspace of deadlines; the name is empty or too long, the store is closed, or there is no
    /// space: then nothing was changed.
    pub fn convert_keyspace(&self, name: &str, engine: Engine) -> Result<bool> {
        let converted = self.shared.convert_keyspace(name, engine)?;
        self.shared.workers().start()?;
        Ok(converted)
    }
}
