//! Sparse contents of a file, and the space that it takes.
//!
//! Purpose: pages shared between the states of a disk, copied on write.
//! Invariant of [`Pages`]: the owner cuts it to its length, so bytes beyond are zero.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::lines::{LINE_BYTES, Line};

pub(crate) const PAGE_BYTES: usize = 4096;
pub(crate) const SECTOR_BYTES: usize = 512;
/// Sectors of a page; a set of them is a `u8`.
pub(crate) const SECTORS: usize = PAGE_BYTES / SECTOR_BYTES;

pub(crate) type Page = [u8; PAGE_BYTES];

/// The part of a range of bytes that lies in one page.
pub(crate) struct Part {
    /// Number of the page.
    pub(crate) page: u64,
    /// The bytes in the page.
    pub(crate) within: Range<usize>,
    /// The same bytes in a buffer for the whole range.
    pub(crate) buffer: Range<usize>,
}

impl Part {
    /// The sectors touched, as a set.
    pub(crate) fn sectors(&self) -> u8 {
        let first = self.within.start / SECTOR_BYTES;
        let end = self.within.end.div_ceil(SECTOR_BYTES);
        ((1_u16 << end) - (1_u16 << first)) as u8
    }
}

/// The parts of a range of bytes, page by page.
pub(crate) fn parts(offset: u64, bytes: usize) -> impl Iterator<Item = Part> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % PAGE_BYTES as u64) as usize;
        let count = (bytes - done).min(PAGE_BYTES - start);
        let part = Part {
            page: at / PAGE_BYTES as u64,
            within: start..start + count,
            buffer: done..done + count,
        };
        done += count;
        (count > 0).then_some(part)
    })
}

/// The pages that hold a range of bytes.
pub(crate) fn pages_of(offset: u64, bytes: u64) -> Range<u64> {
    let page = PAGE_BYTES as u64;
    offset / page..(offset + bytes).div_ceil(page)
}

/// The page of a cache line, and its range in there.
pub(crate) fn place(line: u64) -> (u64, Range<usize>) {
    let start = line * LINE_BYTES as u64;
    let within = (start % PAGE_BYTES as u64) as usize;
    (start / PAGE_BYTES as u64, within..within + LINE_BYTES)
}

/// Bytes by page; pages that are missing are zero. Clones share all until one changes: most states
/// of a disk differ from the one before in a few files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    pages: Arc<BTreeMap<u64, Arc<Page>>>,
}

impl Pages {
    pub(crate) fn get(&self, number: u64) -> Option<&Arc<Page>> {
        self.pages.get(&number)
    }

    /// The page for writing; a copy if another state of the disk has it too.
    pub(crate) fn page_mut(&mut self, number: u64) -> &mut Page {
        let pages = Arc::make_mut(&mut self.pages);
        Arc::make_mut(pages.entry(number).or_insert_with(|| Arc::new([0; PAGE_BYTES])))
    }

    /// The sectors, as a set, that `bytes` would change.
    pub(crate) fn changed(&self, part: &Part, bytes: &[u8]) -> u8 {
        let page = self.pages.get(&part.page).map_or(&[0; PAGE_BYTES], |page| page.as_ref());
        let mut changed = 0;
        let mut at = part.within.start;
        while at < part.within.end {
            let end = (at / SECTOR_BYTES + 1) * SECTOR_BYTES;
            let end = end.min(part.within.end);
            if page[at..end] != bytes[at - part.within.start..end - part.within.start] {
                changed |= 1 << (at / SECTOR_BYTES);
            }
            at = end;
        }
        changed
    }

    /// The content of a cache line.
    pub(crate) fn line(&self, line: u64) -> Line {
        let (page, within) = place(line);
        let mut bytes = [0; LINE_BYTES];
        if let Some(page) = self.pages.get(&page) {
            bytes.copy_from_slice(&page[within]);
        }
        bytes
    }

    pub(crate) fn set_line(&mut self, line: u64, bytes: &Line) {
        let (page, within) = place(line);
        self.page_mut(page)[within].copy_from_slice(bytes);
    }

    /// Replaces a page by that of `source`.
    pub(crate) fn take_page(&mut self, number: u64, source: &Pages) {
        match source.get(number) {
            Some(page) => drop(Arc::make_mut(&mut self.pages).insert(number, page.clone())),
            None => self.clear(number),
        }
    }

    /// The pages of a range that are there.
    pub(crate) fn numbers_in(&self, pages: Range<u64>) -> Vec<u64> {
        self.pages.range(pages).map(|(&number, _)| number).collect()
    }

    /// Makes a page zero.
    pub(crate) fn clear(&mut self, number: u64) {
        if self.pages.contains_key(&number) {
            Arc::make_mut(&mut self.pages).remove(&number);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Page)> {
        self.pages.iter().map(|(&number, page)| (number, page.as_ref()))
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.pages.keys().copied()
    }

    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) {
        for part in parts(offset, buffer.len()) {
            match self.pages.get(&part.page) {
                Some(page) => buffer[part.buffer].copy_from_slice(&page[part.within]),
                None => buffer[part.buffer].fill(0),
            }
        }
    }

    /// As `read`, into a buffer of zeros: missing pages are not written.
    pub(crate) fn read_over_zeros(&self, buffer: &mut [u8], offset: u64) {
        for (&number, page) in self.pages.range(pages_of(offset, buffer.len() as u64)) {
            let start = number * PAGE_BYTES as u64;
            let first = start.max(offset);
            let end = (start + PAGE_BYTES as u64).min(offset + buffer.len() as u64);
            let target = (first - offset) as usize..(end - offset) as usize;
            let source = (first - start) as usize..(end - start) as usize;
            buffer[target].copy_from_slice(&page[source]);
        }
    }

    /// Zeroes all from `len` on.
    pub(crate) fn cut(&mut self, len: u64) {
        let (page, within) = (len / PAGE_BYTES as u64, (len % PAGE_BYTES as u64) as usize);
        if self.pages.range(page..).next().is_none() {
            return;
        }
        let pages = Arc::make_mut(&mut self.pages);
        pages.split_off(&len.div_ceil(PAGE_BYTES as u64));
        if let Some(page) = pages.get_mut(&page) {
            Arc::make_mut(page)[within..].fill(0);
        }
    }
}

/// A set of page numbers, as ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Space {
    ranges: BTreeMap<u64, u64>,
    count: u64,
}

impl Space {
    /// Pages in the set.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Pages of the range that are not in the set.
    pub(crate) fn missing(&self, pages: Range<u64>) -> u64 {
        if pages.is_empty() {
            return 0;
        }
        let before = self.ranges.range(..pages.start).next_back();
        let present: u64 = before
            .into_iter()
            .chain(self.ranges.range(pages.clone()))
            .map(|(&start, &end)| end.min(pages.end).saturating_sub(start.max(pages.start)))
            .sum();
        (pages.end - pages.start) - present
    }

    pub(crate) fn insert(&mut self, pages: Range<u64>) {
        if pages.is_empty() {
            return;
        }
        let (mut start, mut end) = (pages.start, pages.end);
        while let Some((&first, &last)) = self.ranges.range(..=end).next_back() {
            if last < start {
                break;
            }
            self.ranges.remove(&first);
            self.count -= last - first;
            (start, end) = (start.min(first), end.max(last));
        }
        self.ranges.insert(start, end);
        self.count += end - start;
    }

    /// Takes out the pages of a range.
    pub(crate) fn remove(&mut self, pages: Range<u64>) {
        let before = self.ranges.range(..pages.start).next_back();
        let from =
            before.filter(|(_, end)| **end > pages.start).map_or(pages.start, |(start, _)| *start);
        let hit: Vec<(u64, u64)> = self
            .ranges
            .range(from..pages.end.max(from))
            .map(|(&start, &end)| (start, end))
            .collect();
        for (start, end) in hit {
            self.ranges.remove(&start);
            self.count -= end - start;
            self.insert(start..pages.start.min(end).max(start));
            self.insert(pages.end.max(start).min(end)..end);
        }
    }

    /// Takes out all pages from `page` on.
    pub(crate) fn cut(&mut self, page: u64) {
        let removed = self.ranges.split_off(&page);
        self.count -= removed.iter().map(|(start, end)| end - start).sum::<u64>();
        if let Some((_, end)) = self.ranges.iter_mut().next_back()
            && *end > page
        {
            self.count -= *end - page;
            *end = page;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn space_is_a_set() {
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut space = Space::default();
            let mut model = BTreeSet::new();
            for _ in 0..100 {
                let start = random.u64(..60);
                let pages = start..start + random.u64(..8);
                let missing = pages.clone().filter(|page| !model.contains(page)).count() as u64;
                assert_eq!(space.missing(pages.clone()), missing, "seed {seed}");
                let choice = random.u8(..8);
                if choice == 0 {
                    space.cut(start);
                    model.retain(|&page| page < start);
                } else if choice < 3 {
                    space.remove(pages.clone());
                    model.retain(|page| !pages.contains(page));
                } else {
                    space.insert(pages.clone());
                    model.extend(pages);
                }
                assert_eq!(space.count(), model.len() as u64, "seed {seed}");
            }
        }
    }
}
