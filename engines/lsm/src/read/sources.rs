//! The merging cursor of scans: many ordered sources, walked as one.
//!
//! Purpose: scans read through it. It looks at entries where they lie, in a block or a memtable
//! batch, and copies nothing before the caller asks for it.
//! Invariants: each source is ordered by key and then the newest version first, or all of them in
//! reverse; no two have the same version of a key. The heads are a binary heap, ordered by the
//! current entries of their sources; beside each lie the first bytes of the key, which usually
//! decide.
//! Thread safety: one thread at a time.

use std::ops::Bound;
use std::sync::Arc;

use adamant_wire::key::head_of;

use crate::block::Cursor;
use crate::error::Result;
use crate::key::{EntryKind, RangeTombstone};
use crate::memtable::{CopiedWalk, KeyWalk};
use crate::table::TableRange;
use crate::version::tree_version::TableFile;

/// The tables of a level whose keys lie within bounds, walked one after the other.
#[derive(Debug)]
pub(crate) struct TableRun<'l> {
    /// Those that the walk has not reached.
    files: &'l [Arc<TableFile>],
    bounds: (Bound<&'l [u8]>, Bound<&'l [u8]>),
    forward: bool,
    /// The current one, which is not among `files`.
    current: Option<(&'l Arc<TableFile>, TableRange)>,
}

impl<'l> TableRun<'l> {
    /// Of tables that ascend.
    pub(crate) fn new(
        files: &'l [Arc<TableFile>],
        bounds: (Bound<&'l [u8]>, Bound<&'l [u8]>),
        forward: bool,
    ) -> Self {
        Self { files, bounds, forward, current: None }
    }

    fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some((_, range)) = &mut self.current {
                if if self.forward { range.advance()? } else { range.advance_back()? } {
                    return Ok(true);
                }
                self.current = None;
            }
            let next =
                if self.forward { self.files.split_first() } else { self.files.split_last() };
            let Some((file, rest)) = next else { return Ok(false) };
            self.files = rest;
            self.current = Some((file, file.open()?.range(self.bounds.0, self.bounds.1)));
        }
    }

    /// Skips to a key, in the direction of the walk.
    fn skip_to(&mut self, key: &'l [u8]) -> Result<bool> {
        let is_behind = if self.forward {
            self.bounds.0 = Bound::Included(key);
            let ended = self.files.partition_point(|file| file.ends_below(self.bounds.0));
            self.files = &self.files[ended..];
            |file: &TableFile, key: &[u8]| file.ends_below(Bound::Included(key))
        } else {
            self.bounds.1 = Bound::Excluded(key);
            let lower = |file: &Arc<TableFile>| file.meta.key_min[..] < *key;
            self.files = &self.files[..self.files.partition_point(lower)];
            |file: &TableFile, key: &[u8]| file.meta.key_min[..] >= *key
        };
        self.current = match self.current.take() {
            Some((file, _)) if !is_behind(file, key) => {
                Some((file, file.open()?.range(self.bounds.0, self.bounds.1)))
            }
            _ => None,
        };
        self.advance()
    }

    /// Passes over the keys of a range tombstone in the current table, if it has nothing newer;
    /// stays where it is otherwise.
    fn pass(&mut self, removed: &'l RangeTombstone) -> Result<bool> {
        let is_older =
            |(file, _): &mut (&Arc<TableFile>, _)| file.meta.sequence_max <= removed.sequence;
        if !removed.contains(self.key()) {
            return Ok(true);
        }
        let Some((file, _)) = self.current.take_if(is_older) else { return Ok(true) };
        let (lower, upper) = match self.forward {
            true => (Bound::Included(&removed.end[..]), self.bounds.1),
            false => (self.bounds.0, Bound::Excluded(&removed.start[..])),
        };
        self.current = Some((file, file.open()?.range(lower, upper)));
        self.advance()
    }

    fn range(&self) -> Option<&TableRange> {
        self.current.as_ref().map(|(_, range)| range)
    }

    fn key(&self) -> &[u8] {
        let Some(range) = self.range() else { return &[] };
        if self.forward {
            range.front().map_or(&[], |at| at.key())
        } else {
            range.back().map_or(&[], |at| at.key())
        }
    }

    fn said(&self) -> (u64, EntryKind) {
        let range = self.range();
        let at = if self.forward {
            range.and_then(TableRange::front).and_then(|at| at.current())
        } else {
            range.and_then(TableRange::back).and_then(|at| at.current())
        };
        at.map_or((0, EntryKind::Tombstone), |at| (at.sequence, at.kind))
    }

    fn value(&self) -> &[u8] {
        let Some(range) = self.range() else { return &[] };
        if self.forward {
            range.front().map_or(&[], |at| at.value())
        } else {
            range.back().map_or(&[], |at| at.value())
        }
    }
}

/// A source of entries. It has a current entry only after it was advanced.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "of a dozen nearly all are the large one")]
pub(crate) enum Source<'l> {
    /// A batch that was copied out of a memtable.
    Copied(CopiedWalk),
    /// The keys of a memtable.
    Keys(KeyWalk<'l>),
    /// Tables.
    Tables(TableRun<'l>),
}

impl<'l> Source<'l> {
    /// Skips to a key, in the direction of the walk. The source must have a current entry.
    fn skip_to(&mut self, key: &'l [u8], forward: bool) -> Result<bool> {
        if let Self::Tables(run) = self {
            return run.skip_to(key);
        }
        loop {
            if !self.advance()? {
                return Ok(false);
            }
            if if forward { self.key() >= key } else { self.key() < key } {
                return Ok(true);
            }
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<bool> {
        match self {
            Self::Copied(copied) => Ok(copied.advance()),
            Self::Keys(keys) => Ok(keys.advance()),
            Self::Tables(run) => run.advance(),
        }
    }

    /// The key of the entry.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self {
            Self::Copied(copied) => copied.key(),
            Self::Keys(keys) => keys.key(),
            Self::Tables(run) => run.key(),
        }
    }

    /// Its sequence number and kind.
    #[inline]
    pub(crate) fn said(&self) -> (u64, EntryKind) {
        match self {
            Self::Copied(copied) => copied.said(),
            Self::Keys(keys) => keys.said(),
            Self::Tables(run) => run.said(),
        }
    }

    /// Its value, as it is stored.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self {
            Self::Copied(copied) => copied.value(),
            Self::Keys(_) => &[],
            Self::Tables(run) => run.value(),
        }
    }
}

/// The first bytes of a source's current key, as a number in byte order.
#[derive(Clone, Copy, Debug)]
struct Head {
    prefix: u64,
    source: usize,
}

/// Sources, walked as one.
#[derive(Debug)]
pub(crate) struct Sources<'l> {
    sources: Vec<Source<'l>>,
    /// Of the sources that have a current entry; the first one is next.
    heads: Vec<Head>,
    forward: bool,
}

impl<'l> Sources<'l> {
    /// Positioned at the first entry of all.
    ///
    /// # Errors
    /// Those of tables.
    pub(crate) fn new(mut sources: Vec<Source<'l>>, forward: bool) -> Result<Self> {
        let mut heads = Vec::with_capacity(sources.len());
        for (index, source) in sources.iter_mut().enumerate() {
            if source.advance()? {
                heads.push(Head { prefix: head_of(source.key(), 0), source: index });
            }
        }
        let mut merged = Self { sources, heads, forward };
        merged.put_in_order();
        Ok(merged)
    }

    /// The source of the next entry.
    #[inline]
    pub(crate) fn next(&self) -> Option<&Source<'l>> {
        self.heads.first().map(|head| &self.sources[head.source])
    }

    /// Moves past the next entry.
    ///
    /// # Errors
    /// Those of tables.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<()> {
        self.move_next(|source| source.advance())
    }

    /// Moves the source of the next entry past the keys of a range tombstone, as far as its current
    /// table has nothing newer: maybe past none.
    ///
    /// # Errors
    /// Those of tables.
    pub(crate) fn pass(&mut self, removed: &'l RangeTombstone) -> Result<()> {
        self.move_next(|source| match source {
            Source::Tables(run) => run.pass(removed),
            _ => Ok(true),
        })
    }

    /// Moves the source of the next entry; the closure returns whether it still has one.
    #[inline]
    fn move_next(&mut self, moves: impl FnOnce(&mut Source<'l>) -> Result<bool>) -> Result<()> {
        let Some(head) = self.heads.first_mut() else { return Ok(()) };
        let source = &mut self.sources[head.source];
        if moves(source)? {
            head.prefix = head_of(source.key(), 0);
        } else {
            self.heads.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    /// Skips to a key, in the direction of the walk: past those below it, or, downward, past those
    /// from it on.
    ///
    /// # Errors
    /// Those of tables.
    pub(crate) fn skip_to(&mut self, key: &'l [u8]) -> Result<()> {
        let (sources, forward) = (&mut self.sources, self.forward);
        let mut failed = Ok(());
        self.heads.retain_mut(|head| {
            let source = &mut sources[head.source];
            let is_there = if forward { source.key() >= key } else { source.key() < key };
            let gone = if is_there { Ok(true) } else { source.skip_to(key, forward) };
            let is_there = gone.unwrap_or_else(|error| {
                failed = Err(error);
                false
            });
            if is_there {
                head.prefix = head_of(source.key(), 0);
            }
            is_there
        });
        self.put_in_order();
        failed
    }

    /// Builds the binary heap of the heads.
    fn put_in_order(&mut self) {
        for at in (0..self.heads.len() / 2).rev() {
            self.sift_down(at);
        }
    }

    #[inline]
    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heads.len() && self.is_before(child, least) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heads.swap(at, least);
            at = least;
        }
    }

    /// Whether one head comes before another.
    #[inline]
    fn is_before(&self, one: usize, other: usize) -> bool {
        let (one, other) = (self.heads[one], self.heads[other]);
        if one.prefix != other.prefix {
            return (one.prefix < other.prefix) == self.forward;
        }
        let (one, other) = (&self.sources[one.source], &self.sources[other.source]);
        let newer = || other.said().0.cmp(&one.said().0);
        let order = one.key().cmp(other.key()).then_with(newer);
        order.is_lt() == self.forward
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;
    use crate::memtable::CopiedEntries;

    #[test]
    fn sources_come_out_as_one_both_ways() {
        let seed = 13;
        let mut random = fastrand::Rng::with_seed(seed);
        for round in 0..200 {
            let forward = random.bool();
            let mut runs: Vec<Vec<(Vec<u8>, Reverse<u64>)>> = vec![Vec::new(); random.usize(0..8)];
            let mut all = Vec::new();
            if let Some(last) = runs.len().checked_sub(1) {
                for sequence in 1..random.u64(2..300) {
                    // Many begin with the same 8 bytes, and some are shorter.
                    let len = [1, 3, 8, 9, 12][random.usize(0..5)];
                    let key: Vec<u8> = (0..len).map(|_| random.u8(0..2)).collect();
                    all.push((key.clone(), Reverse(sequence)));
                    runs[random.usize(0..=last)].push((key, Reverse(sequence)));
                }
            }
            let put_in_order = |run: &mut Vec<(Vec<u8>, Reverse<u64>)>| {
                run.sort();
                if !forward {
                    run.reverse();
                }
            };
            put_in_order(&mut all);
            let sources = runs.into_iter().map(|mut run| {
                put_in_order(&mut run);
                let mut piece = CopiedEntries::default();
                for (key, Reverse(sequence)) in run {
                    piece.add(|bytes| bytes.extend(&key), (sequence, EntryKind::Value), &key);
                }
                Source::Copied(piece.walk())
            });
            let mut sources = Sources::new(sources.collect(), forward).unwrap();
            let mut merged = Vec::new();
            while let Some(next) = sources.next() {
                assert_eq!(next.value(), next.key());
                merged.push((next.key().to_vec(), Reverse(next.said().0)));
                sources.advance().unwrap();
            }
            assert!(sources.advance().is_ok(), "nothing is behind the end");
            assert_eq!(merged, all, "seed {seed}, round {round}, forward {forward}");
        }
    }
}
