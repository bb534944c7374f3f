//! Shrinking: free space goes back to the file system, and nothing else does.

use std::sync::Arc;

use adamant_heap::layout::{PAGE_BYTES, ZONE_BYTES};
use adamant_heap::{Durability, Error, Heap, Read, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;

const MIB: u64 = 1 << 20;

fn open(directory: &Arc<dyn Directory>) -> Heap {
    let mut options = crate::setup::options();
    options.address_bytes_max = 2 << 30;
    let (heap, _) = Heap::open(Arc::clone(directory), options).expect("opens");
    heap
}

fn reopen(heap: Heap, directory: &Arc<dyn Directory>) -> Heap {
    heap.close().expect("closes");
    drop(heap);
    open(directory)
}

fn pool_bytes(directory: &Arc<dyn Directory>) -> u64 {
    directory.open("pool").expect("can be opened").expect("is there").len().expect("has a length")
}

fn make(heap: &Heap, bytes: u64, tag: u8) -> u64 {
    let made = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
        let block = tx.reserve(bytes)?;
        tx.write(block, 0, bytes as usize)?.fill(tag);
        Ok(block)
    });
    made.expect("there is room")
}

fn free(heap: &Heap, block: u64) {
    let freed = heap.transaction::<_, Error>(Durability::Buffered, |tx| tx.free(block));
    freed.expect("it is allocated");
}

fn assert_holds(heap: &Heap, block: u64, bytes: u64, tag: u8) {
    let view = heap.view().expect("ours");
    let found = &view.block(block).expect("a block")[..bytes as usize];
    assert!(found.iter().all(|byte| *byte == tag), "block {block:#x} of {bytes} bytes");
}

fn assert_clean(heap: &Heap) {
    let report = heap.check().expect("can be checked");
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[test]
fn the_file_ends_with_what_is_used_and_has_holes_before() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut heap = open(&directory);
    let blocks: Vec<u64> = (0..8).map(|tag| make(&heap, 4 * MIB, tag)).collect();
    // Half of them are in memory that was mapped from the file, the others not.
    heap = reopen(heap, &directory);
    let more: Vec<u64> = (8..16).map(|tag| make(&heap, 4 * MIB, tag)).collect();
    let before = pool_bytes(&directory);
    for block in [blocks[2], blocks[3], more[1]].iter().chain(&more[4..]) {
        free(&heap, *block);
    }
    let shrunk = heap.shrink().expect("can be shrunk");
    assert_eq!(before - pool_bytes(&directory), shrunk.bytes_released);
    assert!(shrunk.bytes_released >= 16 * MIB, "{shrunk:?}");
    assert!((11 * MIB..=12 * MIB).contains(&shrunk.bytes_punched), "{shrunk:?}");
    assert_eq!(heap.stats().pool_bytes, heap.stats().used_bytes.next_multiple_of(MIB / 4));
    assert_clean(&heap);
    assert_eq!(heap.shrink().expect("can be shrunk"), Default::default(), "nothing is left");
    for round in 0..2 {
        let kept = [(0, blocks[0]), (1, blocks[1]), (4, blocks[4]), (8, more[0]), (10, more[2])];
        for (tag, block) in kept {
            assert_holds(&heap, block, 4 * MIB, tag);
        }
        // A pointer beyond the new end is an error like any other.
        let view = heap.view().expect("ours");
        for gone in [blocks[2], more[5], more[7]] {
            view.block(gone).expect_err("it is gone");
        }
        drop(view);
        if round == 0 {
            heap = reopen(heap, &directory);
            assert_clean(&heap);
        }
    }
    // The holes are used again before the file grows.
    let bytes = pool_bytes(&directory);
    let again = make(&heap, 8 * MIB, 77);
    assert_eq!((again, pool_bytes(&directory)), (blocks[2], bytes));
    assert_holds(&heap, again, 8 * MIB, 77);
    let grown = make(&heap, 20 * MIB, 78);
    assert!(pool_bytes(&directory) > bytes);
    assert_holds(&heap, grown, 20 * MIB, 78);
    assert_clean(&heap);
    let heap = reopen(heap, &directory);
    assert_clean(&heap);
    assert_holds(&heap, grown, 20 * MIB, 78);
}

#[test]
fn whole_zones_go_and_come_back() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    let small = make(&heap, 100, 1);
    let reserve = |heap: &Heap, bytes: u64, tag: u8| {
        let made = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
            let block = tx.reserve(bytes)?;
            tx.write(block, bytes as usize - 64, 64)?.fill(tag);
            Ok(block)
        });
        made.expect("there is room")
    };
    for round in 0..3 {
        let block = reserve(&heap, 2 * ZONE_BYTES + 5 * MIB, round);
        assert_eq!(heap.view().expect("ours").block(block).expect("a block")[0], 0, "new pages");
        let within = reserve(&heap, MIB, round);
        assert!(pool_bytes(&directory) > 2 * ZONE_BYTES);
        free(&heap, block);
        free(&heap, within);
        let shrunk = heap.shrink().expect("can be shrunk");
        assert!(shrunk.bytes_released > 2 * ZONE_BYTES, "{shrunk:?}");
        assert!(pool_bytes(&directory) < 4 * MIB);
        assert_holds(&heap, small, 100, 1);
        assert_clean(&heap);
    }
    let heap = reopen(heap, &directory);
    assert_clean(&heap);
    assert_holds(&heap, small, 100, 1);
}

#[test]
fn what_somebody_may_look_at_or_fill_stays() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    let block = make(&heap, 4 * MIB, 1);
    let mut reservation = heap.reserve(3 * MIB).expect("there is room");
    let pin = heap.pin().expect("ours");
    free(&heap, block);
    let shrunk = heap.shrink().expect("can be shrunk");
    assert_eq!(shrunk.bytes_punched, 0, "the pin may still look at it");
    reservation.fill(9);
    drop(pin);
    let shrunk = heap.shrink().expect("can be shrunk");
    assert!(shrunk.bytes_punched > 3 * MIB, "{shrunk:?}");
    let filled = reservation.offset();
    heap.publish(Durability::Sync, [reservation]).expect("there is room");
    assert_holds(&heap, filled, 3 * MIB, 9);
    let outcome = heap.transaction::<(), Error>(Durability::Sync, |_| {
        assert!(matches!(heap.shrink(), Err(Error::Misuse { .. })));
        Ok(())
    });
    outcome.expect("nothing was changed");
    let heap = reopen(heap, &directory);
    assert_holds(&heap, filled, 3 * MIB, 9);
    assert_clean(&heap);
    heap.close().expect("closes");
    assert!(matches!(heap.shrink(), Err(Error::Misuse { .. } | Error::Poisoned { .. })));
}

#[test]
fn a_random_user_who_shrinks_loses_nothing() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let mut heap = open(&directory);
        let mut held: Vec<(u64, u64, u8)> = Vec::new();
        let (mut released, mut punched) = (0, 0);
        for step in 0..300 {
            match random.u8(..20) {
                0 | 1 => {
                    let shrunk = heap.shrink().expect("can be shrunk");
                    released += shrunk.bytes_released;
                    punched += shrunk.bytes_punched;
                }
                2 => heap = reopen(heap, &directory),
                3 => assert_clean(&heap),
                4..=11 if !held.is_empty() => {
                    let (block, bytes, tag) = held.swap_remove(random.usize(..held.len()));
                    assert_holds(&heap, block, bytes, tag);
                    free(&heap, block);
                }
                _ => {
                    let bytes = match random.u8(..3) {
                        0 => random.u64(1..5000),
                        1 => random.u64(1..40) * PAGE_BYTES,
                        _ => random.u64(1..3 * MIB),
                    };
                    held.push((make(&heap, bytes, step as u8), bytes, step as u8));
                }
            }
        }
        for (block, bytes, tag) in held {
            assert_holds(&heap, block, bytes, tag);
        }
        assert_clean(&heap);
        assert!(released > 0 && punched > 0, "seed {seed}: {released} {punched}");
    }
}

/// A directory of the system, and the bytes that the pool in it takes.
fn on_files() -> (tempfile::TempDir, Arc<dyn Directory>, impl Fn() -> u64) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("heap");
    let directory = adamant_heap::OsDirectory::create(&path).expect("can be created");
    let used = move || {
        let found = std::fs::metadata(path.join("pool")).expect("is there");
        #[cfg(unix)]
        return std::os::unix::fs::MetadataExt::blocks(&found) * 512;
        // Without holes a file has all of its bytes.
        #[cfg(not(unix))]
        return found.len();
    };
    (folder, Arc::new(directory), used)
}

/// On files of the system: less space is taken, and reading beyond raises no signal.
#[test]
fn a_file_of_the_system_takes_less_space() {
    let (_folder, directory, used) = on_files();
    let mut heap = open(&directory);
    let blocks: Vec<u64> = (0..6).map(|tag| make(&heap, 2 * MIB, tag)).collect();
    heap = reopen(heap, &directory);
    let before = used();
    // Both kinds of pages of a private mapping are cut off: written to and not.
    let rewritten: Result<(), Error> = heap.transaction(Durability::Sync, |tx| {
        tx.write(blocks[5], 0, MIB as usize)?.fill(99);
        Ok(())
    });
    rewritten.expect("there is room");
    for block in [blocks[1], blocks[4], blocks[5]] {
        assert_eq!(heap.view().expect("ours").block(block).expect("a block").len() as u64, 2 * MIB);
        free(&heap, block);
    }
    let shrunk = heap.shrink().expect("can be shrunk");
    assert!(shrunk.bytes_released >= 4 * MIB, "{shrunk:?}");
    assert!(before - used() >= 4 * MIB + shrunk.bytes_punched, "{shrunk:?}");
    for (tag, block) in [(0, blocks[0]), (2, blocks[2]), (3, blocks[3])] {
        assert_holds(&heap, block, 2 * MIB, tag);
    }
    let occupancy = heap.occupancy().expect("can be looked at");
    assert!(occupancy.free_pages * PAGE_BYTES >= shrunk.bytes_punched);
    let again: Vec<u64> = (0..4).map(|tag| make(&heap, 2 * MIB, tag)).collect();
    for (tag, block) in (0..).zip(again) {
        assert_holds(&heap, block, 2 * MIB, tag);
    }
    assert_clean(&heap);
}

/// Regression: chunks that were free when the heap was opened were taken for holes.
#[test]
#[cfg_attr(windows, ignore = "files have no holes there")]
fn what_an_earlier_process_freed_is_given_back() {
    let (_folder, directory, used) = on_files();
    let mut heap = open(&directory);
    let blocks: Vec<u64> = (0..6).map(|tag| make(&heap, 2 * MIB, tag)).collect();
    blocks[1..5].iter().for_each(|block| free(&heap, *block));
    heap = reopen(heap, &directory);
    for round in 0..3 {
        let before = used();
        let shrunk = heap.shrink().expect("can be shrunk");
        assert!(before - used() >= if round == 0 { 7 * MIB } else { 0 }, "{round}: {shrunk:?}");
        let shrunk = heap.shrink().expect("can be shrunk");
        assert_eq!(shrunk.bytes_punched, 0, "nothing is freed twice");
        let again = make(&heap, 2 * MIB, 7);
        assert_holds(&heap, again, 2 * MIB, 7);
        free(&heap, again);
        heap = reopen(heap, &directory);
        assert_holds(&heap, blocks[0], 2 * MIB, 0);
        assert_holds(&heap, blocks[5], 2 * MIB, 5);
        assert_clean(&heap);
    }
}

/// Regression: runs whose blocks are all free stayed: those that shards own, and after an opening
/// those whose bitmaps were not loaded.
#[test]
fn runs_that_are_empty_are_given_back() {
    for reopens in [false, true] {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let mut heap = open(&directory);
        let first = make(&heap, 100, 1);
        let sizes = (0..4_000).map(|number| 100 + number % 7 * 300);
        let mut blocks: Vec<u64> = sizes.map(|bytes| make(&heap, bytes, 2)).collect();
        let of_threads: Vec<_> = (0..200).map(|_| heap.reserve(700).expect("room")).collect();
        blocks.extend(of_threads.iter().map(|reserved| reserved.offset()));
        heap.publish(Durability::Sync, of_threads).expect("there is room");
        assert!(pool_bytes(&directory) > 5 * MIB);
        let freed = heap.transaction::<_, Error>(Durability::Sync, |tx| {
            blocks.iter().try_for_each(|block| tx.free(*block))
        });
        freed.expect("they are allocated");
        if reopens {
            heap = reopen(heap, &directory);
        }
        let shrunk = heap.shrink().expect("can be shrunk");
        assert!(shrunk.bytes_released > 3 * MIB, "{reopens}: {shrunk:?}");
        assert!(pool_bytes(&directory) < 3 * MIB / 2, "{reopens}: {}", pool_bytes(&directory));
        assert_holds(&heap, first, 100, 1);
        assert_clean(&heap);
        // The shards that owned the runs go on.
        let again = make(&heap, 400, 3);
        let reserved = heap.reserve(700).expect("room");
        heap.publish(Durability::Sync, [reserved]).expect("there is room");
        let heap = reopen(heap, &directory);
        assert_holds(&heap, again, 400, 3);
        assert_clean(&heap);
    }
}

/// Regression: the log space of a large commit stayed for as long as the store was open.
#[test]
fn the_log_of_a_large_commit_is_given_back() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let log_bytes = || -> u64 {
        let log = directory.subdirectory("log").expect("is there");
        let names = log.list().expect("can be listed");
        let files = names.iter().filter_map(|name| log.open(name).expect("can be opened"));
        files.map(|file| file.len().expect("has a length")).sum()
    };
    let mut heap = open(&directory);
    for round in 0..2 {
        let block = make(&heap, 24 * MIB, round);
        assert_holds(&heap, block, 24 * MIB, round);
        free(&heap, block);
        let before = log_bytes();
        assert!(before > 16 * MIB, "{before}");
        let shrunk = heap.shrink().expect("can be shrunk");
        assert_eq!(before - log_bytes(), shrunk.log_bytes_released);
        assert!(shrunk.log_bytes_released > 0);
        // The log restarts: the newest header is no longer in a large file.
        assert_eq!(log_bytes(), 2 * MIB, "{shrunk:?}");
        heap = reopen(heap, &directory);
        assert_eq!(log_bytes(), 2 * MIB);
        assert_clean(&heap);
    }
}
