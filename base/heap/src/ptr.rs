//! Typed offsets into the heap.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A typed heap offset. Eight bytes, little-endian, without alignment; 0 is null. It can be a
/// field of a persistent type.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Ptr<T> {
    offset: U64,
    kind: PhantomData<fn() -> T>,
}

impl<T> Ptr<T> {
    /// The pointer to nothing.
    pub const NULL: Self = Self::new(0);

    /// The pointer to the block at a heap offset. Nothing is checked until it is followed.
    pub const fn new(offset: u64) -> Self {
        Self { offset: U64::new(offset), kind: PhantomData }
    }

    /// The heap offset.
    pub const fn offset(self) -> u64 {
        self.offset.get()
    }

    /// Whether this is the null pointer.
    pub const fn is_null(self) -> bool {
        self.offset() == 0
    }
}

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> Default for Ptr<T> {
    fn default() -> Self {
        Self::NULL
    }
}

impl<T> PartialEq for Ptr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.offset == other.offset
    }
}

impl<T> Eq for Ptr<T> {}

impl<T> Hash for Ptr<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.offset().hash(state);
    }
}

impl<T> fmt::Debug for Ptr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ptr({:#x})", self.offset())
    }
}
