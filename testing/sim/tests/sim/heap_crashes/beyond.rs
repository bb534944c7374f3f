//! Records that need more log than the limit: files are made beyond it, and removed by the
//! checkpoint that no longer needs them. If they were removed before its position is durable, a
//! power cut in between would leave a pool whose checkpoint asks for a log that is gone.

use adamant_heap::{Durability, Error, Flushing, Heap, Read, Write};
use adamant_medium::storage::Directory;
use adamant_sim::tally::seed;
use adamant_sim::{Mark, SimDirectory, SimDisk, Tally};

use crate::heap_crashes::model::open;

/// With the log's limit of 4 MiB, one record of this many bytes needs files beyond it.
const LARGE_BYTES: usize = 5 << 20;
/// Root words: the number of the commit, and its block.
const COMMIT: usize = 0;
const BLOCK: usize = 1;

/// A commit that replaces the block by one of `bytes` bytes.
fn commit(disk: &SimDisk, heap: &Heap, number: u64, bytes: usize) {
    Mark::Begun.put(disk, number);
    heap.transaction::<(), Error>(Durability::Sync, |tx| {
        let old = tx.root(BLOCK);
        let block = tx.reserve(bytes as u64)?;
        tx.write(block, 0, bytes)?.fill(number as u8);
        if old != 0 {
            tx.free(old)?;
        }
        tx.set_root(BLOCK, block)?;
        tx.set_root(COMMIT, number)
    })
    .unwrap();
    Mark::Durable.put(disk, number);
}

#[test]
fn a_log_beyond_its_limit_is_kept_until_nobody_needs_it() {
    let disk = SimDisk::new(seed(61));
    let sizes = [100, LARGE_BYTES, 3000, 40, LARGE_BYTES, 100];
    {
        let (heap, _) = open(&disk, Flushing::Auto).unwrap();
        Mark::Durable.put(&disk, 0);
        for (number, bytes) in (1..).zip(sizes) {
            commit(&disk, &heap, number, bytes);
            heap.checkpoint().unwrap();
        }
    }
    let removals = (0..disk.operation_count()).filter_map(|number| disk.describe(number));
    let removals = removals.filter(|text| text.starts_with("remove")).count();
    assert!(removals >= 2, "{removals} log files were removed");
    let mut tally = Tally::new();
    tally.power_cuts(&disk, 1, 4, |crashed, promise| {
        let crashed = crashed.without_history();
        if SimDirectory::root(&crashed).open("pool").unwrap().is_none() {
            assert!(!promise.created, "a heap that was created is gone");
            return;
        }
        let (heap, _) = open(&crashed, Flushing::Auto).unwrap();
        let view = heap.view().unwrap();
        let found = view.root(COMMIT);
        assert!((promise.least..=promise.most).contains(&found), "{found}, {promise:?}");
        if found > 0 {
            let bytes = sizes[found as usize - 1];
            let block = &view.block(view.root(BLOCK)).unwrap()[..bytes];
            assert!(block.iter().all(|byte| *byte == found as u8), "commit {found} differs");
        }
    });
    tally.print("a log beyond its limit");
}
