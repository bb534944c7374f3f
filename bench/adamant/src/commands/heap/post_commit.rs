//! A transaction that frees many objects, with threads that make their space reusable after the
//! commit has returned.

use std::time::{Duration, Instant};

use adamant_heap::Write;

use crate::commands::heap::ground::Ground;
use crate::harness::error::{Result, ensure};
use crate::harness::report::Unit;

/// Bytes of the objects: some sixty in a run, so that there is work for each word of a bitmap, and
/// many runs to give back.
const BYTES: u64 = 1024;
const WORKERS_MAX: u8 = 4;
/// Transactions of a row; the first is not measured.
const TIMES: u64 = 3;
/// Maximum time of the threads' work.
const PATIENCE: Duration = Duration::from_secs(60);

/// All rows of this group. Measured by wall clock, because of the threads.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    for workers in 0..=WORKERS_MAX {
        frees(ground, workers)?;
    }
    Ok(())
}

/// Nanoseconds for each object until the commit returns, and until all blocks can be reserved
/// again.
fn frees(ground: &mut Ground<'_>, workers: u8) -> Result<()> {
    let count = ground.settings.frees_max;
    let directory = ground.fresh_directory();
    let heap = ground.open_with_workers(&directory, workers)?;
    let (mut returned, mut done) = (Duration::ZERO, Duration::ZERO);
    for time in 0..=TIMES {
        let blocks = ground.fill(&heap, count, BYTES, false)?;
        let start = Instant::now();
        heap.transaction(ground.durability(), |transaction| -> Result<()> {
            blocks.iter().try_for_each(|&block| Ok(transaction.free(block)?))
        })?;
        let until_returned = start.elapsed();
        while heap.stats().quarantined > 0 {
            ensure(start.elapsed() < PATIENCE, || "freed blocks are not recycled".into())?;
            std::thread::sleep(Duration::from_micros(20));
        }
        if time > 0 {
            returned += until_returned;
            done += start.elapsed();
        }
    }
    let freed = count * TIMES;
    let each = |time: Duration| time.as_secs_f64() * 1e9 / freed as f64;
    let row = format!("post_commit.{workers}w");
    ground.add(&row, Unit::Nanoseconds, freed, each(returned));
    ground.add(&format!("{row}.done"), Unit::Nanoseconds, freed, each(done));
    ground.finish(heap)
}
