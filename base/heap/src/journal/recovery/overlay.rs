//! The overlay: applies the tail of a log to the pages of a pool.
//!
//! Purpose: the one way in which records become pages, for every way of opening: to write, to read,
//! to copy, to salvage. The pages are in an overlay target: memory of recovery (`dirty.rs`), or an
//! image that stays private.
//! Invariants: records are applied in their order. A page is changed after its target could verify
//! it (C7), unless nothing of it stays. Thread safety: runs alone.

use std::collections::BTreeSet;

use zerocopy::FromBytes;

use crate::collections::range_set::RangeSet;
use crate::error::{Error, Result};
use crate::image::mapping::guards::Exclusive;
use crate::image::pool_file::PoolFile;
use crate::image::pool_file::page_checksums::verify_page;
use crate::journal::checkpoints::table::Doubt;
use crate::journal::records::record::Entry;
use crate::journal::recovery::tail::{OnFinding, Tail};
use crate::layout::{
    DESCRIPTOR_BYTES, Descriptor, KIND_EXTENT, KIND_RUN, KIND_RUN_CONTINUED, PAGE_BYTES, TABLE_BASE,
};

/// The contents of a page below a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::journal) enum Under {
    /// The file's, or those that an earlier change made.
    Kept,
    /// Zeros: it was free.
    Zeros,
    /// Irrelevant: nothing of it stays.
    Nothing,
}

/// The pages that records are applied to.
pub(in crate::journal) trait OverlayTarget {
    /// Makes sure that there are `pages` data pages.
    ///
    /// # Errors
    /// Those of the target.
    fn grow(&mut self, pages: u64) -> Result<()>;

    /// Changes the page at a heap offset.
    ///
    /// # Errors
    /// Those of the medium.
    fn change(&mut self, page: u64, under: Under, change: impl FnOnce(&mut [u8])) -> Result<()>;

    /// Some data pages are free, from heap offset to heap offset.
    fn free(&mut self, start: u64, end: u64);

    /// Some data pages, by number, are those of an extent or a run from now on.
    fn allocate(&mut self, _start: u64, _end: u64) {}
}

/// Applies the records of a tail to a target; calls `on_finding` for changes that no heap can have,
/// which are left out. `free` are the data pages that were freed last, from heap offset to heap
/// offset: by records before the tail, and then by those in it.
///
/// # Errors
/// Those of `on_finding`, of the target and of the medium.
pub(in crate::journal) fn lay_over(
    tail: &Tail,
    target: &mut impl OverlayTarget,
    free: &mut RangeSet,
    on_finding: OnFinding<'_>,
) -> Result<()> {
    tail.replay(on_finding, &mut |entry| {
        target.grow(pages_named(&entry))?;
        let (offset, len) = entry.range();
        if let Entry::Hole { .. } = entry {
            free.add(offset, offset + len);
            target.free(offset, offset + len);
            return Ok(());
        }
        if let Entry::Bytes { offset, bytes } = entry {
            each_allocated(offset, bytes, &mut |start, end| target.allocate(start, end));
        }
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let page = at - at % PAGE_BYTES;
            let to = end.min(page + PAGE_BYTES);
            let is_replaced = to - at == PAGE_BYTES;
            let was_free = free.first_in(page, page + PAGE_BYTES).is_some();
            if was_free {
                free.remove(page, page + PAGE_BYTES);
            }
            let under = match (is_replaced, was_free) {
                (true, _) => Under::Nothing,
                (false, true) => Under::Zeros,
                (false, false) => Under::Kept,
            };
            let source = (at - offset) as usize..(to - offset) as usize;
            target.change(page, under, |bytes| {
                if under == Under::Zeros {
                    bytes.fill(0);
                }
                let target = &mut bytes[(at - page) as usize..(to - page) as usize];
                lay(&entry, source, target);
            })?;
            at = to;
        }
        Ok(())
    })
}

/// Applies a part of an entry to the bytes that it changes.
fn lay(entry: &Entry<'_>, source: std::ops::Range<usize>, target: &mut [u8]) {
    match *entry {
        Entry::Bytes { bytes, .. } => target.copy_from_slice(&bytes[source]),
        Entry::Set { mask, .. } => {
            target.iter_mut().zip(mask.to_le_bytes()).for_each(|(byte, mask)| *byte |= mask);
        }
        Entry::Clear { mask, .. } => {
            target.iter_mut().zip(mask.to_le_bytes()).for_each(|(byte, mask)| *byte &= !mask);
        }
        Entry::Hole { .. } => {}
    }
}

/// Data pages that an entry needs. None for free pages: those beyond the end were cut off.
pub(in crate::journal) fn pages_named(entry: &Entry<'_>) -> u64 {
    let (offset, len) = entry.range();
    match (entry, offset.checked_sub(TABLE_BASE)) {
        (Entry::Hole { .. }, _) => 0,
        (_, Some(offset)) => (offset + len).div_ceil(DESCRIPTOR_BYTES),
        (_, None) => (offset + len).div_ceil(PAGE_BYTES),
    }
}

/// Calls `each` with the data pages, by number, that become those of a run or an extent by bytes at
/// a heap offset: start and end of each range.
pub(in crate::journal) fn each_allocated(
    offset: u64,
    bytes: &[u8],
    each: &mut dyn FnMut(u64, u64),
) {
    let Some(at) = offset.checked_sub(TABLE_BASE) else { return };
    if !at.is_multiple_of(DESCRIPTOR_BYTES) {
        return;
    }
    let (words, _) = bytes.as_chunks::<{ DESCRIPTOR_BYTES as usize }>();
    for (page, word) in (at / DESCRIPTOR_BYTES..).zip(words) {
        let Ok(descriptor) = Descriptor::read_from_bytes(word) else { continue };
        match descriptor.kind {
            KIND_EXTENT => each(page, page + u64::from(descriptor.argument.get())),
            KIND_RUN | KIND_RUN_CONTINUED => each(page, page + 1),
            _ => {}
        }
    }
}

/// The pages of a private image to which records were applied, by heap offset.
#[derive(Debug, Default)]
pub(crate) struct Overlaid {
    /// Those that differ from the file, so that its checksums do not apply.
    pub(crate) unlike: RangeSet,
    /// Those that the records freed last.
    pub(crate) free: RangeSet,
}

/// A private image: the file stays unchanged.
#[derive(Debug)]
pub(crate) struct Private<'p, 'i> {
    pool: &'p PoolFile,
    image: &'p mut Exclusive<'i>,
    /// Heap offsets of the pages that differ from the file, so that its checksums do not apply:
    /// those that a record names, and those that a crash may have torn.
    unlike: RangeSet,
    /// Those that the records freed last.
    free: RangeSet,
    /// Heap offsets of damaged pages.
    lost: BTreeSet<u64>,
}

impl<'p, 'i> Private<'p, 'i> {
    /// An image of a pool, of which some pages are in doubt and others lost; no page is both.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn new(
        pool: &'p PoolFile,
        image: &'p mut Exclusive<'i>,
        doubt: &Doubt,
        mut lost: BTreeSet<u64>,
    ) -> Result<Self> {
        let mut unlike = RangeSet::default();
        for page in doubt.pages() {
            unlike.add(page, page + PAGE_BYTES);
            lost.remove(&page);
            image.accept(page / PAGE_BYTES)?;
        }
        Ok(Self { pool, image, unlike, free: RangeSet::default(), lost })
    }

    /// An image to which a part of a tail was applied: the pages that differ from the file since,
    /// and those that it freed last.
    pub(crate) fn resume(
        pool: &'p PoolFile,
        image: &'p mut Exclusive<'i>,
        overlaid: Overlaid,
    ) -> Self {
        let Overlaid { unlike, free } = overlaid;
        Self { pool, image, unlike, free, lost: BTreeSet::new() }
    }

    /// Applies the records of a tail. Pages that it proves whole leave `lost`: those that it
    /// replaces in full, and those that it names where an earlier version was applying. Damaged
    /// pages that it names are added.
    ///
    /// # Errors
    /// As [`lay_over`]; `Error::AddressesExhausted` if the image cannot hold the pages that the log
    /// names.
    pub(crate) fn lay(&mut self, tail: &Tail, on_finding: OnFinding<'_>) -> Result<()> {
        let mut free = std::mem::take(&mut self.free);
        let mut target = Laid { private: self, is_torn: tail.torn };
        let laid = lay_over(tail, &mut target, &mut free, on_finding);
        self.free = free;
        laid
    }

    /// Finishes: what differs from the file, and heap offsets of the pages that are lost.
    /// If none are lost, the image grows to the length of its heap: no record names pages that were
    /// allocated but not written.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn finish(self) -> Result<(Overlaid, BTreeSet<u64>)> {
        if self.lost.is_empty() {
            let pages = self.image.pages_end()?.min(self.image.pages_max());
            if pages > self.image.pages() {
                self.image.grow(pages)?;
            }
        }
        Ok((Overlaid { unlike: self.unlike, free: self.free }, self.lost))
    }

    /// Whether a page is as the file has it, and to be verified by the file's checksum.
    fn is_of_the_file(&self, page: u64) -> bool {
        self.pool.has_page(page) && self.unlike.first_in(page, page + PAGE_BYTES).is_none()
    }
}

/// The image while one tail is applied to it.
struct Laid<'l, 'p, 'i> {
    private: &'l mut Private<'p, 'i>,
    is_torn: bool,
}

impl OverlayTarget for Laid<'_, '_, '_> {
    fn grow(&mut self, pages: u64) -> Result<()> {
        if pages > self.private.image.pages() {
            // Growth that was not durable yet: pages in there that the log does not name were never
            // written.
            self.private.image.grow(pages)?;
        }
        Ok(())
    }

    fn change(&mut self, page: u64, under: Under, change: impl FnOnce(&mut [u8])) -> Result<()> {
        let private = &mut *self.private;
        if under != Under::Kept || self.is_torn {
            private.lost.remove(&page);
        } else if private.is_of_the_file(page) {
            let bytes = private.image.bytes(page, PAGE_BYTES);
            match bytes.and_then(|bytes| verify_page(&**private.pool.file(), page, bytes)) {
                Err(Error::Damaged { .. }) => {
                    private.lost.insert(page);
                }
                verified => verified?,
            }
        }
        private.unlike.add(page, page + PAGE_BYTES);
        // It was verified, or its checksum does not apply.
        private.image.accept(page / PAGE_BYTES)?;
        change(private.image.bytes_mut(page, PAGE_BYTES)?);
        Ok(())
    }

    /// Freed pages cannot be lost. Memory stays unchanged: a page is zeroed when it is named again.
    fn free(&mut self, start: u64, end: u64) {
        self.private.lost.retain(|page| !(start..end).contains(page));
        self.private.unlike.add(start, end);
    }
}
