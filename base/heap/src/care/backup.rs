//! Online backup: a copy of a heap that stays in use.
//!
//! Purpose: the user's call, and the names of the copy's files; the journal makes their contents.
//! Invariants: the copy has a UUID of its own, so that no log of one is taken for the other's. It
//! is a heap only once everything in it is durable.
//! Thread safety: any thread; one copy is made at a time, and closing ends it.

use std::sync::atomic::Ordering;

use adamant_medium::storage::Directory;

use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::image::pool_file::PoolFile;
use crate::journal::remove_if_there;
use crate::layout::{LOG_NAME, POOL_NAME, POOL_NEW_NAME};

/// Name of the lock file, which is in every directory of a heap.
const LOCK_NAME: &str = "lock";

impl Heap {
    /// Copies this heap into an empty directory, as of exactly one commit after the call; other
    /// threads read and commit meanwhile. The copy is that of a closed heap and has a UUID of its
    /// own. Every page is verified on the way. Free pages of zeros become holes.
    ///
    /// Takes space for the log that is written meanwhile, beyond the log's limit; if the device has
    /// none, the copy is given up, and not the commits. O(pool + log written meanwhile); memory of
    /// some 20 MiB. Returns the number of that commit.
    ///
    /// # Errors
    /// `Error::Unsupported` when the directory is not empty; `Error::Damaged` for a page that is
    /// not what was written; `Error::Misuse` when the heap is closed; `Error::Poisoned`; those of
    /// the medium, including a locked directory. Then the directory holds no heap; its contents may
    /// be removed.
    pub fn back_up(&self, directory: &dyn Directory) -> Result<u64> {
        self.refuse_child()?;
        let _one_at_a_time = self.copying.lock();
        self.refuse_closing()?;
        let _lock = directory.lock(LOCK_NAME)?;
        let names = directory.list()?;
        if let Some(name) = names.iter().find(|name| name.as_str() != LOCK_NAME) {
            return Err(Error::Unsupported {
                file: directory.path().into(),
                what: format!("expected an empty directory, found \"{name}\"; choose another one"),
            });
        }
        let made = self.copy_to(directory);
        if made.is_err() {
            // Best effort: it is no pool, and its name says so; or the sync of its last name
            // failed.
            let _ = remove_if_there(directory, POOL_NEW_NAME);
            let _ = remove_if_there(directory, POOL_NAME);
        }
        made
    }

    fn copy_to(&self, directory: &dyn Directory) -> Result<u64> {
        let mut uuid = [0; 16];
        directory.random(&mut uuid)?;
        // The sync below makes its name durable; an empty log needs no files.
        directory.subdirectory(LOG_NAME)?;
        let file = directory.create(POOL_NEW_NAME)?;
        let pool = PoolFile::begin(file, uuid)?;
        let image = &self.space.image;
        let sequence = self.journal.back_up(image, &pool, &|| self.refuse_closing())?;
        directory.sync()?;
        directory.rename(POOL_NEW_NAME, POOL_NAME)?;
        directory.sync()?;
        Ok(sequence)
    }

    fn refuse_closing(&self) -> Result<()> {
        if self.is_closing.load(Ordering::Acquire) {
            return Err(Error::Misuse { what: "the heap was closed; open it again" });
        }
        Ok(())
    }
}
