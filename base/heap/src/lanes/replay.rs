//! Bringing memory up to date: commits are applied again, undo entries are rolled back.
//!
//! Purpose: after this, memory is what the commits made of it, durably.
//! Invariants: doing it again gives the same bytes, so a crash during recovery is no matter. All
//! commits beyond the watermark are replayed in their order; what one of them wrote in place (a
//! fresh block, a large block) is not in any entry, so earlier ones must not write over it: their
//! changes there are left out. Undo entries come last: their bytes are those of the last commit
//! before their transaction, and nobody else changed them until it was void.
//! Thread safety: runs alone, when a heap is opened.

use adamant_medium::persist::Persist;
use adamant_wire::mutants::is_planted;

use super::recover::Plan;
use super::scan::Found;
use crate::error::Result;
use crate::image::{Exclusive, Image};
use crate::journal::{Entries, Entry};
use crate::range_set::RangeSet;

/// Bytes of a word that bits are changed in.
const WORD_BYTES: u64 = 8;

/// A change that nothing later covers.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    Bytes { offset: u64, bytes: &'a [u8] },
    Bits { offset: u64, set: u64, clear: u64 },
}

/// Changes memory as planned and makes that durable. Returns the bytes changed.
///
/// # Errors
/// `Error::Damaged` for an entry that makes no sense or lies beyond the heap.
pub(super) fn replay(plan: &Plan<'_>, persist: &dyn Persist, image: &Image) -> Result<u64> {
    let mut pieces = Vec::with_capacity(plan.commits.len());
    let mut covered = Covered::default();
    for commit in plan.commits.iter().rev() {
        pieces.push(visible(commit, &mut covered)?);
    }
    let mut exclusive = image.write();
    let mut changed = 0;
    for (commit, pieces) in plan.commits.iter().zip(pieces.into_iter().rev()) {
        for piece in pieces {
            changed +=
                apply(&piece, persist, &mut exclusive).map_err(|error| commit.damaged(error))?;
        }
    }
    let is_left = is_planted("R8.undo-entries-are-not-rolled-back");
    for undo in plan.undo.iter().rev().filter(|_| !is_left) {
        for change in Entries::new(undo.changes) {
            if let Entry::Bytes { offset, bytes } = change.map_err(|what| undo.damaged(what))? {
                let piece = Piece::Bytes { offset, bytes };
                changed +=
                    apply(&piece, persist, &mut exclusive).map_err(|error| undo.damaged(error))?;
            }
        }
    }
    persist.fence();
    Ok(changed)
}

fn apply(piece: &Piece<'_>, persist: &dyn Persist, image: &mut Exclusive<'_>) -> Result<u64> {
    let (offset, len) = piece.write(image)?;
    image.flush(persist, offset, len);
    Ok(len)
}

impl Piece<'_> {
    /// Changes memory; returns where and how many bytes.
    ///
    /// # Errors
    /// `Error::InvalidPointer` beyond the heap.
    pub(super) fn write(&self, image: &mut Exclusive<'_>) -> Result<(u64, u64)> {
        match *self {
            Piece::Bytes { offset, bytes } => {
                image.bytes_mut(offset, bytes.len() as u64)?.copy_from_slice(bytes);
                Ok((offset, bytes.len() as u64))
            }
            Piece::Bits { offset, set, clear } => {
                image.change_bits(offset, set, clear)?;
                Ok((offset, WORD_BYTES))
            }
        }
    }
}

/// The changes of a commit that no later one covers. Then what it wrote in place is covered too.
pub(super) fn visible<'a>(commit: &Found<'a>, covered: &mut Covered) -> Result<Vec<Piece<'a>>> {
    let mut pieces = Vec::new();
    let mut direct = Vec::new();
    for change in Entries::new(commit.changes) {
        match change.map_err(|what| commit.damaged(what))? {
            Entry::Bytes { offset, bytes } => {
                covered.gaps(offset, bytes.len() as u64, |start, len| {
                    let from = (start - offset) as usize;
                    let bytes = &bytes[from..from + len as usize];
                    pieces.push(Piece::Bytes { offset: start, bytes });
                });
            }
            Entry::Set { offset, mask } => {
                let set = mask & covered.visible_bits(offset);
                pieces.push(Piece::Bits { offset, set, clear: 0 });
            }
            Entry::Clear { offset, mask } => {
                let clear = mask & covered.visible_bits(offset);
                pieces.push(Piece::Bits { offset, set: 0, clear });
            }
            Entry::Direct { offset, len } => direct.push((offset, len)),
        }
    }
    if !is_planted("R8.replays-over-what-came-later") {
        direct.into_iter().for_each(|(offset, len)| covered.add(offset, len));
    }
    Ok(pieces)
}

/// Bytes that later commits wrote in place.
#[derive(Debug, Default)]
pub(super) struct Covered(RangeSet);

impl Covered {
    fn add(&mut self, start: u64, len: u64) {
        self.0.add(start, start.saturating_add(len));
    }

    /// The parts of a range that are not covered: start and bytes of each, in order.
    fn gaps(&self, start: u64, len: u64, mut gap: impl FnMut(u64, u64)) {
        self.0.gaps(start, start.saturating_add(len), |start, end| gap(start, end - start));
    }

    /// The bits of the word at an offset whose bytes are not covered.
    fn visible_bits(&self, offset: u64) -> u64 {
        let mut bits = 0;
        self.gaps(offset, WORD_BYTES, |start, len| {
            bits |= (u64::MAX >> (64 - 8 * len)) << (8 * (start - offset));
        });
        bits
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::entry::Head;
    use super::*;
    use crate::journal::RecordBuilder;

    /// A block was freed and its memory given out again: what a later commit wrote there in place is in
    /// memory, and in no entry. What earlier ones say of it must not come back.
    #[test]
    fn what_a_later_commit_wrote_in_place_is_not_written_over() {
        let (mut earlier, mut later) = (RecordBuilder::whole(), RecordBuilder::whole());
        earlier.bytes(1000, &[7; 100]);
        earlier.set_bits(2000, u64::MAX);
        later.direct(1020, 40);
        later.direct(2000, 4);
        fn commit(sequence: u64, record: &RecordBuilder) -> Found<'_> {
            Found {
                head: Head { sequence, ..Head::default() },
                changes: record.payload(),
                path: Path::new("lanes"),
                offset: 0,
            }
        }
        let mut covered = Covered::default();
        assert_eq!(visible(&commit(2, &later), &mut covered).unwrap().len(), 0);
        let earlier = commit(1, &earlier);
        let pieces = visible(&earlier, &mut covered).unwrap();
        let pieces: Vec<(u64, u64)> = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Bytes { offset, bytes } => (*offset, bytes.len() as u64),
                Piece::Bits { offset, set, .. } => (*offset, *set),
            })
            .collect();
        assert_eq!(pieces, [(1000, 20), (1060, 40), (2000, u64::MAX << 32)]);
    }

    #[test]
    fn covered_ranges_are_a_set_of_bytes() {
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..200 {
            let mut covered = Covered::default();
            let mut model = [false; 128];
            for _ in 0..random.usize(0..12) {
                let start = random.usize(..120);
                let len = random.usize(1..=(128 - start).min(20));
                covered.add(start as u64, len as u64);
                model[start..start + len].fill(true);
            }
            for _ in 0..20 {
                let start = random.usize(..120);
                let len = random.usize(1..=128 - start);
                let mut found = [true; 128];
                covered.gaps(start as u64, len as u64, |at, len| {
                    found[at as usize..(at + len) as usize].fill(false);
                });
                assert_eq!(found[start..start + len], model[start..start + len]);
                let word = random.usize(..120);
                let expected = (0..8).filter(|byte| !model[word + byte]);
                let expected = expected.fold(0, |bits, byte| bits | 0xFF << (8 * byte));
                assert_eq!(covered.visible_bits(word as u64), expected);
            }
        }
    }
}
