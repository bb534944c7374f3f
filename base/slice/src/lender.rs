//! The lender: slices of memory that an owner keeps.
//!
//! Purpose: slices of memory that no owner can expose by `AsRef`, because only parts of it are
//! immutable: a mapped pool, whose blocks are frozen one by one.
//! Invariants: the owner lives until the lender and the last slice made by it are dropped.
//! Thread safety: the owner is `Send + Sync`, as are lender and slices.

use core::fmt;
use core::ptr::NonNull;

use crate::error::Result;
use crate::shared::Shared;
use crate::slice::{Slice, check_length};

/// Makes slices of memory that an owner keeps, without an allocation for each of them.
///
/// ```
/// use adamant_slice::Lender;
/// use std::ptr::NonNull;
///
/// let kept: &'static [u8] = b"bytes that nobody changes any more";
/// let lender = Lender::new(kept);
/// // SAFETY: bytes of a static can always be read and never change.
/// let slice = unsafe { lender.lend(NonNull::from(&kept[..26])) }?;
/// assert_eq!(slice, b"bytes that nobody changes ");
/// assert_eq!(slice.as_ptr(), kept.as_ptr());
/// assert!(!lender.is_alone());
/// drop(slice);
/// assert!(lender.is_alone());
/// # Ok::<(), adamant_slice::Error>(())
/// ```
pub struct Lender {
    shared: Shared,
}

// SAFETY: the count is atomic, and the owner is `Send`.
unsafe impl Send for Lender {}
// SAFETY: as for `Send`; the owner is `Sync` too.
unsafe impl Sync for Lender {}

impl Lender {
    /// Takes over an owner. One allocation, for all slices that will be made.
    pub fn new<Owner: Send + Sync + 'static>(owner: Owner) -> Self {
        Self { shared: Shared::of_owner(owner) }
    }

    /// A slice of `bytes`: not copied, unless they fit inline. O(1).
    ///
    /// # Errors
    /// `TooLong` when there are more than `SLICE_BYTES_MAX`.
    ///
    /// # Safety
    /// Until the owner is dropped, `bytes` must be readable and must not change.
    #[inline]
    pub unsafe fn lend(&self, bytes: NonNull<[u8]>) -> Result<Slice> {
        check_length(bytes.len())?;
        // SAFETY: the caller's promise.
        Ok(unsafe { Slice::lent(&self.shared, bytes) })
    }

    /// Whether no borrowed slice is left. Then all reads of them happened before, and the promise
    /// made to `lend` need not hold any more.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.shared.is_alone()
    }
}

impl fmt::Debug for Lender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lender").field("is_alone", &self.is_alone()).finish_non_exhaustive()
    }
}
