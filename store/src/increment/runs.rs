//! Runs: which link of a chain has which blocks of the pool file.
//!
//! Purpose: one sorted map for a whole chain, so that a block is found in O(log runs), however many
//! links there are.
//! Invariants: runs ascend, and none overlap. A block in no run is zero.
//! Thread safety: functions of their arguments.

use std::ops::Range;

/// Consecutive blocks of the pool file that lie behind each other in one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first block.
    pub(super) first: u64,
    /// Number of blocks.
    pub(super) count: u64,
    /// Index of the link in the chain.
    pub(super) link: usize,
    /// Slot of the first block in it.
    pub(super) slot: u64,
}

impl Run {
    /// One past the last block.
    pub(super) fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The part within a range that it meets.
    fn within(&self, range: &Range<u64>) -> Self {
        let first = self.first.max(range.start);
        let end = self.end().min(range.end);
        Self { first, count: end - first, slot: self.slot + (first - self.first), ..*self }
    }
}

/// The runs of an increment, over those of its parent: `None` for a run of zeros. Those of the
/// parent are cut at `blocks`.
pub(super) fn overlay(
    below: &[Run],
    own: impl Iterator<Item = (Range<u64>, Option<Run>)>,
    blocks: u64,
) -> Vec<Run> {
    let (mut merged, mut at) = (Vec::new(), 0);
    let mut copy = |range: Range<u64>, run: Option<Run>| {
        let start = below.partition_point(|run| run.end() <= range.start);
        let met = below[start..].iter().take_while(|run| run.first < range.end);
        merged.extend(met.map(|run| run.within(&range)));
        merged.extend(run);
    };
    for (range, run) in own {
        copy(at..range.start, run);
        at = range.end;
    }
    copy(at..blocks, None);
    merged
}

/// The run that holds a block; or where the next one starts, if there is one.
pub(super) fn find(runs: &[Run], block: u64) -> Result<&Run, Option<u64>> {
    let index = runs.partition_point(|run| run.end() <= block);
    match runs.get(index) {
        Some(run) if run.first <= block => Ok(run),
        next => Err(next.map(|run| run.first)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a model of a block each, over random runs of many links.
    #[test]
    fn runs_of_a_chain_are_those_of_a_map_of_blocks() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let mut blocks = 1 + random(60);
            let mut runs = vec![Run { first: 0, count: blocks, link: 0, slot: 0 }];
            let mut model: Vec<_> = (0..blocks).map(|block| Some((0, block))).collect();
            for link in 1..8 {
                blocks = 1 + random(60);
                model.resize(blocks as usize, None);
                let (mut own, mut first, mut slot) = (Vec::new(), random(9), 0);
                while first < blocks {
                    let count = (1 + random(5)).min(blocks - first);
                    let is_zero = random(4) == 0;
                    let run = (!is_zero).then_some(Run { first, count, link, slot });
                    for block in first..first + count {
                        model[block as usize] = run.map(|_| (link, slot + block - first));
                    }
                    own.push((first..first + count, run));
                    slot += run.map_or(0, |run| run.count);
                    first += count + random(9);
                }
                runs = overlay(&runs, own.into_iter(), blocks);
                for (block, expected) in model.iter().enumerate() {
                    let block = block as u64;
                    let found = find(&runs, block);
                    let place = found.map(|run| (run.link, run.slot + block - run.first)).ok();
                    assert_eq!(place, *expected, "block {block}");
                    if let Err(Some(next)) = found {
                        assert!(next > block && model[block as usize].is_none());
                    }
                }
                assert_eq!(find(&runs, blocks), Err(None));
            }
        }
    }
}
