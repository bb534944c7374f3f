//! Files for entries that no lane has room for.
//!
//! Purpose: R5 for large transactions: the space is allocated before anything is visible. Such a
//! file is read at recovery as one more lane. One is kept for the next such transaction: making a
//! file and its pages takes 500 us, what it is used for 20. It is a reserve as well: on a full
//! medium a transaction that frees many blocks still finds room.
//! Invariants: its name is durable before its first entry is written. It is removed, or kept to be
//! written over, once the watermark covers all of its entries.
//! Thread safety: a file belongs to one lane until then.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_medium::storage::{Directory, File};
use adamant_wire::mutants::is_planted;
use parking_lot::Mutex;

use super::mapped::Mapped;
use crate::error::Result;
use crate::image::Mapping;

/// What the names of such files begin with; a number follows.
pub(super) const LARGE_PREFIX: &str = "large-";
/// Bytes of the smallest: several undo entries of a long transaction share one.
const LARGE_BYTES_MIN: u64 = 1 << 20;
/// Larger ones are not kept.
const SPARE_BYTES_MAX: u64 = 4 << 20;

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

/// A file that was there when the heap was opened.
#[derive(Debug)]
pub(super) struct Left {
    name: String,
    pub(super) path: PathBuf,
    file: Arc<dyn File>,
    pub(super) mapped: Mapped,
}

/// All files in a directory, mapped.
///
/// # Errors
/// Those of the medium.
pub(super) fn left(directory: &dyn Directory, mapping: Mapping) -> Result<Vec<Left>> {
    let mut found = Vec::new();
    for name in list(directory)? {
        if let Some(file) = directory.open(&name)? {
            let (path, mapped) = (directory.path().join(&name), Mapped::map(&file, mapping)?);
            found.push(Left { name, path, file, mapped });
        }
    }
    Ok(found)
}

/// The files of a journal.
#[derive(Debug)]
pub(super) struct LargeFiles {
    directory: Arc<dyn Directory>,
    next: AtomicU64,
    /// No transaction needs them, but recovery may.
    waiting: Mutex<Vec<Large>>,
    has_waiting: AtomicU64,
    /// Nobody needs what is in it.
    spare: Mutex<Option<Large>>,
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
        let (waiting, spare) = (Mutex::default(), Mutex::default());
        Ok(Self { directory, next, waiting, has_waiting, spare })
    }

    /// A file with room for so many bytes, durably: the one that was kept, if it has.
    ///
    /// # Errors
    /// Those of the medium, out of space among them; then there is no such file.
    pub(super) fn take(&self, bytes: u64) -> Result<Large> {
        let spare = self.spare.lock().take_if(|spare| spare.mapped.len() >= bytes);
        if let Some(spare) = spare {
            return Ok(Large { position: 0, newest: 0, ..spare });
        }
        self.create(bytes)
    }

    /// Makes the file that is kept.
    ///
    /// # Errors
    /// Those of the medium.
    pub(super) fn create_spare(&self) -> Result<()> {
        *self.spare.lock() = Some(self.create(0)?);
        Ok(())
    }

    fn create(&self, bytes: u64) -> Result<Large> {
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
        Mapped::map(&file, Mapping::Shared)
    }

    /// Takes files that their transaction is done with.
    pub(super) fn keep(&self, files: impl Iterator<Item = Large>) {
        let mut waiting = self.waiting.lock();
        waiting.extend(files);
        self.has_waiting.store(waiting.len() as u64, Ordering::Release);
    }

    /// Takes a file that nobody needs any more: the larger of two is kept.
    fn give_back(&self, large: Large) {
        let mut spare = self.spare.lock();
        let is_wanted = large.mapped.len() <= SPARE_BYTES_MAX
            && spare.as_ref().is_none_or(|spare| spare.mapped.len() < large.mapped.len());
        let unwanted = if is_wanted { spare.replace(large) } else { Some(large) };
        if let Some(unwanted) = unwanted {
            // Best effort: all that is in it is covered, so the next opening removes it.
            let _ = self.directory.remove(&unwanted.name);
        }
    }

    /// At opening, takes a file whose entries were just recovered. A crash may have left it without
    /// its space: then there is one only if it can be allocated now.
    pub(super) fn give_back_left(&self, left: Left) {
        let Left { name, file, mapped, .. } = left;
        if mapped.len() == 0 || file.allocate(0, mapped.len()).is_err() {
            // Best effort, as above.
            let _ = self.directory.remove(&name);
            return;
        }
        self.give_back(Large { mapped, name, position: 0, newest: 0 });
    }

    /// Removes files of which the watermark covers all, or keeps them.
    pub(super) fn remove_covered(&self, watermark: u64) {
        if self.has_waiting.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut waiting = self.waiting.lock();
        let is_free = |large: &mut Large| {
            large.newest <= watermark || is_planted("R8.large-files-go-before-they-are-covered")
        };
        for large in waiting.extract_if(.., is_free) {
            self.give_back(large);
        }
        self.has_waiting.store(waiting.len() as u64, Ordering::Release);
    }

    /// Bytes of files that no transaction has.
    pub(super) fn bytes(&self) -> u64 {
        let waiting: u64 = self.waiting.lock().iter().map(|large| large.mapped.len()).sum();
        waiting + self.spare.lock().as_ref().map_or(0, |large| large.mapped.len())
    }
}

/// Names of the files in a directory.
///
/// # Errors
/// Those of the medium.
fn list(directory: &dyn Directory) -> Result<Vec<String>> {
    let mut names = directory.list()?;
    names.retain(|name| {
        name.strip_prefix(LARGE_PREFIX).is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && number.len() < 19
        })
    });
    Ok(names)
}
