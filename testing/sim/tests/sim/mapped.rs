//! The simulated disk's model of mapped memory: the states that it may leave, and no others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use adamant_medium::address::persist::{Flushing, Persist};
use adamant_medium::address::region::Region;
use adamant_medium::storage::{Directory, File};
use adamant_sim::mutation::{self, Verdict};
use adamant_sim::site::Kind;
use adamant_sim::{Choice, SimDirectory, SimDisk, Tally};

const FILE_BYTES: u64 = 8192;

/// The file `data` of a disk, mapped.
struct Memory {
    disk: SimDisk,
    file: Arc<dyn File>,
    region: Region,
    persist: Arc<dyn Persist>,
}

impl Memory {
    /// A file of zeros, durable.
    fn create(disk: &SimDisk) -> Memory {
        let directory = SimDirectory::root(disk);
        let file = directory.create("data").unwrap();
        file.allocate(0, FILE_BYTES).unwrap();
        file.sync().unwrap();
        directory.sync().unwrap();
        Self::open(disk)
    }

    fn open(disk: &SimDisk) -> Memory {
        let directory = SimDirectory::root(disk);
        let file = directory.open("data").unwrap().unwrap();
        let region = Region::reserve(1 << 20, 1 << 20).unwrap();
        // SAFETY: the region is new, so no reference into it exists.
        unsafe { file.map_shared(&region, 4096, 0, FILE_BYTES) }.unwrap();
        let persist = directory.persist(Flushing::Volatile, "data").unwrap().unwrap();
        Memory { disk: disk.clone(), file, region, persist }
    }

    fn word(&self, at: u64) -> *mut u64 {
        assert!(at.is_multiple_of(8) && at < FILE_BYTES);
        // SAFETY: the file is mapped from byte 4096 of the region on.
        let address = unsafe { self.region.base().add(4096 + at as usize) };
        address.as_ptr().cast()
    }

    fn set(&self, at: u64, value: u64) {
        // SAFETY: the word is mapped, aligned, and no reference to it exists.
        unsafe { self.word(at).write(value) };
    }

    fn get(&self, at: u64) -> u64 {
        // SAFETY: the word is mapped, aligned, and no other thread writes it.
        unsafe { self.word(at).read() }
    }

    #[track_caller]
    fn flush(&self, at: u64, len: u64) {
        self.persist.flush(&self.region, 4096 + at, len);
    }

    #[track_caller]
    fn fence(&self) {
        self.persist.fence();
    }

    /// The possible values of these words after a power cut now.
    fn states<const N: usize>(&self, words: [u64; N]) -> BTreeSet<[u64; N]> {
        let mut cursor = self.disk.cursor();
        cursor.advance_to(self.disk.operation_count());
        let count = cursor.state_count();
        assert!(count <= 5000, "{count} states are too many to see all");
        let states = (0..count).map(|number| {
            let left = Memory::open(&cursor.crash(&mut Choice::Number(number)).without_history());
            words.map(|at| left.get(at))
        });
        states.collect()
    }
}

fn memory() -> Memory {
    Memory::create(&SimDisk::new(0))
}

#[test]
fn a_store_is_durable_when_flushed_and_fenced() {
    let memory = memory();
    memory.set(0, 1);
    assert_eq!(memory.states([0]), [[0], [1]].into(), "a line may be evicted at any time");
    memory.flush(0, 8);
    assert_eq!(memory.states([0]), [[0], [1]].into(), "a flush has only begun");
    memory.fence();
    assert_eq!(memory.states([0]), [[1]].into());
    memory.set(0, 2);
    memory.fence();
    assert_eq!(memory.states([0]), [[1], [2]].into(), "a fence completes what was flushed");
}

#[test]
fn a_flush_writes_back_what_the_line_held_then() {
    let memory = memory();
    memory.set(0, 1);
    memory.flush(0, 8);
    memory.set(0, 2);
    assert_eq!(memory.states([0]), [[0], [1], [2]].into());
    memory.fence();
    assert_eq!(memory.states([0]), [[1], [2]].into());
}

#[test]
fn lines_are_lost_each_for_itself() {
    let memory = memory();
    memory.set(0, 1);
    memory.set(64, 1);
    memory.set(72, 1);
    memory.set(4096, 1);
    let states = memory.states([0, 64, 72, 4096]);
    assert_eq!(states.len(), 8);
    assert!(states.iter().all(|[_, first, second, _]| first == second));
    memory.flush(60, 5);
    memory.fence();
    assert_eq!(memory.states([0, 64, 72, 4096]), [[1, 1, 1, 0], [1, 1, 1, 1]].into());
}

#[test]
fn a_torn_line_mixes_words_of_all_times() {
    let memory = memory();
    memory.set(0, 1);
    memory.set(8, 1);
    memory.flush(64, 1);
    memory.set(0, 2);
    memory.set(8, 2);
    let cursor = {
        let mut cursor = memory.disk.cursor();
        cursor.advance_to(memory.disk.operation_count());
        cursor
    };
    let states: BTreeSet<_> = (0..200)
        .map(|seed| {
            let left = Memory::open(&cursor.crash(&mut Choice::torn(seed)).without_history());
            [left.get(0), left.get(8)]
        })
        .collect();
    assert_eq!(states.len(), 9, "{states:?}");
}

#[test]
fn a_fence_is_for_the_flushes_of_its_own_thread() {
    let memory = memory();
    memory.set(0, 1);
    memory.set(64, 1);
    thread::scope(|scope| {
        scope.spawn(|| memory.flush(0, 8)).join().unwrap();
        memory.flush(64, 8);
        memory.fence();
    });
    assert_eq!(memory.states([0, 64]), [[0, 1], [1, 1]].into());
    thread::scope(|scope| {
        let work = || {
            memory.set(0, 2);
            memory.flush(0, 8);
            memory.fence();
        };
        scope.spawn(work).join().unwrap();
    });
    assert_eq!(memory.states([0, 64]), [[2, 1]].into());
}

#[test]
fn streaming_stores_need_a_fence_only() {
    let memory = memory();
    // SAFETY: the range is mapped, and no reference into it exists.
    unsafe { memory.persist.copy(&memory.region, 4096 + 64, &[3; 128]) };
    assert_eq!(memory.states([64, 128]).len(), 4);
    memory.fence();
    assert_eq!(memory.states([64, 128]).len(), 1);
    assert_eq!(memory.get(128), u64::from_le_bytes([3; 8]));
    assert_eq!((memory.persist.counts().lines, memory.persist.counts().fences), (2, 1));
}

#[test]
fn a_copy_that_is_left_out_stays_visible_and_in_doubt() {
    let memory = memory();
    for value in [3, 4] {
        // SAFETY: the range is mapped, and no reference into it exists.
        unsafe { memory.persist.copy(&memory.region, 4096, &[value; 64]) };
        memory.fence();
        let copies = memory.disk.sites().into_iter().find(|(site, _)| site.kind == Kind::Copy);
        memory.disk.disable(copies.map(|(site, _)| site));
    }
    let words = [3, 4].map(|value| u64::from_le_bytes([value; 8]));
    assert_eq!(memory.states([0]), words.map(|word| [word]).into());
    let killed = memory.disk.kill(memory.disk.operation_count());
    assert_eq!(Memory::open(&killed).get(0), words[1]);
}

#[test]
fn what_a_dead_process_flushed_no_fence_completes() {
    let memory = memory();
    memory.set(0, 1);
    memory.flush(0, 8);
    let killed = memory.disk.kill(memory.disk.operation_count());
    let after = Memory::open(&killed);
    assert_eq!(after.get(0), 1, "it stays visible");
    after.fence();
    assert_eq!(after.states([0]), [[0], [1]].into());
    after.flush(0, 8);
    after.fence();
    assert_eq!(after.states([0]), [[1]].into());
}

#[test]
fn a_flush_may_span_pieces_that_were_mapped_apart() {
    let memory = memory();
    memory.file.allocate(0, 2 * FILE_BYTES).unwrap();
    memory.file.sync().unwrap();
    // SAFETY: no reference into that range of the region exists.
    unsafe { memory.file.map_shared(&memory.region, 4096 + FILE_BYTES, FILE_BYTES, FILE_BYTES) }
        .unwrap();
    // SAFETY: the range is mapped by now, and no reference into it exists.
    unsafe { memory.persist.copy(&memory.region, 4096 + FILE_BYTES - 8, &[5; 16]) };
    memory.persist.flush(&memory.region, 4096 + FILE_BYTES - 64, 128);
    memory.fence();
    let left = memory.disk.crash(memory.disk.operation_count(), &mut Choice::None);
    let mut bytes = [0; 16];
    let file = SimDirectory::root(&left).open("data").unwrap().unwrap();
    file.read_at(&mut bytes, FILE_BYTES - 8).unwrap();
    assert_eq!(bytes, [5; 16]);
}

#[test]
fn files_and_their_memory_are_one() {
    let memory = memory();
    memory.set(0, 1);
    memory.file.write_at(&7_u64.to_le_bytes(), 8).unwrap();
    assert_eq!(memory.get(8), 7);
    let mut bytes = [0; 8];
    memory.file.read_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, 1_u64.to_le_bytes());
    assert_eq!(memory.states([0, 8]), [[0, 0], [1, 0], [1, 7]].into(), "of one line");
    memory.file.sync().unwrap();
    assert_eq!(memory.states([0, 8]), [[1, 7]].into());
    memory.set(4096, 1);
    memory.flush(4096, 8);
    memory.file.set_len(4096).unwrap();
    memory.file.allocate(4096, FILE_BYTES - 4096).unwrap();
    assert_eq!(memory.get(4096), 0);
    memory.set(4096, 2);
    memory.file.sync().unwrap();
    assert_eq!(memory.states([0, 4096]), [[1, 2]].into());
}

#[test]
fn a_file_operation_is_a_crash_point_of_memory_too() {
    let memory = memory();
    memory.set(0, 1);
    SimDirectory::root(&memory.disk).create("other").unwrap();
    memory.set(0, 2);
    assert_eq!(memory.states([0]), [[0], [1], [2]].into());
}

/// Offsets of the copies of the value; another word says which of them holds.
const COPIES: [u64; 2] = [256, 1024];
const COPY_WORDS: u64 = 20;
const WHICH: u64 = 64;

/// Changes a value of 20 equal words atomically: written beside, then switched to.
fn change(memory: &Memory, value: u64) {
    let next = 1 - memory.get(WHICH);
    let copy = COPIES[next as usize];
    for word in 0..COPY_WORDS {
        memory.set(copy + 8 * word, value);
    }
    memory.flush(copy, 8 * COPY_WORDS);
    memory.fence();
    memory.set(WHICH, next);
    memory.flush(WHICH, 8);
    memory.fence();
    // Needless, so its absence is never noticed.
    memory.flush(WHICH, 8);
}

/// Changes the value from 1 to 5, marked when durable, and verifies the states that crashes leave.
fn suite(disk: &SimDisk) {
    let memory = Memory::create(disk);
    for value in 1..=5 {
        change(&memory, value);
        disk.mark(value);
    }
    let mut tally = Tally::new();
    let mut cursor = disk.cursor();
    while cursor.advance() {
        let marked = disk.marks(cursor.point()).pop().unwrap_or(0);
        tally.points += 1;
        if cursor.is_covered() || marked == 0 {
            continue;
        }
        for choice in cursor.choices(1 << 14, 0) {
            tally.states += 1;
            let left = Memory::open(&cursor.crash(&mut choice.clone()).without_history());
            let copy = COPIES[left.get(WHICH) as usize];
            let value = left.get(copy);
            assert!(value == marked || value == marked + 1, "{value} is lost, it was {marked}");
            let is_whole = (0..COPY_WORDS).all(|word| left.get(copy + 8 * word) == value);
            assert!(is_whole, "{value} is torn, {choice:?}");
        }
    }
    tally.print("toy");
}

#[test]
fn a_missing_flush_or_fence_of_a_toy_is_noticed() {
    let verdicts = mutation::verdicts(0, |_| true, suite);
    let noticed = |verdict: &&Verdict| verdict.noticed.is_some();
    let (noticed, unnoticed): (Vec<_>, Vec<_>) = verdicts.iter().partition(noticed);
    let kinds = |verdicts: &[&Verdict]| {
        let mut kinds: Vec<Kind> = verdicts.iter().map(|verdict| verdict.site.kind).collect();
        kinds.sort_unstable();
        kinds
    };
    mutation::verify(&verdicts, |site| unnoticed.iter().any(|verdict| verdict.site == *site));
    let expected = [Kind::Flush, Kind::Flush, Kind::Fence, Kind::Fence, Kind::Sync];
    assert_eq!(kinds(&noticed), [&expected[..], &[Kind::SyncDirectory]].concat());
    assert_eq!(kinds(&unnoticed), [Kind::Flush], "the needless one");
}
