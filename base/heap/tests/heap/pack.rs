//! Transactions that pack: their blocks lie side by side, apart from those of others.

use std::collections::BTreeSet;
use std::sync::Arc;

use adamant_heap::layout::PAGE_BYTES;
use adamant_heap::{Durability, Error, Heap, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;

const CHUNK_BYTES: u64 = 64 * PAGE_BYTES;

fn open(directory: &Arc<dyn Directory>) -> Heap {
    Heap::open(Arc::clone(directory), crate::setup::options()).expect("opens").0
}

/// Blocks of these sizes, in one transaction.
fn reserve(heap: &Heap, packs: bool, sizes: &[u64]) -> Vec<u64> {
    let made = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
        if packs {
            tx.pack();
        }
        sizes.iter().map(|bytes| tx.reserve(*bytes)).collect()
    });
    made.expect("there is room")
}

fn free(heap: &Heap, blocks: &[u64]) {
    let freed = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
        blocks.iter().try_for_each(|block| tx.free(*block))
    });
    freed.expect("they are allocated");
}

#[test]
fn blocks_lie_behind_each_other_from_transaction_to_transaction() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    // Holes everywhere, which others fill.
    let holes = reserve(&heap, false, &[128; 20_000]);
    free(&heap, &holes.iter().copied().step_by(2).collect::<Vec<_>>());
    let mut packed = Vec::new();
    for _ in 0..10 {
        packed.extend(reserve(&heap, true, &[128; 300]));
        let others = reserve(&heap, false, &[128; 50]);
        assert!(others.iter().all(|block| *block < *holes.last().expect("some") + CHUNK_BYTES));
    }
    let steps = packed.windows(2).filter(|two| two[1] == two[0] + 128).count();
    assert!(steps > packed.len() * 19 / 20, "{steps} of {} are neighbours", packed.len());
    assert!(packed.iter().all(|block| !holes.contains(block)));
    let chunks: BTreeSet<_> = packed.iter().map(|block| block / CHUNK_BYTES).collect();
    assert!(chunks.len() <= 3, "{chunks:?}");
    assert!(heap.check().expect("can be checked").is_clean());
}

#[test]
fn what_is_undone_is_used_again() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    let first = reserve(&heap, true, &[1_000; 5]);
    let mut undone = Vec::new();
    let failed = heap.transaction::<(), Error>(Durability::Buffered, |tx| {
        tx.pack();
        undone = (0..5).map(|_| tx.reserve(1_000)).collect::<Result<_, _>>()?;
        Err(Error::Misuse { what: "a test" })
    });
    assert!(failed.is_err());
    let second = reserve(&heap, true, &[1_000; 5]);
    assert_eq!(second, undone);
    assert_eq!(second[0] - first[4], first[1] - first[0]);
    free(&heap, &second);
    assert_eq!(heap.check().expect("can be checked").blocks, 5);
}

/// Chunks that were left behind become holes; nothing is lost over a new opening.
#[test]
fn what_moved_leaves_whole_chunks_behind() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    let sizes: Vec<u64> = (0..30_000).map(|number| [24, 128, 448, 5_000][number % 4]).collect();
    let mut blocks = reserve(&heap, false, &sizes);
    let before = heap.stats().used_bytes;
    fastrand::Rng::with_seed(3).shuffle(&mut blocks);
    for (part, sizes) in blocks.chunks_mut(500).zip(sizes.chunks(500)) {
        let new = reserve(&heap, true, sizes);
        free(&heap, part);
        part.copy_from_slice(&new);
    }
    let shrunk = heap.shrink().expect("can be shrunk");
    // The last chunks were used again.
    assert!(shrunk.bytes_punched > before / 100 * 95, "{before} bytes, {shrunk:?}");
    heap.close().expect("closes");
    drop(heap);
    let heap = open(&directory);
    let report = heap.check().expect("can be checked");
    assert!(report.is_clean() && report.blocks == 30_000, "{report:?}");
    free(&heap, &blocks);
    let shrunk = heap.shrink().expect("can be shrunk");
    assert!(shrunk.bytes_released + shrunk.bytes_punched + 4 * CHUNK_BYTES > before, "{shrunk:?}");
}

/// Others fill the rest of its run; what the transaction reserved stays its own.
#[test]
fn room_that_is_left_is_there_for_others() {
    for commits in [true, false] {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let heap = open(&directory);
        let mut packed = 0;
        let done = heap.transaction::<(), Error>(Durability::Buffered, |tx| {
            tx.pack();
            packed = tx.reserve(1_000)?;
            tx.end_packing();
            if commits { Ok(()) } else { Err(Error::Misuse { what: "a test" }) }
        });
        assert_eq!(done.is_ok(), commits);
        let other = reserve(&heap, false, &[1_000])[0];
        assert_eq!(other / CHUNK_BYTES, packed / CHUNK_BYTES, "commits: {commits}");
        assert_eq!(other == packed, !commits);
        assert!(heap.check().expect("can be checked").is_clean());
    }
}
