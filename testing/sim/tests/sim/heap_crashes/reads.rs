//! Reads that fail, each once: the operation that needed the read is undone, and the heap is
//! unchanged.

use adamant_heap::{Durability, Error, Flushing, Heap, Transaction, Write};
use adamant_sim::tally::seed;
use adamant_sim::{Call, Fault, SimDisk, Tally};

use crate::heap_crashes::model::open_bounded;

/// Bytes of blocks: of runs that are long and cross zones, and of short ones.
const BLOCK_BYTES: [u64; 4] = [20_000, 3_000, 200, 9_000];
/// Blocks of a transaction, and transactions: 6 MiB, of three zones.
const BLOCKS: usize = 20;
const TRANSACTIONS: usize = 40;

/// Allocates and frees; returns how many blocks there are, and how many transactions failed.
fn fill(heap: &Heap) -> (u64, u64) {
    let (mut blocks, mut failed) = (Vec::new(), 0);
    for number in 0..TRANSACTIONS {
        let change = |tx: &mut Transaction<'_>| {
            let bytes = BLOCK_BYTES[number % BLOCK_BYTES.len()];
            let allocated = (0..BLOCKS).map(|_| tx.reserve(bytes));
            let allocated = allocated.collect::<Result<Vec<u64>, Error>>()?;
            let freed = blocks.get(blocks.len() / 2..blocks.len() / 2 + 5).unwrap_or_default();
            freed.iter().try_for_each(|block| tx.free(*block))?;
            Ok::<_, Error>((allocated, freed.len()))
        };
        match heap.transaction(Durability::Deferred, change) {
            Ok((allocated, freed)) => {
                let start = blocks.len() / 2;
                blocks.drain(start..start + freed);
                blocks.extend(allocated);
            }
            Err(_) => failed += 1,
        }
    }
    (blocks.len() as u64, failed)
}

#[test]
fn a_read_that_fails_leaves_nothing_half_done() {
    // All in memory, and hardly anything of it.
    for memory_bytes_max in [u64::MAX, 256 << 10] {
        try_reads(|disk| Ok(open_bounded(disk, Flushing::Auto, memory_bytes_max)?.0));
    }
}

/// Fails each read of the workload, on a heap opened by `open`.
fn try_reads(open: impl Fn(&SimDisk) -> Result<Heap, Error>) {
    let mut tally = Tally::new();
    let sound = SimDisk::new(seed(91)).without_history();
    fill(&open(&sound).unwrap());
    let (reads, mut undone, mut poisoned) = (sound.call_count(Call::Read), 0, 0);
    for number in 1..=reads {
        tally.points += 1;
        let disk = SimDisk::new(seed(91)).without_history();
        disk.fail_call(Call::Read, number, Fault::Device);
        // A heap that could not be created has made no promise.
        let Ok(heap) = open(&disk) else { continue };
        tally.state(&disk, number, &"failing", || {
            let (blocks, failed) = fill(&heap);
            disk.repair();
            undone += u64::from(failed == 1);
            if heap.checkpoint().is_err() {
                poisoned += 1;
                return;
            }
            assert!(failed <= 1, "{failed} transactions failed, of one read");
            let clean = |heap: &Heap| {
                let report = heap.check().unwrap();
                assert!(report.is_clean(), "{:#?}", report.findings);
                assert_eq!(report.blocks, blocks, "of those that were committed");
            };
            clean(&heap);
            heap.close().unwrap();
            clean(&open(&disk).unwrap());
        });
    }
    println!("{reads} reads: {undone} undone, {poisoned} poisoned");
    assert!(undone > 0, "a transaction reads");
    tally.print("failing reads");
}
