//! Runs and extents across a zone boundary: each page belongs to one block at a time, also when the
//! zones are loaded one after the other.

use std::sync::Arc;

use adamant_heap::layout::{PAGE_BYTES, ZONE_BYTES, ZONE_PAGES};
use adamant_heap::{Durability, Error, Heap, Read, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;

fn open(directory: &Arc<dyn Directory>) -> Heap {
    let mut options = crate::setup::options();
    options.background = false;
    options.address_bytes_max = 4 << 30;
    let (heap, _) = Heap::open(Arc::clone(directory), options).expect("opens");
    heap
}

fn make(heap: &Heap, bytes: u64, tag: u8) -> u64 {
    let made = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
        let block = tx.reserve(bytes)?;
        tx.write(block, 0, 64)?.fill(tag);
        Ok(block)
    });
    made.expect("there is room")
}

fn free(heap: &Heap, blocks: &[u64]) {
    let freed = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
        blocks.iter().try_for_each(|block| tx.free(*block))
    });
    freed.expect("they are allocated");
}

fn assert_clean(heap: &Heap) {
    let report = heap.check().expect("can be checked");
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[test]
fn a_run_over_a_boundary_gives_its_pages_back_once() {
    for block_bytes in [128, 5000] {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let heap = open(&directory);
        // One page is left of zone 0, so the next run begins there and ends in zone 1.
        let below = ZONE_PAGES - 1 - heap.stats().used_bytes / PAGE_BYTES;
        let mut held = vec![(make(&heap, below * PAGE_BYTES, 1), below * PAGE_BYTES)];
        let blocks: Vec<u64> = (0..8).map(|tag| make(&heap, block_bytes, tag)).collect();
        assert!(blocks.iter().any(|block| block / ZONE_BYTES == 0), "{blocks:?}");
        held.push((make(&heap, 100 * PAGE_BYTES, 2), 100 * PAGE_BYTES));
        heap.close().expect("closes");
        drop(heap);

        // Only the metadata of zone 0 is loaded when the run is emptied.
        let heap = open(&directory);
        free(&heap, &blocks);
        for tag in 0..200 {
            let bytes = 10 * PAGE_BYTES;
            let block = make(&heap, bytes, tag);
            let is_apart =
                |(other, len): &(u64, u64)| block + bytes <= *other || other + len <= block;
            assert!(held.iter().all(is_apart), "{block:#x} is given out twice");
            held.push((block, bytes));
        }
        assert_clean(&heap);
    }
}

#[test]
fn extents_over_boundaries_are_reused_as_one() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    let sizes = [300 << 20, 300 << 20, 700 << 20];
    let blocks: Vec<u64> = (1..).zip(sizes).map(|(tag, bytes)| make(&heap, bytes, tag)).collect();
    assert_clean(&heap);
    drop(heap);
    let heap = open(&directory);
    for (tag, block) in (1..).zip(&blocks) {
        assert_eq!(heap.view().expect("ours").block(*block).expect("a block")[63], tag);
    }
    let used_bytes = heap.stats().used_bytes;
    free(&heap, &blocks[..2]);
    assert_eq!(make(&heap, 600 << 20, 4), blocks[0]);
    free(&heap, &[blocks[0], blocks[2]]);
    assert_eq!(make(&heap, 1200 << 20, 5), blocks[0]);
    assert_eq!(heap.stats().used_bytes, used_bytes);
    assert_clean(&heap);
}
