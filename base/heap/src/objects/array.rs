//! Handles of blocks of variable length: arrays, bytes, text.
//!
//! Purpose: a block's capacity is rounded up to its class; a handle knows the exact length. It is
//! 16 bytes, holds no address, and can be a field of a persistent type.

use core::fmt;
use core::marker::PhantomData;

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::objects::persistent::{Layout, Persistent};

/// A block of `len` values of type `T`: offset and length. Without values it has no block.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Array<T> {
    offset: U64,
    len: U64,
    kind: PhantomData<fn() -> T>,
}

impl<T> Array<T> {
    /// The array without values.
    pub const EMPTY: Self = Self::new(0, 0);

    /// The array of `len` values in the block at a heap offset. Nothing is checked until it is
    /// read.
    pub const fn new(offset: u64, len: u64) -> Self {
        Self { offset: U64::new(offset), len: U64::new(len), kind: PhantomData }
    }

    /// The heap offset of its block; meaningless when it is empty.
    pub const fn offset(self) -> u64 {
        self.offset.get()
    }

    /// How many values it has.
    pub const fn len(self) -> u64 {
        self.len.get()
    }

    /// Whether it has no values, and no block.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<T> {}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<T> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.offset, self.len) == (other.offset, other.len)
    }
}

impl<T> Eq for Array<T> {}

impl<T> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({:#x}, {})", self.offset(), self.len())
    }
}

impl<T: Persistent> Persistent for Array<T> {
    const NAME: &'static str = "adamant.array";
    const VERSION: u32 = 1;
    const STORED: Layout = Layout::holding::<Self>(Self::NAME, 1, T::STORED.id());
}

/// Declares a block of bytes under a name.
macro_rules! bytes {
    ($(#[$documentation:meta])* $type:ident, $name:literal, $empty:literal) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(transparent)]
        pub struct $type(pub Array<u8>);

        impl $type {
            #[doc = $empty]
            pub const EMPTY: Self = Self(Array::EMPTY);

            /// The number of bytes.
            pub const fn len(self) -> u64 {
                self.0.len()
            }

            /// Whether it is empty.
            pub const fn is_empty(self) -> bool {
                self.0.is_empty()
            }
        }

        impl Persistent for $type {
            const NAME: &'static str = $name;
            const VERSION: u32 = 1;
        }
    };
}

bytes! {
    /// A block of bytes of an exact length.
    Bytes, "adamant.bytes", "No bytes."
}

bytes! {
    /// A block of UTF-8 text.
    Text, "adamant.text", "No text."
}
