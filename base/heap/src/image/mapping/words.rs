//! Words of the image: those of the allocator, which are atomics, and the roots.
//!
//! Invariants: no reference is ever made over words of the allocator.
//! Thread safety: threads change words of the allocator under the shared latch and without any.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Image;
use crate::error::{Error, Result};
use crate::layout::{PAGE_BYTES, ROOT_COUNT, ROOT_OFFSET, ROOT_PAGES_END, ROOT_WORDS};

impl Image {
    /// The word at a heap offset, a multiple of 8: for words of the allocator.
    #[inline]
    fn word(&self, offset: u64) -> Result<&AtomicU64> {
        debug_assert!(offset.is_multiple_of(8), "words are aligned");
        let pointer = self.pointer(offset, 8)?;
        // SAFETY: committed memory, aligned since regions are and the offset is, which lives as
        // long as `self`. While words belong to the allocator they are accessed only here; before
        // that, as part of free pages, they are not accessed at all.
        Ok(unsafe { AtomicU64::from_ptr(pointer.as_ptr().cast()) })
    }

    /// The word of the allocator at a heap offset.
    #[inline]
    pub(crate) fn load_word(&self, offset: u64) -> Result<u64> {
        Ok(u64::from_le(self.word(offset)?.load(Ordering::Acquire)))
    }

    /// Sets the word of the allocator at a heap offset.
    pub(crate) fn store_word(&self, offset: u64, value: u64) -> Result<()> {
        self.touch(offset, 8)?;
        self.word(offset)?.store(value.to_le(), Ordering::Release);
        Ok(())
    }

    /// Changes bits of the word of the allocator at a heap offset.
    pub(crate) fn change_bits(&self, offset: u64, set: u64, clear: u64) -> Result<()> {
        self.touch(offset, 8)?;
        let word = self.word(offset)?;
        if set != 0 {
            word.fetch_or(set.to_le(), Ordering::Release);
        }
        if clear != 0 {
            word.fetch_and(!clear.to_le(), Ordering::Release);
        }
        Ok(())
    }

    /// Copies the page at a heap offset out, whatever is on it, including words of the allocator.
    /// No block of the page may be written meanwhile.
    pub(crate) fn copy_page(&self, offset: u64) -> Result<[u8; PAGE_BYTES as usize]> {
        let mut copy = [0; PAGE_BYTES as usize];
        for (at, bytes) in (offset..).step_by(8).zip(copy.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&self.load_word(at)?.to_le_bytes());
        }
        Ok(copy)
    }

    /// The word of root `index`; 0 when there is no such root.
    pub(crate) fn root(&self, index: usize) -> u64 {
        let Ok(offset) = root_offset(index) else { return 0 };
        let bytes = self.bytes(offset, 8).ok().and_then(|bytes| bytes.first_chunk::<8>());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// One past the last data page that was ever allocated.
    pub(crate) fn pages_end(&self) -> Result<u64> {
        self.load_word(ROOT_PAGES_END)
    }
}

/// Heap offset of the word of root `index`.
///
/// # Errors
/// `Error::Misuse` when there is no such root.
pub(crate) fn root_offset(index: usize) -> Result<u64> {
    if index >= ROOT_COUNT {
        return Err(Error::Misuse { what: "a heap has 16 roots, numbered from 0" });
    }
    Ok(ROOT_OFFSET + ROOT_WORDS + 8 * index as u64)
}
