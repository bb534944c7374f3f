//! The cost of one put, by counts: allocations, records, bytes of the log, syncs and calls that
//! write, and where memory is the storage backend fences and flushed lines; without a snapshot and
//! with one open. A count that grows is a put that has become slower on every machine.

// Windows would make other calls.
#![cfg(unix)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use adamant::{Durability, Flushing, Keyspace, Options, Store};
use adamant_heap::MemoryDirectory;

struct Counting;

thread_local!(static ALLOCATIONS: Cell<u64> = const { Cell::new(0) });

// SAFETY: every call goes to the system's allocator as it is; counting touches a cell of the
// thread, which needs no memory and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: our caller's promises are those that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; all memory came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const KEY: [u8; 20] = [7; 20];

/// The cost of a put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Costs {
    allocations: u64,
    records: u64,
    log_bytes: u64,
    syncs: u64,
    /// System calls that write, by this thread; 0 where the system does not count them.
    writes: u64,
    fences: u64,
    flushed_lines: u64,
}

impl Costs {
    fn now(store: &Store) -> Self {
        let journal = store.stats().expect("figures").heap.journal;
        let io = std::fs::read_to_string("/proc/thread-self/io").unwrap_or_default();
        let writes = io.lines().find_map(|line| line.strip_prefix("syscw: ")?.trim().parse().ok());
        Self {
            records: journal.records,
            log_bytes: journal.log_appended_bytes,
            syncs: journal.syncs,
            writes: writes.unwrap_or_default(),
            fences: journal.fences,
            flushed_lines: journal.flushed_lines,
            // Last: the calls above allocate.
            allocations: ALLOCATIONS.get(),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            allocations: self.allocations - before.allocations,
            records: self.records - before.records,
            log_bytes: self.log_bytes - before.log_bytes,
            syncs: self.syncs - before.syncs,
            writes: self.writes - before.writes,
            fences: self.fences - before.fences,
            flushed_lines: self.flushed_lines - before.flushed_lines,
        }
    }
}

/// The costs of a put in steady state: the least of several, since occasional allocations do not
/// belong to one put.
fn put(store: &Store, keyspace: &Keyspace, with_snapshot: bool) -> Costs {
    let mut costs = Vec::new();
    for round in 0..40_u8 {
        let snapshot = with_snapshot.then(|| store.snapshot().expect("opens"));
        let before = Costs::now(store);
        let allocated = ALLOCATIONS.get();
        keyspace.insert(KEY, [round; 100]).expect("a put");
        let allocations = ALLOCATIONS.get() - allocated;
        costs.push(Costs { allocations, ..Costs::now(store).since(before) });
        drop(snapshot);
    }
    let least = |of: fn(&Costs) -> u64| costs.iter().map(of).min().expect("some");
    Costs {
        allocations: least(|costs| costs.allocations),
        records: least(|costs| costs.records),
        log_bytes: least(|costs| costs.log_bytes),
        syncs: least(|costs| costs.syncs),
        writes: least(|costs| costs.writes),
        fences: least(|costs| costs.fences),
        flushed_lines: least(|costs| costs.flushed_lines),
    }
}

/// Where the files of a store are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Disk,
    /// Files that are memory, and written as such.
    Memory,
}

fn with_store(place: Place, durability: Durability, test: impl FnOnce(&Store, &Keyspace)) {
    let directory = tempfile::tempdir().expect("a directory");
    let options = Options::new().durability(durability).background(false).log_bytes_max(4 << 20);
    let opened = match place {
        Place::Disk => Store::open_with(directory.path().join("store"), options),
        Place::Memory => {
            let memory = Arc::new(MemoryDirectory::new());
            Store::open_directory(memory, options.flushing(Flushing::Volatile))
        }
    };
    let store = opened.expect("opens");
    let keyspace = store.keyspace("all").expect("a keyspace");
    test(&store, &keyspace);
    store.close().expect("closes");
}

/// Checks that a put costs no more than `costs_max`; with a snapshot open, `kept` more allocations
/// for the old version.
fn check(place: Place, durability: Durability, costs_max: Costs, kept: u64) {
    with_store(place, durability, |store, keyspace| {
        for with_snapshot in [false, true] {
            let costs = put(store, keyspace, with_snapshot);
            println!("{place:?}, {durability:?}, with a snapshot {with_snapshot}: {costs:?}");
            let allocations_max = if with_snapshot { kept } else { 0 } + costs_max.allocations;
            let pairs = [
                ("allocations", costs.allocations, allocations_max),
                ("records", costs.records, costs_max.records),
                ("bytes of the log", costs.log_bytes, costs_max.log_bytes),
                ("syncs", costs.syncs, costs_max.syncs),
                ("calls that write", costs.writes, costs_max.writes),
                ("fences", costs.fences, costs_max.fences),
                ("flushed lines", costs.flushed_lines, costs_max.flushed_lines),
            ];
            for (what, taken, taken_max) in pairs {
                assert!(taken <= taken_max, "{what}: {taken}, at most {taken_max} before");
            }
            // The counters did measure a put.
            assert_eq!(costs.records, 1);
        }
    });
}

/// A key and its version, their nodes in the maps of versions, and the list of open snapshots.
const KEPT: u64 = 6;

#[test]
#[cfg_attr(adamant_encrypted, ignore = "counts what plain files cost")]
fn a_buffered_put_allocates_nothing_and_calls_nobody() {
    let costs = Costs { records: 1, log_bytes: 128, ..Costs::default() };
    check(Place::Disk, Durability::Buffered, costs, KEPT);
}

#[test]
#[cfg_attr(adamant_encrypted, ignore = "counts what plain files cost")]
fn a_durable_put_is_one_write_and_one_sync() {
    let costs = Costs { records: 1, log_bytes: 128, syncs: 1, writes: 1, ..Costs::default() };
    check(Place::Disk, Durability::Sync, costs, KEPT);
}

#[test]
#[cfg_attr(adamant_encrypted, ignore = "counts what plain files cost")]
fn where_memory_is_the_medium_a_put_is_one_fence() {
    let costs = Costs {
        records: 1,
        log_bytes: 128,
        syncs: 1,
        fences: 1,
        flushed_lines: 3,
        ..Costs::default()
    };
    for durability in [Durability::Buffered, Durability::Sync] {
        check(Place::Memory, durability, costs, KEPT);
    }
}
