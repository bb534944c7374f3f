//! Conversions from other byte strings, and comparisons with them.
//!
//! Purpose: `From`, `PartialEq` and `PartialOrd`, in both directions.
//! Invariants: every comparison is that of the bytes.
//! Thread safety: as the slice's.

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::slice::Slice;

/// From this length on a vector is kept instead of copied: the copy would cost more than the
/// allocation that keeping it needs.
const VEC_KEPT_BYTES_MIN: usize = 4096;

/// Comparisons with other strings of bytes, in both directions.
macro_rules! compare_with {
    ($([$($generics:tt)*] $other:ty, $other_bytes:expr;)*) => {$(
        impl<$($generics)*> PartialEq<$other> for Slice {
            #[inline]
            fn eq(&self, other: &$other) -> bool {
                let bytes: for<'b> fn(&'b $other) -> &'b [u8] = $other_bytes;
                self.as_bytes() == bytes(other)
            }
        }

        impl<$($generics)*> PartialEq<Slice> for $other {
            #[inline]
            fn eq(&self, other: &Slice) -> bool {
                other == self
            }
        }

        impl<$($generics)*> PartialOrd<$other> for Slice {
            #[inline]
            fn partial_cmp(&self, other: &$other) -> Option<Ordering> {
                let bytes: for<'b> fn(&'b $other) -> &'b [u8] = $other_bytes;
                Some(self.as_bytes().cmp(bytes(other)))
            }
        }

        impl<$($generics)*> PartialOrd<Slice> for $other {
            #[inline]
            fn partial_cmp(&self, other: &Slice) -> Option<Ordering> {
                other.partial_cmp(self).map(Ordering::reverse)
            }
        }
    )*};
}

compare_with! {
    [] [u8], |other| other;
    ['a] &'a [u8], |other| other;
    [const N: usize] [u8; N], |other| other;
    ['a, const N: usize] &'a [u8; N], |other| other.as_slice();
    [] str, |other| other.as_bytes();
    ['a] &'a str, |other| other.as_bytes();
    [] Vec<u8>, |other| other;
    [] String, |other| other.as_bytes();
}

impl From<&[u8]> for Slice {
    /// Like `Slice::new`.
    #[inline]
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes)
    }
}

impl<const N: usize> From<&[u8; N]> for Slice {
    #[inline]
    fn from(bytes: &[u8; N]) -> Self {
        Self::new(bytes)
    }
}

impl<const N: usize> From<[u8; N]> for Slice {
    #[inline]
    fn from(bytes: [u8; N]) -> Self {
        Self::new(&bytes)
    }
}

impl From<&str> for Slice {
    #[inline]
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl From<Vec<u8>> for Slice {
    /// Copies short or sparsely filled vectors and keeps others. Panics as `Slice::new`.
    fn from(bytes: Vec<u8>) -> Self {
        let unused = bytes.capacity() - bytes.len();
        if bytes.len() < VEC_KEPT_BYTES_MIN || unused > bytes.len() / 4 {
            return Self::new(&bytes);
        }
        Self::of_vec(bytes)
    }
}

impl From<String> for Slice {
    /// As from its bytes.
    fn from(text: String) -> Self {
        Self::from(text.into_bytes())
    }
}

impl From<Slice> for Vec<u8> {
    fn from(slice: Slice) -> Self {
        slice.into_vec()
    }
}
