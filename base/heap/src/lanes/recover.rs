//! Which entries count.
//!
//! Purpose: what lies beyond the watermark is judged: commits that count, undo entries that are in
//! force, and damage.
//! Invariants: a commit that returned counts. One that never returned counts or not, in whole.
//! Thread safety: runs alone, when a heap is opened.
//!
//! An entry with number `n` says that the fences of all entries below `n` were complete when it
//! was made, but for those that it names. An entry of which some other says so is *proven*. A
//! number that is proven and has no entry is damage. The fresh blocks of a proven commit may have
//! been changed, freed and reused since, so they are not looked at: whoever did so made an entry
//! first, and that proves the commit. Of one that is not proven nobody knew; if its fresh blocks
//! have another checksum, its fence never completed, and it is dropped.

use std::collections::{HashMap, HashSet};

use adamant_medium::persist::Persist;
use adamant_wire::checksum::crc32c;
use adamant_wire::mutants::is_planted;

use super::layout::{KIND_COMMIT, KIND_UNDO};
use super::scan::Found;
use crate::error::Result;
use crate::image::Image;
use crate::journal::{Entries, Entry};

/// What is to be done to memory.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    /// Commits, in their order.
    pub(super) commits: Vec<Found<'a>>,
    /// Undo entries in force, in their order.
    pub(super) undo: Vec<Found<'a>>,
    /// The highest number seen.
    pub(super) last: u64,
}

impl Plan<'_> {
    /// Begins to take to the medium what the commits wrote in place and share a fence with.
    ///
    /// # Errors
    /// `Error::Damaged` for an entry that makes no sense.
    pub(super) fn flush_fresh(&self, persist: &dyn Persist, image: &Image) -> Result<()> {
        for commit in self.commits.iter().filter(|commit| commit.head.fresh_crc.is_some()) {
            for change in Entries::new(commit.changes) {
                match change.map_err(|what| commit.damaged(what))? {
                    // One that was freed since, and its pages given back, need not be there.
                    Entry::Direct { offset, len } if image.bytes(offset, len).is_ok() => {
                        image.flush(persist, offset, len);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Judges all entries beyond the watermark.
///
/// # Errors
/// `Error::Damaged` for numbers that are missing or there twice, and for entries that make no
/// sense.
pub(super) fn judge<'a>(
    mut found: Vec<Found<'a>>,
    watermark: u64,
    image: &Image,
) -> Result<Plan<'a>> {
    if !is_planted("R8.replays-lane-by-lane") {
        found.sort_by_key(|entry| entry.head.sequence);
    }
    Proofs::new(&found).refuse_gaps(watermark)?;
    plan(found, watermark, image)
}

/// What entries without gaps, sorted by number, ask for; they follow the one numbered `before`.
///
/// # Errors
/// `Error::Damaged` for entries that make no sense.
pub(super) fn plan<'a>(found: Vec<Found<'a>>, before: u64, image: &Image) -> Result<Plan<'a>> {
    let proofs = Proofs::new(&found);
    let last = found.last().map_or(before, |entry| entry.head.sequence);
    let counts = (0..found.len()).map(|index| proofs.counts(index, image));
    let counts = counts.collect::<Result<Vec<bool>>>()?;
    let mut void = HashSet::new();
    for (entry, counts) in found.iter().zip(&counts) {
        let is_left = is_planted("R8.undo-entries-outlive-their-commit");
        if *counts && entry.head.kind != KIND_UNDO && entry.head.group != 0 && !is_left {
            void.insert(entry.head.group);
        }
    }
    let mut plan = Plan { last, ..Plan::default() };
    for (entry, counts) in found.into_iter().zip(counts) {
        match entry.head.kind {
            KIND_COMMIT if counts => plan.commits.push(entry),
            KIND_UNDO if !void.contains(&entry.head.group) => plan.undo.push(entry),
            _ => {}
        }
    }
    Ok(plan)
}

/// The checksum over what a commit names as written in place; `None` if that is not all there.
fn fresh_crc(entry: &Found<'_>, image: &Image) -> Result<Option<u32>> {
    let mut crc = 0;
    for change in Entries::new(entry.changes) {
        if let Entry::Direct { offset, len } = change.map_err(|what| entry.damaged(what))? {
            let Ok(bytes) = image.bytes(offset, len) else { return Ok(None) };
            crc = crc32c(crc, bytes);
        }
    }
    Ok(Some(crc))
}

/// What entries say about the fences of others.
pub(super) struct Proofs<'f, 'a> {
    /// Sorted by number.
    found: &'f [Found<'a>],
    /// How many entries name a number as in flight.
    named: HashMap<u64, usize>,
}

impl<'f, 'a> Proofs<'f, 'a> {
    /// Of entries that are sorted by their numbers.
    pub(super) fn new(found: &'f [Found<'a>]) -> Self {
        let mut named = HashMap::new();
        for sequence in found.iter().flat_map(|entry| &entry.head.in_flight) {
            *named.entry(*sequence).or_insert(0) += 1;
        }
        Self { found, named }
    }

    /// Whether the entry at a place counts: it is proven, or what it names as written in place is what
    /// it wrote.
    ///
    /// # Errors
    /// `Error::Damaged` for an entry that makes no sense.
    pub(super) fn counts(&self, index: usize, image: &Image) -> Result<bool> {
        let entry = &self.found[index];
        match entry.head.fresh_crc {
            Some(crc)
                if !self.is_proven(index + 1, entry.head.sequence)
                    && !is_planted("R8.fresh-blocks-need-no-proof") =>
            {
                Ok(fresh_crc(entry, image)? == Some(crc))
            }
            _ => Ok(true),
        }
    }

    /// Whether an entry from place `index` on, all of which are above `sequence`, says that its
    /// fence was complete.
    fn is_proven(&self, index: usize, sequence: u64) -> bool {
        self.found.len() - index > self.named.get(&sequence).copied().unwrap_or(0)
    }

    /// The highest number above `before` that was durable and has no entry, and the index of the
    /// entry behind the gap. O(entries and the numbers that they name): gaps share no number.
    pub(super) fn last_gone(&self, before: u64) -> Option<(u64, usize)> {
        (0..self.found.len()).rev().find_map(|index| {
            let lower = index.checked_sub(1).map_or(before, |lower| self.sequence(lower));
            let mut missing = (lower + 1..self.sequence(index)).rev();
            let gone = missing.find(|missing| self.is_proven(index, *missing))?;
            Some((gone, index))
        })
    }

    fn sequence(&self, index: usize) -> u64 {
        self.found[index].head.sequence
    }

    /// # Errors
    /// `Error::Damaged` for a number that is missing or there twice.
    fn refuse_gaps(&self, watermark: u64) -> Result<()> {
        let mut expected = watermark + 1;
        for (index, entry) in self.found.iter().enumerate() {
            let sequence = entry.head.sequence;
            if sequence < expected {
                return Err(entry.damaged("this entry is there twice"));
            }
            // Of more missing ones than are named anywhere, one is named by nobody.
            let is_long = sequence - expected > self.named.len() as u64;
            let missing = if is_long {
                Some(expected)
            } else {
                (expected..sequence).find(|missing| self.is_proven(index, *missing))
            };
            if let Some(missing) = missing.filter(|_| !is_planted("R8.gaps-are-no-damage")) {
                let what =
                    format!("entry {missing} was durable when this one was made, and is gone");
                return Err(entry.damaged(what));
            }
            expected = sequence + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::entry::Head;
    use super::*;
    use crate::error::Error;

    /// Commits by number, each with the numbers that it names as in flight.
    fn judged(numbers: &[(u64, &[u64])], watermark: u64) -> Result<()> {
        let found = numbers.iter().map(|(sequence, in_flight)| {
            let in_flight = in_flight.to_vec();
            let head =
                Head { kind: KIND_COMMIT, sequence: *sequence, in_flight, ..Head::default() };
            Found { head, changes: &[], path: Path::new("lanes"), offset: 0 }
        });
        Proofs::new(&found.collect::<Vec<_>>()).refuse_gaps(watermark)
    }

    /// An entry of one lane may be lost with its fence, whatever is in the others; but not one that
    /// was durable when a later one was made, which then does not name it.
    #[test]
    fn a_number_that_is_gone_is_damage_unless_all_behind_it_say_that_it_was_in_flight() {
        judged(&[(8, &[]), (9, &[]), (10, &[])], 7).unwrap();
        judged(&[(8, &[]), (10, &[9])], 7).unwrap();
        judged(&[(8, &[]), (10, &[9]), (11, &[9])], 7).unwrap();
        judged(&[(9, &[8])], 7).unwrap();
        let gaps: [&[(u64, &[u64])]; 5] = [
            &[(8, &[]), (10, &[])],
            &[(9, &[])],
            &[(8, &[]), (10, &[9]), (11, &[])],
            &[(8, &[]), (12, &[9, 10])],
            &[(8, &[]), (900, &[9])],
        ];
        for gap in gaps {
            assert!(matches!(judged(gap, 7), Err(Error::Damaged { .. })), "{gap:?}");
        }
        assert!(matches!(judged(&[(8, &[]), (8, &[])], 7), Err(Error::Damaged { .. })), "twice");
    }
}
