//! A file whose bytes are memory: the lanes, and what did not fit into one.
//!
//! Purpose: the only unsafe code of the lanes.
//! Invariants: all bytes of the file are mapped for as long as this lives. A range is written only
//! by who has the lane that it belongs to, or the file while nobody else knows of it.
//! Thread safety: as the invariant says; the word of the watermark is an atomic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_medium::persist::Persist;
use adamant_medium::region::Region;
use adamant_medium::storage::File;

use crate::error::Result;
use crate::image::Mapping;

/// Pages are mapped whole.
const PAGE_BYTES: u64 = 4096;

/// A mapped file.
#[derive(Debug)]
pub(super) struct Mapped {
    region: Region,
    bytes: u64,
}

impl Mapped {
    /// Maps all whole pages of a file: the file itself, or an image of it for who only reads.
    ///
    /// # Errors
    /// Those of the medium.
    pub(super) fn map(file: &Arc<dyn File>, mapping: Mapping) -> Result<Self> {
        let bytes = file.len()? / PAGE_BYTES * PAGE_BYTES;
        let region = Region::reserve(bytes.max(1), bytes.max(1))?;
        match mapping {
            // SAFETY: the region is new, no reference into it exists.
            Mapping::Shared => unsafe { file.map_shared(&region, 0, 0, bytes) }?,
            // SAFETY: the region is new, no reference into it exists.
            Mapping::Private => unsafe { file.map_private(&region, 0, 0, bytes) }?,
        }
        Ok(Self { region, bytes })
    }

    /// Bytes mapped.
    pub(super) fn len(&self) -> u64 {
        self.bytes
    }

    /// The bytes of a range that its caller has to itself: see the invariant. A range beyond the
    /// end is cut.
    pub(super) fn bytes(&self, at: u64, len: u64) -> &[u8] {
        let at = at.min(self.bytes);
        let len = len.min(self.bytes - at);
        // SAFETY: within the mapping, as cut above.
        let start = unsafe { self.region.base().as_ptr().add(at as usize) };
        // SAFETY: mapped, initialised memory; whoever may write it is our caller, or has shown it
        // to nobody else yet.
        unsafe { std::slice::from_raw_parts(start, len as usize) }
    }

    /// Stores bytes and begins to take them to the medium. The range must be the caller's.
    #[track_caller]
    pub(super) fn copy(&self, persist: &dyn Persist, at: u64, bytes: &[u8]) {
        debug_assert!(at + bytes.len() as u64 <= self.bytes, "a place was made before");
        // SAFETY: the range is mapped, and by the module's invariant nobody but our caller looks
        // at it; our caller holds no reference from `bytes`, which would borrow the lane's state.
        unsafe { persist.copy(&self.region, at, bytes) };
    }

    /// Begins to take a range to the medium.
    #[track_caller]
    pub(super) fn flush(&self, persist: &dyn Persist, at: u64, len: u64) {
        persist.flush(&self.region, at, len);
    }

    /// A word, which all access as an atomic. Little-endian.
    pub(super) fn load_word(&self, at: u64) -> u64 {
        u64::from_le(self.word(at).load(Ordering::Acquire))
    }

    /// Stores a word, at once.
    pub(super) fn store_word(&self, at: u64, value: u64) {
        self.word(at).store(value.to_le(), Ordering::Release);
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes, "a word lies in the mapping");
        // SAFETY: within the mapping, checked above.
        let word = unsafe { self.region.base().as_ptr().add(at as usize) };
        // SAFETY: aligned (the base is, to 2 MiB, and `at`), mapped for as long as `self` lives,
        // and only ever used as this atomic word.
        unsafe { AtomicU64::from_ptr(word.cast()) }
    }
}
