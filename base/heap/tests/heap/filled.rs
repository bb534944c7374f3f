//! Filled images: pages that are read by calls, verified, and given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use adamant_heap::{Durability, Error, Heap, ImageKind, MemoryDirectory, OsDirectory, Read, Write};
use adamant_medium::storage::Directory;

/// Bytes of a block, and how many there are: some 24 MiB.
const BLOCK_BYTES: usize = 3000;
const BLOCKS: u64 = 8_000;
/// Far less than that.
const BOUND_BYTES: u64 = 4 << 20;
/// Time until the thread that gives pages back has had its turn, on a machine that does much else.
const LONGEST: Duration = Duration::from_secs(60);

fn open(directory: &Arc<dyn Directory>, memory_bytes_max: u64, read_only: bool) -> Heap {
    let mut options = crate::setup::options();
    options.address_bytes_max = 1 << 30;
    options.image = ImageKind::Filled;
    options.memory_bytes_max = memory_bytes_max;
    options.background = true;
    options.read_only = read_only;
    Heap::open(Arc::clone(directory), options).expect("opens").0
}

fn byte_of(index: u64, version: u8) -> u8 {
    (index as u8).wrapping_mul(31).wrapping_add(version)
}

fn make(heap: &Heap, count: u64) -> Vec<u64> {
    let make = |index| {
        heap.transaction(Durability::Buffered, |tx| {
            let block = tx.reserve(BLOCK_BYTES as u64)?;
            tx.write(block, 0, BLOCK_BYTES)?.fill(byte_of(index, 0));
            Ok::<_, Error>(block)
        })
        .expect("commits")
    };
    (0..count).map(make).collect()
}

/// Whether a block has the bytes of one version.
fn is_of(bytes: &[u8], index: u64, version: u8) -> bool {
    bytes[..BLOCK_BYTES].iter().all(|byte| *byte == byte_of(index, version))
}

#[test]
fn a_damaged_page_is_an_error_and_all_others_are_read() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory, u64::MAX, false);
    let blocks = make(&heap, 200);
    heap.close().expect("closes");
    let at = adamant_heap::layout::file_offset(blocks[100]) + 1500;
    let pool = directory.open("pool").expect("opens").expect("is there");
    let mut byte = [0];
    pool.read_at(&mut byte, at).expect("reads");
    pool.write_at(&[byte[0] ^ 4], at).expect("writes");
    for read_only in [true, false] {
        let heap = open(&directory, u64::MAX, read_only);
        let view = heap.view().expect("open");
        let mut damaged = 0;
        for (index, block) in (0..).zip(&blocks) {
            match view.block(*block) {
                Ok(bytes) => assert!(is_of(bytes, index, 0), "block {index}"),
                Err(Error::Damaged { offset, .. }) => {
                    damaged += 1;
                    assert_eq!(offset / 4096, at / 4096, "names the page");
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!((1..=2).contains(&damaged), "the blocks on that page, found {damaged}");
    }
    // Restored beside the open heap, the page is read the next time that it is asked for.
    let heap = open(&directory, u64::MAX, false);
    assert!(heap.view().expect("open").block(blocks[100]).is_err());
    pool.write_at(&byte, at).expect("writes");
    let view = heap.view().expect("open");
    assert!(view.block(blocks[100]).is_ok_and(|bytes| is_of(bytes, 100, 0)));
}

#[test]
fn what_is_read_takes_no_more_memory_than_its_bound() {
    let temporary = tempfile::tempdir().expect("a directory");
    let path = temporary.path().join("heap");
    let directory: Arc<dyn Directory> = Arc::new(OsDirectory::create(&path).expect("made"));
    let heap = open(&directory, u64::MAX, false);
    let blocks = make(&heap, BLOCKS);
    heap.close().expect("closes");
    for read_only in [true, false] {
        let heap = open(&directory, BOUND_BYTES, read_only);
        let mut most = 0;
        for _ in 0..3 {
            for (index, block) in (0..).zip(&blocks) {
                let view = heap.brief_view().expect("open");
                assert!(is_of(view.block(*block).expect("read"), index, 0), "block {index}");
                drop(view);
                most = most.max(heap.stats().memory.dirty_bytes);
            }
        }
        // Reads do not wait for the thread that gives back, so it may be behind.
        assert!(most < 5 * BOUND_BYTES, "{most} bytes of memory");
        let dropped = heap.stats().memory.dropped_bytes;
        assert!(dropped > 40 << 20, "{dropped} bytes given back");
    }
}

/// Readers, writers of blocks of their own, and the thread that gives pages back.
#[test]
fn no_thread_reads_a_page_that_is_gone() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory, u64::MAX, false);
    let blocks = make(&heap, BLOCKS / 2);
    heap.close().expect("closes");
    let heap = open(&directory, BOUND_BYTES / 2, false);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (heap, blocks, is_over) = (&heap, &blocks, &is_over);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while !is_over.load(Ordering::Relaxed) {
                    let index = random.u64(..blocks.len() as u64);
                    let view = heap.view().expect("open");
                    let bytes = view.block(blocks[index as usize]).expect("read");
                    // Every eighth block changes its version as a whole.
                    let version = bytes[0].wrapping_sub(byte_of(index, 0));
                    assert!(index.is_multiple_of(8) || version == 0, "block {index}");
                    assert!(is_of(bytes, index, version), "block {index}, seed {seed}");
                }
            });
        }
        let mut random = fastrand::Rng::with_seed(9);
        let begun = Instant::now();
        let is_dropped = || heap.stats().memory.dropped_bytes > 1 << 20;
        let goes_on = |round| round < 300 || !is_dropped() && begun.elapsed() < LONGEST;
        for round in (0_u64..).take_while(|round| goes_on(*round)) {
            let index = random.u64(..blocks.len() as u64 / 8) * 8;
            let version = round as u8;
            heap.transaction(Durability::Buffered, |tx| {
                let bytes = tx.write(blocks[index as usize], 0, BLOCK_BYTES)?;
                bytes.fill(byte_of(index, version));
                let spare = tx.reserve(random.u64(1..20_000))?;
                tx.free(spare)
            })
            .expect("commits");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(heap.stats().memory.dropped_bytes > 1 << 20);
    assert!(heap.check().expect("checks").findings.is_empty());
}
