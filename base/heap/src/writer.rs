//! The writer's seat: what one transaction at a time works with.
//!
//! Purpose: hold the writer's shard of the allocator and the memory of a transaction, which is
//! reused, so that a transaction in steady state allocates nothing.

use crate::image::Place;
use crate::journal::RecordBuilder;
use crate::keyed::Keyed;
use crate::layout::Descriptor;
use crate::ranges::Ranges;
use crate::shard::Shard;

/// A block that a level reserved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fresh {
    pub(crate) place: Place,
    /// Bytes from its start that go into the record.
    pub(crate) written: u64,
}

/// What a transaction, or a savepoint in it, has done so far.
#[derive(Debug, Default)]
pub(crate) struct Level {
    pub(crate) ranges: Ranges,
    pub(crate) fresh: Keyed<Fresh>,
    pub(crate) freed: Keyed<Place>,
}

impl Level {
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.fresh.clear();
        self.freed.clear();
    }
}

/// One word of a bitmap that a commit changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits {
    /// Heap offset of the word.
    pub(crate) offset: u64,
    /// Bits to set and to clear, as they lie in the bitmap.
    pub(crate) set: u64,
    pub(crate) clear: u64,
    /// Where in the word the bitmap begins.
    pub(crate) shift: u32,
    /// Which word of the bitmap.
    pub(crate) word: u32,
    /// First page of the run.
    pub(crate) run: u64,
}

/// A descriptor that a commit writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// Its heap offset.
    pub(crate) offset: u64,
    pub(crate) descriptor: Descriptor,
}

/// What goes into a record, by heap offset; bits come after bytes of the same offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The spans written in a saved line.
    Line(u32),
    /// The written bytes of a fresh block.
    Fresh(u32),
    /// A descriptor.
    Descriptor(u32),
    /// A word of a bitmap.
    Bits(u32),
}

/// What only the writer touches.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) shard: Shard,
    /// Level 0 is the transaction, the others are savepoints within it.
    pub(crate) levels: Vec<Level>,
    pub(crate) record: RecordBuilder,
    pub(crate) parts: Vec<(u64, Part)>,
    pub(crate) bits: Vec<Bits>,
    pub(crate) descriptors: Vec<Written>,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self {
            shard: Shard::new(false),
            levels: vec![Level::default()],
            record: RecordBuilder::new(),
            parts: Vec::new(),
            bits: Vec::new(),
            descriptors: Vec::new(),
        }
    }
}
