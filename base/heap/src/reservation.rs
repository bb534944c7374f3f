//! Reservations: blocks that are somebody's to fill, and nobody else's to see.
//!
//! Purpose: an owner of writable bytes of the heap, to be filled on any thread and published by a
//! transaction or alone. Dropping it gives the block back; a crash does the same.
//! Invariants: until it is published no reader gets a reference to its bytes (`space.rs`), so it
//! may hold the only one, without any lock. It keeps the memory mapped and the directory locked
//! (S5), whatever becomes of the heap.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use adamant_medium::storage::Lock;

use crate::image::Place;
use crate::marked::Word;
use crate::space::Space;

/// What a reservation keeps alive. Each desk has one of its own, so that threads do not share the
/// cache line with the count of its owners.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) space: Arc<Space>,
    _lock: Arc<Box<dyn Lock>>,
}

impl Holder {
    pub(crate) fn new(space: Arc<Space>, lock: Arc<Box<dyn Lock>>) -> Arc<Self> {
        Arc::new(Self { space, _lock: lock })
    }
}

/// A reserved block: writable bytes of the heap that no record and no reader knows. Its contents
/// are unspecified until written. Dropped without being published, it was never there.
pub struct Reservation {
    holder: Arc<Holder>,
    block: u64,
    place: Place,
    bytes: NonNull<u8>,
    len: usize,
    is_published: bool,
}

// SAFETY: the bytes belong to this value alone (see the head of this file), whatever thread has
// it, and `Holder` can be shared and sent.
unsafe impl Send for Reservation {}
// SAFETY: `&Reservation` gives out `&[u8]` only.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// The owner of a block that was just taken from the arena.
    ///
    /// # Safety
    /// `bytes` are the `len` bytes of the block at the start of `place`, in memory that `holder`
    /// keeps; nobody else was given the block.
    pub(crate) unsafe fn new(
        holder: Arc<Holder>,
        block: u64,
        place: Place,
        bytes: NonNull<u8>,
        len: usize,
    ) -> Self {
        debug_assert!(len as u64 <= place.bytes(), "the block holds what was asked for");
        Self { holder, block, place, bytes, len, is_published: false }
    }

    /// The heap offset that the block will have once it is published.
    pub fn offset(&self) -> u64 {
        self.block
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Whether this is a block of that space.
    pub(crate) fn is_of(&self, space: &Space) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.holder.space), space)
    }

    /// The block is somebody else's business now: a transaction's, or the readers'.
    pub(crate) fn hand_over(&mut self) {
        self.is_published = true;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_published {
            self.holder.space.take_back(Word::of(self.place));
        }
    }
}

impl Deref for Reservation {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `new` was promised that many initialised bytes, which `holder` keeps mapped and
        // which are this value's alone.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }
}

impl DerefMut for Reservation {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, len, .. } = self;
        f.debug_struct("Reservation").field("offset", block).field("len", len).finish()
    }
}
