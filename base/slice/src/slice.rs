//! The slice: the public type over the 24 bytes.
//!
//! Purpose: constructors, parts, and comparisons like those of `[u8]`.
//! Invariants: equal, ordered and hashed exactly as the bytes, so it can be looked up by `&[u8]`.
//! Thread safety: immutable; clone, send and share it freely.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Bound, Deref, Range, RangeBounds};
use core::ptr::NonNull;

use crate::error::{Error, Result};
use crate::repr::Repr;
use crate::shared::{Block, External, Shared};

/// Bytes that a slice holds without an allocation.
pub const INLINE_BYTES_MAX: usize = crate::repr::INLINE_BYTES_MAX;
/// Bytes that a slice holds at most: 4 GiB - 1 (on a 32-bit machine a little under 2 GiB).
pub const SLICE_BYTES_MAX: usize = crate::repr::SLICE_BYTES_MAX;

/// An immutable byte string of up to 4 GiB - 1, in 24 bytes.
///
/// ```text
///          0     4        8                16               24
/// inline   | len | up to 20 bytes, then zeros                |
/// heap     | len | prefix | pointer to bytes | header or null |
///                           |                  |
///                           |                  +--> | count | length | bytes ...        |
///                           +-------------------------------------------^
/// ```
///
/// Cloning copies 24 bytes and increments the count, if there is one. A part (`slice`) of more than
/// 20 bytes shares the memory of the whole and keeps all of it alive.
#[derive(Clone)]
pub struct Slice {
    repr: Repr,
}

const _: () = assert!(size_of::<Slice>() == 24);

/// Start and end of any range; `None` if they overflow.
#[inline]
fn bounds(range: &impl RangeBounds<usize>, len: usize) -> Option<Range<usize>> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1)?,
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    Some(start..end)
}

/// `range` within `len` bytes, or `None` when it leaves them.
pub(crate) fn resolve(range: &impl RangeBounds<usize>, len: usize) -> Option<Range<usize>> {
    bounds(range, len).filter(|range| range.start <= range.end && range.end <= len)
}

#[cold]
#[inline(never)]
fn leaves(len: usize) -> ! {
    panic!("the range leaves the {len} bytes of the slice")
}

/// An error when `bytes` are more than a slice can hold.
pub(crate) fn check_length(bytes: usize) -> Result<()> {
    if bytes > SLICE_BYTES_MAX {
        let bytes_max = SLICE_BYTES_MAX as u64;
        return Err(Error::TooLong { bytes: bytes as u64, bytes_max });
    }
    Ok(())
}

impl Slice {
    /// The empty slice.
    pub const EMPTY: Self = Self::from_static(b"");

    /// A copy of `bytes`.
    ///
    /// # Panics
    /// If there are more than `SLICE_BYTES_MAX`; `try_new` is for lengths that are not known.
    #[inline]
    pub fn new(bytes: &[u8]) -> Self {
        let len = bytes.len();
        assert!(len <= SLICE_BYTES_MAX, "a slice holds at most {SLICE_BYTES_MAX} bytes, not {len}");
        Self { repr: Repr::copy_of(bytes) }
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    /// `TooLong` if there are more than `SLICE_BYTES_MAX`.
    pub fn try_new(bytes: &[u8]) -> Result<Self> {
        check_length(bytes.len())?;
        Ok(Self::new(bytes))
    }

    /// Bytes that live forever: borrowed, not copied; works in constants.
    ///
    /// # Panics
    /// If there are more than `SLICE_BYTES_MAX` (in a constant: does not compile).
    pub const fn from_static(bytes: &'static [u8]) -> Self {
        Self { repr: Repr::from_static(bytes) }
    }

    /// A copy of `left` followed by `right`, with at most one allocation.
    ///
    /// # Panics
    /// If together there are more than `SLICE_BYTES_MAX`.
    #[inline]
    pub fn fused(left: &[u8], right: &[u8]) -> Self {
        let len = left.len().saturating_add(right.len());
        assert!(len <= SLICE_BYTES_MAX, "a slice holds at most {SLICE_BYTES_MAX} bytes, not {len}");
        Self { repr: Repr::fused(left, right) }
    }

    /// The part `range` of the bytes of `owner`: not copied (unless it fits inline), and the owner
    /// lives until the last slice that shares it is dropped, on whichever thread that happens.
    ///
    /// # Errors
    /// `OutOfRange` when the range leaves the owner's bytes, `TooLong` when it holds more than
    /// `SLICE_BYTES_MAX`.
    pub fn from_owner<Owner>(owner: Owner, range: impl RangeBounds<usize>) -> Result<Self>
    where
        Owner: AsRef<[u8]> + Send + Sync + 'static,
    {
        let external = External::new(owner);
        let bytes = external.bytes().len();
        let range = resolve(&range, bytes).ok_or(Error::OutOfRange { bytes: bytes as u64 })?;
        check_length(range.len())?;
        Ok(Self { repr: Repr::from_external(external, range) })
    }

    /// All of a vector, which is kept. At most `SLICE_BYTES_MAX`.
    pub(crate) fn of_vec(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        assert!(len <= SLICE_BYTES_MAX, "a slice holds at most {SLICE_BYTES_MAX} bytes, not {len}");
        Self { repr: Repr::from_external(External::of_vec(bytes), 0..len) }
    }

    /// # Safety
    /// As [`Repr::lent`].
    pub(crate) unsafe fn lent(shared: &Shared, bytes: NonNull<[u8]>) -> Self {
        // SAFETY: the caller's promise.
        Self { repr: unsafe { Repr::lent(shared, bytes) } }
    }

    /// At most `INLINE_BYTES_MAX` bytes: the first `len` of these, the rest of which are zeros.
    #[inline]
    pub(crate) fn inline(len: usize, bytes: [u8; INLINE_BYTES_MAX]) -> Self {
        debug_assert!(len <= INLINE_BYTES_MAX, "that is the form of longer slices");
        Self { repr: Repr::inline(len as u32, bytes) }
    }

    /// The first `len` bytes of a block that is written.
    #[inline]
    pub(crate) fn from_block(block: Block, len: usize) -> Self {
        Self { repr: Repr::from_block(block, len) }
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.repr.len()
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the bytes are in the 24 bytes themselves.
    #[inline]
    pub fn is_inline(&self) -> bool {
        self.repr.is_inline()
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.repr.bytes()
    }

    /// The part `range`; shares the memory unless it fits inline. O(1).
    ///
    /// # Panics
    /// If the range leaves the slice, as indexing does; `try_slice` does not.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        match self.try_slice(range) {
            Some(part) => part,
            None => leaves(self.len()),
        }
    }

    /// The part `range`, or `None` if it leaves the slice. O(1).
    #[inline]
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Option<Self> {
        let range = bounds(&range, self.len())?;
        Some(Self { repr: self.repr.part(range)? })
    }

    /// The slice of `part`, which was borrowed from this slice's bytes; `None` if it was not. O(1).
    pub fn slice_ref(&self, part: &[u8]) -> Option<Self> {
        if part.is_empty() {
            return Some(Self::EMPTY);
        }
        let start = part.as_ptr().addr().checked_sub(self.as_bytes().as_ptr().addr())?;
        self.try_slice(start..start.checked_add(part.len())?)
    }

    /// Whether the bytes begin with `prefix`.
    #[inline]
    pub fn starts_with(&self, prefix: &[u8]) -> bool {
        self.as_bytes().starts_with(prefix)
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    /// The bytes as a vector: without a copy when the slice was made of a vector of 4 KiB or more
    /// and is its only user.
    pub fn into_vec(self) -> Vec<u8> {
        self.repr.into_vec()
    }

    /// The block that the bytes lie in, when this is its only user.
    pub(crate) fn into_block(self) -> core::result::Result<Block, Self> {
        self.repr.into_block().map_err(|repr| Self { repr })
    }
}

impl Deref for Slice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsRef<[u8]> for Slice {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Borrow<[u8]> for Slice {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Default for Slice {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.as_bytes().escape_ascii())
    }
}

impl PartialEq for Slice {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.repr.equals(&other.repr)
    }
}

impl Eq for Slice {}

impl PartialOrd for Slice {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slice {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.repr.compare(&other.repr)
    }
}

impl Hash for Slice {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}
