//! The k-way merge of ordered runs of entries.
//!
//! Purpose: compactions read through it; it is a binary heap of runs. Scans, which need no owned
//! entries, walk through `Sources`.
//! Invariants: each run is ordered as [`Entry::order`] says, or all of them in reverse; no two have
//! the same version of a key.
//! Thread safety: one thread at a time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::error::Result;
use crate::key::Entry;

/// An ordered run of entries.
pub(crate) type Run<'r> = Box<dyn Iterator<Item = Result<Entry>> + 'r>;

/// Merges runs.
pub(crate) struct Merge<'r> {
    heads: BinaryHeap<Head<'r>>,
    /// The error of a run that failed: it is returned once, then nothing.
    failed: Option<crate::error::Error>,
}

struct Head<'r> {
    entry: Entry,
    forward: bool,
    rest: Run<'r>,
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head<'_> {}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap returns the greatest first.
        let order = self.entry.order(&other.entry);
        if self.forward { order.reverse() } else { order }
    }
}

impl<'r> Merge<'r> {
    /// Of runs that all ascend, or all descend.
    pub(crate) fn new(runs: impl IntoIterator<Item = Run<'r>>, forward: bool) -> Result<Self> {
        let mut heads = Vec::new();
        for mut rest in runs {
            if let Some(entry) = rest.next().transpose()? {
                heads.push(Head { entry, forward, rest });
            }
        }
        Ok(Self { heads: heads.into(), failed: None })
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            self.heads.clear();
            return Some(Err(error));
        }
        let mut head = self.heads.peek_mut()?;
        let entry = match head.rest.next() {
            Some(Ok(next)) => std::mem::replace(&mut head.entry, next),
            None => PeekMut::pop(head).entry,
            Some(Err(error)) => {
                self.failed = Some(error);
                PeekMut::pop(head).entry
            }
        };
        Some(Ok(entry))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use adamant_slice::Slice;

    use super::*;
    use crate::key::{EntryKind, Version};

    pub(crate) fn entry(key: &[u8], sequence: u64, kind: EntryKind, value: &[u8]) -> Entry {
        let (key, value) = (Slice::new(key), Slice::new(value));
        Entry { key, version: Version { sequence, kind, value } }
    }

    #[test]
    fn runs_come_out_as_one_both_ways() {
        let seed = 3;
        let mut random = fastrand::Rng::with_seed(seed);
        for forward in [true, false] {
            let mut runs: Vec<Vec<Entry>> = vec![Vec::new(); 5];
            let mut all = Vec::new();
            for sequence in 1..400 {
                let key = [random.u8(0..9), random.u8(0..9)];
                let entry = entry(&key, sequence, EntryKind::Value, b"");
                all.push(entry.clone());
                runs[random.usize(0..5)].push(entry);
            }
            let order = |one: &Entry, other: &Entry| {
                if forward { one.order(other) } else { other.order(one) }
            };
            all.sort_by(order);
            let runs = runs.into_iter().map(|mut run| {
                run.sort_by(order);
                Box::new(run.into_iter().map(Ok)) as Run<'_>
            });
            let merge = Merge::new(runs, forward).unwrap();
            let merged: Vec<Entry> = merge.map(Result::unwrap).collect();
            assert!(merged == all, "seed {seed}, forward {forward}");
        }
    }

    #[test]
    fn a_run_that_fails_ends_the_merge() {
        let one = vec![
            Ok(entry(b"a", 1, EntryKind::Value, b"")),
            Err(crate::error::Error::KeyTooLong { bytes: 0, bytes_max: 0 }),
            Ok(entry(b"z", 1, EntryKind::Value, b"")),
        ];
        let other = vec![Ok(entry(b"m", 1, EntryKind::Value, b""))];
        let runs = [one, other].map(|run| Box::new(run.into_iter()) as Run<'_>);
        let mut merge = Merge::new(runs, true).unwrap();
        assert_eq!(&*merge.next().unwrap().unwrap().key, b"a");
        assert!(merge.next().unwrap().is_err());
        assert!(merge.next().is_none());
    }
}
