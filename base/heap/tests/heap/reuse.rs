//! Free space is reused before the heap grows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adamant_heap::{Durability, Error, Heap, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;

fn open(directory: &Arc<dyn Directory>) -> Heap {
    let mut options = crate::setup::options();
    options.background = false;
    // The least that a heap can have: one zone of 256 MiB.
    options.address_bytes_max = 0;
    let (heap, _) = Heap::open(Arc::clone(directory), options).expect("opens");
    heap
}

fn reserve(heap: &Heap, bytes: u64) -> Result<u64, Error> {
    heap.transaction(Durability::Buffered, |tx| tx.reserve(bytes))
}

#[test]
fn opening_again_and_again_does_not_make_a_run_each_time() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    reserve(&open(&directory), 100).expect("there is room");
    let used_bytes = open(&directory).stats().used_bytes;
    for _ in 0..50 {
        let heap = open(&directory);
        reserve(&heap, 100).expect("there is room");
        heap.close().expect("closes");
    }
    assert_eq!(open(&directory).stats().used_bytes, used_bytes, "all fit into the first run");
}

#[test]
fn a_transaction_finds_what_the_last_pin_let_go() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    let block = reserve(&heap, 200 << 20).expect("there is room");
    let pin = heap.pin().expect("ours");
    heap.transaction::<_, Error>(Durability::Buffered, |tx| tx.free(block)).expect("allocated");
    reserve(&heap, 200 << 20).expect_err("the pin may still look at it");
    drop(pin);
    assert_eq!(reserve(&heap, 200 << 20).expect("nobody looks at it"), block);
}

/// Blocks of three kinds: many in a word of a bitmap, few, and extents.
const KINDS: [(usize, usize); 3] = [(1500, 64), (600, 5000), (400, 41_000)];

fn open_with_workers(directory: &Arc<dyn Directory>, workers: u8) -> Heap {
    let mut options = crate::setup::options();
    options.background = false;
    options.address_bytes_max = 1 << 30;
    options.post_commit_workers = workers;
    Heap::open(Arc::clone(directory), options).expect("opens").0
}

/// Blocks of all kinds that begin with a tag.
fn fill(heap: &Heap, tag: u8) -> Vec<u64> {
    let filled = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
        let mut blocks = Vec::new();
        for (count, bytes) in KINDS {
            for _ in 0..count {
                let block = tx.reserve(bytes as u64)?;
                tx.write(block, 0, 16)?.fill(tag);
                blocks.push(block);
            }
        }
        Ok(blocks)
    });
    filled.expect("there is room")
}

fn free(heap: &Heap, blocks: &[u64]) {
    heap.transaction(Durability::Buffered, |tx| blocks.iter().try_for_each(|b| tx.free(*b)))
        .expect("they are there");
}

/// Waits until nothing waits to become reusable.
fn wait_for_workers(heap: &Heap) {
    let start = Instant::now();
    while heap.stats().quarantined > 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "the threads do nothing");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn large_frees_are_recycled_after_the_commit() {
    for workers in [0, 1, 4] {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let heap = open_with_workers(&directory, workers);
        let mut used_bytes = 0;
        for round in 0..12 {
            let blocks = fill(&heap, round);
            free(&heap, &blocks);
            wait_for_workers(&heap);
            if round == 0 {
                used_bytes = heap.stats().used_bytes;
            }
        }
        let used = heap.stats().used_bytes;
        assert!(used <= used_bytes * 5 / 4, "{workers}: {used_bytes} became {used}");
        let report = heap.check().expect("can be checked");
        assert!(report.is_clean(), "{workers}: {:?}", report.findings);
        // The threads end in the middle of their work, and nothing depends on it.
        free(&heap, &fill(&heap, 1));
        if workers == 1 {
            heap.close().expect("closes");
            heap.view().expect_err("closed");
        }
        drop(heap);
        let heap = open_with_workers(&directory, workers);
        free(&heap, &fill(&heap, 2));
        let report = heap.check().expect("can be checked");
        assert!(report.is_clean(), "{workers}: {:?}", report.findings);
        let used = heap.stats().used_bytes;
        assert!(used <= used_bytes * 5 / 4, "{workers}: {used_bytes} became {used}");
    }
}

#[test]
fn workers_leave_to_a_pin_what_it_looks_at() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open_with_workers(&directory, 2);
    let kept = fill(&heap, 100);
    let pin = heap.pin().expect("ours");
    free(&heap, &kept);
    std::thread::scope(|scope| {
        // Transactions, views and pins go on while the threads work.
        let reader = scope.spawn(|| {
            for _ in 0..300 {
                let before = heap.view().expect("open").root(1);
                let pin = heap.pin().expect("ours");
                assert!(before <= heap.view().expect("open").root(1));
                drop(pin);
            }
        });
        for round in 0..10 {
            let blocks = fill(&heap, round);
            assert!(blocks.iter().all(|block| !kept.contains(block)), "pinned blocks are reused");
            heap.transaction(Durability::Buffered, |tx| tx.set_root(1, round.into()))
                .expect("a root");
            free(&heap, &blocks);
        }
        reader.join().expect("no panic");
    });
    assert!(heap.stats().quarantined >= kept.len() as u64, "the pin is there");
    drop(pin);
    free(&heap, &fill(&heap, 50));
    for _ in 0..1000 {
        // A reader may take two views while no other thread writes: the threads never wait for the
        // image.
        let view = heap.view().expect("open");
        assert_eq!(view.root(1), heap.view().expect("open").root(1));
    }
    // Threads that never found the image free left the rest to the next commit that frees as much.
    free(&heap, &fill(&heap, 50));
    wait_for_workers(&heap);
    let report = heap.check().expect("can be checked");
    assert!(report.is_clean(), "{:?}", report.findings);
}
