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
use std::path::PathBuf;

use adamant_medium::storage::Directory;

use super::lanes_file::{LANES_NAME, LanesFile};
use super::large::{self, Left};
use super::layout::{
    KIND_ABORT, KIND_COMMIT, KIND_UNDO, LANE_BYTES, LANE_COUNT, LANES_HEAD_BYTES, WATERMARK_OFFSET,
    entry_seed, watermark_of,
};
use super::mapped::Mapped;
use super::recover::{Plan, Proofs, plan};
use super::replay::{Covered, Piece, visible};
use super::scan::{Found, Source, scan, scan_all};
use crate::error::{Error, Result};
use crate::image::{Image, Mapping};
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

/// The files of damaged lanes, as far as they can be read.
struct Files {
    /// The file of lanes, if its header is whole.
    whole: Option<LanesFile>,
    /// The same file, if not: nobody knows where lanes begin, but entries prove themselves.
    rest: Option<Mapped>,
    large: Vec<Left>,
    path: PathBuf,
}

impl Files {
    fn open(
        uuid: &[u8; 16],
        directory: &dyn Directory,
        note: &mut dyn FnMut(Error),
    ) -> Result<Self> {
        let whole = match LanesFile::open(directory, *uuid, Mapping::Private) {
            Ok(file) => Some(file),
            Err(error @ Error::Medium(_)) => return Err(error),
            Err(error) => {
                note(error);
                None
            }
        };
        let rest = match (&whole, directory.open(LANES_NAME)?) {
            (None, Some(file)) => Some(Mapped::map(&file, Mapping::Private)?),
            _ => None,
        };
        let large = large::left(directory, Mapping::Private)?;
        Ok(Self { whole, rest, large, path: directory.path().join(LANES_NAME) })
    }

    /// Whether no lane is missing. One that is could have held later entries than all that are left,
    /// and nobody would know. Without a header it is taken for one of the size that all have.
    fn are_complete(&self) -> bool {
        let len = LANES_HEAD_BYTES + u64::from(LANE_COUNT) * LANE_BYTES;
        self.whole.is_some() || self.rest.as_ref().is_some_and(|rest| rest.len() >= len)
    }

    /// The watermark, if it proves itself right.
    fn watermark(&self, uuid: &[u8; 16], note: &mut dyn FnMut(Error)) -> Option<u64> {
        match (&self.whole, &self.rest) {
            (Some(file), _) => file.watermark().map_err(note).ok(),
            (None, Some(rest)) if rest.len() >= LANES_HEAD_BYTES => {
                watermark_of(uuid, rest.load_word(WATERMARK_OFFSET))
            }
            _ => None,
        }
    }

    /// Where entries follow each other.
    fn sources(&self) -> Vec<Source<'_>> {
        let path = self.path.as_path();
        let lanes = self.whole.iter().flat_map(move |file| {
            (0..file.lane_count as usize).map(move |lane| Source {
                mapped: &file.mapped,
                start: file.lane_offset(lane),
                len: file.lane_bytes,
                path,
            })
        });
        let large = self.large.iter().map(|left| Source {
            mapped: &left.mapped,
            start: 0,
            len: left.mapped.len(),
            path: &left.path,
        });
        lanes.chain(large).collect()
    }
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
    let files = Files::open(uuid, directory, note)?;
    let watermark = files.watermark(uuid, note);
    let mut is_complete = files.are_complete();
    if !is_complete {
        let what = "without all lanes nobody knows what was in progress; the pool is read as it is";
        note(Error::Damaged { file: files.path.clone(), offset: 0, what: what.into() });
    }
    let (seed, floor) = (entry_seed(uuid), watermark.unwrap_or(0));
    let mut found = Vec::new();
    for source in files.sources() {
        let known = found.len();
        if let Err(error) = scan(&source, seed, floor, &mut found) {
            note(error);
            found.truncate(known);
            is_complete &= scan_rest(&source, seed, floor, &mut found, note);
        }
    }
    if let Some(mapped) = &files.rest {
        let (start, len) = (LANES_HEAD_BYTES, mapped.len().saturating_sub(LANES_HEAD_BYTES));
        let source = Source { mapped, start, len, path: &files.path };
        is_complete &= scan_rest(&source, seed, floor, &mut found, note);
    }
    Ok(lay(found, watermark, is_complete, image, note))
}

/// All whole entries of a source that `scan` cannot follow; whether all of it was read.
fn scan_rest<'a>(
    source: &Source<'a>,
    seed: u32,
    floor: u64,
    found: &mut Vec<Found<'a>>,
    note: &mut dyn FnMut(Error),
) -> bool {
    let is_read = scan_all(source, seed, floor, found);
    if !is_read {
        let what = "expected entries, found too much that looks like them; not all of it was read";
        note(Error::Damaged { file: source.path.into(), offset: source.start, what: what.into() });
    }
    is_read
}

/// Lays entries over memory, as far as they are of use: none if there may be more.
fn lay(
    mut found: Vec<Found<'_>>,
    watermark: Option<u64>,
    is_complete: bool,
    image: &Image,
    note: &mut dyn FnMut(Error),
) -> Laid {
    let (start, last) = (watermark.unwrap_or(0), found.iter().map(|entry| entry.head.sequence));
    let mut laid = Laid { last_sequence: last.fold(start, u64::max), ..Laid::default() };
    found.sort_by_key(|entry| entry.head.sequence);
    let mut base = if is_complete { start } else { u64::MAX };
    if let Some((gone, index)) = Proofs::new(&found).last_gone(start) {
        base = base.max(gone);
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
    let proofs = Proofs::new(&found);
    let ends = |(index, entry): &(usize, &Found<'_>)| match entry.head.kind {
        KIND_ABORT => true,
        // One that makes no sense ends nothing.
        KIND_COMMIT => entry.head.sequence <= base && proofs.counts(*index, image).unwrap_or(false),
        _ => false,
    };
    let ended = found.iter().enumerate().filter(ends).map(|(_, entry)| entry.head.group);
    let ended: HashSet<u64> = ended.filter(|group| *group != 0).collect();
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
