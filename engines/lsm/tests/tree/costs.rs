//! The cost of a put on the device: bytes of the log, fences, and bytes of the pool file.

use std::sync::Arc;

use adamant_heap::{Directory, Durability, Flushing, MemoryDirectory, Options as HeapOptions};
use adamant_lsm::{Error, Options};

use crate::store::Store;

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
