//! Salvage: reads the intact part of a damaged heap, without changing it.
//!
//! Purpose: the base of `repair`. It maps the pool's pages as they are and applies the whole
//! records of the log to them in memory. It refuses everything on a page that is not what was
//! written. So a read returns what was committed, or an error.
//! Invariants: no file is written. A page counts as lost if its checksum says so, unless the log
//! replaces all of it, or a crash may have torn it and the log names it (as in recovery).
//! Thread safety: any thread reads a `Salvage`; it never changes once it is open.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_medium::storage::{Directory, File, Lock};

use crate::error::{Error, Result};
use crate::image::block_location::BlockLocation;
use crate::image::class::{ClassTable, initial_table};
use crate::image::heap_root::read_root;
use crate::image::kind::ImageKind;
use crate::image::mapping::Image;
use crate::image::memory_bounds::Bounds;
use crate::image::pool_file::header::has_magic;
use crate::image::pool_file::{PoolFile, find_pool};
use crate::inspect::check::{CheckReport, Checker, Finding, Reached};
use crate::journal::validate;
use crate::journal::{Doubt, Private, Tail, Validated, identities};
use crate::layout::{
    CLASS_TABLE_OFFSET, FIRST_PAGE, HEAP_BYTES_MAX, KIND_RUN, LOG_NAME, PAGE_BYTES, ROOT_OFFSET,
    TABLE_BASE, descriptor_offset, file_offset, heap_offset_at,
};
use crate::objects::access::{Read, part_of};

/// A damaged heap, open for reading.
#[derive(Debug)]
pub struct Salvage {
    image: Image,
    classes: ClassTable,
    /// Heap offsets of the pages that are not what was written.
    lost: BTreeSet<u64>,
    file: PathBuf,
    findings: Vec<Finding>,
    blocks: Option<u64>,
    last_sequence: u64,
    records: u64,
    // Dropped last: the mapping is the file's.
    _lock: Box<dyn Lock>,
}

impl Salvage {
    /// Opens the intact part of the heap in a directory. O(pool): verifies every page by its
    /// checksum.
    ///
    /// # Errors
    /// `Error::Unsupported` when the directory holds no pool, or one of another format,
    /// `Error::Damaged` when not even its identity is readable; those of the medium, including a
    /// locked directory.
    pub fn open(directory: &Arc<dyn Directory>) -> Result<Self> {
        let lock = directory.lock("lock")?;
        let file = find_pool(directory.as_ref())?;
        let log = directory.subdirectory(LOG_NAME)?;
        let mut findings = Vec::new();
        let pool = open_pool(&file, log.as_ref(), &mut findings)?;
        let mut note = |error| findings.push(Finding::of(error, file.path()));
        let Pages { image, mut lost, last_sequence, records } =
            pages_of(&pool, log.as_ref(), &mut note)?;
        let classes = load_classes(&image, &lost, file.path(), &mut note)?;
        // The structure is worth checking only if all pages are whole. Then the rules reveal a pool
        // whose checksums were forged to match.
        let is_whole = findings.is_empty();
        let mut note = |error| findings.push(Finding::of(error, file.path()));
        let report = is_whole.then(|| structure(&image, &classes, file.path(), &mut note));
        let blocks = report.as_ref().map(|report| report.blocks);
        let found = report.map_or_else(Vec::new, |report| report.findings);
        // A wrong descriptor says nothing reliable about its blocks, nor do its neighbours.
        let places = found.iter().filter_map(|finding| heap_offset_at(finding.offset));
        lost.extend(places.filter(|at| *at >= TABLE_BASE).map(|at| at - at % PAGE_BYTES));
        findings.extend(found);
        Ok(Self {
            image,
            classes,
            lost,
            file: file.path().into(),
            findings,
            blocks,
            last_sequence,
            records,
            _lock: lock,
        })
    }

    /// Allocated blocks, extents included, if they were counted: if nothing else is wrong.
    pub fn allocated_blocks(&self) -> Option<u64> {
        self.blocks
    }

    /// Everything that is wrong with the files.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Sequence number of the last commit that could be read.
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Records of the log that the pool did not hold.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Pages that are not what was written.
    pub fn lost_pages(&self) -> u64 {
        self.lost.len() as u64
    }

    /// The word of a root; 0 when it was never set.
    ///
    /// # Errors
    /// `Error::Damaged` when the root page is lost.
    pub fn root(&self, index: usize) -> Result<u64> {
        self.refuse_lost(ROOT_OFFSET, PAGE_BYTES)?;
        Ok(self.image.root(index))
    }

    /// Calls `each` with every allocated block in runs of the class from which blocks of `bytes`
    /// bytes are reserved, as far as descriptors and bitmaps can be read. O(pages).
    pub fn blocks_of(&self, bytes: u64, each: &mut dyn FnMut(u64)) {
        let Some(class) = self.classes.for_bytes(bytes) else { return };
        let Some(shape) = self.classes.get(class.into()) else { return };
        for page in FIRST_PAGE..self.image.pages() {
            if self.refuse_lost(descriptor_offset(page), 1).is_err() {
                continue;
            }
            let Ok(descriptor) = self.image.descriptor(page) else { continue };
            if (descriptor.kind, descriptor.class.get()) != (KIND_RUN, u16::from(class))
                || page + shape.run_pages > self.image.pages()
                || self.refuse_lost(page * PAGE_BYTES, 1).is_err()
            {
                continue;
            }
            for index in 0..shape.block_count {
                let word = self.image.bitmap_word(page, shape, (index / 64) as usize);
                if word.is_ok_and(|word| word >> (index % 64) & 1 == 1) {
                    each(page * PAGE_BYTES + shape.blocks_start + index * shape.block_bytes);
                }
            }
        }
    }

    /// The location of a block, whatever of it is lost; `None` if its descriptor is lost.
    fn place(&self, block: u64) -> Result<Option<BlockLocation>> {
        let page = block / PAGE_BYTES;
        if page >= self.image.pages() || page < FIRST_PAGE {
            return Err(Error::InvalidPointer { offset: block, what: "lies beyond the heap" });
        }
        if self.refuse_lost(descriptor_offset(page), 1).is_err() {
            return Ok(None);
        }
        Ok(Some(self.image.locate(&self.classes, block)?))
    }

    /// The length of a block, and its readable ranges: those on no lost page.
    ///
    /// # Errors
    /// `Error::InvalidPointer` unless a block starts there.
    pub fn whole_parts(&self, block: u64) -> Result<(usize, Vec<Range<usize>>)> {
        let Some(place) = self.place(block)? else {
            let bytes = self.undescribed(block)?.len();
            return Ok((bytes, vec![Range { start: 0, end: bytes }]));
        };
        let (mut parts, mut start, end) = (Vec::new(), block, block + place.bytes());
        for &page in self.lost.range(block - block % PAGE_BYTES..end) {
            parts.push((start, page));
            start = page + PAGE_BYTES;
        }
        parts.push((start, end));
        let within = |at: u64| (at - block) as usize;
        let parts = parts.into_iter().filter(|(start, end)| start < end);
        Ok((within(end), parts.map(|(start, end)| within(start)..within(end)).collect()))
    }

    /// Refuses a range that touches a lost page.
    fn refuse_lost(&self, offset: u64, len: u64) -> Result<()> {
        let first = offset - offset % PAGE_BYTES;
        match self.lost.range(first..offset + len).next() {
            None => Ok(()),
            Some(&page) => Err(Error::Damaged {
                file: self.file.clone(),
                offset: file_offset(page),
                what: "lies on a page that is not what was written".into(),
            }),
        }
    }

    /// The bytes of a block whose descriptor is lost: up to the end of its page, or of the pages
    /// after it that are whole and whose descriptors are lost too. The caller knows the length.
    fn undescribed(&self, offset: u64) -> Result<&[u8]> {
        self.refuse_lost(offset, 1)?;
        let mut page = offset / PAGE_BYTES + 1;
        while page < self.image.pages()
            && self.refuse_lost(page * PAGE_BYTES, 1).is_ok()
            && self.refuse_lost(descriptor_offset(page), 1).is_err()
        {
            page += 1;
        }
        self.image.bytes(offset, page * PAGE_BYTES - offset)
    }
}

impl Read for Salvage {
    fn block(&self, block: u64) -> Result<&[u8]> {
        let Some(place) = self.place(block)? else { return self.undescribed(block) };
        self.refuse_lost(block, place.bytes())?;
        self.image.bytes(block, place.bytes())
    }

    fn part(&self, block: u64, at: usize, len: usize) -> Result<&[u8]> {
        let Some(place) = self.place(block)? else {
            return part_of(self.undescribed(block)?, block, at, len);
        };
        let (start, len) = (at as u64, len as u64);
        if start.checked_add(len).is_none_or(|end| end > place.bytes()) {
            return part_of(&[], block, at, 1);
        }
        self.refuse_lost(block + start, len)?;
        self.image.bytes(block + start, len)
    }

    fn prefetch(&self, _offset: u64) {}
}

/// The pages of a pool, with its log applied to them.
struct Pages {
    image: Image,
    /// Heap offsets of the pages that are not what was written.
    lost: BTreeSet<u64>,
    last_sequence: u64,
    records: u64,
}

/// Verifies the pages and applies the log.
fn pages_of(pool: &PoolFile, log: &dyn Directory, note: &mut dyn FnMut(Error)) -> Result<Pages> {
    let newest = pool.newest_checkpoint()?;
    // Without a checkpoint it is unknown which tables count.
    let doubt =
        newest.map_or(Ok(Doubt::default()), |newest| Doubt::read(pool, newest.number.get()))?;
    let mut lost = BTreeSet::new();
    pool.verify(&mut |page, error| {
        if !doubt.has(page) {
            lost.insert(page);
            note(error);
        }
    })?;
    let Validated { newest, tails, .. } = validate(pool, Some(log), &mut |error| {
        note(error);
        Ok(())
    })?;
    let (pages, kind) = (pool.pages_backed(), ImageKind::default());
    let image = Image::map(pool.file(), pages, HEAP_BYTES_MAX, Bounds::NONE, kind)?;
    let pages = newest.map_or(0, |newest| newest.pages.get());
    if image.pages() < pages {
        // Pages that the cut took are zero in memory, and lost unless the log has them.
        lost.extend((image.pages()..pages).map(|page| page * PAGE_BYTES));
        let table = descriptor_offset(image.pages()).next_multiple_of(PAGE_BYTES);
        lost.extend((table..descriptor_offset(pages)).step_by(PAGE_BYTES as usize));
        image.grow(pages)?;
    }
    let mut exclusive = image.write();
    let mut private = Private::new(pool, &mut exclusive, &doubt, lost)?;
    for tail in &tails {
        private.lay(tail, &mut |error| {
            note(error);
            Ok(())
        })?;
    }
    let (_, lost) = private.finish()?;
    drop(exclusive);
    let applied = newest.map_or(0, |newest| newest.applied.get());
    let last_sequence = tails.last().map_or(applied, Tail::last_sequence);
    let records = tails.iter().map(Tail::records).sum();
    Ok(Pages { image, lost, last_sequence, records })
}

/// Checks descriptors, runs, extents and named roots by the rules of the allocator.
fn structure(
    image: &Image,
    classes: &ClassTable,
    file: &Path,
    note: &mut dyn FnMut(Error),
) -> CheckReport {
    let (mut report, mut reached) = (CheckReport::default(), Reached::default());
    let mut checker = Checker { image, classes, file, report: &mut report };
    let mut structure = || {
        while !checker.part(&mut reached, 0)? {}
        checker.named_roots()
    };
    if let Err(error) = structure() {
        note(error);
    }
    report
}

/// Opens the pool, even one whose header is lost, if its identity is known from elsewhere.
fn open_pool(
    file: &Arc<dyn File>,
    log: &dyn Directory,
    findings: &mut Vec<Finding>,
) -> Result<PoolFile> {
    let error = match PoolFile::open(Arc::clone(file)) {
        Ok(pool) => return Ok(pool),
        Err(error @ Error::Medium(_)) => return Err(error),
        Err(error) => error,
    };
    if matches!(error, Error::Unsupported { .. }) && has_magic(file.as_ref())? {
        // It has another version and is not damaged.
        return Err(error);
    }
    let Some(pool) = PoolFile::open_headless(file, &identities(log)?)? else { return Err(error) };
    findings.push(Finding::of(error, file.path()));
    Ok(pool)
}

/// The class table; if it is lost, the initial one of every heap.
fn load_classes(
    image: &Image,
    lost: &BTreeSet<u64>,
    file: &Path,
    note: &mut dyn FnMut(Error),
) -> Result<ClassTable> {
    let is_whole = !lost.contains(&ROOT_OFFSET) && !lost.contains(&CLASS_TABLE_OFFSET);
    if is_whole {
        match read_root(image, file) {
            Ok((_, classes)) => return Ok(classes),
            Err(error) => note(error),
        }
    }
    initial_table(file)
}
