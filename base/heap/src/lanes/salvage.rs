//! Reading what is left of damaged lanes.
//!
//! Purpose: where opening refuses a pool, lay what whole entries say over its pages in memory, and
//! tell what is gone.
//! Invariants: no file is written. Bytes of which nobody can tell whether they were ever committed
//! are handed out as doubtful.
//! Thread safety: runs alone, under the store's lock.
//!
//! An entry that is gone may have changed what an earlier commit wrote. So only commits above the
//! highest one that is gone are applied again; what earlier ones wrote is taken as memory has it,
//! which they changed before anybody was told of them. For the same reason undo entries are put
//! back only if all of their transaction's are there, and none is gone that may have ended it;
//! what others would put back is doubtful, unless memory has the same.

use std::collections::HashSet;

use adamant_medium::storage::Directory;

use super::entry::Head;
use super::lanes_file::{LANES_NAME, LanesFile};
use super::large;
use super::layout::{
    KIND_ABORT, KIND_COMMIT, KIND_UNDO, LANES_HEAD_BYTES, WATERMARK_OFFSET, entry_seed,
    watermark_of,
};
use super::mapped::Mapped;
use super::recover::{Plan, Proofs, plan};
use super::replay::{Covered, Piece, visible};
use super::scan::{Found, Source, scan, scan_all};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::journal::{Entries, Entry};

/// What was laid over memory.
#[derive(Debug, Default)]
pub(crate) struct Laid {
    /// Commits applied again.
    pub(crate) records: u64,
    /// Undo entries put back.
    pub(crate) undone: u64,
    /// The highest number seen: of an entry, or the watermark.
    pub(crate) last_sequence: u64,
    /// Heap offsets and lengths of bytes that may be those of a transaction that did not commit.
    pub(crate) doubtful: Vec<(u64, u64)>,
}

/// The pool that lanes in the directory of a log name: what it may be, if its header is lost.
///
/// # Errors
/// Those of the medium.
pub(crate) fn identity(directory: &dyn Directory) -> Result<Option<[u8; 16]>> {
    LanesFile::identity(directory)
}

/// Lays what lanes say beyond their watermark over the pages of a pool in memory. `note` is told of
/// what is wrong with them.
///
/// # Errors
/// Those of the medium.
pub(crate) fn lay_over(
    uuid: &[u8; 16],
    directory: &dyn Directory,
    image: &Image,
    note: &mut dyn FnMut(Error),
) -> Result<Laid> {
    let whole = match LanesFile::open(directory, *uuid) {
        Ok(file) => Some(file),
        Err(error @ Error::Medium(_)) => return Err(error),
        Err(error) => {
            note(error);
            None
        }
    };
    let path = directory.path().join(LANES_NAME);
    // Without a header nobody knows where lanes begin, but entries prove themselves.
    let rest = match (&whole, directory.open(LANES_NAME)?) {
        (None, Some(file)) => Some(Mapped::map(&file)?),
        _ => None,
    };
    let large = large::left(directory)?;
    let mut lanes = Vec::new();
    if let Some(file) = &whole {
        lanes.extend((0..file.lane_count as usize).map(|lane| Source {
            mapped: &file.mapped,
            start: file.lane_offset(lane),
            len: file.lane_bytes,
            path: &path,
        }));
    }
    lanes.extend(large.iter().map(|left| Source {
        mapped: &left.mapped,
        start: 0,
        len: left.mapped.len(),
        path: &left.path,
    }));
    let watermark = match (&whole, &rest) {
        (Some(file), _) => file.watermark().map_err(&mut *note).ok(),
        (None, Some(mapped)) if mapped.len() >= LANES_HEAD_BYTES => {
            watermark_of(uuid, mapped.load_word(WATERMARK_OFFSET))
        }
        _ => None,
    };
    let seed = entry_seed(uuid);
    let mut found = Vec::new();
    for source in &lanes {
        let known = found.len();
        if let Err(error) = scan(source, seed, watermark.unwrap_or(0), &mut found) {
            note(error);
            found.truncate(known);
            scan_rest(source, seed, watermark, &mut found, note);
        }
    }
    if let Some(mapped) = &rest {
        let (start, len) = (LANES_HEAD_BYTES, mapped.len().saturating_sub(LANES_HEAD_BYTES));
        scan_rest(&Source { mapped, start, len, path: &path }, seed, watermark, &mut found, note);
    }
    Ok(lay(found, watermark, image, note))
}

/// All whole entries of a source that `scan` cannot follow.
fn scan_rest<'a>(
    source: &Source<'a>,
    seed: u32,
    watermark: Option<u64>,
    found: &mut Vec<Found<'a>>,
    note: &mut dyn FnMut(Error),
) {
    if !scan_all(source, seed, watermark.unwrap_or(0), found) {
        note(Error::Damaged {
            file: source.path.into(),
            offset: source.start,
            what: "expected entries, found too much that looks like them; some were not read"
                .into(),
        });
    }
}

/// Lays entries over memory, as far as they are of use.
fn lay(
    mut found: Vec<Found<'_>>,
    watermark: Option<u64>,
    image: &Image,
    note: &mut dyn FnMut(Error),
) -> Laid {
    let (start, last) = (watermark.unwrap_or(0), found.iter().map(|entry| entry.head.sequence));
    let mut laid = Laid { last_sequence: last.fold(start, u64::max), ..Laid::default() };
    found.sort_by_key(|entry| entry.head.sequence);
    let mut base = start;
    if let Some((gone, index)) = Proofs::new(&found).last_gone(start) {
        base = gone;
        if watermark.is_some() {
            let what = format!("entry {gone} was durable when this one was made, and is gone");
            note(found[index].damaged(what));
        }
    }
    // Of two entries with one number, one is not what was written, and nobody knows which.
    let twice = found.windows(2).rfind(|pair| pair[0].head.sequence == pair[1].head.sequence);
    if let Some([entry, _]) = twice {
        base = base.max(entry.head.sequence);
        note(entry.damaged("this entry is there twice"));
    }
    // Undo entries that are void whatever is gone: their transaction's end is there. Commits above
    // are judged first.
    let ends = |head: &Head| {
        let is_end = head.kind == KIND_ABORT || (head.kind == KIND_COMMIT && head.sequence <= base);
        is_end && head.group != 0
    };
    let ended: HashSet<u64> =
        found.iter().filter(|entry| ends(&entry.head)).map(|entry| entry.head.group).collect();
    let above = found.split_off(found.partition_point(|entry| entry.head.sequence <= base));
    let mut plan = plan(above, base, image).unwrap_or_else(|error| {
        note(error);
        Plan::default()
    });
    let is_certain = |entry: &mut Found<'_>| entry.head.group > base;
    let mut in_force: Vec<Found<'_>> = plan.undo.extract_if(.., is_certain).collect();
    let mut doubtful = plan.undo;
    let voided = plan.commits.iter().map(|commit| commit.head.group).filter(|group| *group != 0);
    let ended: HashSet<u64> = ended.into_iter().chain(voided).collect();
    doubtful.extend(found.into_iter().filter(|entry| entry.head.kind == KIND_UNDO));
    doubtful.retain(|entry| !ended.contains(&entry.head.group));
    laid.records = plan.commits.len() as u64;
    laid.undone = in_force.len() as u64;
    apply(&plan.commits, image, note);
    in_force.reverse();
    put_back(&in_force, image, note);
    for entry in &doubtful {
        let known = laid.doubtful.len();
        differing(entry, image, &mut laid.doubtful);
        if laid.doubtful.len() > known {
            note(entry.damaged("nobody knows whether the transaction of this entry committed"));
        }
    }
    laid
}

/// Applies commits, in their order. The first change that cannot be is told.
fn apply(commits: &[Found<'_>], image: &Image, note: &mut dyn FnMut(Error)) {
    let mut covered = Covered::default();
    let mut pieces = Vec::with_capacity(commits.len());
    for commit in commits.iter().rev() {
        pieces.push(visible(commit, &mut covered).unwrap_or_else(|error| {
            note(error);
            Vec::new()
        }));
    }
    let mut exclusive = image.write();
    let mut failed = None;
    for (commit, pieces) in commits.iter().zip(pieces.into_iter().rev()) {
        for piece in pieces {
            if let Err(error) = piece.write(&mut exclusive) {
                failed.get_or_insert_with(|| commit.damaged(error));
            }
        }
    }
    failed.map(note);
}

/// Puts the old bytes of undo entries back, in the order given. The first that cannot be are told.
fn put_back(undo: &[Found<'_>], image: &Image, note: &mut dyn FnMut(Error)) {
    let mut exclusive = image.write();
    let mut failed = None;
    for entry in undo {
        for change in Entries::new(entry.changes) {
            let written = match change {
                Ok(Entry::Bytes { offset, bytes }) => {
                    Piece::Bytes { offset, bytes }.write(&mut exclusive).err()
                }
                Ok(_) => None,
                Err(what) => Some(entry.damaged(what)),
            };
            if let Some(error) = written {
                failed.get_or_insert_with(|| entry.damaged(error));
            }
        }
    }
    failed.map(note);
}

/// Adds the ranges of an undo entry where memory has other bytes.
fn differing(entry: &Found<'_>, image: &Image, ranges: &mut Vec<(u64, u64)>) {
    for change in Entries::new(entry.changes).map_while(std::result::Result::ok) {
        if let Entry::Bytes { offset, bytes } = change
            && image.bytes(offset, bytes.len() as u64).is_ok_and(|found| found != bytes)
        {
            ranges.push((offset, bytes.len() as u64));
        }
    }
}
