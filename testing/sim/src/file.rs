//! The state of one file: visible contents, durable contents, and the versions in between.
//!
//! Invariants: `visible` and `durable` hold nothing beyond their lengths; a page differs between
//! them only if `unsynced` has it or `lines` has one of its lines; the versions of a page are in
//! the order of their operations.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread::ThreadId;

use crate::choice::{Decisions, Doubts};
use crate::lines::{LINE_BYTES, Line, Lines};
use crate::pages::{
    PAGE_BYTES, Page, Pages, Part, SECTOR_BYTES, SECTORS, Space, pages_of, parts, place,
};

/// The state of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileState {
    /// The path of its creation, for messages.
    pub(crate) path: Arc<Path>,
    visible: Extent,
    durable: Extent,
    unsynced: BTreeMap<u64, Unsynced>,
    /// Whether it was mapped and stored to: from then on all changes are of lines.
    mapped: bool,
    lines: Lines,
    /// Lengths since the last successful sync, with the operations that set them.
    lengths: Vec<(u64, u64)>,
    /// The last operation that took or gave back space.
    space_operation: u64,
    /// Pages that were punched since the last successful sync.
    punched: BTreeSet<u64>,
    /// Cuts of the length by operations before this one are durable.
    settled: u64,
}

#[derive(Clone, Debug, Default)]
struct Extent {
    pages: Pages,
    len: u64,
    space: Space,
}

/// The changes of a page since it was durable.
#[derive(Clone, Debug, Default)]
struct Unsynced {
    versions: Vec<Version>,
    /// Sectors that a failed sync left looking clean.
    doubtful: u8,
}

#[derive(Clone, Debug)]
struct Version {
    operation: u64,
    page: Arc<Page>,
    /// The sectors that the operation changed.
    sectors: u8,
    /// Whether it was a cut of the length: it survives with the length, not independently.
    cut: bool,
}

impl FileState {
    pub(crate) fn new(path: Arc<Path>) -> FileState {
        FileState {
            path,
            visible: Extent::default(),
            durable: Extent::default(),
            unsynced: BTreeMap::new(),
            mapped: false,
            lines: Lines::default(),
            lengths: Vec::new(),
            space_operation: 0,
            punched: BTreeSet::new(),
            settled: 0,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.visible.len
    }

    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) {
        self.visible.pages.read(buffer, offset);
    }

    /// As `read`, into a buffer of zeros.
    pub(crate) fn read_over_zeros(&self, buffer: &mut [u8], offset: u64) {
        self.visible.pages.read_over_zeros(buffer, offset);
    }

    /// The space it takes.
    pub(crate) fn space(&self) -> &Space {
        &self.visible.space
    }

    /// The first of some bytes that no successful sync covers.
    pub(crate) fn unsynced_in(&self, offset: u64, len: u64) -> Option<u64> {
        let found = self.unsynced.range(pages_of(offset, len)).next();
        found.map(|(page, _)| page * PAGE_BYTES as u64)
    }

    pub(crate) fn write(&mut self, operation: u64, bytes: &[u8], offset: u64) {
        for part in parts(offset, bytes.len()) {
            if self.mapped {
                self.write_lines(operation, &part, &bytes[part.buffer.clone()]);
                continue;
            }
            // Bytes that change nothing add no version: zeros for a new log file, for example,
            // would be thousands. But they do repair sectors that a failed sync left in doubt.
            let doubtful = self.unsynced.get(&part.page).map_or(0, |unsynced| unsynced.doubtful);
            let changed = self.visible.pages.changed(&part, &bytes[part.buffer.clone()]);
            let sectors = changed | doubtful & part.sectors();
            if sectors != 0 {
                let page = self.visible.pages.page_mut(part.page);
                page[part.within].copy_from_slice(&bytes[part.buffer]);
                self.add_version(operation, part.page, sectors, false);
            }
        }
        if !bytes.is_empty() {
            self.grow(operation, offset + bytes.len() as u64);
            self.take_space(operation, offset, bytes.len() as u64);
        }
    }

    /// A write to a mapped file is stores like any other, except for its sync.
    fn write_lines(&mut self, operation: u64, part: &Part, bytes: &[u8]) {
        let page = self.visible.pages.get(part.page);
        let mut page = page.map_or([0; PAGE_BYTES], |page| **page);
        page[part.within.clone()].copy_from_slice(bytes);
        for (line, bytes) in self.changed_lines(part.page, &page) {
            self.store(operation, line, &bytes);
        }
    }

    pub(crate) fn is_mapped(&self) -> bool {
        self.mapped
    }

    /// Whether a line is in doubt, so that it may be torn.
    pub(crate) fn has_torn_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    /// The visible contents, by page; pages that are missing are zero.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (u64, &Page)> {
        self.visible.pages.iter()
    }

    /// Adds what a program can read of it: its length, its space and its bytes.
    pub(crate) fn hash_visible(&self, hasher: &mut impl Hasher) {
        let Extent { pages, len, space } = &self.visible;
        (len, space).hash(hasher);
        for (number, page) in pages.iter().filter(|(_, page)| **page != [0; PAGE_BYTES]) {
            (number, page).hash(hasher);
        }
    }

    /// The lines of a page that differ from the last observation.
    pub(crate) fn changed_lines(&self, number: u64, page: &Page) -> Vec<(u64, Line)> {
        let known = self.visible.pages.get(number).map_or(&[0; PAGE_BYTES], |page| page.as_ref());
        if known == page {
            return Vec::new();
        }
        let (known, _) = known.as_chunks::<LINE_BYTES>();
        let (found, _) = page.as_chunks::<LINE_BYTES>();
        let first = number * (PAGE_BYTES / LINE_BYTES) as u64;
        let lines = (first..).zip(known.iter().zip(found));
        lines
            .filter(|(_, (known, found))| known != found)
            .map(|(at, (_, &found))| (at, found))
            .collect()
    }

    /// A line of mapped memory was observed to hold `bytes`.
    pub(crate) fn store(&mut self, operation: u64, line: u64, bytes: &Line) {
        self.mapped = true;
        self.visible.pages.set_line(line, bytes);
        self.lines.store(operation, line, bytes);
    }

    pub(crate) fn flush(&mut self, lines: Range<u64>, thread: ThreadId) {
        self.lines.flush(lines, thread);
    }

    pub(crate) fn fence(&mut self, thread: ThreadId) {
        let (durable, unsynced) = (&mut self.durable.pages, &mut self.unsynced);
        self.lines.fence(thread, |line, bytes| {
            durable.set_line(line, bytes);
            // A write before the mapping may have left the page in doubt; these bytes are newer.
            let (page, within) = place(line);
            for version in unsynced.get_mut(&page).iter_mut().flat_map(|page| &mut page.versions) {
                Arc::make_mut(&mut version.page)[within.clone()].copy_from_slice(bytes);
            }
        });
    }

    pub(crate) fn forget_flushes(&mut self) {
        self.lines.forget_flushes();
    }

    pub(crate) fn allocate(&mut self, operation: u64, offset: u64, len: u64) {
        self.grow(operation, offset + len);
        self.take_space(operation, offset, len);
    }

    /// Makes whole pages zero and gives their space back; each sector, or line, independently.
    pub(crate) fn punch(&mut self, operation: u64, offset: u64, len: u64) {
        let pages = pages_of(offset, len);
        for number in self.visible.pages.numbers_in(pages.clone()) {
            if self.mapped {
                for (line, bytes) in self.changed_lines(number, &[0; PAGE_BYTES]) {
                    self.store(operation, line, &bytes);
                }
            } else {
                self.visible.pages.clear(number);
                self.add_version(operation, number, u8::MAX, false);
            }
        }
        // A crash may leave the space or not, also of pages that were never written.
        let before = self.visible.space.count();
        self.visible.space.remove(pages.clone());
        if self.visible.space.count() != before {
            self.space_operation = operation;
        }
        self.punched.extend(pages);
    }

    pub(crate) fn set_len(&mut self, operation: u64, len: u64) {
        if len >= self.visible.len {
            return self.grow(operation, len);
        }
        let first = len / PAGE_BYTES as u64;
        let beyond =
            |pages: &Pages| pages.numbers().filter(|&page| page >= first).collect::<Vec<_>>();
        let mut changed: BTreeSet<u64> =
            self.unsynced.range(first..).map(|(&page, _)| page).collect();
        changed.extend(beyond(&self.visible.pages));
        changed.extend(beyond(&self.durable.pages));
        self.visible.pages.cut(len);
        for page in changed {
            let kept_bytes = len.saturating_sub(page * PAGE_BYTES as u64) as usize;
            let sectors = (0xff_u16 << (kept_bytes / SECTOR_BYTES)) as u8;
            self.add_version(operation, page, sectors, true);
        }
        self.visible.len = len;
        self.lengths.push((operation, len));
        self.visible.space.cut(len.div_ceil(PAGE_BYTES as u64));
        self.space_operation = operation;
    }

    fn grow(&mut self, operation: u64, len: u64) {
        if len > self.visible.len {
            self.visible.len = len;
            self.lengths.push((operation, len));
        }
    }

    fn take_space(&mut self, operation: u64, offset: u64, bytes: u64) {
        let pages = pages_of(offset, bytes);
        if self.visible.space.missing(pages.clone()) > 0 {
            self.visible.space.insert(pages);
            self.space_operation = operation;
        }
    }

    fn add_version(&mut self, operation: u64, number: u64, sectors: u8, cut: bool) {
        let page = self.visible.pages.get(number).cloned();
        let page = page.unwrap_or_else(|| Arc::new([0; PAGE_BYTES]));
        let unsynced = self.unsynced.entry(number).or_default();
        unsynced.versions.push(Version { operation, page, sectors, cut });
        unsynced.doubtful &= !sectors;
    }

    /// A sync that succeeds.
    pub(crate) fn sync(&mut self, operation: u64) {
        self.unsynced.retain(|&number, unsynced| {
            if unsynced.doubtful == 0 {
                self.durable.pages.take_page(number, &self.visible.pages);
                return false;
            }
            let newest = self.visible.pages.get(number);
            let durable = self.durable.pages.page_mut(number);
            for sector in (0..SECTORS).filter(|&sector| unsynced.doubtful & 1 << sector == 0) {
                let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                match newest {
                    Some(page) => durable[bytes.clone()].copy_from_slice(&page[bytes]),
                    None => durable[bytes].fill(0),
                }
            }
            for version in &mut unsynced.versions {
                version.sectors &= unsynced.doubtful;
            }
            unsynced.versions.retain(|version| version.sectors != 0);
            true
        });
        self.lines.sync(|line, bytes| self.durable.pages.set_line(line, bytes));
        self.durable.len = self.visible.len;
        self.durable.space = self.visible.space.clone();
        self.lengths.clear();
        for page in std::mem::take(&mut self.punched) {
            // A page of zeros without space takes none, however it arose.
            if self.visible.space.missing(page..page + 1) > 0 {
                self.visible.pages.clear(page);
                self.durable.pages.clear(page);
            }
        }
        self.settled = operation + 1;
    }

    /// A sync that fails: all that it should have written looks clean from now on.
    pub(crate) fn sync_failed(&mut self) {
        for unsynced in self.unsynced.values_mut() {
            unsynced.doubtful =
                unsynced.versions.iter().fold(0, |set, version| set | version.sectors);
        }
        self.lines.sync_failed();
    }

    /// Adds the things in doubt here, in the order in which `crash` asks.
    pub(crate) fn doubts(&self, doubts: &mut Doubts) {
        doubts.add(self.lengths.iter().map(|&(operation, _)| operation));
        let space_differs = self.visible.space != self.durable.space;
        doubts.add(space_differs.then_some(self.space_operation).into_iter());
        for unsynced in self.unsynced.values() {
            for sector in 0..SECTORS {
                let versions = unsynced.versions.iter().filter(|version| version.has(sector));
                doubts.add(versions.map(|version| version.operation));
            }
        }
        self.lines.doubts(doubts, |line| self.durable.pages.line(line));
    }

    /// The file after a power cut: all that is left of it is durable.
    pub(crate) fn crash(&self, decisions: &mut Decisions) -> FileState {
        let mut left = self.durable.clone();
        // Cuts of the length before this operation survive.
        let mut cuts_end = self.settled;
        let length = decisions.next(self.lengths.len());
        if length > 0 {
            let (operation, len) = self.lengths[length - 1];
            (cuts_end, left.len) = (operation + 1, len);
        }
        let space_differs = self.visible.space != self.durable.space;
        if decisions.next(usize::from(space_differs)) > 0 {
            left.space = self.visible.space.clone();
        }
        for (&number, unsynced) in &self.unsynced {
            for sector in 0..SECTORS {
                let decided = decisions.next(unsynced.version_count(sector));
                if let Some(version) = unsynced.survivor(sector, decided, cuts_end) {
                    let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                    let page = left.pages.page_mut(number);
                    page[bytes.clone()].copy_from_slice(&version.page[bytes]);
                }
            }
        }
        let base = |line| self.durable.pages.line(line);
        self.lines.crash(decisions, base, |line, operation, within, bytes| {
            if self.survives_cuts(line, operation, cuts_end) {
                let (page, place) = place(line);
                left.pages.page_mut(page)[place][within].copy_from_slice(bytes);
            }
        });
        left.pages.cut(left.len);
        left.space.cut(left.len.div_ceil(PAGE_BYTES as u64));
        for &page in &self.punched {
            // Zeros that survive do so as a hole.
            if left.pages.get(page).is_some_and(|page| **page == [0; PAGE_BYTES]) {
                left.pages.clear(page);
            }
        }
        // What survives takes space, whether or not that of its operation did. Of a mapped file
        // any page may have come before its space.
        let numbers: Vec<u64> = match self.mapped {
            true => left.pages.numbers().collect(),
            false => self.unsynced.keys().copied().collect(),
        };
        for page in numbers.into_iter().filter(|page| left.pages.get(*page).is_some()) {
            left.space.insert(page..page + 1);
        }
        let durable = left.clone();
        FileState { visible: left, durable, ..FileState::new(self.path.clone()) }
    }
}

impl FileState {
    /// Whether a version of a line may survive: none that a surviving cut of the length removed,
    /// none that is younger than a cut that is lost.
    fn survives_cuts(&self, line: u64, operation: u64, cuts_end: u64) -> bool {
        let end = (line + 1) * LINE_BYTES as u64;
        let cuts = self.lengths.iter().filter(|(_, len)| *len < end);
        cuts.into_iter().all(|&(cut, _)| (cut < cuts_end) == (cut < operation))
    }
}

impl Version {
    fn has(&self, sector: usize) -> bool {
        self.sectors & 1 << sector != 0
    }
}

impl Unsynced {
    fn version_count(&self, sector: usize) -> usize {
        self.versions.iter().filter(|version| version.has(sector)).count()
    }

    /// The version of a sector that survives: the chosen one, or the nearest to it between the last
    /// cut of the length that survives and the first that does not; `None`: the durable one.
    fn survivor(&self, sector: usize, decided: usize, cuts_end: u64) -> Option<&Version> {
        let mut survivor = None;
        let versions = self.versions.iter().filter(|version| version.has(sector));
        for (version, number) in versions.zip(1..) {
            if version.cut && version.operation >= cuts_end {
                break;
            }
            if version.cut || number <= decided {
                survivor = Some(version);
            }
        }
        survivor
    }
}
