//! The structural check of a heap.
//!
//! Purpose: verify every checksum of the pool file and every rule of descriptors, runs and bitmaps,
//! and report everything found, not only the first. Reads only, a part in each hold of the image.
//! Invariants: a part begins where a free page, a run or an extent begins: at the end of the
//! previous part or, if something was committed since, at the nearest such page by now.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::image::class::ClassTable;
use crate::image::mapping::Image;
use crate::image::mapping::words::root_offset;
use crate::layout::{
    DIRECTORY_ROOT, FIRST_PAGE, KIND_EXTENT, KIND_EXTENT_CONTINUED, KIND_FREE, KIND_RUN,
    KIND_RUN_CONTINUED, KIND_SYSTEM, PAGE_BYTES, ZONE_PAGES, descriptor_offset, file_offset,
};
use crate::objects::directory::decode;
use crate::space::blocks::Blocks;

/// Something that is wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// Byte offset in the file.
    pub offset: u64,
    /// Expected and found.
    pub what: String,
    /// Whether the system refused to read it: the contents there may be intact.
    pub is_unread: bool,
}

impl Finding {
    /// The finding for an error of a file, with the offset if the error has one.
    pub(crate) fn of(error: Error, file: &Path) -> Self {
        let is_unread = matches!(&error, Error::Medium(error) if error.is_refusal());
        match error {
            Error::Damaged { file, offset, what } => Self { file, offset, what, is_unread },
            other => Self { file: file.into(), offset: 0, what: other.to_string(), is_unread },
        }
    }
}

/// The coverage and the findings of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Pages whose checksum was verified.
    pub pages_verified: u64,
    /// Runs checked.
    pub runs: u64,
    /// Extents checked.
    pub extents: u64,
    /// Allocated blocks, extents included.
    pub blocks: u64,
    /// Bytes of those blocks.
    pub block_bytes: u64,
    /// Free pages below the end of what was ever allocated.
    pub free_pages: u64,
    /// Everything wrong.
    pub findings: Vec<Finding>,
}

impl CheckReport {
    /// Adds a page that is not what was written.
    pub(crate) fn note(&mut self, error: Error, file: &Path) {
        self.findings.push(Finding::of(error, file));
    }

    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether every finding is something that the system refused to read: the heap may be intact.
    pub fn is_unread(&self) -> bool {
        !self.is_clean() && self.findings.iter().all(|finding| finding.is_unread)
    }
}

/// Descriptors and words of bitmaps checked in one hold, about: some 100 us. Those of one extent
/// are checked in one hold, however many it has.
const HOLD_WORDS: u64 = 1 << 14;

/// The progress of a walk over descriptors.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// The next page.
    page: u64,
    /// The last commit when something began at that page.
    sequence: u64,
}

/// Walks descriptors up to the last allocated page.
pub(crate) struct Checker<'a> {
    pub(crate) image: &'a Image,
    pub(crate) classes: &'a ClassTable,
    pub(crate) file: &'a Path,
    pub(crate) report: &'a mut CheckReport,
}

impl Checker<'_> {
    fn find(&mut self, heap_offset: u64, what: String) {
        let (file, offset) = (self.file.into(), file_offset(heap_offset));
        let finding = Finding { file, offset, what, is_unread: false };
        self.report.findings.push(finding);
    }

    /// Checks some descriptors, runs and extents from a position on, in the state that `sequence`
    /// left; returns whether these were the last.
    pub(crate) fn part(&mut self, reached: &mut Reached, sequence: u64) -> Result<bool> {
        let end = self.image.pages_end()?;
        if end > self.image.pages() || end < FIRST_PAGE {
            let pages = self.image.pages();
            self.find(8, format!("expected {FIRST_PAGE} to {pages} allocated pages, found {end}"));
            return Ok(true);
        }
        if reached.sequence != sequence && reached.page > 0 {
            reached.page = self.beginning(reached.page, end)?;
        }
        reached.sequence = sequence;
        let mut words = 0;
        while reached.page < end && words < HOLD_WORDS {
            let pages = self.piece(reached.page, end, &mut words)?;
            reached.page += pages;
            words += pages;
        }
        Ok(reached.page >= end)
    }

    /// The first page of the run or extent that a page belongs to by now. O(a zone's descriptors),
    /// one of each extent and run in it.
    fn beginning(&self, page: u64, end: u64) -> Result<u64> {
        let mut at = page / ZONE_PAGES * ZONE_PAGES;
        while at < page.min(end) {
            let descriptor = self.image.descriptor(at)?;
            let pages = match descriptor.kind {
                KIND_RUN => self.classes.get(descriptor.class.get()).map_or(1, |s| s.run_pages),
                // An extent that continues from the previous zone was checked, or is newer.
                KIND_EXTENT | KIND_EXTENT_CONTINUED => descriptor.argument.get().into(),
                _ => 1,
            };
            let next = at + pages.max(1);
            if next > page && descriptor.kind != KIND_EXTENT_CONTINUED {
                return Ok(at);
            }
            at = next;
        }
        Ok(at)
    }

    /// Checks the directory of named roots, if there is one.
    pub(crate) fn named_roots(&mut self) -> Result<()> {
        let offset = self.image.root(DIRECTORY_ROOT);
        if offset == 0 {
            return Ok(());
        }
        let blocks = Blocks { classes: self.classes, verifies_first_touch: false };
        let block = match blocks.block(self.image, offset) {
            Ok(block) => block,
            // The root word names a block that need not be in the pool: the finding is about the
            // word.
            Err(error) => {
                self.find(root_offset(DIRECTORY_ROOT)?, error.to_string());
                return Ok(());
            }
        };
        let roots = match decode(block, offset) {
            Ok(roots) => roots,
            Err(error) => {
                self.find(offset, error.to_string());
                return Ok(());
            }
        };
        for root in roots {
            let capacity = blocks.locate(self.image, root.offset).map_or(0, |place| place.bytes());
            if capacity < root.bytes {
                let (name, at) = (&root.name, root.offset);
                let what = format!(
                    "expected a block of {} bytes for root \"{name}\" at heap offset {at:#x}, \
                     found {capacity}",
                    root.bytes
                );
                self.find(offset, what);
            }
        }
        Ok(())
    }

    /// Checks what begins at a page; returns its number of pages.
    fn piece(&mut self, page: u64, end: u64, words: &mut u64) -> Result<u64> {
        let descriptor = self.image.descriptor(page)?;
        let argument = u64::from(descriptor.argument.get());
        match descriptor.kind {
            KIND_FREE => {
                self.report.free_pages += 1;
                if descriptor.class.get() != 0 || argument != 0 {
                    self.find(
                        descriptor_offset(page),
                        format!("expected a zero descriptor of a free page, found {descriptor:?}"),
                    );
                }
                Ok(1)
            }
            KIND_SYSTEM if page < FIRST_PAGE => Ok(1),
            KIND_RUN => self.run(page, descriptor.class.get(), end, words),
            KIND_EXTENT if argument > 0 && page + argument <= end => {
                self.report.extents += 1;
                self.report.blocks += 1;
                self.report.block_bytes += argument * PAGE_BYTES;
                self.extent(page, argument)?;
                Ok(argument)
            }
            _ => {
                self.find(
                    descriptor_offset(page),
                    format!("expected a free page, run or extent, found {descriptor:?}"),
                );
                Ok(1)
            }
        }
    }

    /// Checks an extent: descriptors within it are zero, except the first of each zone.
    fn extent(&mut self, page: u64, pages: u64) -> Result<()> {
        for inner in page + 1..page + pages {
            let descriptor = self.image.descriptor(inner)?;
            let left = page + pages - inner;
            let expected = if inner.is_multiple_of(ZONE_PAGES) {
                (KIND_EXTENT_CONTINUED, left)
            } else {
                (KIND_FREE, 0)
            };
            if (descriptor.kind, u64::from(descriptor.argument.get())) != expected {
                self.find(
                    descriptor_offset(inner),
                    format!("expected the inside of an extent, found {descriptor:?}"),
                );
            }
        }
        Ok(())
    }

    fn run(&mut self, page: u64, class: u16, end: u64, words: &mut u64) -> Result<u64> {
        let Some(shape) = self.classes.get(class).copied().filter(|s| page + s.run_pages <= end)
        else {
            self.find(
                descriptor_offset(page),
                format!("expected a run of a known class within the heap, found class {class}"),
            );
            return Ok(1);
        };
        self.report.runs += 1;
        for back in 1..shape.run_pages {
            let inner = self.image.descriptor(page + back)?;
            let found = (inner.kind, inner.class.get(), u64::from(inner.argument.get()));
            if found != (KIND_RUN_CONTINUED, class, back) {
                self.find(
                    descriptor_offset(page + back),
                    format!("expected page {back} of a run of class {class}, found {inner:?}"),
                );
            }
        }
        let (mut allocated, mut last) = (0, 0);
        *words += shape.bitmap_words() as u64;
        for index in 0..shape.bitmap_words() {
            last = self.image.bitmap_word(page, &shape, index)?;
            allocated += u64::from(last.count_ones());
        }
        let bits = shape.block_count - (shape.bitmap_words() as u64 - 1) * 64;
        if bits < 64 && last >> bits != 0 {
            self.find(
                page * PAGE_BYTES,
                format!("expected no bit beyond block {} in a bitmap", shape.block_count),
            );
        }
        self.report.blocks += allocated;
        self.report.block_bytes += allocated * shape.block_bytes;
        Ok(shape.run_pages)
    }
}
