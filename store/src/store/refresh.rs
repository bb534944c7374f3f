//! Moving a store that is read beside a writer on to later commits.
//!
//! Purpose: a program that follows another one's store. Invariants: a handle that was made before
//! stays at its commit, so nothing that was read changes under its reader.

use std::sync::Arc;
use std::time::Duration;

use adamant_heap::Refresh;
use adamant_medium::storage::Directory;

use crate::common::shared::Shared;
use crate::error::Result;
use crate::options::Options;
use crate::store::handle::Store;

impl Store {
    /// Has a store that was opened [beside a writer](Store::open_beside) show the last commit that
    /// can be found; false if it shows that already, as all other stores do. It never goes back. A
    /// store that was made anew under its path meanwhile, as by [`compact`](crate::compact), is
    /// opened there.
    ///
    /// Keyspaces, snapshots, iterators, values and clones of this handle that were made before stay
    /// as they are, and keep what they show: take them from this handle again. If none is left,
    /// which is much faster, what is in memory stays there: it costs O(changes since), some 0.1 ms
    /// for a few, and after a checkpoint of the writer O(pages that it wrote + log). Keyspaces of
    /// the engine `lsm` are opened again. Otherwise it costs what opening the store does.
    ///
    /// ```
    /// use adamant::Store;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// let writer = Store::open(&path)?;
    /// let towns = writer.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    ///
    /// // In another process:
    /// let mut reader = Store::open_beside(&path)?;
    /// towns.put("Bern", "0")?;
    /// assert_eq!(reader.keyspace("towns")?.get("Bern")?, Some("134,000".into()));
    /// assert!(reader.refresh()?);
    /// assert_eq!(reader.keyspace("towns")?.get("Bern")?, Some("0".into()));
    /// assert!(!reader.refresh()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open_beside`]. If handles are left it shows what it did; else it may be closed.
    pub fn refresh(&mut self) -> Result<bool> {
        let mut heap = Arc::clone(self.shared.heap_handle()?);
        if !self.is_beside_writer() {
            return Ok(false);
        }
        let before = heap.last_commit();
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            match heap.refresh() {
                Ok(Refresh::Unchanged) => return Ok(false),
                Ok(Refresh::Later) => {
                    let (heap, lsm_trees) = shared.hand_over();
                    self.shared = Arc::new(Shared::new(heap, lsm_trees, shared.options())?);
                    return Ok(true);
                }
                Ok(Refresh::InUse) => {}
                // Opening says what is wrong, if it still is.
                Ok(Refresh::Closed) | Err(_) => heap = shared.hand_over().0,
            }
        }
        if self.shared.heap().is_ok() && heap.is_newest()? {
            return Ok(false);
        }
        *self = Self::open_beside_again(heap.directory(), self.shared.options())?;
        Ok(self.shared.heap()?.last_commit() != before)
    }

    /// Whether it was opened [beside a writer](Store::open_beside), which it can follow then.
    pub fn is_beside_writer(&self) -> bool {
        self.shared.options().beside_writer
    }

    /// Opens the store in a directory beside a writer once more; or that under its path, if it was
    /// made anew there and the directory removed, as by [`compact`](crate::compact).
    pub(crate) fn open_beside_again(
        directory: &Arc<dyn Directory>,
        options: &Options,
    ) -> Result<Self> {
        let path = directory.path().to_path_buf();
        let again = directory.open_again()?.unwrap_or_else(|| Arc::clone(directory));
        Self::open_directory(again, options.clone())
            .or_else(|error| Self::open_with(path, options.clone()).map_err(|_| error))
    }

    /// Waits until [`Store::refresh`] would show a later commit, for no longer than that; whether
    /// it would. At once false for stores that were not opened beside a writer. The store can be
    /// used meanwhile. On Linux and ext4 or tmpfs the process that writes ends the wait; elsewhere
    /// this looks 200 times a second. Commits that are [deferred](crate::Durability::Deferred) come
    /// when they reach the log.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use adamant::Store;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// let writer = Store::open(&path)?;
    /// let reader = Store::open_beside(&path)?;
    /// assert!(!reader.wait_for_change(Duration::ZERO)?);
    /// writer.create_keyspace("towns")?;
    /// assert!(reader.wait_for_change(Duration::from_secs(10))?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed, or the medium fails.
    pub fn wait_for_change(&self, longest: Duration) -> Result<bool> {
        Ok(self.shared.heap()?.wait_for_later(longest)?)
    }
}
