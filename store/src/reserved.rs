//! Values allocated in place.
//!
//! Purpose: a value that arrives in parts, from a socket or a file, goes straight into a block of
//! the heap. A commit makes it the value of a key by storing one pointer; the only copy is the log
//! record. Also here: the writes that a transaction buffers.
//! Invariants: no other thread sees a reserved value before a commit has published it. If it is
//! dropped before, or at a crash, no trace is left and its block is free.
//! Thread safety: any thread may fill it.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

use adamant_heap::{Heap, Reservation};
use adamant_slice::Slice;

use crate::error::Result;
use crate::limits::check_value_bytes;

/// A value allocated in place, in the block where a commit will leave it: see
/// [`Store::reserve`](crate::Store::reserve). Its bytes are arbitrary until they are written.
/// Dropping it frees the block.
pub struct ReservedValue {
    reservation: Reservation,
    bytes: usize,
}

impl ReservedValue {
    pub(crate) fn new(heap: &Heap, bytes: usize) -> Result<Self> {
        check_value_bytes(bytes as u64)?;
        // The heap has no empty blocks.
        let reservation = heap.reserve(bytes.max(1) as u64)?;
        Ok(Self { reservation, bytes })
    }

    /// The value's block, which may be longer.
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

/// A transaction's write to a key.
pub(crate) enum Written {
    /// The key is removed.
    Removed,
    /// A value in the transaction's memory.
    Value(Slice),
    /// An operand in the transaction's memory, for what the key has at the commit.
    Merged(Slice),
    /// A value allocated in place; none once the commit has taken it.
    Reserved(RefCell<Option<ReservedValue>>),
}

impl Written {
    /// A copy of this value, or without one a removal.
    pub(crate) fn of(value: Option<&[u8]>) -> Self {
        value.map_or(Self::Removed, |value| Self::Value(value.into()))
    }

    /// A value allocated in place.
    pub(crate) fn reserved(value: ReservedValue) -> Self {
        Self::Reserved(RefCell::new(Some(value)))
    }

    /// The value, if there is one; a reserved one is copied. An operand is handed to `merge`.
    ///
    /// # Errors
    /// Those of `merge`.
    pub(crate) fn value(
        &self,
        merge: impl FnOnce(&Slice) -> Result<Slice>,
    ) -> Result<Option<Slice>> {
        Ok(match self {
            Self::Removed => None,
            Self::Value(value) => Some(value.clone()),
            Self::Merged(operand) => Some(merge(operand)?),
            Self::Reserved(value) => value.borrow().as_deref().map(Slice::from),
        })
    }

    pub(crate) fn is_value(&self) -> bool {
        !matches!(self, Self::Removed)
    }

    /// Bytes that its commit copies.
    pub(crate) fn copied_bytes(&self) -> usize {
        match self {
            Self::Value(value) | Self::Merged(value) => value.len(),
            Self::Removed | Self::Reserved(_) => 0,
        }
    }
}
