//! Typed offsets into the heap.

use core::fmt;
use core::marker::PhantomData;

/// A typed heap offset. Eight bytes; 0 is null.
pub struct Ptr<T> {
    offset: u64,
    kind: PhantomData<fn() -> T>,
}

impl<T> Ptr<T> {
    /// The pointer to nothing.
    pub const NULL: Self = Self::new(0);

    /// The pointer to the block at a heap offset. Nothing is checked until it is followed.
    pub const fn new(offset: u64) -> Self {
        Self { offset, kind: PhantomData }
    }

    /// The heap offset.
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// Whether this is the null pointer.
    pub const fn is_null(self) -> bool {
        self.offset == 0
    }
}

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> PartialEq for Ptr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.offset == other.offset
    }
}

impl<T> Eq for Ptr<T> {}

impl<T> fmt::Debug for Ptr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ptr({:#x})", self.offset)
    }
}
