//! Estimates of a range: its entries and bytes, without visiting them all.
//!
//! Purpose: what a planner asks before it chooses between two ways to answer a query. Paths down
//! from a node, one child of each level, estimate what is below it without bias: an entry stands
//! for the product of the fan-outs above it (D. E. Knuth, "Estimating the efficiency of backtrack
//! programs", 1975). `bplus/estimate.rs` and `sample.rs` use it.
//! Invariants: nothing is random, so equal trees have equal estimates.

use std::ops::Bound;

use adamant_heap::access::Read;

use crate::error::Result;
use crate::slot::Entry;

/// The bounds of a range.
pub(crate) type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// An estimate of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Entries.
    pub entries: u64,
    /// Bytes of their keys and values, as they are stored.
    pub bytes: u64,
    /// Bytes of the heap's blocks that they take, with their share of the nodes.
    pub block_bytes: u64,
    /// Whether the number of entries was counted.
    pub is_exact: bool,
}

/// Entries that were seen, each for so many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) entries: f64,
    bytes: f64,
    block_bytes: f64,
}

impl Seen {
    /// Adds an entry in a block of its own, which stands for so many; returns its key.
    pub(crate) fn add<'r, R: Read>(
        &mut self,
        read: &'r R,
        block: u64,
        weight: f64,
    ) -> Result<&'r [u8]> {
        let entry = Entry::read(read, block)?;
        let mut block_bytes = read.block(block)?.len();
        if let Some(value) = entry.value_block() {
            block_bytes += read.block(value)?.len();
        }
        self.entries += weight;
        self.bytes += weight * (entry.key.len() + entry.value_len()) as f64;
        self.block_bytes += weight * block_bytes as f64;
        Ok(entry.key)
    }

    /// Adds a pair of so many bytes that is in its node, which stands for so many.
    pub(crate) fn add_within(&mut self, bytes: usize, weight: f64) {
        self.entries += weight;
        self.bytes += weight * bytes as f64;
    }

    /// The same, of so many entries.
    pub(crate) fn scaled(self, entries: f64) -> Self {
        let factor = if self.entries > 0.0 { entries / self.entries } else { 0.0 };
        Self { entries, bytes: self.bytes * factor, block_bytes: self.block_bytes * factor }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            entries: self.entries + other.entries,
            bytes: self.bytes + other.bytes,
            block_bytes: self.block_bytes + other.block_bytes,
        }
    }

    /// The estimate, with so many bytes of nodes for each entry.
    pub(crate) fn estimate(self, node_bytes: f64, is_exact: bool) -> Estimate {
        Estimate {
            entries: self.entries.round() as u64,
            bytes: self.bytes.round() as u64,
            block_bytes: (self.block_bytes + node_bytes * self.entries).round() as u64,
            is_exact,
        }
    }
}

/// A choice among children: an even spread of numbers from 0 to 1, one digit of which each level
/// uses up.
#[derive(Clone, Copy)]
pub(crate) struct Spread(f64);

impl Spread {
    /// The middle of part `index` of so many.
    pub(crate) fn of(index: u32, parts: u32) -> Self {
        Self((f64::from(index) + 0.5) / f64::from(parts.max(1)))
    }

    /// One of so many, at least one.
    pub(crate) fn choose(&mut self, count: usize) -> usize {
        let scaled = self.0 * count as f64;
        let chosen = (scaled as usize).min(count.saturating_sub(1));
        self.0 = (scaled - chosen as f64).clamp(0.0, 1.0);
        chosen
    }
}
