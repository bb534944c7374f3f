//! Cache lines of a mapped file: their stores, flushes and fences.
//!
//! Purpose: between the durable content of a line and the one that a program sees lie the versions
//! that were observed; any of them may have been evicted to the medium.
//! Invariants: the versions of a line are in the order in which they were observed; the lines in
//! this map are exactly those in doubt.

use std::collections::BTreeMap;
use std::ops::Range;
use std::thread::ThreadId;

use crate::choice::{Decisions, Doubts};

/// Bytes of a cache line: the unit that is flushed and evicted.
pub(crate) const LINE_BYTES: usize = 64;
/// Bytes that reach the medium atomically.
pub(crate) const WORD_BYTES: usize = 8;

/// The content of a line.
pub(crate) type Line = [u8; LINE_BYTES];

/// The lines of a file that are in doubt, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    lines: BTreeMap<u64, Doubtful>,
}

#[derive(Clone, Debug, Default)]
struct Doubtful {
    versions: Vec<Version>,
    /// Flushes that no fence of their thread has completed, with the index of the version that
    /// each wrote back: one for a thread.
    flushes: Vec<(ThreadId, usize)>,
    /// A sync of the file failed on it: later ones take it for clean.
    missed: bool,
}

#[derive(Clone, Debug)]
struct Version {
    operation: u64,
    bytes: Line,
}

impl Lines {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// A content of a line that was observed.
    pub(crate) fn store(&mut self, operation: u64, line: u64, bytes: &Line) {
        let doubtful = self.lines.entry(line).or_default();
        doubtful.versions.push(Version { operation, bytes: *bytes });
        doubtful.missed = false;
    }

    /// A thread begins to write back the contents of these lines.
    pub(crate) fn flush(&mut self, lines: Range<u64>, thread: ThreadId) {
        for (_, doubtful) in self.lines.range_mut(lines) {
            doubtful.flushes.retain(|(other, _)| *other != thread);
            doubtful.flushes.push((thread, doubtful.versions.len() - 1));
        }
    }

    /// The lines that the thread flushed are durable: `durable` gets them. Flushes of others are
    /// not complete.
    pub(crate) fn fence(&mut self, thread: ThreadId, mut durable: impl FnMut(u64, &Line)) {
        self.lines.retain(|&line, doubtful| {
            let own = doubtful.flushes.iter().find(|(other, _)| *other == thread);
            let Some(&(_, index)) = own else { return true };
            durable(line, &doubtful.versions[index].bytes);
            doubtful.versions.drain(..=index);
            doubtful.flushes.retain_mut(|(_, other)| {
                let is_newer = *other > index;
                *other = other.saturating_sub(index + 1);
                is_newer
            });
            !doubtful.versions.is_empty()
        });
    }

    /// A sync of the file, which writes back every line that looks dirty.
    pub(crate) fn sync(&mut self, mut durable: impl FnMut(u64, &Line)) {
        self.lines.retain(|&line, doubtful| {
            if let (false, Some(newest)) = (doubtful.missed, doubtful.versions.last()) {
                durable(line, &newest.bytes);
            }
            doubtful.missed
        });
    }

    /// A sync that fails: all that it should have written looks clean from now on.
    pub(crate) fn sync_failed(&mut self) {
        self.lines.values_mut().for_each(|doubtful| doubtful.missed = true);
    }

    /// The threads that flushed are gone: no fence will complete their flushes.
    pub(crate) fn forget_flushes(&mut self) {
        self.lines.values_mut().for_each(|doubtful| doubtful.flushes.clear());
    }

    /// Adds the lines, or for torn lines their words, in the order in which `crash` asks.
    pub(crate) fn doubts(&self, doubts: &mut Doubts, base: impl Fn(u64) -> Line) {
        for (&line, doubtful) in &self.lines {
            let operation = |index: usize| doubtful.versions[index].operation;
            if doubts.torn() {
                let base = base(line);
                for word in words() {
                    doubts.add(doubtful.versions_of(word, &base).map(operation));
                }
            } else {
                doubts.add((0..doubtful.versions.len()).map(operation));
            }
        }
    }

    /// The lines after a power cut: `left` gets the number of a line, the operation, the bytes in
    /// the line, and their content. Words that are not given stay durable as they were.
    pub(crate) fn crash(
        &self,
        decisions: &mut Decisions,
        base: impl Fn(u64) -> Line,
        mut left: impl FnMut(u64, u64, Range<usize>, &[u8]),
    ) {
        let mut keep = |line: u64, version: &Version, bytes: Range<usize>| {
            left(line, version.operation, bytes.clone(), &version.bytes[bytes]);
        };
        for (&line, doubtful) in &self.lines {
            if !decisions.torn() {
                let decided = decisions.next(doubtful.versions.len());
                if let Some(index) = decided.checked_sub(1) {
                    keep(line, &doubtful.versions[index], 0..LINE_BYTES);
                }
                continue;
            }
            let base = base(line);
            for word in words() {
                let count = doubtful.versions_of(word.clone(), &base).count();
                let decided = decisions.next(count).checked_sub(1);
                let mut versions = doubtful.versions_of(word.clone(), &base);
                if let Some(index) = decided.and_then(|nth| versions.nth(nth)) {
                    keep(line, &doubtful.versions[index], word);
                }
            }
        }
    }
}

impl Doubtful {
    /// The versions that changed a word.
    fn versions_of(&self, word: Range<usize>, base: &Line) -> impl Iterator<Item = usize> {
        let mut before = base[word.clone()].to_vec();
        (0..self.versions.len()).filter(move |&index| {
            let found = &self.versions[index].bytes[word.clone()];
            let changed = before != found;
            before.copy_from_slice(found);
            changed
        })
    }
}

/// The words of a line.
fn words() -> impl Iterator<Item = Range<usize>> {
    (0..LINE_BYTES).step_by(WORD_BYTES).map(|start| start..start + WORD_BYTES)
}
