//! One file: what a program sees, what is durable, and the versions in between.
//!
//! Invariants: `visible` and `durable` hold nothing beyond their lengths; a page differs between
//! them only if `unsynced` has it; the versions of a page are in the order of their operations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::choice::{Decisions, Doubts};
use crate::pages::{PAGE_BYTES, Page, Pages, SECTOR_BYTES, SECTORS, Space, pages_of, parts};

/// The state of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileState {
    /// Where it was created, for messages.
    pub(crate) path: Arc<Path>,
    visible: Extent,
    durable: Extent,
    unsynced: BTreeMap<u64, Unsynced>,
    /// Lengths since the last successful sync, with the operations that set them.
    lengths: Vec<(u64, u64)>,
    /// The last operation that took or gave back space.
    space_operation: u64,
    /// Cuts of the length by operations before this one are durable.
    settled: u64,
}

#[derive(Clone, Debug, Default)]
struct Extent {
    pages: Pages,
    len: u64,
    space: Space,
}

/// What happened to a page since it was durable.
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
    /// Whether it was a cut of the length: it survives with the length, not by itself.
    cut: bool,
}

impl FileState {
    pub(crate) fn new(path: Arc<Path>) -> FileState {
        FileState {
            path,
            visible: Extent::default(),
            durable: Extent::default(),
            unsynced: BTreeMap::new(),
            lengths: Vec::new(),
            space_operation: 0,
            settled: 0,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.visible.len
    }

    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) {
        self.visible.pages.read(buffer, offset);
    }

    /// The space it takes.
    pub(crate) fn space(&self) -> &Space {
        &self.visible.space
    }

    pub(crate) fn write(&mut self, operation: u64, bytes: &[u8], offset: u64) {
        for part in parts(offset, bytes.len()) {
            // Bytes that change nothing add no version: zeros for a new log file, for example,
            // would be thousands. But they do heal what a failed sync left in doubt.
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

    pub(crate) fn allocate(&mut self, operation: u64, offset: u64, len: u64) {
        self.grow(operation, offset + len);
        self.take_space(operation, offset, len);
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
        self.durable.len = self.visible.len;
        self.durable.space = self.visible.space.clone();
        self.lengths.clear();
        self.settled = operation + 1;
    }

    /// A sync that fails: all that it should have written looks clean from now on.
    pub(crate) fn sync_failed(&mut self) {
        for unsynced in self.unsynced.values_mut() {
            unsynced.doubtful =
                unsynced.versions.iter().fold(0, |set, version| set | version.sectors);
        }
    }

    /// Adds what is in doubt here, in the order in which `crash` asks.
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
        left.pages.cut(left.len);
        left.space.cut(left.len.div_ceil(PAGE_BYTES as u64));
        for page in left.pages.numbers() {
            left.space.insert(page..page + 1);
        }
        let durable = left.clone();
        FileState { visible: left, durable, ..FileState::new(self.path.clone()) }
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

    /// The version of a sector that survives: the one decided for, or the nearest to it between
    /// the last cut of the length that survives and the first that does not; `None`: the durable
    /// one.
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
