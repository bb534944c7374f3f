//! Values written where they will lie.
//!
//! Purpose: a value that comes in pieces, from a socket or a file, goes straight into a block of the heap,
//! which a commit makes the value of a key by storing one pointer: the only copy is the record of the log.
//! Beside it, what a transaction keeps of its own writes.
//! Invariants: nobody else sees a reserved value before a commit has published it; dropped before, or at a
//! crash, it was never there, and its block is free.
//! Thread safety: it may be filled on any thread.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

use adamant_heap::{Heap, Reservation};
use adamant_slice::Slice;

use crate::error::Result;
use crate::limits::check_value_bytes;

/// Room for a value, in the place where a commit will leave it: see [`Store::reserve`](crate::Store::reserve).
/// Its bytes are whatever was there before until they are written. Dropped, it was never there.
pub struct ReservedValue {
    reservation: Reservation,
    bytes: usize,
}

impl ReservedValue {
    pub(crate) fn new(heap: &Heap, bytes: usize) -> Result<Self> {
        check_value_bytes(bytes as u64)?;
        // There are no blocks of nothing.
        let reservation = heap.reserve(bytes.max(1) as u64)?;
        Ok(Self { reservation, bytes })
    }

    /// The block that it lies in, which may be longer.
    pub(crate) fn into_reservation(self) -> Reservation {
        self.reservation
    }
}

impl Deref for ReservedValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.reservation[..self.bytes]
    }
}

impl DerefMut for ReservedValue {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.reservation[..self.bytes]
    }
}

impl AsRef<[u8]> for ReservedValue {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for ReservedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReservedValue").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// What a transaction writes under a key.
pub(crate) enum Written {
    /// The key is taken out.
    Removed,
    /// A value of the transaction's own.
    Value(Slice),
    /// One that lies where it will be; none once the commit has taken it.
    Reserved(RefCell<Option<ReservedValue>>),
}

impl Written {
    /// A value that lies where it will be.
    pub(crate) fn reserved(value: ReservedValue) -> Self {
        Self::Reserved(RefCell::new(Some(value)))
    }

    /// The value, if there is one: of a reserved one a copy.
    pub(crate) fn value(&self) -> Option<Slice> {
        match self {
            Self::Removed => None,
            Self::Value(value) => Some(value.clone()),
            Self::Reserved(value) => value.borrow().as_deref().map(Slice::from),
        }
    }

    /// Whether the key has a value.
    pub(crate) fn is_value(&self) -> bool {
        !matches!(self, Self::Removed)
    }

    /// Bytes that its commit copies.
    pub(crate) fn copied_bytes(&self) -> usize {
        match self {
            Self::Value(value) => value.len(),
            Self::Removed | Self::Reserved(_) => 0,
        }
    }
}
