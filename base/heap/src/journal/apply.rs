//! The applier: takes records of the log to the pool file.
//!
//! Purpose: the only code that changes data pages of the pool file, used for checkpoints and for
//! recovery alike. It never looks at the image.
//! Invariants: only whole records are applied, in their order, so doing it again gives the same
//! pages. A page is judged by its checksum before anything is laid over it (damage must not get a
//! fresh checksum), except in recovery, where a crash may have torn what an applier was writing.
//! Memory is bounded by the window, whatever the size of log and pool.
//! Thread safety: one applier at a time.
//!
//! A window takes some megabytes of log and sorts what they change by page, because records name
//! the same pages over and over and a `pwrite` costs 1.8 us: each page is read, summed and
//! written once per window, neighbours by one call.

use adamant_medium::error::Result as MediumResult;
use adamant_wire::checksum::page_sum;
use adamant_wire::frame::Kind;
use adamant_wire::mutants::is_planted;
use zerocopy::FromBytes;

use super::by_page::ByPage;
use super::chain::{ChainReader, Cursor, Step};
use super::files::Used;
use super::holds::Filter;
use super::record::{CommitHead, Entries, Entry};
use crate::error::{Error, Result};
use crate::layout::{
    DESCRIPTOR_BYTES, Descriptor, HEAP_BYTES_MAX, KIND_EXTENT, KIND_RUN, KIND_RUN_CONTINUED,
    PAGE_BYTES, TABLE_BASE, ZONE_BYTES, ZONE_PAGES, ZONE_TABLE_PAGES, file_offset, sum_file_offset,
};
use crate::pool_file::PoolFile;

/// Bytes of changes in a window at most, give or take a frame.
const WINDOW_BYTES: usize = 8 << 20;
/// Changes in a window at most, give or take a frame's; each takes 64 bytes of memory.
const WINDOW_CHANGES: usize = 256 << 10;
/// Pages written by one call at most: 1 MiB.
const RUN_PAGES: usize = 256;
/// End of the descriptor tables of the largest heap.
const TABLE_END: u64 = TABLE_BASE + HEAP_BYTES_MAX / PAGE_BYTES * DESCRIPTOR_BYTES;

/// Who applies, and so what may be assumed about pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A running store: pages are whole, and the pool was grown before the commit.
    Checkpoint,
    /// After a crash: the pool may be shorter than the log says, and where an applier was at work
    /// its pages may be torn.
    Recovery {
        /// Whether one was.
        torn: bool,
    },
}

impl Purpose {
    /// Whether pages are judged before anything is laid over them.
    fn judges(self) -> bool {
        match self {
            Self::Checkpoint => !is_planted("R7.applier-judges-no-page"),
            Self::Recovery { torn: false } => !is_planted("R7.recovery-judges-no-page"),
            Self::Recovery { torn: true } => is_planted("R7.torn-pages-are-damage"),
        }
    }
}

/// Applies all records from `start` to `end`, both ends of records, as far as `filter` takes what
/// they say. Syncs nothing. Returns the bytes written to the pool.
///
/// # Errors
/// `Error::Damaged` for a log that does not hold them or a page that is not what was written;
/// those of the medium.
pub(super) fn apply(
    pool: &PoolFile,
    files: &[Used],
    seed: u32,
    start: &Cursor,
    end: &Cursor,
    purpose: Purpose,
    filter: &mut Filter,
) -> Result<u64> {
    let mut before = *start;
    let mut reader = ChainReader::new(files, seed, start);
    let mut window = Window::new(pool, purpose);
    let mut sequence = start.sequence;
    while sequence < end.sequence {
        let (header, range) = match reader.next(sequence + 1)? {
            Step::Frame(header, range) => (header, range),
            Step::End(end) => return Err(end.damaged()),
        };
        let mut payload = reader.bytes(range);
        if header.kind == Kind::Commit {
            CommitHead::take(&mut payload);
            sequence += 1;
        }
        let at = reader.cursor(sequence);
        let damaged = |what: &str| damaged_record(files, &at, header.sequence, what);
        window.add(payload, &before, filter, &damaged)?;
        window.write_if_full()?;
        if header.kind == Kind::Commit {
            before = at;
        }
    }
    window.write()?;
    Ok(window.written_bytes)
}

/// Damage of the record whose last frame read ends at `at`.
pub(super) fn damaged_record(files: &[Used], at: &Cursor, sequence: u64, what: &str) -> Error {
    let used = files.iter().find(|used| used.ordinal == at.ordinal);
    Error::Damaged {
        file: used.map_or_else(Default::default, |used| used.file.file.path().into()),
        offset: at.position,
        what: format!("{what} (in record {sequence}, whose frame ends here)"),
    }
}

/// What a change does to its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Write,
    Set,
    Clear,
}

/// A change within one page.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// Heap offset of the page.
    page: u64,
    /// Where its bytes are in the window.
    source: u32,
    at: u16,
    len: u16,
    action: Action,
}

struct Window<'p> {
    pool: &'p PoolFile,
    purpose: Purpose,
    bytes: Vec<u8>,
    changes: Vec<Change>,
    /// Memory for ordering them.
    sorted: Vec<Change>,
    by_page: ByPage,
    run: Vec<u8>,
    sums: SumsPage<'p>,
    allocated: Allocated,
    written_bytes: u64,
}

impl<'p> Window<'p> {
    fn new(pool: &'p PoolFile, purpose: Purpose) -> Self {
        Self {
            pool,
            purpose,
            bytes: Vec::new(),
            changes: Vec::new(),
            sorted: Vec::new(),
            by_page: ByPage::default(),
            run: Vec::new(),
            sums: SumsPage { pool, at: None, bytes: [0; PAGE_BYTES as usize] },
            allocated: Allocated::default(),
            written_bytes: 0,
        }
    }

    /// Adds the entries of a frame of the record after `before`; `damaged` makes an error of what is
    /// wrong with one.
    fn add(
        &mut self,
        payload: &[u8],
        before: &Cursor,
        filter: &mut Filter,
        damaged: &dyn Fn(&str) -> Error,
    ) -> Result<()> {
        for entry in Entries::new(payload) {
            let added = match entry.map_err(damaged)? {
                Entry::Bytes { offset, bytes } if !filter.is_all() => {
                    filter.take(before, (offset, bytes), |offset, bytes| {
                        self.add_change(Action::Write, offset, bytes)
                    })
                }
                _ if filter.is_of_extents() => Ok(()),
                Entry::Bytes { offset, bytes } => {
                    if self.purpose != Purpose::Checkpoint {
                        self.allocated.add(offset, bytes);
                    }
                    self.add_change(Action::Write, offset, bytes)
                }
                Entry::Set { offset, mask } => {
                    self.add_change(Action::Set, offset, &mask.to_le_bytes())
                }
                Entry::Clear { offset, mask } => {
                    self.add_change(Action::Clear, offset, &mask.to_le_bytes())
                }
                Entry::Hole { offset, len } if is_pages(offset, len) => {
                    // What is written before and after it keeps its place in the order.
                    self.write()?;
                    self.pool.clear(offset / PAGE_BYTES, len / PAGE_BYTES)?;
                    Ok(())
                }
                Entry::Hole { .. } => Err("a hole of the record is no whole pages of any heap"),
            };
            added.map_err(damaged)?;
        }
        Ok(())
    }

    fn add_change(
        &mut self,
        action: Action,
        mut offset: u64,
        mut bytes: &[u8],
    ) -> std::result::Result<(), &'static str> {
        let end = offset.saturating_add(bytes.len() as u64);
        if end > HEAP_BYTES_MAX && (offset < TABLE_BASE || end > TABLE_END) {
            return Err("a change of the record lies outside of every heap");
        }
        while !bytes.is_empty() {
            let at = offset % PAGE_BYTES;
            let taken = bytes.len().min((PAGE_BYTES - at) as usize);
            let (now, rest) = bytes.split_at(taken);
            self.changes.push(Change {
                page: offset - at,
                source: self.bytes.len() as u32,
                at: at as u16,
                len: taken as u16,
                action,
            });
            self.bytes.extend_from_slice(now);
            offset += taken as u64;
            bytes = rest;
        }
        Ok(())
    }

    fn write_if_full(&mut self) -> Result<()> {
        if self.bytes.len() < WINDOW_BYTES && self.changes.len() < WINDOW_CHANGES {
            return Ok(());
        }
        self.write()
    }

    /// Brings all changes into the file and empties the window.
    fn write(&mut self) -> Result<()> {
        let mut changes = std::mem::take(&mut self.sorted);
        changes.clear();
        let order = self.by_page.order(self.changes.iter().map(|change| change.page / PAGE_BYTES));
        changes.extend(order.map(|place| self.changes[place]));
        self.back(&changes)?;
        let mut rest = &changes[..];
        while !rest.is_empty() {
            let (run, after) = rest.split_at(run_len(rest));
            self.write_run(run)?;
            rest = after;
        }
        self.sums.flush()?;
        self.allocated.back(self.pool)?;
        self.sorted = changes;
        self.changes.clear();
        self.bytes.clear();
        Ok(())
    }

    /// Sees to it that the file backs all pages that are named.
    fn back(&self, changes: &[Change]) -> Result<()> {
        let pages = changes.iter().map(pages_needed).max().unwrap_or(0);
        if pages <= self.pool.pages_backed() {
            return Ok(());
        }
        if self.purpose != Purpose::Checkpoint {
            return self.pool.grow(pages);
        }
        Err(Error::Damaged {
            file: self.pool.file().path().into(),
            offset: self.pool.file().len()?,
            what: format!(
                "expected the pool to back {pages} pages that the log names, found {}",
                self.pool.pages_backed()
            ),
        })
    }

    /// Writes the pages of a run of changes, whose pages follow each other.
    fn write_run(&mut self, changes: &[Change]) -> Result<()> {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return Ok(()) };
        let start = first.page;
        let pages = ((last.page - start) / PAGE_BYTES + 1) as usize;
        self.run.resize(pages * PAGE_BYTES as usize, 0);
        self.read_run(start, changes)?;
        for group in changes.chunk_by(|one, other| one.page == other.page) {
            let page_at = (group[0].page - start) as usize;
            let page = &mut self.run[page_at..page_at + PAGE_BYTES as usize];
            let sum = self.sums.at(group[0].page)?;
            if self.purpose.judges() && !is_overwritten(group) {
                self.pool.judge_page(group[0].page, page, u32::from_le_bytes(*sum))?;
            }
            for change in group {
                let source = &self.bytes[change.source as usize..][..change.len as usize];
                lay_over(&mut page[change.at as usize..][..change.len as usize], source, change);
            }
            if !is_planted("R7.sums-are-not-kept") {
                *sum = page_sum(page).to_le_bytes();
            }
        }
        self.pool.file().write_at(&self.run, file_offset(start))?;
        self.written_bytes += self.run.len() as u64;
        Ok(())
    }

    /// Reads those pages of a run that are not overwritten in full, neighbours by one call.
    fn read_run(&mut self, start: u64, changes: &[Change]) -> MediumResult<()> {
        let mut wanted = 0..0;
        for group in changes.chunk_by(|one, other| one.page == other.page) {
            if is_overwritten(group) {
                continue;
            }
            let page = (group[0].page - start) as usize;
            if page != wanted.end {
                self.read_range(start, wanted)?;
                wanted = page..page;
            }
            wanted.end += PAGE_BYTES as usize;
        }
        self.read_range(start, wanted)
    }

    fn read_range(&mut self, start: u64, range: std::ops::Range<usize>) -> MediumResult<()> {
        if range.is_empty() {
            return Ok(());
        }
        let offset = file_offset(start) + range.start as u64;
        self.pool.file().read_at(&mut self.run[range], offset)
    }
}

/// Pages that records make a part of an extent or a run. In recovery they are backed, written to
/// or not (R5): they may have been holes, and the crash may have taken their space back.
#[derive(Debug, Default)]
struct Allocated(Vec<(u64, u64)>);

impl Allocated {
    /// Notes the pages of descriptors among bytes that are written.
    fn add(&mut self, offset: u64, bytes: &[u8]) {
        let Some(at) = offset.checked_sub(TABLE_BASE) else { return };
        if !at.is_multiple_of(DESCRIPTOR_BYTES) {
            return;
        }
        let (words, _) = bytes.as_chunks::<{ DESCRIPTOR_BYTES as usize }>();
        for (page, word) in (at / DESCRIPTOR_BYTES..).zip(words) {
            let Ok(descriptor) = Descriptor::read_from_bytes(word) else { continue };
            let pages = match descriptor.kind {
                KIND_EXTENT => u64::from(descriptor.argument.get()),
                KIND_RUN | KIND_RUN_CONTINUED => 1,
                _ => continue,
            };
            match self.0.last_mut() {
                Some((_, end)) if *end == page => *end += pages,
                _ => self.0.push((page, page + pages)),
            }
        }
    }

    /// Backs them, as far as the file goes; it is grown to all that are allocated in the end.
    fn back(&mut self, pool: &PoolFile) -> Result<()> {
        self.0.sort_unstable();
        let backed = pool.pages_backed();
        let (mut done, mut zones_done) = (0, 0);
        for (start, end) in self.0.drain(..) {
            let (start, end) = (start.max(done), end.min(backed));
            if start >= end {
                continue;
            }
            let zones_end = end.div_ceil(ZONE_PAGES);
            pool.back_tables_of(zones_done.max(start / ZONE_PAGES)..zones_end)?;
            zones_done = zones_end;
            pool.back(start, end - start)?;
            done = end;
        }
        Ok(())
    }
}

/// Whether a range is whole pages of some heap.
fn is_pages(offset: u64, len: u64) -> bool {
    let end = offset.saturating_add(len);
    offset.is_multiple_of(PAGE_BYTES) && len.is_multiple_of(PAGE_BYTES) && end <= HEAP_BYTES_MAX
}

fn lay_over(target: &mut [u8], source: &[u8], change: &Change) {
    match change.action {
        Action::Write => target.copy_from_slice(source),
        Action::Set => target.iter_mut().zip(source).for_each(|(byte, mask)| *byte |= mask),
        Action::Clear => target.iter_mut().zip(source).for_each(|(byte, mask)| *byte &= !mask),
    }
}

/// Whether some change of a page replaces all of it.
fn is_overwritten(group: &[Change]) -> bool {
    group.iter().any(|change| u64::from(change.len) == PAGE_BYTES && change.action == Action::Write)
}

/// Data pages that the file must back for a change.
fn pages_needed(change: &Change) -> u64 {
    match change.page.checked_sub(TABLE_BASE) {
        Some(offset) => {
            (offset + u64::from(change.at) + u64::from(change.len)).div_ceil(DESCRIPTOR_BYTES)
        }
        None => change.page / PAGE_BYTES + 1,
    }
}

/// How many changes, sorted, belong to pages that follow each other in the file.
fn run_len(changes: &[Change]) -> usize {
    let Some(first) = changes.first() else { return 0 };
    let zone = |page: u64| match page.checked_sub(TABLE_BASE) {
        Some(offset) => (true, offset / (ZONE_TABLE_PAGES * PAGE_BYTES)),
        None => (false, page / ZONE_BYTES),
    };
    let mut page = first.page;
    for (index, change) in changes.iter().enumerate() {
        let breaks = change.page > page + PAGE_BYTES
            || change.page >= first.page + RUN_PAGES as u64 * PAGE_BYTES
            || zone(change.page) != zone(first.page);
        if breaks {
            return index;
        }
        page = change.page;
    }
    changes.len()
}

/// One page of checksums at a time: pages come sorted, so their sums do too.
struct SumsPage<'p> {
    pool: &'p PoolFile,
    /// File offset of the page held.
    at: Option<u64>,
    bytes: [u8; PAGE_BYTES as usize],
}

impl SumsPage<'_> {
    /// The checksum of a page, to be read and replaced.
    fn at(&mut self, heap_offset: u64) -> MediumResult<&mut [u8; 4]> {
        let offset = sum_file_offset(heap_offset);
        let within = (offset % PAGE_BYTES) as usize;
        let at = offset - within as u64;
        if self.at != Some(at) {
            self.flush()?;
            self.pool.file().read_at(&mut self.bytes, at)?;
            self.at = Some(at);
        }
        let (sums, _) = self.bytes.as_chunks_mut();
        Ok(&mut sums[within / 4])
    }

    /// Writes what is held.
    fn flush(&mut self) -> MediumResult<()> {
        if let Some(at) = self.at.take() {
            self.pool.file().write_at(&self.bytes, at)?;
        }
        Ok(())
    }
}
