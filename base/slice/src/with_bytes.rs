//! Conversions to and from `Bytes` of the crate `bytes`.
//!
//! Purpose: the same memory in both types; bytes that fit inline are copied.

use bytes::Bytes;

use crate::slice::{INLINE_BYTES_MAX, Slice};

impl From<Bytes> for Slice {
    /// Keeps the memory. One small allocation.
    ///
    /// # Panics
    /// If there are more than `SLICE_BYTES_MAX`; `Slice::from_owner` returns an error.
    fn from(bytes: Bytes) -> Self {
        if bytes.len() <= INLINE_BYTES_MAX {
            return Self::new(&bytes);
        }
        match Self::from_owner(bytes, ..) {
            Ok(slice) => slice,
            Err(error) => panic!("{error}"),
        }
    }
}

impl From<Slice> for Bytes {
    /// Keeps the memory. One small allocation.
    fn from(slice: Slice) -> Self {
        if slice.is_inline() {
            return Self::copy_from_slice(&slice);
        }
        Self::from_owner(slice)
    }
}
