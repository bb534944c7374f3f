//! The tail of a log laid over the image of a pool that stays as it is.
//!
//! Purpose: what opening does to the file, done in memory: for those who only read.
//! Invariants: no file is written. Thread safety: nobody else has the image yet.

use std::collections::BTreeSet;

use super::record::Entry;
use super::tail::Tail;
use crate::error::Result;
use crate::image::Image;
use crate::layout::{PAGE_BYTES, TABLE_BASE};

/// Lays the log over the image. Pages that it proves whole again leave `lost`: those that it
/// replaces in full, or that a crash may have torn.
///
/// # Errors
/// `Error::TooLarge` when the image cannot hold what the log names; those of the medium.
pub(crate) fn lay_over(image: &Image, tail: &Tail, lost: &mut BTreeSet<u64>) -> Result<()> {
    tail.replay(&mut |entry| {
        let (offset, len) = match entry {
            Entry::Bytes { offset, bytes } => (offset, bytes.len() as u64),
            Entry::Set { offset, .. } | Entry::Clear { offset, .. } => (offset, 8),
            // Free pages: nothing is lost with what they held.
            Entry::Hole { offset, len } => {
                let pages = offset..offset.saturating_add(len);
                lost.retain(|page| !pages.contains(page));
                return Ok(());
            }
        };
        let end = offset.saturating_add(len);
        let pages = match offset.checked_sub(TABLE_BASE) {
            Some(_) => (end - TABLE_BASE).div_ceil(8),
            None => end.div_ceil(PAGE_BYTES),
        };
        if pages > image.pages_max() {
            return Ok(());
        }
        if pages > image.pages() {
            // Growth that was not durable yet: what the log does not name there was never written.
            image.grow(pages)?;
        }
        match entry {
            Entry::Bytes { bytes, .. } => {
                image.write().bytes_mut(offset, len)?.copy_from_slice(bytes);
            }
            Entry::Set { mask, .. } => image.change_bits(offset, mask, 0)?,
            Entry::Clear { mask, .. } => image.change_bits(offset, 0, mask)?,
            Entry::Hole { .. } => {}
        }
        let mut page = offset - offset % PAGE_BYTES;
        while page < end {
            if tail.torn || (offset <= page && page + PAGE_BYTES <= end) {
                lost.remove(&page);
            }
            page += PAGE_BYTES;
        }
        Ok(())
    })
}

/// Makes the image as long as its heap says that it is: what was allocated but not written is named
/// by no record.
///
/// # Errors
/// Those of the medium.
pub(crate) fn grow_to_end(image: &Image) -> Result<()> {
    let pages = image.pages_end()?.min(image.pages_max());
    if pages > image.pages() {
        image.grow(pages)?;
    }
    Ok(())
}
