//! The writer's seat: what one transaction at a time works with.
//!
//! Purpose: hold the writer's shard of the allocator and the memory of a transaction, which is
//! reused, so that a transaction in steady state allocates nothing.

use crate::changes::Changes;
use crate::journal::RecordBuilder;
use crate::marked::Marked;
use crate::ranges::Ranges;
use crate::shadow::{ShadowMemory, Shadows};
use crate::shard::Shard;

/// What a transaction, or a savepoint in it, has done so far.
#[derive(Debug, Default)]
pub(crate) struct Level {
    pub(crate) ranges: Ranges,
    /// What it reserved; numbers are the bytes from a block's start that go into the record.
    pub(crate) fresh: Marked,
    pub(crate) freed: Marked,
    /// Undo journal: copies of blocks that are to change.
    pub(crate) shadows: Shadows,
    /// How much of the copies' memory was in use when the level began.
    pub(crate) shadows_mark: usize,
}

impl Level {
    pub(crate) fn clear(&mut self) {
        self.shadows.clear();
        self.ranges.clear();
        self.fresh.clear();
        self.freed.clear();
    }
}

/// What goes into a record, by heap offset; bits come after bytes of the same offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The spans written in a saved line.
    Line(u32),
    /// The written bytes of the fresh blocks of a word.
    Fresh(u32),
    /// The bytes written to a copy of a block.
    Shadow(u32),
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
    /// Undo journal: the old bytes of what is to be changed in place.
    pub(crate) old: RecordBuilder,
    pub(crate) shadows: ShadowMemory,
    pub(crate) parts: Vec<(u64, Part)>,
    pub(crate) changes: Changes,
}

impl Writer {
    /// With empty records as the journal takes them.
    pub(crate) fn new(record: RecordBuilder, old: RecordBuilder) -> Self {
        Self {
            shard: Shard::new(false),
            levels: vec![Level::default()],
            record,
            old,
            shadows: ShadowMemory::default(),
            parts: Vec::new(),
            changes: Changes::default(),
        }
    }
}
