//! The model of a heap's contents after each commit, and its verification.

use std::sync::Arc;

use adamant_heap::{Error, Flushing, Heap, Options, Read, Recovery, Result, Salvage};
use adamant_medium::storage::Directory;
use adamant_sim::{Promise, SimDirectory, SimDisk};

/// Blocks that the workload has at most, apart from the header.
pub(crate) const SLOTS: usize = 24;
/// Bytes of the header: the number of the commit, then offset and length by slot.
pub(crate) const HEADER_BYTES: usize = 8 + SLOTS * 16;

/// Contents after a commit.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// The flushing of the heap.
    pub(crate) flushing: Flushing,
    pub(crate) commit: u64,
    pub(crate) slots: Vec<Option<Arc<Vec<u8>>>>,
    /// Blocks that may be allocated beside those, published after this commit.
    pub(crate) loose_max: u64,
}

impl Model {
    pub(crate) fn empty(flushing: Flushing) -> Model {
        Model { flushing, commit: 0, slots: vec![None; SLOTS], loose_max: 0 }
    }

    /// Panics unless the heap holds exactly these contents.
    pub(crate) fn verify(&self, heap: &Heap) {
        let view = heap.view().expect("this is no fork");
        self.verify_read(&view, view.root(0));
    }

    /// The same, for any reader of a heap; `header` is its root.
    pub(crate) fn verify_read(&self, read: &impl Read, header: u64) {
        if self.commit == 0 {
            assert_eq!(header, 0, "a heap without a commit has a root");
            return;
        }
        assert_eq!(word(read, header, 0), self.commit);
        for (slot, expected) in self.slots.iter().enumerate() {
            let (block, len) = slot_at(read, header, slot);
            match expected {
                None => assert_eq!((block, len), (0, 0), "slot {slot} should be empty"),
                Some(bytes) => {
                    assert_eq!(len, bytes.len() as u64, "length of slot {slot}");
                    let found = &read.block(block).unwrap()[..bytes.len()];
                    assert!(found == bytes.as_slice(), "slot {slot} of {len} bytes differs");
                }
            }
        }
    }

    /// Blocks that are allocated: no more, or something leaked.
    pub(crate) fn block_count(&self) -> u64 {
        let filled = self.slots.iter().flatten().count() as u64;
        filled + u64::from(self.commit > 0)
    }
}

/// The word at a byte of a block.
pub(crate) fn word(heap: &impl Read, block: u64, at: usize) -> u64 {
    let bytes = &heap.block(block).unwrap()[at..at + 8];
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Offset and length of a slot's block.
pub(crate) fn slot_at(heap: &impl Read, header: u64, slot: usize) -> (u64, u64) {
    (word(heap, header, 8 + slot * 16), word(heap, header, 16 + slot * 16))
}

/// The number of the last commit that a heap shows.
pub(crate) fn commit_of(heap: &Heap) -> u64 {
    let view = heap.view().expect("this is no fork");
    match view.root(0) {
        0 => 0,
        header => word(&view, header, 0),
    }
}

/// Opens the heap on a disk, without background threads, with the smallest possible log.
pub(crate) fn open(disk: &SimDisk, flushing: Flushing) -> Result<(Heap, Recovery)> {
    open_bounded(disk, flushing, u64::MAX)
}

/// The same, with a bound of its memory.
pub(crate) fn open_bounded(
    disk: &SimDisk,
    flushing: Flushing,
    memory_bytes_max: u64,
) -> Result<(Heap, Recovery)> {
    let mut options = Options::default();
    options.flushing = flushing;
    options.log_bytes_max = 4 << 20;
    options.address_bytes_max = 256 << 20;
    options.deferred_bytes_max = 64 << 10;
    options.background = false;
    options.memory_bytes_max = memory_bytes_max;
    Heap::open(Arc::new(SimDirectory::root(disk)), options)
}

/// Recovers a disk, and panics unless it holds one of the promised commits, whole, in a heap
/// without a fault or a leak. Returns the heap and the commit.
pub(crate) fn verify(disk: &SimDisk, models: &[Model], promise: Promise) -> (Heap, u64) {
    let exists = SimDirectory::root(disk).open("pool").unwrap().is_some();
    assert!(exists || !promise.created, "a heap that was created is gone");
    // Some are first opened read-only: that must see the same, and leave no trace.
    let seen = match promise.least % 9 {
        0 | 3 | 6 if exists => Some(look_at(disk, models)),
        1 if exists => Some(salvage(disk, models)),
        _ => None,
    };
    let (heap, _) =
        open(disk, models[0].flushing).unwrap_or_else(|error| panic!("recovery failed: {error:?}"));
    let commit = commit_of(&heap);
    assert!(seen.is_none_or(|seen| seen == commit), "{seen:?} was read, {commit} recovered");
    let promised = promise.least..=promise.most;
    assert!(promised.contains(&commit), "commit {commit} was recovered, {promise:?}");
    let model = &models[commit as usize];
    model.verify(&heap);
    let report = heap.check().unwrap();
    assert!(report.is_clean(), "after commit {commit}: {:#?}", report.findings);
    let blocks = model.block_count()..=model.block_count() + model.loose_max;
    assert!(blocks.contains(&report.blocks), "{} blocks after commit {commit}", report.blocks);
    (heap, commit)
}

/// Reads a disk as `repair` does, and panics unless that yields a commit, whole, with no findings.
/// Returns the commit.
fn salvage(disk: &SimDisk, models: &[Model]) -> u64 {
    let directory = Arc::new(SimDirectory::root(disk)) as Arc<dyn Directory>;
    let salvage = Salvage::open(&directory).unwrap_or_else(|error| panic!("{error:?}"));
    assert!(salvage.findings().is_empty(), "{:#?}", salvage.findings());
    let header = salvage.root(0).unwrap();
    let commit = if header == 0 { 0 } else { word(&salvage, header, 0) };
    models[commit as usize].verify_read(&salvage, header);
    commit
}

/// Opens the heap read-only, twice, and panics unless it holds a commit, whole, and nothing is
/// changed. Returns the commit.
fn look_at(disk: &SimDisk, models: &[Model]) -> u64 {
    let mut options = Options::default();
    options.read_only = true;
    options.address_bytes_max = 256 << 20;
    let before = disk.operation_count();
    let directory = Arc::new(SimDirectory::root(disk));
    // A process that died while creating the heap left no lock.
    if directory.open("lock").unwrap().is_none() {
        drop(directory.lock("lock").unwrap());
        return look_at(disk, models);
    }
    let open = || Heap::open(Arc::clone(&directory) as _, options.clone());
    let (heap, _) = open().unwrap_or_else(|error| panic!("reading failed: {error:?}"));
    let commit = commit_of(&heap);
    models[commit as usize].verify(&heap);
    let report = open().unwrap().0.check().unwrap();
    assert!(report.is_clean(), "reading commit {commit}: {:#?}", report.findings);
    let error = heap.transaction(adamant_heap::Durability::Sync, |tx| tx.set_root(2, 1));
    assert!(matches!(error, Err(Error::ReadOnly)), "{error:?}");
    assert!(matches!(heap.reserve(8), Err(Error::ReadOnly)), "reserved");
    heap.close().unwrap();
    drop(heap);
    let after = (before..disk.operation_count()).map(|at| disk.describe(at));
    let changes: Vec<_> = after.flatten().filter(|text| !text.contains("fence")).collect();
    assert!(changes.is_empty(), "{changes:?}");
    commit
}

/// Whether an error says that an earlier one was fatal.
pub(crate) fn is_poisoned(error: &Error) -> bool {
    matches!(error, Error::Poisoned { .. })
}
