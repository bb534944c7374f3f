//! Files for entries that no lane has room for.
//!
//! Purpose: R5 for large transactions: the space is allocated before anything is visible. Such a
//! file is read at recovery as one more lane.
//! Invariants: its name is durable before its first entry is written. It is removed once the
//! watermark covers all of its entries. Thread safety: a file belongs to one lane until then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_medium::storage::Directory;
use parking_lot::Mutex;

use super::mapped::Mapped;
use crate::error::Result;

/// What the names of such files begin with; a number follows.
pub(super) const LARGE_PREFIX: &str = "large-";
/// Bytes of the smallest: several undo entries of a long transaction share one.
const LARGE_BYTES_MIN: u64 = 1 << 20;

/// One file, of one transaction.
#[derive(Debug)]
pub(super) struct Large {
    pub(super) mapped: Mapped,
    name: String,
    /// Where the next entry goes.
    pub(super) position: u64,
    /// Sequence number of its last entry.
    pub(super) newest: u64,
}

impl Large {
    /// Bytes left.
    pub(super) fn room(&self) -> u64 {
        self.mapped.len() - self.position
    }
}

/// The files of a journal.
#[derive(Debug)]
pub(super) struct LargeFiles {
    directory: Arc<dyn Directory>,
    next: AtomicU64,
    /// No transaction needs them, but recovery may.
    waiting: Mutex<Vec<Large>>,
    has_waiting: AtomicU64,
}

impl LargeFiles {
    /// In the directory of the log. Names go on from those that are there.
    ///
    /// # Errors
    /// Those of the medium.
    pub(super) fn new(directory: Arc<dyn Directory>) -> Result<Self> {
        let names = list(directory.as_ref())?;
        let numbers = names.iter().filter_map(|name| name[LARGE_PREFIX.len()..].parse().ok());
        let next = AtomicU64::new(numbers.max().unwrap_or(0) + 1);
        let has_waiting = AtomicU64::new(0);
        Ok(Self { directory, next, waiting: Mutex::default(), has_waiting })
    }

    /// A new file with room for so many bytes, durably.
    ///
    /// # Errors
    /// Those of the medium, out of space among them; then there is no such file.
    pub(super) fn create(&self, bytes: u64) -> Result<Large> {
        let name = format!("{LARGE_PREFIX}{}", self.next.fetch_add(1, Ordering::Relaxed));
        let bytes = bytes.max(LARGE_BYTES_MIN).next_multiple_of(4096);
        let made = self.make(&name, bytes);
        if made.is_err() {
            // Best effort: recovery finds no entry in it, and removes it.
            let _ = self.directory.remove(&name);
        }
        Ok(Large { mapped: made?, name, position: 0, newest: 0 })
    }

    fn make(&self, name: &str, bytes: u64) -> Result<Mapped> {
        let file = self.directory.create(name)?;
        file.allocate(0, bytes)?;
        file.sync()?;
        self.directory.sync()?;
        Mapped::map(&file)
    }

    /// Takes files that their transaction is done with.
    pub(super) fn keep(&self, files: impl Iterator<Item = Large>) {
        let mut waiting = self.waiting.lock();
        waiting.extend(files);
        self.has_waiting.store(waiting.len() as u64, Ordering::Release);
    }

    /// Removes files of which the watermark covers all.
    pub(super) fn remove_covered(&self, watermark: u64) {
        if self.has_waiting.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut waiting = self.waiting.lock();
        waiting.retain(|large| {
            let is_covered = large.newest <= watermark;
            if is_covered {
                // Best effort: whatever is left is covered, so recovery removes it.
                let _ = self.directory.remove(&large.name);
            }
            !is_covered
        });
        self.has_waiting.store(waiting.len() as u64, Ordering::Release);
    }

    /// Bytes of files that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.waiting.lock().iter().map(|large| large.mapped.len()).sum()
    }
}

/// Names of the files in a directory.
///
/// # Errors
/// Those of the medium.
pub(super) fn list(directory: &dyn Directory) -> Result<Vec<String>> {
    let mut names = directory.list()?;
    names.retain(|name| {
        name.strip_prefix(LARGE_PREFIX).is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && number.len() < 19
        })
    });
    Ok(names)
}
