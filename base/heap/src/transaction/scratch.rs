//! The writer's scratch memory: what one transaction at a time works with.
//!
//! Purpose: hold the writer's shard of the allocator and the memory of a transaction, which is
//! reused, so that a transaction in steady state allocates nothing.

use std::fmt;

use crate::collections::offset_map::trim;
use crate::journal::RecordBuilder;
use crate::space::batch::Batch;
use crate::space::block_bits::BlockBits;
use crate::space::changes::Changes;
use crate::space::shard::Shard;
use crate::transaction::ranges::Ranges;

/// A callback for when a transaction has committed; gets the sequence number.
pub(crate) struct Hook(pub(crate) Box<dyn FnOnce(u64) + Send + Sync>);

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

/// The changes of a transaction, or of a savepoint in it, so far.
#[derive(Debug, Default)]
pub(crate) struct Level {
    pub(crate) ranges: Ranges,
    /// Blocks it reserved; the number of a block is how many bytes from its start go into the
    /// record.
    pub(crate) fresh: BlockBits,
    pub(crate) freed: BlockBits,
    /// Called by the commit.
    pub(crate) hooks: Vec<Hook>,
}

impl Level {
    /// Whether `count` more ranges, or words of bitmaps, need memory.
    pub(crate) fn is_short_of(&self, count: usize) -> bool {
        self.ranges.is_short_of(count)
            || self.fresh.is_short_of(count)
            || self.freed.is_short_of(count)
    }

    /// Takes the memory for `count` more of each.
    pub(crate) fn make_room(&mut self, count: usize) {
        self.ranges.make_room(count);
        self.fresh.make_room(count);
        self.freed.make_room(count);
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.fresh.clear();
        self.freed.clear();
        self.hooks.clear();
    }
}

/// A part of a record; bits come after bytes of the same offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A range that was written.
    Range(u32),
    /// The written bytes of the newly allocated blocks of a word.
    Fresh(u32),
    /// A descriptor.
    Descriptor(u32),
    /// A word of a bitmap.
    Bits(u32),
}

/// A part and its heap offset, as one number that sorts by the offset first: a comparison takes no
/// branch, and a batch of a thousand puts has five thousand parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Placed(u128);

impl Placed {
    /// A part at a heap offset.
    #[inline]
    pub(crate) fn new(offset: u64, part: Part) -> Self {
        let (kind, index) = match part {
            Part::Range(index) => (0, index),
            Part::Fresh(index) => (1, index),
            Part::Descriptor(index) => (2, index),
            Part::Bits(index) => (3, index),
        };
        Self(u128::from(offset) << 64 | kind << 32 | u128::from(index))
    }

    /// The heap offset.
    #[inline]
    pub(crate) fn offset(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The part.
    #[inline]
    pub(crate) fn part(self) -> Part {
        let index = self.0 as u32;
        match (self.0 >> 32) as u32 {
            0 => Part::Range(index),
            1 => Part::Fresh(index),
            2 => Part::Descriptor(index),
            _ => Part::Bits(index),
        }
    }
}

/// Memory that only the writer touches.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) shard: Shard,
    /// The shard of transactions that pack.
    pub(crate) packing: Shard,
    /// Level 0 is the transaction, the others are savepoints within it.
    pub(crate) levels: Vec<Level>,
    pub(crate) record: RecordBuilder,
    pub(crate) parts: Vec<Placed>,
    pub(crate) changes: Changes,
    /// The batch of requests done without a transaction.
    pub(crate) batch: Box<Batch>,
    /// How much such batches freed since the last recycling.
    pub(crate) retired: usize,
    /// Heap ranges of freed blocks.
    pub(crate) page_ranges: Vec<(u64, u64)>,
    /// Blocks that changed and were not copied since, in a transaction that admits readers.
    pub(crate) changed: Vec<(u64, u64)>,
    /// The page up to which never-used pages were touched for large transactions.
    pub(crate) touched: u64,
}

impl Writer {
    /// Nothing is done yet.
    pub(crate) fn new() -> Self {
        Self {
            shard: Shard::new(false),
            packing: Shard::packing(),
            levels: vec![Level::default()],
            record: RecordBuilder::new(),
            parts: Vec::new(),
            changes: Changes::default(),
            batch: Batch::new(),
            retired: 0,
            page_ranges: Vec::new(),
            changed: Vec::new(),
            touched: 0,
        }
    }

    /// Frees the memory that a large transaction took, when it has ended.
    #[inline]
    pub(crate) fn trim(&mut self) {
        self.record.trim();
        self.changes.trim();
        trim(&mut self.parts);
        trim(&mut self.page_ranges);
        trim(&mut self.changed);
    }
}
