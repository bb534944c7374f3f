//! Checkpoints copy published bytes to the pool file, and nothing else: tests on bytes of the file
//! itself.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adamant_heap::layout::{DESCRIPTOR_BYTES, PAGE_BYTES, descriptor_offset, file_offset};
use adamant_heap::{
    Directory, Durability, Error, Heap, MemoryDirectory, Options, OsDirectory, Read, Write,
};

const MARK: u8 = 0xAB;

fn options() -> Options {
    let mut options = Options::default();
    options.background = false;
    options.address_bytes_max = 1 << 30;
    options
}

fn directory() -> Arc<dyn Directory> {
    Arc::new(MemoryDirectory::new())
}

fn open(directory: &Arc<dyn Directory>) -> Heap {
    Heap::open(Arc::clone(directory), options()).expect("opens").0
}

/// Bytes of the pool file at a heap offset.
fn in_file(directory: &Arc<dyn Directory>, offset: u64, len: usize) -> Vec<u8> {
    let pool = directory.open("pool").expect("opens").expect("is there");
    let mut bytes = vec![0; len];
    pool.read_at(&mut bytes, file_offset(offset)).expect("reads");
    bytes
}

fn put(heap: &Heap, bytes: usize, value: u8) -> u64 {
    heap.transaction(Durability::Sync, |tx| {
        let block = tx.reserve(bytes as u64)?;
        tx.write(block, 0, bytes)?.fill(value);
        Ok::<_, Error>(block)
    })
    .expect("commits")
}

fn assert_clean_when_closed(heap: &Heap, directory: &Arc<dyn Directory>) {
    heap.close().expect("closes");
    assert!(open(directory).check().expect("checks").is_clean());
}

#[test]
fn what_nobody_published_is_not_in_the_file() {
    for bytes in [100, 3000, 3 * PAGE_BYTES, 200 * PAGE_BYTES] {
        let directory = directory();
        let heap = open(&directory);
        // Neighbours: only one of several is published.
        let mut reserved: Vec<_> = (0..6).map(|_| heap.reserve(bytes).expect("reserves")).collect();
        reserved.iter_mut().for_each(|one| one.fill(MARK));
        let mut published = reserved.remove(2);
        published.fill(1);
        let block = published.offset();
        heap.publish(Durability::Sync, [published]).expect("publishes");
        heap.checkpoint().expect("checkpoint");
        assert_eq!(in_file(&directory, block, bytes as usize), vec![1; bytes as usize]);
        for one in &reserved {
            let found = in_file(&directory, one.offset(), bytes as usize);
            assert!(found.iter().all(|byte| *byte == 0), "{bytes} bytes at {}", one.offset());
        }
        // Only memory knows the blocks that threads may reserve.
        let page = block / PAGE_BYTES;
        let descriptor = in_file(&directory, descriptor_offset(page), DESCRIPTOR_BYTES as usize);
        assert_eq!(descriptor[1], 0, "flags of the descriptor {descriptor:?}");
        drop(reserved);
        assert_clean_when_closed(&heap, &directory);
    }
}

/// Between two extents that are written lies one that is being filled.
#[test]
fn what_is_clean_between_dirty_pages_is_not_written() {
    let directory = directory();
    let heap = open(&directory);
    let bytes = 20 * PAGE_BYTES;
    let mut reserved: Vec<_> = (0..3).map(|_| heap.reserve(bytes).expect("reserves")).collect();
    reserved.iter_mut().for_each(|one| one.fill(MARK));
    let between = reserved.remove(1);
    let written_bytes = || heap.stats().journal.pool_written_bytes;
    let before = written_bytes();
    heap.publish(Durability::Sync, reserved).expect("publishes");
    heap.checkpoint().expect("checkpoint");
    let found = in_file(&directory, between.offset(), bytes as usize);
    assert!(found.iter().all(|byte| *byte == 0), "nobody has published it");
    // Besides these, the root and a page of descriptors.
    assert_eq!(written_bytes() - before, 2 * bytes + 2 * PAGE_BYTES);
    drop(between);
    assert_clean_when_closed(&heap, &directory);
}

#[test]
fn pages_that_became_free_are_not_copied_whoever_fills_them() {
    let directory = directory();
    let heap = open(&directory);
    let bytes = 200 * PAGE_BYTES;
    let block = put(&heap, bytes as usize, 1);
    heap.free(Durability::Sync, block).expect("frees");
    heap.transaction(Durability::Sync, |tx| tx.set_root(0, 1))
        .map_err(|error: Error| error)
        .expect("commits");
    let mut reserved = heap.reserve(bytes).expect("reserves");
    assert_eq!(reserved.offset(), block, "the same pages");
    reserved.fill(MARK);
    heap.checkpoint().expect("checkpoint");
    let found = in_file(&directory, block, bytes as usize);
    assert!(found.iter().all(|byte| *byte == 0), "nobody has published it");
    drop(reserved);
    assert_clean_when_closed(&heap, &directory);
}

/// A checkpoint waits for a transaction that has changed a block and goes on.
#[test]
fn a_checkpoint_takes_nothing_of_a_transaction_that_runs() {
    let directory = directory();
    let heap = open(&directory);
    let block = put(&heap, 3000, 1);
    let is_made = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let undone = heap.transaction(Durability::Sync, |tx| {
            tx.write(block, 0, 3000)?.fill(MARK);
            scope.spawn(|| {
                heap.checkpoint().expect("checkpoint");
                is_made.store(true, Ordering::Release);
            });
            std::thread::sleep(Duration::from_millis(100));
            assert!(!is_made.load(Ordering::Acquire), "it is made beside a transaction");
            Err::<(), _>(Error::Misuse { what: "is undone" })
        });
        assert!(undone.is_err());
    });
    assert_eq!(in_file(&directory, block, 3000), vec![1; 3000]);
    assert!(
        heap.transaction(Durability::Sync, |tx| {
            assert!(
                matches!(heap.checkpoint(), Err(Error::Misuse { .. })),
                "it would wait for itself"
            );
            tx.set_root(0, 1)
        })
        .is_ok()
    );
}

/// A callback of a commit panics before the commit is visible: no later commit is possible, and the
/// log has this one.
#[test]
fn a_panic_of_who_is_told_of_a_commit_ends_writing() {
    let directory = directory();
    let heap = open(&directory);
    let block = put(&heap, 3000, 1);
    let told = std::panic::AssertUnwindSafe(|| {
        heap.chunked_transaction(
            Durability::Sync,
            1 << 20,
            |tx| {
                tx.write(block, 0, 3000)?.fill(2);
                Ok::<_, Error>(())
            },
            |_| panic!("on purpose"),
        )
    });
    assert!(std::panic::catch_unwind(told).is_err());
    assert!(matches!(heap.checkpoint(), Err(Error::Poisoned { .. })));
    drop(heap);
    let heap = open(&directory);
    let view = heap.view().expect("not a child");
    let bytes = view.block(block).expect("a block");
    assert!(bytes[..3000].iter().all(|byte| *byte == bytes[0]), "all or nothing");
    assert!(bytes[0] == 1 || bytes[0] == 2);
}

/// The same, with a record that became durable in time, and a checkpoint that waits for the writer
/// lock.
#[test]
fn a_checkpoint_that_waited_for_who_ended_writing_takes_nothing() {
    let directory = directory();
    let heap = open(&directory);
    let block = put(&heap, 3000, 1);
    std::thread::scope(|scope| {
        let told = std::panic::AssertUnwindSafe(|| {
            heap.chunked_transaction(
                Durability::Sync,
                1 << 20,
                |tx| {
                    tx.write(block, 0, 3000)?.fill(2);
                    scope.spawn(|| assert!(heap.checkpoint().is_err()));
                    std::thread::sleep(Duration::from_millis(50));
                    Ok::<_, Error>(())
                },
                |_| {
                    let synced = scope.spawn(|| heap.sync());
                    synced.join().expect("no panic").expect("durable");
                    panic!("on purpose")
                },
            )
        });
        assert!(std::panic::catch_unwind(told).is_err());
    });
    drop(heap);
    let heap = open(&directory);
    let view = heap.view().expect("not a child");
    let bytes = view.block(block).expect("a block");
    assert!(bytes[..3000].iter().all(|byte| *byte == 2), "the record was durable");
}

/// A page was evicted, so the next read of it may find damage: it is verified again before a store.
#[test]
fn damage_below_an_evicted_page_is_told() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let at: &Path = &temporary.path().join("heap");
    let directory: Arc<dyn Directory> = Arc::new(OsDirectory::create(at).expect("creates"));
    let mut options = options();
    options.memory_bytes_max = 4 << 20;
    let (heap, _) = Heap::open(Arc::clone(&directory), options).expect("opens");
    let block = put(&heap, 3000, 1);
    for _ in 0..400 {
        put(&heap, 60_000, 2);
    }
    let stats = heap.stats();
    assert!(stats.memory.dropped_bytes > 8 << 20, "{stats:?}");
    let damaged = file_offset(block) + 2000;
    let pool = directory.open("pool").expect("opens").expect("is there");
    let mut byte = [0];
    pool.read_at(&mut byte, damaged).expect("reads");
    pool.write_at(&[byte[0] ^ 4], damaged).expect("writes");
    let stored = heap.transaction(Durability::Sync, |tx| {
        tx.write(block, 0, 8)?.fill(3);
        Ok::<_, Error>(())
    });
    assert!(matches!(stored, Err(Error::Damaged { .. })), "{stored:?}");
    assert!(!heap.check().expect("checks").is_clean());
}

/// A run with a retired block that a pin may still see is not opened for reservations.
#[test]
fn what_a_pin_looks_at_stays_readable_when_threads_reserve() {
    let directory = directory();
    let heap = open(&directory);
    // More than a run: no shard owns the first one, which has room.
    let blocks: Vec<u64> = (0..200).map(|_| put(&heap, 3000, 1)).collect();
    heap.transaction(Durability::Sync, |tx| tx.free(blocks[3])).expect("frees");
    heap.transaction(Durability::Sync, |tx| tx.set_root(0, 1))
        .map_err(|error: Error| error)
        .expect("commits");
    let pin = heap.pin().expect("pins");
    heap.transaction(Durability::Sync, |tx| tx.free(blocks[1])).expect("frees");
    let mut reserved: Vec<_> = (0..40).map(|_| heap.reserve(3000).expect("reserves")).collect();
    reserved.iter_mut().for_each(|one| one.fill(MARK));
    heap.checkpoint().expect("checkpoint");
    let view = heap.view().expect("not a child");
    let bytes = view.block(blocks[1]).expect("the pin keeps it");
    assert!(bytes[..3000].iter().all(|byte| *byte == 1));
    drop((view, pin));
}
