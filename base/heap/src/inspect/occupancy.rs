//! Occupancy of a heap: the use of its pages.
//!
//! Purpose: figures and a map for people: how full each class is, where free space lies, how much
//! of it is fragmented. Reads descriptors and bitmaps only; the check verifies them.
//! Thread safety: under the shared lock, one moment of the heap.

use crate::error::Result;
use crate::image::class::ClassTable;
use crate::image::mapping::Image;
use crate::layout::{KIND_EXTENT, KIND_FREE, KIND_RUN, KIND_SYSTEM, PAGE_BYTES};

/// A range of pages with one use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRange {
    /// First page.
    pub page: u64,
    /// Pages.
    pub pages: u64,
    /// Their use.
    pub usage: Usage,
}

/// The use of a range of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Usage {
    /// The root page and the class table.
    System,
    /// Unused.
    Free,
    /// A block of whole pages.
    Extent,
    /// Blocks of one size.
    Run {
        /// Bytes of a block.
        block_bytes: u64,
        /// Blocks of the run.
        blocks: u64,
        /// Allocated blocks.
        allocated: u64,
    },
    /// A descriptor that is none of these: damage.
    Unknown,
}

/// The use of the blocks of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassOccupancy {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Runs.
    pub runs: u64,
    /// Pages of those runs.
    pub pages: u64,
    /// Blocks of those runs.
    pub blocks: u64,
    /// Allocated blocks.
    pub allocated: u64,
}

/// The use of the pages of a heap.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Occupancy {
    /// Every page up to the end of the heap, in ranges. Free neighbours are one range.
    pub page_ranges: Vec<PageRange>,
    /// Each class with a run, by block size.
    pub classes: Vec<ClassOccupancy>,
    /// Blocks of whole pages.
    pub extents: u64,
    /// Pages of those.
    pub extent_pages: u64,
    /// Free pages.
    pub free_pages: u64,
    /// Pages of the largest free range.
    pub free_pages_largest: u64,
}

impl Occupancy {
    /// Bytes of allocated blocks, whole pages for extents.
    pub fn allocated_bytes(&self) -> u64 {
        let runs: u64 = self.classes.iter().map(|class| class.allocated * class.block_bytes).sum();
        runs + self.extent_pages * PAGE_BYTES
    }

    /// Bytes of runs that no block uses: free blocks, bitmaps, and the rest at the end.
    pub fn unused_run_bytes(&self) -> u64 {
        let unused = |class: &ClassOccupancy| {
            (class.pages * PAGE_BYTES).saturating_sub(class.allocated * class.block_bytes)
        };
        self.classes.iter().map(unused).sum()
    }

    /// How scattered the free pages are: 0 if they are one range, towards 1 the more they are
    /// scattered. 0 when none is free.
    pub fn fragmentation(&self) -> f64 {
        match self.free_pages {
            0 => 0.0,
            pages => 1.0 - self.free_pages_largest as f64 / pages as f64,
        }
    }

    /// The heap as a map: the pages divided into at most `cells_max` cells of equal size. Returns
    /// the pages per cell and the use that takes most of each cell, the first of equals.
    pub fn cells(&self, cells_max: u64) -> (u64, Vec<Usage>) {
        let pages = self.page_ranges.last().map_or(0, |last| last.page + last.pages);
        let pages_per_cell = pages.div_ceil(cells_max.max(1)).max(1);
        let mut cells: Vec<Usage> = Vec::new();
        let mut most = 0;
        for page_range in &self.page_ranges {
            let end = page_range.page + page_range.pages;
            for cell in page_range.page / pages_per_cell..end.div_ceil(pages_per_cell) {
                let start = page_range.page.max(cell * pages_per_cell);
                let taken = end.min((cell + 1) * pages_per_cell) - start;
                let is_new = cells.len() as u64 == cell;
                if is_new {
                    cells.push(page_range.usage);
                } else if taken > most {
                    cells[cell as usize] = page_range.usage;
                }
                most = if is_new { taken } else { most.max(taken) };
            }
        }
        (pages_per_cell, cells)
    }
}

/// Reads all descriptors, and the bitmaps of all runs. O(pages).
pub(crate) fn occupancy(image: &Image, classes: &ClassTable) -> Result<Occupancy> {
    let mut found = Occupancy::default();
    let mut by_class = vec![ClassOccupancy::default(); classes.len()];
    let mut page = 0;
    while page < image.pages() {
        let (pages, usage) = usage_at(image, classes, page, &mut by_class)?;
        match usage {
            Usage::Free => found.free_pages += pages,
            Usage::Extent => {
                found.extents += 1;
                found.extent_pages += pages;
            }
            Usage::System | Usage::Run { .. } | Usage::Unknown => {}
        }
        match found.page_ranges.last_mut() {
            Some(last) if last.usage == usage && mergeable(usage) => last.pages += pages,
            _ => found.page_ranges.push(PageRange { page, pages, usage }),
        }
        page += pages;
    }
    let free = found.page_ranges.iter().filter(|page_range| page_range.usage == Usage::Free);
    found.free_pages_largest = free.map(|page_range| page_range.pages).max().unwrap_or(0);
    found.classes = by_class.into_iter().filter(|class| class.runs > 0).collect();
    found.classes.sort_by_key(|class| class.block_bytes);
    Ok(found)
}

fn mergeable(usage: Usage) -> bool {
    matches!(usage, Usage::System | Usage::Free | Usage::Unknown)
}

/// The use that begins at a page, and its number of pages.
fn usage_at(
    image: &Image,
    classes: &ClassTable,
    page: u64,
    by_class: &mut [ClassOccupancy],
) -> Result<(u64, Usage)> {
    let descriptor = image.descriptor(page)?;
    let extent_pages = u64::from(descriptor.argument.get());
    let left = image.pages() - page;
    match descriptor.kind {
        KIND_FREE => Ok((1, Usage::Free)),
        KIND_EXTENT if (1..=left).contains(&extent_pages) => Ok((extent_pages, Usage::Extent)),
        KIND_RUN => {
            let class = descriptor.class.get();
            let Some(shape) = classes.get(class).filter(|shape| shape.run_pages <= left) else {
                return Ok((1, Usage::Unknown));
            };
            let mut allocated = 0;
            for index in 0..shape.bitmap_words() {
                allocated += u64::from(image.bitmap_word(page, shape, index)?.count_ones());
            }
            let (block_bytes, blocks) = (shape.block_bytes, shape.block_count);
            if let Some(total) = by_class.get_mut(usize::from(class)) {
                total.block_bytes = block_bytes;
                total.runs += 1;
                total.pages += shape.run_pages;
                total.blocks += blocks;
                total.allocated += allocated;
            }
            Ok((shape.run_pages, Usage::Run { block_bytes, blocks, allocated }))
        }
        KIND_SYSTEM => Ok((1, Usage::System)),
        _ => Ok((1, Usage::Unknown)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_shows_what_takes_most_of_it() {
        let (run, mut heap) =
            (Usage::Run { block_bytes: 8, blocks: 9, allocated: 3 }, Occupancy::default());
        let mut page = 0;
        for (pages, usage) in
            [(1, Usage::System), (3, Usage::Extent), (2, run), (2, Usage::Free), (3, run)]
        {
            heap.page_ranges.push(PageRange { page, pages, usage });
            page += pages;
        }
        let all = heap.cells(100);
        assert_eq!((all.0, all.1.len()), (1, 11));
        assert_eq!(all.1[3..5], [Usage::Extent, run]);
        // Four pages a cell: the first of equals wins in the second one.
        assert_eq!(heap.cells(3), (4, vec![Usage::Extent, run, run]));
        assert_eq!(heap.cells(0), (11, vec![Usage::Extent]));
        assert_eq!(Occupancy::default().cells(9), (1, Vec::new()));
    }
}
