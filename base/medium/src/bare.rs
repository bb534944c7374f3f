//! Bare memory of a medium: the baseline that measurements compare a data structure with.
//!
//! Purpose: how fast plain stores reach the medium, without a heap around them.
//! Invariants: the file has no name from the start, so no other code can map it or open it.
//! Thread safety: stores need exclusive access to the value.

use std::io;
use std::sync::Arc;

use crate::address::persist::{Flushing, Persist};
use crate::address::region::{Region, page_bytes};
use crate::error::{Error, Result};
use crate::storage::{Directory, File};

/// The mapped bytes of a file that has no name. Given back to the system on drop.
#[derive(Debug)]
pub struct Bare {
    region: Region,
    bytes: u64,
    file: Arc<dyn File>,
    persist: Arc<dyn Persist>,
}

impl Bare {
    /// Maps `bytes` (rounded up to whole pages) of a new file in a directory. None of it takes
    /// space yet: see [`Bare::back`].
    ///
    /// # Errors
    /// One that [`Error::is_unsupported`] when stores never become durable there, or not as `how`
    /// asks; those of the file system.
    pub fn create(directory: &dyn Directory, bytes: u64, how: Flushing) -> Result<Self> {
        const NAME: &str = "bare";
        let Some(persist) = directory.persist(how, NAME)? else {
            let source = io::ErrorKind::Unsupported.into();
            return Err(Error::io("store to memory in", directory.path(), None, 0, source));
        };
        let bytes = bytes.max(1).next_multiple_of(page_bytes());
        let file = directory.create(NAME)?;
        directory.remove(NAME)?;
        file.set_len(bytes)?;
        let region = Region::reserve(bytes, bytes)?;
        // SAFETY: the region is new, so there is no reference into it; the file is new too and has
        // no name any more, so no other code changes its bytes.
        unsafe { file.map_shared(&region, 0, 0, bytes) }?;
        Ok(Self { region, bytes, file, persist })
    }

    /// Backs a range with space, as a file system does that must not run out of it at a store.
    ///
    /// # Errors
    /// Those of the file system, out of space among them.
    pub fn back(&self, offset: u64, len: u64) -> Result<()> {
        self.file.allocate(offset, len)
    }

    /// Stores bytes and begins to flush them to the medium. Without [`Bare::back`] before, a full
    /// file system raises a signal.
    ///
    /// # Panics
    /// When the range is beyond the end.
    pub fn store(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset.checked_add(bytes.len() as u64);
        assert!(end.is_some_and(|end| end <= self.bytes), "a store within {} bytes", self.bytes);
        // SAFETY: mapped shared by `create`, within the length just checked; no reference into it
        // is ever given out, and the mapping belongs to this value alone, which is uniquely
        // borrowed.
        unsafe { self.persist.copy(&self.region, offset, bytes) };
    }

    /// Waits for all stores of this thread.
    pub fn fence(&self) {
        self.persist.fence();
    }
}
