//! The heap map: the occupancy of the heap as a picture, cached.
//!
//! Purpose: a look at all pages blocks commits for its duration, so looks take one part in [`REST`]
//! of the time at most, and each is shown until the next one.
//! Thread safety: any thread; callers that come during a look wait for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adamant::{ClassOccupancy, Occupancy, Result, Store, Usage};
use parking_lot::Mutex;

/// Minimum age before a new look.
const FRESH: Duration = Duration::from_secs(5);
/// The same as a multiple of the look's duration.
const REST: u32 = 50;
/// Cells of the picture: 128 in each of 32 rows.
const CELLS_MAX: u64 = 4096;
/// Bytes of a page of the heap.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// The last look at a heap.
#[derive(Debug, Default)]
pub(crate) struct HeapMap {
    latest: Mutex<Option<Arc<Look>>>,
}

/// The result of a look.
#[derive(Debug)]
pub(crate) struct Look {
    at: Instant,
    took: Duration,
    /// Without its ranges, which may be many.
    pub(crate) occupancy: Occupancy,
    pub(crate) fragmentation: f64,
    pub(crate) pages_per_cell: u64,
    /// A letter a cell: `.` free, `s` the system's, `e` an extent, `?` unknown, `a` to `m` runs of
    /// blocks of 8 bytes (2^3) to 32 KiB (2^15).
    pub(crate) usage: String,
    /// A digit a cell: how full its run is, 9 for full.
    pub(crate) fill: String,
}

impl HeapMap {
    /// The last look, or a new one.
    ///
    /// # Errors
    /// As [`Store::occupancy`].
    pub(crate) fn look(&self, store: &Store) -> Result<Arc<Look>> {
        let mut latest = self.latest.lock();
        if let Some(look) = &*latest
            && look.at.elapsed() < FRESH.max(look.took * REST)
        {
            return Ok(Arc::clone(look));
        }
        let look = Arc::new(Look::take(store)?);
        *latest = Some(Arc::clone(&look));
        Ok(look)
    }
}

impl Look {
    fn take(store: &Store) -> Result<Self> {
        let start = Instant::now();
        let mut occupancy = store.occupancy()?;
        let took = start.elapsed();
        let (pages_per_cell, cells) = occupancy.cells(CELLS_MAX);
        occupancy.page_ranges = Vec::new();
        Ok(Self {
            at: Instant::now(),
            took,
            fragmentation: occupancy.fragmentation(),
            occupancy,
            pages_per_cell,
            usage: cells.iter().map(|&usage| letter(usage)).collect(),
            fill: cells.iter().map(|&usage| digit(usage)).collect(),
        })
    }

    /// The age of the look.
    pub(crate) fn age(&self) -> Duration {
        self.at.elapsed()
    }

    /// Bytes that are free.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.occupancy.free_pages * PAGE_BYTES
    }

    /// Classes with a run, by block size.
    pub(crate) fn classes(&self) -> &[ClassOccupancy] {
        &self.occupancy.classes
    }
}

fn letter(usage: Usage) -> char {
    match usage {
        Usage::Free => '.',
        Usage::System => 's',
        Usage::Extent => 'e',
        Usage::Run { block_bytes, .. } => {
            let exponent = block_bytes.max(1).ilog2().clamp(3, 15);
            char::from(b'a' + (exponent - 3) as u8)
        }
        _ => '?',
    }
}

fn digit(usage: Usage) -> char {
    match usage {
        Usage::Run { blocks, allocated, .. } => {
            let tenths = (allocated.saturating_mul(10) / blocks.max(1)).min(9);
            char::from(b'0' + tenths as u8)
        }
        _ => '0',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_in_letters() {
        let run = |block_bytes, allocated| Usage::Run { block_bytes, blocks: 20, allocated };
        let cells = [Usage::Free, run(8, 0), run(40, 11), run(1 << 20, 20), Usage::Extent];
        assert_eq!(cells.map(letter).iter().collect::<String>(), ".acme");
        assert_eq!(cells.map(digit).iter().collect::<String>(), "00590");
    }

    #[test]
    fn one_look_for_many_who_ask() {
        let (map, store) = (HeapMap::default(), Store::in_memory().unwrap());
        let first = map.look(&store).unwrap();
        assert!(Arc::ptr_eq(&first, &map.look(&store).unwrap()));
        assert_eq!(first.usage.len(), first.fill.len());
        assert!(first.usage.starts_with('s'), "{}", first.usage);
    }
}
