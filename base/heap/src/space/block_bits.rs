//! A set of blocks, as bitmap words.
//!
//! Purpose: remember which blocks a transaction reserved or freed, one entry for each word of a
//! bitmap. A transaction that reserves ten million neighbours keeps 160 thousand entries, some 2
//! bytes a block. Its record is built from them as they are, and a membership test is one look-up.
//! Each block can have a number, such as how much of it was written. Blocks of one word mostly have
//! the same number: it is kept once, and only where they differ it takes 4 bytes for each block of
//! the word.
//! Invariants: a block whose bit is clear has no number.
//! Thread safety: belongs to the writer.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::collections::offset_map::InsertionMap;
use crate::image::block_location::BlockLocation;
use crate::image::class::ClassTable;
use crate::layout::PAGE_BYTES;

/// Marks a word without a table of numbers.
const NO_TABLE: u32 = u32::MAX;
/// If there are more tables than this (4 MiB), they are freed when the transaction ends.
const TABLES_KEEP_MAX: usize = 1 << 14;

/// Blocks of one word of a bitmap, or an extent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    /// The location of one of the blocks.
    pub(crate) place: BlockLocation,
    /// Which blocks of the word; 1 for an extent.
    pub(crate) mask: u64,
}

impl Word {
    /// Only the block at a location.
    #[inline]
    pub(crate) fn of(place: BlockLocation) -> Self {
        Self { place, mask: 1 << bit_of(place) }
    }

    /// The blocks: heap offset and location of each.
    pub(crate) fn blocks(
        self,
        classes: &ClassTable,
    ) -> impl Iterator<Item = (u64, BlockLocation)> + '_ {
        let shape = match self.place {
            BlockLocation::Extent { .. } => None,
            BlockLocation::Run { class, .. } => classes.get(class.into()),
        };
        let mut left = self.mask;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let bit = u64::from(left.trailing_zeros());
            left &= left - 1;
            match self.place {
                BlockLocation::Extent { page, .. } => Some((page * PAGE_BYTES, self.place)),
                BlockLocation::Run { run, class, index, bytes, is_open } => {
                    let index = index / 64 * 64 + bit;
                    let block = run * PAGE_BYTES + shape?.blocks_start + index * bytes;
                    Some((block, BlockLocation::Run { run, class, index, bytes, is_open }))
                }
            }
        })
    }
}

/// The bit of a block in its word.
#[inline]
fn bit_of(place: BlockLocation) -> u32 {
    match place {
        BlockLocation::Extent { .. } => 0,
        BlockLocation::Run { index, .. } => (index % 64) as u32,
    }
}

/// The key of the word that holds a block. A run has fewer words than bytes, so no other run or
/// extent has the same key.
#[inline]
fn key_of(place: BlockLocation) -> u64 {
    match place {
        BlockLocation::Extent { page, .. } => page * PAGE_BYTES,
        BlockLocation::Run { run, index, .. } => run * PAGE_BYTES + index / 64 * 8,
    }
}

/// Finds the range that ends behind an offset, in a sorted list of ranges. Offsets in ascending
/// order cost O(1) each.
#[derive(Debug)]
pub(crate) struct Finder<'s> {
    page_ranges: &'s [(u64, u64)],
    at: usize,
}

impl<'s> Finder<'s> {
    pub(crate) fn new(page_ranges: &'s [(u64, u64)]) -> Self {
        Self { page_ranges, at: 0 }
    }

    /// The first range that ends behind `offset`.
    #[inline]
    pub(crate) fn find(&mut self, offset: u64) -> Option<(u64, u64)> {
        let ends_behind = |at: usize| self.page_ranges.get(at).is_none_or(|(_, end)| *end > offset);
        if self.at > 0 && ends_behind(self.at - 1) || !ends_behind(self.at) {
            self.at = self.page_ranges.partition_point(|(_, end)| *end <= offset);
        }
        self.page_ranges.get(self.at).copied()
    }
}

/// The blocks of a word, and their numbers.
#[derive(Debug)]
struct Entry {
    word: Word,
    /// Without a table: the blocks whose number is `number`. The others have 0.
    numbered: u64,
    number: u64,
    table: u32,
}

/// A set of blocks, each with a number.
#[derive(Debug, Default)]
pub(crate) struct BlockBits {
    words: InsertionMap<Entry>,
    tables: Vec<[u32; 64]>,
    /// The position of the word that was found last, which is mostly the next one too. Only a hint,
    /// so several threads can read a transaction.
    last: AtomicUsize,
}

impl BlockBits {
    #[inline]
    fn position(&self, place: BlockLocation) -> Option<usize> {
        self.position_of(key_of(place))
    }

    #[inline]
    fn position_of(&self, key: u64) -> Option<usize> {
        let last = self.last.load(Ordering::Relaxed);
        match self.words.entries().get(last) {
            Some((known, _)) if *known == key => Some(last),
            _ => {
                let position = self.words.position(key)?;
                self.last.store(position, Ordering::Relaxed);
                Some(position)
            }
        }
    }

    #[inline]
    fn entry(&self, place: BlockLocation) -> Option<&Entry> {
        let position = self.position(place)?;
        let (_, entry) = self.words.entries().get(position)?;
        (entry.word.mask >> bit_of(place) & 1 != 0).then_some(entry)
    }

    /// Whether the block at a location is in the set.
    #[inline]
    pub(crate) fn contains(&self, place: BlockLocation) -> bool {
        self.entry(place).is_some()
    }

    /// Whether a block of a run is in the set.
    #[inline]
    pub(crate) fn contains_at(&self, run: u64, index: u64) -> bool {
        let position = self.position_of(run * PAGE_BYTES + index / 64 * 8);
        let entry = position.and_then(|position| self.words.entries().get(position));
        entry.is_some_and(|(_, entry)| entry.word.mask >> (index % 64) & 1 != 0)
    }

    /// The extent that starts at a heap offset, if it is in the set.
    pub(crate) fn extent(&self, offset: u64) -> Option<BlockLocation> {
        let place = self.words.get(offset)?.word.place;
        let is_extent = matches!(place, BlockLocation::Extent { .. });
        (is_extent && self.contains(place)).then_some(place)
    }

    /// Adds the block at a location, which is not in the set or has no number.
    #[inline]
    pub(crate) fn insert(&mut self, place: BlockLocation) {
        let added = Word::of(place);
        if let Some(position) = self.position(place)
            && let Some((_, entry)) = self.words.entry_mut(position)
        {
            if entry.word.mask == 0 {
                entry.word.place = place;
            }
            entry.word.mask |= added.mask;
            return;
        }
        self.last.store(self.words.entries().len(), Ordering::Relaxed);
        let entry = Entry { word: added, numbered: 0, number: 0, table: NO_TABLE };
        self.words.insert(key_of(place), entry);
    }

    /// Raises the number of a block in the set.
    #[inline]
    pub(crate) fn raise(&mut self, place: BlockLocation, number: u64) {
        let Some(position) = self.position(place) else { return };
        let Some((_, entry)) = self.words.entry_mut(position) else { return };
        let bit = 1 << bit_of(place);
        if entry.table == NO_TABLE {
            let before = if entry.numbered & bit == 0 { 0 } else { entry.number };
            if number <= before {
                return;
            }
            if entry.numbered & !bit == 0 || entry.number == number {
                entry.numbered |= bit;
                entry.number = number;
                return;
            }
            // Blocks of runs, which share a word, have less than 2^32 bytes.
            let mut table = [0; 64];
            for (at, slot) in table.iter_mut().enumerate() {
                *slot = if entry.numbered >> at & 1 == 0 { 0 } else { entry.number as u32 };
            }
            entry.table = self.tables.len() as u32;
            self.tables.push(table);
        }
        if let Some(table) = self.tables.get_mut(entry.table as usize) {
            let slot = &mut table[bit_of(place) as usize];
            *slot = (*slot).max(number as u32);
        }
    }

    /// Removes a block; returns whether it was in the set.
    #[inline]
    pub(crate) fn remove(&mut self, place: BlockLocation) -> bool {
        let Some(position) = self.position(place) else { return false };
        let Some((_, entry)) = self.words.entry_mut(position) else { return false };
        let bit = 1 << bit_of(place);
        let is_there = entry.word.mask & bit != 0;
        entry.word.mask &= !bit;
        entry.numbered &= !bit;
        if let Some(table) = self.tables.get_mut(entry.table as usize) {
            table[bit_of(place) as usize] = 0;
        }
        is_there
    }

    /// All blocks, word by word.
    pub(crate) fn words(&self) -> impl Iterator<Item = Word> + '_ {
        let words = self.words.entries().iter().map(|(_, entry)| entry.word);
        words.filter(|word| word.mask != 0)
    }

    /// For each word with a number in it: the start of the first such block, and the position of
    /// the word for `numbers`.
    pub(crate) fn numbered<'a>(
        &'a self,
        classes: &'a ClassTable,
    ) -> impl Iterator<Item = (u64, u32)> + 'a {
        self.words.entries().iter().zip(0..).filter_map(move |((_, entry), at)| {
            let (word, numbered) = (entry.word, entry.numbered);
            if entry.table == NO_TABLE && numbered == 1 << bit_of(word.place) {
                // The only block of a small transaction.
                let block = Word::of(word.place).blocks(classes).next()?.0;
                return Some((block, at));
            }
            self.numbers(at, classes).next().map(|(block, _)| (block, at))
        })
    }

    /// The numbered blocks of the word at a position: heap offset and number of each, in order.
    pub(crate) fn numbers(
        &self,
        at: u32,
        classes: &ClassTable,
    ) -> impl Iterator<Item = (u64, u64)> {
        let entry = self.words.entries().get(at as usize).map(|(_, entry)| entry);
        let table = entry.and_then(|entry| self.tables.get(entry.table as usize));
        let (word, number) = match entry {
            Some(entry) if table.is_some() => (entry.word, 0),
            Some(entry) => (Word { mask: entry.numbered, ..entry.word }, entry.number),
            None => (Word { place: BlockLocation::Extent { page: 0, pages: 0 }, mask: 0 }, 0),
        };
        word.blocks(classes).filter_map(move |(block, place)| {
            let found = table.map_or(number, |table| table[bit_of(place) as usize].into());
            (found > 0).then_some((block, found))
        })
    }

    /// The heap ranges (start, end) that the blocks cover: in order, and joined where they touch.
    /// Neighbours within a word are joined at once.
    pub(crate) fn page_ranges(&self, classes: &ClassTable, found: &mut Vec<(u64, u64)>) {
        found.clear();
        for word in self.words() {
            for (block, place) in word.blocks(classes) {
                let end = block + place.bytes();
                match found.last_mut() {
                    Some(last) if last.1 == block => last.1 = end,
                    _ => found.push((block, end)),
                }
            }
        }
        found.sort_unstable();
        found.dedup_by(|next, kept| {
            let is_next = kept.1 == next.0;
            if is_next {
                kept.1 = next.1;
            }
            is_next
        });
    }

    /// Moves everything to `outer`.
    pub(crate) fn merge_into(&mut self, outer: &mut Self, classes: &ClassTable) {
        for word in self.words() {
            for (_, place) in word.blocks(classes) {
                outer.insert(place);
                outer.raise(place, self.number(place));
            }
        }
        self.clear();
    }

    /// The number of a block; 0 if it has none.
    fn number(&self, place: BlockLocation) -> u64 {
        let Some(entry) = self.entry(place) else { return 0 };
        match self.tables.get(entry.table as usize) {
            Some(table) => table[bit_of(place) as usize].into(),
            None if entry.numbered >> bit_of(place) & 1 != 0 => entry.number,
            None => 0,
        }
    }

    /// Whether `count` more words need memory.
    pub(crate) fn is_short_of(&self, count: usize) -> bool {
        self.words.is_short_of(count)
    }

    /// Takes the memory for `count` more words.
    pub(crate) fn make_room(&mut self, count: usize) {
        self.words.make_room(count);
    }

    /// Whether the set is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.words.entries().is_empty()
    }

    /// Removes all blocks, keeping memory.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        *self.last.get_mut() = 0;
        if self.tables.len() > TABLES_KEEP_MAX {
            self.tables = Vec::new();
        } else {
            self.tables.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::image::class::initial_table;

    /// A block of the class for `bytes`; each class has a run of its own.
    fn place(classes: &ClassTable, bytes: u64, index: u64) -> BlockLocation {
        let class = classes.for_bytes(bytes).expect("a class");
        let shape = classes.get(class.into()).expect("it exists");
        let (run, bytes) = (1000 * u64::from(class), shape.block_bytes);
        BlockLocation::Run { run, class, index: index % shape.block_count, bytes, is_open: false }
    }

    #[test]
    fn behaves_like_a_map_from_blocks_to_numbers() {
        let classes = initial_table(Path::new("pool")).expect("valid");
        let mut random = fastrand::Rng::with_seed(31);
        let mut marked = BlockBits::default();
        let mut outer = BlockBits::default();
        let mut model: BTreeMap<u64, u64> = BTreeMap::new();
        for step in 0..60_000 {
            let place = match random.u64(..10) {
                0 => BlockLocation::Extent { page: 1_000_000 + random.u64(..9) * 50, pages: 50 },
                _ => place(&classes, [8, 64, 5000][random.usize(..3)], random.u64(..300)),
            };
            let (block, _) = Word::of(place).blocks(&classes).next().expect("one block");
            let known = model.get(&block).copied();
            assert_eq!(marked.contains(place), known.is_some(), "step {step}");
            if let BlockLocation::Run { run, index, .. } = place {
                assert_eq!(marked.contains_at(run, index), known.is_some(), "step {step}");
            }
            assert_eq!(marked.number(place), known.unwrap_or(0), "step {step}");
            match random.u64(..5) {
                0 => assert_eq!(marked.remove(place), model.remove(&block).is_some()),
                1 | 2 => {
                    marked.insert(place);
                    model.entry(block).or_insert(0);
                }
                _ if known.is_some() => {
                    let number = [1, 64, random.u64(1..5000)][random.usize(..3)];
                    marked.raise(place, number);
                    model.insert(block, known.unwrap_or(0).max(number));
                }
                _ => {}
            }
            if step % 997 == 0 {
                let mut words: Vec<u64> = marked
                    .words()
                    .flat_map(|word| word.blocks(&classes).map(|(block, _)| block))
                    .collect();
                words.sort_unstable();
                assert!(words.iter().eq(model.keys()), "step {step}");
                let mut numbers: Vec<(u64, u64)> = marked
                    .numbered(&classes)
                    .flat_map(|(_, at)| marked.numbers(at, &classes).collect::<Vec<_>>())
                    .collect();
                numbers.sort_unstable();
                let numbered = model.iter().filter(|(_, number)| **number > 0);
                assert!(numbered.map(|(b, n)| (*b, *n)).eq(numbers), "step {step}");
            }
            if step % 5000 == 4999 {
                marked.merge_into(&mut outer, &classes);
                assert!(marked.is_empty());
                std::mem::swap(&mut marked, &mut outer);
            }
        }
    }

    #[test]
    fn stretches_are_joined_and_found() {
        let classes = initial_table(Path::new("pool")).expect("valid");
        let mut random = fastrand::Rng::with_seed(32);
        let (mut marked, mut model) = (BlockBits::default(), std::collections::BTreeSet::new());
        for _ in 0..700 {
            let place = place(&classes, [8, 64][random.usize(..2)], random.u64(..1000));
            let (block, _) = Word::of(place).blocks(&classes).next().expect("one block");
            marked.insert(place);
            model.extend(block..block + place.bytes());
        }
        let mut page_ranges = Vec::new();
        marked.page_ranges(&classes, &mut page_ranges);
        assert!(page_ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
        assert!(page_ranges.iter().flat_map(|(start, end)| *start..*end).eq(model.iter().copied()));
        let mut finder = Finder::new(&page_ranges);
        let (first, last) = (page_ranges[0].0, page_ranges[page_ranges.len() - 1].1);
        let mut offset = first - 10;
        for _ in 0..5000 {
            let forward = offset + random.u64(..200);
            offset = if random.u64(..20) == 0 { random.u64(first..last + 10) } else { forward };
            let expected = page_ranges.iter().find(|(_, end)| *end > offset);
            assert_eq!(finder.find(offset).as_ref(), expected, "at {offset}");
        }
    }

    #[test]
    fn an_extent_is_found_by_its_start() {
        let classes = initial_table(Path::new("pool")).expect("valid");
        let mut marked = BlockBits::default();
        let extent = BlockLocation::Extent { page: 5000, pages: 7 };
        marked.insert(extent);
        assert_eq!(marked.extent(5000 * PAGE_BYTES), Some(extent));
        assert_eq!(marked.extent(5001 * PAGE_BYTES), None);
        assert!(marked.remove(extent));
        assert_eq!(marked.extent(5000 * PAGE_BYTES), None);
        // The pages may become a run within the same transaction.
        let run = place(&classes, 64, 1);
        let BlockLocation::Run { class, bytes, .. } = run else { panic!("a run") };
        marked.insert(BlockLocation::Run { run: 5000, class, index: 1, bytes, is_open: true });
        assert_eq!(marked.extent(5000 * PAGE_BYTES), None);
        assert_eq!(marked.words().count(), 1);
    }
}
