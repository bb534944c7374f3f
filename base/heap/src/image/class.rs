//! Size classes: the block sizes into which runs are divided.
//!
//! Purpose: choose classes when a heap is created, and answer "which class holds n bytes" and
//! "which block is at this distance into a run" for the classes that a pool names.
//! Invariants: block sizes ascend, except for the registered classes, which come last and which no
//! size maps to; a run of class `c` always has `run_pages` pages. Classes are only ever added.
//!
//! Classes: every 8 B to 128 B, every 16 B to 1 KiB, every 64 B to 4 KiB, then about 5 % apart to
//! 32 KiB, then every half page to 40 KiB. Larger blocks are extents of whole pages, whose last
//! page wastes at most 9 % (40 KiB) and on average far less. See `docs/format/heap.md`.

use std::path::Path;
use std::sync::OnceLock;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, IntoBytes};

use crate::error::{Error, Result};
use crate::layout::{
    CLASS_COUNT_MAX, CLASS_HEADER, CLASS_REGISTERED, CLASS_TABLE_OFFSET, ClassEntry, PAGE_BYTES,
    descriptor_offset, file_offset,
};

/// Blocks above this many bytes are extents.
pub(crate) const CLASS_BYTES_MAX: u64 = 40_960;
/// Above this many bytes, classes are half a page apart: their runs then waste less than a step of
/// 5 % does.
const HALF_PAGES_FROM: u64 = 32_768;
/// Pages of the longest run: 256 KiB.
pub(crate) const RUN_PAGES_MAX: u64 = 64;
/// Pages of the shortest run: 16 KiB, so that a class in use by one block costs no more.
const RUN_PAGES_MIN: u64 = 4;
/// Blocks of a run whose bitmap fits into its first descriptor: its upper half.
const DESCRIPTOR_BITS: u64 = 32;

/// One class, as the hot paths need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// Bytes of a block.
    pub(crate) block_bytes: u64,
    /// Blocks of a run.
    pub(crate) block_count: u64,
    /// Bytes from the start of a run to its first block.
    pub(crate) blocks_start: u64,
    /// Pages of a run.
    pub(crate) run_pages: u64,
    /// Whether the bitmap is in the run's first descriptor.
    pub(crate) bitmap_in_descriptor: bool,
    /// `CLASS_REGISTERED`, with `CLASS_HEADER` or not; 0 for classes chosen by size.
    pub(crate) kind: u16,
    /// ceil(2^40 / block_bytes): division by multiplication, exact for distances below 2^20.
    reciprocal: u64,
}

impl Class {
    /// Whether each block begins with a header.
    pub(crate) fn has_header(&self) -> bool {
        self.kind & CLASS_HEADER != 0
    }

    /// Index of the block that starts `distance` bytes into a run; `None` if no block does. O(1),
    /// no division.
    #[inline]
    pub(crate) fn index_at(&self, distance: u64) -> Option<u64> {
        let within = distance.checked_sub(self.blocks_start)?;
        if within >= RUN_PAGES_MAX * PAGE_BYTES {
            return None;
        }
        let index = (within * self.reciprocal) >> 40;
        (index < self.block_count && index * self.block_bytes == within).then_some(index)
    }

    /// Location of word `index` of the bitmap of the run at a page: heap offset of the word, and
    /// the first bit of the bitmap in it.
    #[inline]
    pub(crate) fn bitmap_word(&self, run: u64, index: usize) -> (u64, u32) {
        if self.bitmap_in_descriptor {
            (descriptor_offset(run), DESCRIPTOR_BITS as u32)
        } else {
            (run * PAGE_BYTES + index as u64 * 8, 0)
        }
    }

    /// Words of the bitmap of a run.
    pub(crate) fn bitmap_words(&self) -> usize {
        self.block_count.div_ceil(64) as usize
    }
}

/// The properties of blocks of a registered class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassShape {
    /// Bytes for the user of a block, 1 to 40,960 with the header.
    pub unit_bytes: u32,
    /// Whether each block begins with 16 bytes for the user's own data, zero when it is reserved.
    pub has_header: bool,
    /// Each block starts at a multiple of that many bytes of the heap: a power of two, 8 to 4096.
    pub alignment: u32,
}

/// A registered class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassId(u8);

/// Bytes of the header of a block, where its class has one.
pub(crate) const HEADER_BYTES: u32 = 16;

impl ClassShape {
    /// The class of that shape, as the class table holds it.
    ///
    /// # Errors
    /// `Error::TooLarge`, `Error::Misuse`.
    pub(crate) fn entry(&self) -> Result<ClassEntry> {
        let Self { unit_bytes, has_header, alignment } = *self;
        if unit_bytes == 0 || !alignment.is_power_of_two() || !(8..=4096).contains(&alignment) {
            return Err(Error::Misuse {
                what: "a class has units of at least one byte, aligned to a power of two from 8 \
                       to 4096 bytes",
            });
        }
        let header_bytes = if has_header { HEADER_BYTES } else { 0 };
        let bytes =
            (u64::from(unit_bytes) + u64::from(header_bytes)).next_multiple_of(alignment.into());
        if bytes > CLASS_BYTES_MAX {
            return Err(Error::TooLarge { bytes, bytes_max: CLASS_BYTES_MAX });
        }
        let mut entry = shape(bytes, alignment.into());
        let kind = if has_header { CLASS_REGISTERED | CLASS_HEADER } else { CLASS_REGISTERED };
        entry.kind = U16::new(kind);
        Ok(entry)
    }
}

/// The classes of a heap.
#[derive(Debug)]
pub(crate) struct ClassTable {
    classes: Vec<Class>,
    /// Class by (bytes + 7) / 8.
    by_size: Vec<u8>,
    /// Classes registered since the table was loaded.
    added: Box<[OnceLock<Class>]>,
}

impl ClassTable {
    /// The class of a descriptor.
    #[inline]
    pub(crate) fn get(&self, class: u16) -> Option<&Class> {
        self.classes.get(usize::from(class)).or_else(|| self.added(usize::from(class)))
    }

    #[cold]
    fn added(&self, class: usize) -> Option<&Class> {
        self.added.get(class.checked_sub(self.classes.len())?)?.get()
    }

    /// The registered class with that entry, if there is one.
    pub(crate) fn find(&self, entry: &ClassEntry) -> Option<ClassId> {
        let wanted = Self::class_of(entry)?;
        (0..self.len() as u16)
            .find(|class| self.get(*class) == Some(&wanted))
            .map(|class| ClassId(class as u8))
    }

    /// Adds a registered class. One thread at a time may call this. `None` when there is no room.
    pub(crate) fn add(&self, entry: &ClassEntry) -> Option<ClassId> {
        let next = self.len();
        let added = self.added.get(next - self.classes.len())?.set(Self::class_of(entry)?);
        debug_assert!(added.is_ok(), "one thread at a time adds classes");
        Some(ClassId(next as u8))
    }

    /// The class of an id, and its number in descriptors; `None` for an id of another heap.
    pub(crate) fn registered(&self, id: ClassId) -> Option<(u8, &Class)> {
        self.get(id.0.into()).filter(|class| class.kind & CLASS_REGISTERED != 0).map(|c| (id.0, c))
    }

    /// The smallest class that holds `bytes`; `None` for extents.
    #[inline]
    pub(crate) fn for_bytes(&self, bytes: u64) -> Option<u8> {
        let index = usize::try_from(bytes.div_ceil(8)).ok()?;
        self.by_size.get(index).copied()
    }

    /// Bytes of a block that is reserved for `bytes`: of the smallest class that holds them, or
    /// whole pages.
    #[inline]
    pub(crate) fn block_bytes(&self, bytes: u64) -> u64 {
        let class = self.for_bytes(bytes).and_then(|class| self.get(class.into()));
        class.map_or(bytes.next_multiple_of(PAGE_BYTES), |class| class.block_bytes)
    }

    /// How many classes there are.
    pub(crate) fn len(&self) -> usize {
        self.classes.len() + self.added.iter().take_while(|class| class.get().is_some()).count()
    }

    /// Reads the class table of a pool and checks every entry.
    ///
    /// # Errors
    /// `Error::Damaged` naming the entry.
    pub(crate) fn load(page: &[u8], count: u64, file: &Path) -> Result<Self> {
        let damaged = |index: u64, what: String| Error::Damaged {
            file: file.into(),
            offset: file_offset(CLASS_TABLE_OFFSET) + index * size_of::<ClassEntry>() as u64,
            what,
        };
        if count == 0 || count > CLASS_COUNT_MAX as u64 {
            return Err(damaged(
                0,
                format!("expected 1 to {CLASS_COUNT_MAX} size classes, found {count}"),
            ));
        }
        let mut classes: Vec<Class> = Vec::with_capacity(CLASS_COUNT_MAX);
        for index in 0..count {
            let at = index as usize * size_of::<ClassEntry>();
            let entry = page
                .get(at..at + size_of::<ClassEntry>())
                .and_then(|bytes| ClassEntry::read_from_bytes(bytes).ok())
                .ok_or_else(|| damaged(index, "the class table is cut off".into()))?;
            let class = Self::class_of(&entry)
                .filter(|class| {
                    let last = classes.last();
                    let is_larger = last.is_none_or(|last| last.block_bytes < class.block_bytes);
                    let is_after_registered = last.is_some_and(|last| last.kind != 0);
                    class.kind != 0 || is_larger && !is_after_registered
                })
                .ok_or_else(|| damaged(index, format!("no valid size class: {entry:?}")))?;
            classes.push(class);
        }
        Ok(Self::with(classes))
    }

    fn with(classes: Vec<Class>) -> Self {
        let by_bytes = classes.iter().filter(|class| class.kind == 0);
        let largest = by_bytes.map(|class| class.block_bytes).max().unwrap_or(0);
        let mut by_size = Vec::with_capacity(largest as usize / 8 + 1);
        let mut class = 0;
        for bytes in (0..=largest).step_by(8) {
            while classes.get(class).is_some_and(|c| c.block_bytes < bytes) {
                class += 1;
            }
            by_size.push(class as u8);
        }
        let added = (classes.len()..CLASS_COUNT_MAX).map(|_| OnceLock::new()).collect();
        Self { classes, by_size, added }
    }

    fn class_of(entry: &ClassEntry) -> Option<Class> {
        let class = Class {
            block_bytes: u64::from(entry.block_bytes.get()),
            block_count: u64::from(entry.block_count.get()),
            blocks_start: u64::from(entry.blocks_start.get()),
            run_pages: u64::from(entry.run_pages.get()),
            bitmap_in_descriptor: entry.bitmap_in_descriptor.get() != 0,
            kind: entry.kind.get(),
            reciprocal: (1u64 << 40).div_ceil(u64::from(entry.block_bytes.get()).max(1)),
        };
        let fits = class.block_bytes >= 8
            && class.block_bytes.is_multiple_of(8)
            && class.block_bytes <= CLASS_BYTES_MAX
            && (1..=RUN_PAGES_MAX).contains(&class.run_pages)
            && class.block_count >= 1
            && class.blocks_start + class.block_bytes * class.block_count
                <= class.run_pages * PAGE_BYTES
            && (class.bitmap_in_descriptor
                || class.blocks_start >= class.bitmap_words() as u64 * 8)
            && (!class.bitmap_in_descriptor || class.block_count <= DESCRIPTOR_BITS);
        fits.then_some(class)
    }
}

/// The classes of a new heap, as its class table holds them.
pub(crate) fn initial_classes() -> Vec<ClassEntry> {
    let mut sizes: Vec<u64> = (8..=128).step_by(8).collect();
    sizes.extend((144..=1024).step_by(16));
    sizes.extend((1088..=4096).step_by(64));
    let mut size = 4096u64;
    while size < HALF_PAGES_FROM {
        size = (size * 21 / 20).next_multiple_of(64).min(HALF_PAGES_FROM);
        sizes.push(size);
    }
    sizes.extend((HALF_PAGES_FROM..=CLASS_BYTES_MAX).step_by(PAGE_BYTES as usize / 2).skip(1));
    sizes.into_iter().map(|bytes| shape(bytes, cache_alignment(bytes))).collect()
}

/// Blocks of whole cache lines start on one, so that a node of 448 bytes touches 7 lines.
fn cache_alignment(block_bytes: u64) -> u64 {
    [64, 16, 8].into_iter().find(|a| block_bytes.is_multiple_of(*a)).unwrap_or(8)
}

/// The run of a class that wastes least: the shortest within 1 % of the best.
fn shape(block_bytes: u64, alignment: u64) -> ClassEntry {
    let candidates = (RUN_PAGES_MIN..=RUN_PAGES_MAX)
        .filter_map(|pages| shape_with(block_bytes, alignment, pages));
    let used = |e: &ClassEntry| {
        let bytes = u64::from(e.run_pages.get()) * PAGE_BYTES;
        u64::from(e.block_count.get()) * block_bytes * 10_000 / bytes
    };
    let best = candidates.clone().map(|e| used(&e)).max().unwrap_or(0);
    candidates
        .into_iter()
        .find(|e| used(e) + 100 >= best)
        .expect("a run of 64 pages holds a block of every class")
}

fn shape_with(block_bytes: u64, alignment: u64, pages: u64) -> Option<ClassEntry> {
    let bytes = pages * PAGE_BYTES;
    let entry = |count: u64, start: u64, in_descriptor: u16| ClassEntry {
        block_bytes: U32::new(block_bytes as u32),
        block_count: U32::new(count as u32),
        blocks_start: U16::new(start as u16),
        run_pages: U16::new(pages as u16),
        bitmap_in_descriptor: U16::new(in_descriptor),
        kind: U16::new(0),
    };
    let without_header = bytes / block_bytes;
    if without_header <= DESCRIPTOR_BITS {
        return (without_header > 0).then(|| entry(without_header, 0, 1));
    }
    let mut count = without_header;
    loop {
        let start = (count.div_ceil(64) * 8).next_multiple_of(alignment);
        if start + count * block_bytes <= bytes {
            return Some(entry(count, start, 0));
        }
        // Few large blocks behind a bitmap that must keep their alignment may not fit at all.
        count = count.checked_sub(1).filter(|count| *count > 0)?;
    }
}

/// The table of a new heap.
///
/// # Errors
/// As [`ClassTable::load`], if these classes were not valid.
pub(crate) fn initial_table(file: &Path) -> Result<ClassTable> {
    let classes = initial_classes();
    ClassTable::load(classes.as_bytes(), classes.len() as u64, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_gets_the_smallest_class_that_holds_it() {
        let table = initial_table(Path::new("pool")).expect("valid");
        for bytes in 1..=CLASS_BYTES_MAX {
            let class = table.for_bytes(bytes).expect("a class");
            assert!(table.classes[usize::from(class)].block_bytes >= bytes);
            assert!(class == 0 || table.classes[usize::from(class) - 1].block_bytes < bytes);
        }
        assert_eq!(table.for_bytes(CLASS_BYTES_MAX + 1), None);
    }

    #[test]
    fn index_at_agrees_with_division_for_every_distance() {
        for class in &initial_table(Path::new("pool")).expect("valid").classes {
            for distance in 0..class.run_pages * PAGE_BYTES + 64 {
                let expected = distance
                    .checked_sub(class.blocks_start)
                    .filter(|within| within % class.block_bytes == 0)
                    .map(|within| within / class.block_bytes)
                    .filter(|index| *index < class.block_count);
                assert_eq!(class.index_at(distance), expected, "{class:?} at {distance}");
            }
        }
    }

    #[test]
    fn runs_waste_little() {
        for class in &initial_table(Path::new("pool")).expect("valid").classes {
            let used = class.block_count * class.block_bytes;
            let bytes = class.run_pages * PAGE_BYTES;
            assert!(used * 100 >= bytes * 95, "{class:?} uses {used} of {bytes}");
        }
    }

    #[test]
    fn sizes_from_100_bytes_to_4_mib_waste_2_percent_on_average() {
        let table = initial_table(Path::new("pool")).expect("valid");
        let (mut sum, mut most, mut count) = (0.0, 0.0, 0);
        for bytes in (100..=4u64 << 20).step_by(100) {
            let class = table.for_bytes(bytes).and_then(|class| table.get(class.into()));
            let taken = match class {
                Some(class) => (class.run_pages * PAGE_BYTES) as f64 / class.block_count as f64,
                None => bytes.next_multiple_of(PAGE_BYTES) as f64,
            };
            let wasted = (taken - bytes as f64) / taken;
            sum += wasted;
            most = f64::max(most, wasted);
            count += 1;
        }
        let average = sum / f64::from(count);
        println!("fragmentation of {count} sizes: average {average:.4}, at most {most:.4}");
        assert!(average < 0.02 && most < 0.10, "average {average}, at most {most}");
    }

    #[test]
    fn small_objects_cost_little_more_than_their_bytes() {
        for (bytes, most) in [(8, 9.0), (64, 65.0)] {
            let table = initial_table(Path::new("pool")).expect("valid");
            let class = table.for_bytes(bytes).and_then(|class| table.get(class.into()));
            let class = class.expect("a class");
            let each = (class.run_pages * PAGE_BYTES) as f64 / class.block_count as f64;
            assert!(class.block_bytes == bytes && each < most, "{each} for {bytes}");
        }
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let mut entries = initial_classes();
        entries[3].block_count = U32::new(1 << 20);
        let mut page = vec![0; PAGE_BYTES as usize];
        page[..entries.as_bytes().len()].copy_from_slice(entries.as_bytes());
        assert!(ClassTable::load(&page, entries.len() as u64, Path::new("pool")).is_err());
        assert!(ClassTable::load(&page, 0, Path::new("pool")).is_err());
        assert!(ClassTable::load(&page, 256, Path::new("pool")).is_err());
    }
}
