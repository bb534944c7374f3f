//! Growth of the pool: in proportion to the need, never by doubling, and without a limit for one
//! extent.

use std::sync::Arc;

use adamant_heap::layout::{PAGE_BYTES, ZONE_BYTES};
use adamant_heap::{Durability, Error, Heap, MemoryDirectory, Options, Read, Write};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn open(address_bytes_max: u64) -> Heap {
    let mut options = Options::default();
    options.background = false;
    options.address_bytes_max = address_bytes_max;
    Heap::open(Arc::new(MemoryDirectory::new()), options).expect("opens").0
}

fn reserve(heap: &Heap, bytes: u64) -> u64 {
    let made = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
        let block = tx.reserve(bytes)?;
        // No more: a record holds a newly allocated block up to the last byte that was written.
        tx.write(block, 0, 8)?.fill(1);
        Ok(block)
    });
    made.expect("there is room")
}

/// A sixteenth of the pool, 1 MiB at least and 64 MiB at most.
fn step(pool_bytes: u64) -> u64 {
    (pool_bytes / 16).clamp(MIB, 64 * MIB)
}

#[test]
fn a_load_grows_by_a_sixteenth_and_a_large_block_by_itself() {
    let heap = open(4 * GIB);
    let (mut growths, mut random) = (0, fastrand::Rng::with_seed(3));
    while heap.stats().pool_bytes < 200 * MIB {
        let before = heap.stats().pool_bytes;
        let bytes = random.u64(1..200_000).next_multiple_of(8) + 8;
        reserve(&heap, bytes);
        let after = heap.stats().pool_bytes;
        growths += u64::from(after > before);
        let most = step(before).max(bytes) + MIB / 4;
        assert!(after - before <= most, "from {before} to {after} for {bytes} bytes");
    }
    // To 16 MiB by 1 MiB each, then 16 times for each doubling.
    assert!(growths < 16 + 4 * 16, "{growths} times");
    let stats = heap.stats();
    assert!(stats.pool_bytes - stats.used_bytes <= step(stats.pool_bytes) + MIB / 4, "{stats:?}");
    for bytes in [40 * MIB, 700 * MIB + 12_345 * 8] {
        let before = heap.stats().pool_bytes;
        reserve(&heap, bytes);
        let grown = heap.stats().pool_bytes - before;
        let needed = bytes.next_multiple_of(PAGE_BYTES);
        assert!(grown <= needed.max(step(before)) + MIB / 4, "{grown} for {bytes} bytes");
    }
}

#[test]
fn an_extent_has_no_limit_of_its_own() {
    let heap = open(64 * GIB);
    // Neighbours of whole chunks, of no zone in particular.
    let sizes = [5 * ZONE_BYTES + 3 * MIB, 7 * GIB, 9 * GIB + 5 * PAGE_BYTES];
    let blocks = sizes.map(|bytes| reserve(&heap, bytes));
    let total: u64 = sizes.iter().sum();
    assert!(total > 16 * GIB);
    let pool_bytes = heap.stats().pool_bytes;
    let freed: Result<(), Error> = heap.transaction(Durability::Buffered, |tx| {
        [1, 0, 2].into_iter().try_for_each(|index| tx.free(blocks[index]))
    });
    freed.expect("they are allocated");
    let joined = reserve(&heap, total);
    assert_eq!(
        (joined, heap.stats().pool_bytes),
        (blocks[0], pool_bytes),
        "as one, in their place"
    );
    let view = heap.view().expect("ours");
    let bytes = view.block(joined).expect("a block");
    assert_eq!((bytes.len() as u64, bytes[0], bytes[total as usize - 1]), (total, 1, 0));
}
