//! The cost of a put on the device: bytes of the log, fences, and bytes of the pool file; and that
//! of a merge and of reads of operands, in reads of files and calls of the operator.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_heap::{Directory, Durability, Flushing, MemoryDirectory, Options as HeapOptions};
use adamant_lsm::{Error, LsmStats, MergeError, MergeOperator, NEWEST, NamedOperator, Options};
use adamant_sim::{Call, SimDisk};

use crate::store::{Store, open_on};

fn open(flushing: Flushing) -> Store {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut heap_options = HeapOptions::default();
    heap_options.flushing = flushing;
    heap_options.background = false;
    Store::open_with(&directory, Options::default(), heap_options).unwrap()
}

/// A key of 20 bytes with a value of 100, as a commit of its own.
fn put(store: &Store, number: u32) {
    let key = format!("key-{number:016}");
    let change = [(key.as_bytes(), Some(&[7; 100][..]))];
    store
        .heap
        .transaction(Durability::Sync, |tx| store.tree.write(tx, change))
        .unwrap_or_else(|error: Error| panic!("{error}"));
}

#[test]
fn a_put_takes_200_bytes_of_log_at_most() {
    const PUTS: u32 = 2_000;
    let store = open(Flushing::Auto);
    put(&store, 0);
    let stats = || store.heap.stats().journal;
    let before = stats();
    (1..=PUTS).for_each(|number| put(&store, number));
    let bytes = (stats().log_appended_bytes - before.log_appended_bytes) / u64::from(PUTS);
    assert!(bytes <= 200, "{bytes} bytes of log a put");
    // A flush writes a memtable to a table from memory: it is not written to the pool before.
    let written = stats().pool_written_bytes;
    store.heap.checkpoint().unwrap();
    let written = stats().pool_written_bytes - written;
    assert!(written < u64::from(PUTS) * 120 / 2, "{written} bytes of {PUTS} puts");
    println!("{bytes} bytes of log a put, {written} bytes of {PUTS} puts to the pool");
}

#[test]
fn a_put_takes_one_fence_where_memory_is_the_medium() {
    let store = open(Flushing::Volatile);
    put(&store, 0);
    let fences = || store.heap.stats().journal.fences;
    let mut with_more = 0;
    for number in 1..=1_000 {
        let before = fences();
        put(&store, number);
        let taken = fences() - before;
        assert!(taken <= 12, "{taken} fences");
        with_more += u32::from(taken > 1);
    }
    // Puts that add a chunk or begin a log file.
    assert!(with_more < 20, "{with_more} of 1000 puts take more than one fence");
    println!("{with_more} of 1000 puts take more than one fence");
}

/// Appends, and counts its calls and what they copied.
#[derive(Default)]
struct Counting {
    calls: AtomicU64,
    bytes: AtomicU64,
}

impl Counting {
    fn take(&self) -> (u64, u64) {
        (self.calls.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed))
    }
}

impl MergeOperator for Counting {
    fn merge(
        &self,
        _key: &[u8],
        older: &[u8],
        newer: &[u8],
        merged: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add((older.len() + newer.len()) as u64, Ordering::Relaxed);
        // Operands of 8 bytes are counters, others are appended.
        match (older.try_into(), newer.try_into()) {
            (Ok(older), Ok(newer)) => {
                let sum = u64::from_le_bytes(older) + u64::from_le_bytes(newer);
                merged.extend_from_slice(&sum.to_le_bytes());
            }
            _ => merged.extend_from_slice(&[older, newer].concat()),
        }
        Ok(())
    }
}

fn merge(store: &Store, key: &[u8], operand: &[u8]) {
    let done =
        store.heap.transaction(Durability::Deferred, |tx| store.tree.merge(tx, [(key, operand)]));
    done.unwrap_or_else(|error: Error| panic!("{error}"));
}

/// A merge reads no file, wherever the value is; a read finds one operand of a counter in the
/// memtable, whatever their number, and a few that grow; a compaction leaves a value.
#[test]
fn a_merge_reads_no_file_and_chains_stay_short() {
    const MERGES: u64 = 3_000;
    let disk = SimDisk::new(1).without_history();
    let store = open_on(&disk).unwrap();
    let counting = Arc::new(Counting::default());
    store
        .tree
        .set_operator(NamedOperator::new("counting", Some(Arc::<Counting>::clone(&counting))));
    let seen = || Ok(store.context.sequences().visible());
    // Tables with other keys around, and a value of each key below.
    for round in 0..3_u8 {
        let changes: Vec<_> = (0..40).map(|at| ([b'a' + at, round], vec![round; 50])).collect();
        let changes = changes.iter().map(|(key, value)| (&key[..], Some(&value[..])));
        let done = store.heap.transaction(Durability::Buffered, |tx| {
            store.tree.write(tx, changes)?;
            store.tree.write(tx, [(&b"count"[..], Some(&0_u64.to_le_bytes()[..]))])?;
            store.tree.write(tx, [(&b"text"[..], Some(&b"begin"[..]))])
        });
        done.unwrap_or_else(|error: Error| panic!("{error}"));
        store.tree.rotate(&store.heap).unwrap();
        store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap();
    }
    let reads = disk.call_count(Call::Read);
    for _ in 0..MERGES {
        merge(&store, b"count", &1_u64.to_le_bytes());
        merge(&store, b"text", b"0123456789");
    }
    // The log's own, where it goes on to another file: tables and blob files are not read.
    let reads = disk.call_count(Call::Read) - reads;
    assert!(reads < 5, "{reads} reads of files by {MERGES} merges of two keys");
    let (calls, bytes) = counting.take();
    assert!(calls < 4 * MERGES, "{calls} calls of the operator by {MERGES} merges of two keys");
    let appended = MERGES * 10;
    // All of it once for each doubling, and the counters.
    let bytes_max = appended * 2 * u64::from(appended.ilog2()) + MERGES * 16;
    assert!(bytes < bytes_max, "{bytes} bytes copied, at most {bytes_max}");

    let look = |key: &[u8]| store.get(key, NEWEST).unwrap().unwrap();
    assert_eq!(&*look(b"count"), &MERGES.to_le_bytes());
    assert_eq!(counting.take().0, 1, "one operand on the value");
    let text = look(b"text");
    assert_eq!(text.len() as u64, 5 + appended);
    let calls = counting.take().0;
    assert!(calls <= u64::from(appended.ilog2()), "{calls} calls for a text of {appended} bytes");

    // As many operands as flushes, and one after a compaction of those.
    for round in 0..4 {
        store.tree.rotate(&store.heap).unwrap();
        store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap();
        counting.take();
        let value = look(b"count");
        assert_eq!(&*value, &(MERGES + round).to_le_bytes());
        assert_eq!(counting.take().0, round + 1, "one operand a table");
        merge(&store, b"count", &1_u64.to_le_bytes());
    }
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    counting.take();
    assert_eq!(&*look(b"count"), &(MERGES + 4).to_le_bytes());
    assert_eq!(look(b"text").len() as u64, 5 + appended);
    assert_eq!(counting.take(), (0, 0), "values, after a compaction");
}

fn flush(store: &Store) {
    let seen = || Ok(store.context.sequences().visible());
    store.tree.rotate(&store.heap).unwrap();
    while store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap() {}
}

fn write(store: &Store, key: &[u8], value: Option<&[u8]>) {
    let done =
        store.heap.transaction(Durability::Buffered, |tx| store.tree.write(tx, [(key, value)]));
    done.unwrap_or_else(|error: Error| panic!("{error}"));
}

/// Values of this length lie in blob files.
const LARGE: usize = 500;

/// A large value with an operand on top: on its way down neither of them is written anew, before
/// nothing older is left below.
#[test]
fn a_large_value_below_an_operand_is_written_once() {
    let store = open_on(&SimDisk::new(2).without_history()).unwrap();
    let counting = Arc::new(Counting::default());
    let operator = NamedOperator::new("counting", Some(Arc::<Counting>::clone(&counting)));
    store.tree.set_operator(operator);
    let seen = || Ok(store.context.sequences().visible());
    let mut random = fastrand::Rng::with_seed(2);
    // A last level that is so large that there is one above it.
    write(&store, b"text", Some(&[1; LARGE]));
    for number in 0..1_000_u32 {
        let value: Vec<u8> = (0..50).map(|_| random.u8(..)).collect();
        write(&store, &number.to_le_bytes(), Some(&value));
    }
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    write(&store, b"text", Some(&[2; LARGE]));
    flush(&store);
    merge(&store, b"text", b"3");
    flush(&store);
    while store.tree.stats().levels[0].tables < 6 {
        write(&store, b"text, too", Some(b""));
        flush(&store);
    }
    let written = store.tree.stats().blobs.values;
    assert_eq!((written, counting.take().0), (2, 0));
    while store.tree.compact_once(&store.heap, &seen, &|_| Ok(())).unwrap() {}
    let stats = store.tree.stats();
    let used: Vec<_> = stats.levels.iter().map(|level| level.tables > 0).collect();
    let (last, above) = used.split_last().unwrap();
    assert!(*last && above.contains(&true) && !used[0], "{used:?}");
    assert_eq!((stats.blobs.values, counting.take().0), (written, 0), "as they were");
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    assert_eq!(counting.take().0, 1);
    let text = store.get(b"text", NEWEST).unwrap();
    assert!(text.is_some_and(|text| text[..] == [&[2; LARGE][..], b"3"].concat()));
    assert_eq!(store.tree.stats().blobs.values, 1);
    assert!(store.check().is_clean());
}

/// A rewrite that gives room back on a full device writes nothing that was not there before.
#[test]
fn a_rewrite_for_a_full_device_folds_nothing() {
    let store = open_on(&SimDisk::new(3).without_history()).unwrap();
    let counting = Arc::new(Counting::default());
    let operator = || NamedOperator::new("counting", Some(Arc::<Counting>::clone(&counting)));
    store.tree.set_operator(operator());
    // So long that the next one is not merged with it at once.
    merge(&store, b"text", &[1; 100]);
    (0..100_u8).for_each(|number| write(&store, &[number], Some(&[number; 50])));
    merge(&store, b"text", b"2");
    // A flush without the operator leaves them apart.
    store.tree.set_operator(NamedOperator::new("counting", None));
    flush(&store);
    store.tree.set_operator(operator());
    (0..100_u8).for_each(|number| write(&store, &[number], None));
    flush(&store);
    let seen = || Ok(store.context.sequences().visible());
    let before = store.tree.stats();
    assert!(store.tree.reclaim(&store.heap, &seen, &|_| Ok(())).unwrap());
    let after = store.tree.stats();
    let entries = |stats: &LsmStats| stats.levels.iter().map(|level| level.entries).sum::<u64>();
    assert!(entries(&after) + 100 <= entries(&before), "{before:?} {after:?}");
    assert_eq!(counting.take().0, 0);
    let text = store.get(b"text", NEWEST).unwrap();
    assert!(text.is_some_and(|text| text[..] == [&[1; 100][..], b"2"].concat()));
    assert!(store.check().is_clean());
}
