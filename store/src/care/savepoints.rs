//! Persistent savepoints of a store: named moments of all of it, to read or to go back to.
//!
//! Purpose: names, times and files of LSM trees; the heap keeps the pages, see
//! docs/decisions/0140-savepoints.md.
//! Invariants: a file of an LSM tree stays as long as a savepoint lists it.
//! Thread safety: any thread; one savepoint is made or deleted at a time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use adamant_heap::{ImageKind, SavepointState};

use crate::clock::system_millis;
use crate::encryption::key_of;
use crate::engine::held_files::{decode, encode};
use crate::error::{Error, Result};
use crate::savepoint_view::SavepointView;
use crate::store::handle::Store;

/// The most bytes of the name of a savepoint.
const NAME_BYTES_MAX: usize = 255;

/// A persistent savepoint of a store, as [`Store::savepoints`] lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PersistentSavepoint {
    /// Its name; of a damaged one the name of its file.
    pub name: String,
    /// The number of the last commit that it shows; 0 if it cannot be read.
    pub commit: u64,
    /// When it was made, by the clock of the system; `None` if it cannot be read.
    pub made: Option<SystemTime>,
    /// Bytes on the device that it holds: its file, the pages that were kept after it was made and
    /// before the next one was, and the files of LSM trees that only savepoints need, of which this
    /// is the last.
    pub bytes: u64,
    /// Whether it can be read.
    pub state: SavepointState,
}

impl Store {
    /// Makes a persistent savepoint: all keyspaces as they are after the last commit, under a name,
    /// to be read ([`Store::open_savepoint`]) or gone back to ([`go_back`](crate::go_back)) even
    /// after the store was closed and opened again. It is durable when this returns, and so is
    /// everything that it shows. The name has 1 to 255 bytes.
    ///
    /// A savepoint costs room for what changes: the first time that a page is overwritten after it
    /// was made, what the page was is written to a file beside the pool; and files of keyspaces of
    /// the engine `lsm` stay. While there is one, [`Store::shrink`] gives back only space of the
    /// log. The store itself comes first: if there is no space to keep a page, the oldest savepoint
    /// is given up ([`SavepointState::Lost`]), and commits go on.
    ///
    /// O(changes since the last checkpoint), and 4 bytes are read and written for each page of
    /// 4 KiB of the pool. Writers wait for the checkpoint.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::Store;
    ///
    /// let store = Store::open(&path)?;
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// store.create_savepoint("before the import")?;
    /// towns.put("Bern", "0")?;
    ///
    /// let before = store.open_savepoint("before the import")?;
    /// assert_eq!(before.open_keyspace("towns")?.get("Bern")?, Some("134,000".into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SavepointExists`], [`Error::SavepointName`]; the store is closed, poisoned or open
    /// for reading only, or there is no space. Then there is no such savepoint.
    pub fn create_savepoint(&self, name: &str) -> Result<()> {
        let bytes = name.len() as u64;
        if !(1..=NAME_BYTES_MAX).contains(&name.len()) {
            return Err(Error::SavepointName { bytes, bytes_max: NAME_BYTES_MAX as u64 });
        }
        self.shared.check_writes()?;
        let heap = self.shared.heap()?;
        let lsm_trees = self.shared.catalogue().lsm_trees();
        let _one_at_a_time = self.shared.savepoints.lock();
        // Until it lists them.
        let _pin = lsm_trees.pin_files();
        let unopened = lsm_trees.files_of_unopened()?;
        let files = || encode(&[lsm_trees.file_numbers(), unopened].concat());
        let is_made = heap.create_savepoint(name, system_millis(), files)?;
        self.shared.hold_savepoints()?;
        if is_made { Ok(()) } else { Err(Error::SavepointExists { name: name.into() }) }
    }

    /// The persistent savepoints, the oldest first; behind them those that were given up.
    /// O(savepoints, and pages that are kept for them).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// store.create_savepoint("monday")?;
    /// store.create_savepoint("tuesday")?;
    /// let found = store.savepoints()?;
    /// assert_eq!(found.iter().map(|it| &it.name[..]).collect::<Vec<_>>(), ["monday", "tuesday"]);
    /// println!("{} bytes, made {:?}", found[0].bytes, found[0].made);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed, or open beside a writer; the storage backend failed.
    pub fn savepoints(&self) -> Result<Vec<PersistentSavepoint>> {
        let heap = self.shared.heap()?;
        let lsm_trees = self.shared.catalogue().lsm_trees();
        // The last savepoint that lists a file holds it.
        let mut held: HashSet<u64> = HashSet::new();
        let mut found = Vec::new();
        for savepoint in heap.savepoints()?.into_iter().rev() {
            let mut own = decode(&savepoint.attached);
            own.retain(|number| !lsm_trees.has_file(*number) && held.insert(*number));
            let made = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(savepoint.made_ms));
            found.push(PersistentSavepoint {
                name: savepoint.name,
                commit: savepoint.sequence,
                made: made.filter(|_| savepoint.made_ms > 0),
                bytes: savepoint.bytes + lsm_trees.bytes_of(&own)?,
                state: savepoint.state,
            });
        }
        found.reverse();
        Ok(found)
    }

    /// Deletes a persistent savepoint, and gives back the space that only it took; false if there
    /// is none of that name. Needs no space, so it helps on a full device. O(pages that are kept).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// store.create_savepoint("monday")?;
    /// assert!(store.delete_savepoint("monday")?);
    /// assert!(!store.delete_savepoint("monday")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The savepoint is open; the store is closed or open for reading only; the storage backend
    /// failed.
    pub fn delete_savepoint(&self, name: &str) -> Result<bool> {
        let heap = self.shared.heap()?;
        let _one_at_a_time = self.shared.savepoints.lock();
        let is_deleted = heap.delete_savepoint(name)?;
        if is_deleted {
            self.shared.hold_savepoints()?;
        }
        Ok(is_deleted)
    }

    /// Opens a persistent savepoint for reading, while this store goes on. Everything that reads
    /// works, [`Store::backup`] too; writes are errors. This store stays open as long as the one
    /// that is returned, unless [`Store::close`] is called: then reads of what is not in memory
    /// yet fail. Works as well on a store that is open for reading only. O(pages that were kept
    /// since it was made), and 4 bytes of memory for 4 MiB of the pool.
    ///
    /// # Errors
    /// [`Error::UnknownSavepoint`], [`Error::SavepointLost`]; damage; the store is closed, or open
    /// [beside a writer](Store::open_beside): there savepoints cannot be read.
    pub fn open_savepoint(&self, name: &str) -> Result<Store> {
        let heap = self.shared.heap()?;
        let Some(pool) = heap.savepoint_pool(name)? else {
            let found = heap.savepoints()?.into_iter().find(|it| it.name == name);
            let name = name.into();
            return Err(match found.map(|it| it.state) {
                Some(SavepointState::Lost) => Error::SavepointLost { name },
                _ => Error::UnknownSavepoint { name },
            });
        };
        let (store, directory) = (Arc::clone(&self.shared), Arc::clone(heap.directory()));
        let view = SavepointView::new(store, directory, pool);
        let mut options = self.shared.options().clone().read_only(true).beside_writer(false);
        // Another one since it was opened, maybe: for backups.
        options.key = key_of(heap.directory().as_ref());
        Self::open_directory(Arc::new(view), options.create(false).image(ImageKind::Filled))
    }
}
