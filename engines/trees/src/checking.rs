//! Checks in parts, and their reports.
//!
//! Purpose: the tree may change during a check; each part holds it for a bounded time.
//! Invariants: a part verifies one state of the tree: every rule of each node that it visits, and
//! of its bounds. Totals, and that no block is referred to twice, are verified only if one part was
//! enough, because then the tree was in one state.

/// The result of a check of a whole tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Number of pairs.
    pub pairs: u64,
    /// Levels above the leaves.
    pub height: u64,
    /// Number of leaves.
    pub leaves: u64,
    /// Number of inner nodes.
    pub inner_nodes: u64,
    /// Slots of all leaves, used or not.
    pub leaf_slots: u64,
    /// Values with a block of their own.
    pub external_values: u64,
    /// Bytes of all keys.
    pub key_bytes: u64,
    /// Bytes of all values.
    pub value_bytes: u64,
}

impl Report {
    /// The share of used slots, 0 to 1.
    pub fn leaf_fill(&self) -> f64 {
        self.pairs as f64 / self.leaf_slots.max(1) as f64
    }
}

/// Minimum pairs of a part: some 500 us with a cold cache.
const PART_PAIRS: u64 = 2048;

/// A check that is made in parts.
#[derive(Clone, Debug, Default)]
pub struct Checking {
    pub(crate) report: Report,
    /// The key where the next part begins.
    rest: Option<Vec<u8>>,
    parts: u64,
}

impl Checking {
    /// The counts so far. After more than one part some pairs and nodes may have been counted
    /// twice, and others not at all.
    pub fn report(&self) -> Report {
        self.report
    }

    /// Whether one part was enough, so that totals were verified, too.
    pub fn is_whole(&self) -> bool {
        self.parts <= 1
    }

    /// Begins the next part.
    pub(crate) fn begin<'w>(&mut self, is_wanted: &'w dyn Fn() -> bool) -> PartRange<'w> {
        self.parts += 1;
        let pairs_end = self.report.pairs + PART_PAIRS;
        PartRange { rest: self.rest.take(), pairs_end, is_wanted }
    }

    /// Ends a part before the last one.
    pub(crate) fn pause(&mut self, report: Report, rest: &[u8]) {
        (self.report, self.rest) = (report, Some(rest.to_vec()));
    }
}

/// The range of a part.
pub(crate) struct PartRange<'w> {
    /// From the highest key down: the key below which everything is left. The other way: the last
    /// one that was visited.
    pub(crate) rest: Option<Vec<u8>>,
    pairs_end: u64,
    is_wanted: &'w dyn Fn() -> bool,
}

impl PartRange<'_> {
    /// Whether enough pairs were visited, and others want the tree.
    pub(crate) fn is_over(&self, report: &Report) -> bool {
        report.pairs >= self.pairs_end && (self.is_wanted)()
    }

    /// From the highest key down: whether part of what has no lower keys than `lower` is left.
    pub(crate) fn is_left(&self, lower: Option<&[u8]>) -> bool {
        match (&self.rest, lower) {
            (Some(rest), Some(lower)) => lower < &rest[..],
            _ => true,
        }
    }

    /// The same walk: whether the part ends before what lies below a key, and where.
    pub(crate) fn end<'k>(&self, report: &Report, upper: Option<&'k [u8]>) -> Option<&'k [u8]> {
        // Each part makes progress.
        upper.filter(|upper| self.is_left(Some(upper)) && self.is_over(report))
    }
}
