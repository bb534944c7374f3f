//! Flushes, compactions and loads: they write entries to tables.
//!
//! Purpose: the background work, one file after the other.
//! Invariants: memory is bounded, however much is merged. No result is part of the tree before an
//! edit adds it.
//! Thread safety: any thread; the heap's lock is held for short times only.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use adamant_heap::Heap;
use adamant_slice::Slice;

use super::output::{Outcome, Output, TreeParts};
use super::pick::Job;
use super::survivors::VisibilityFilter;
use crate::compaction_filter::Filtering;
use crate::error::{Error, Result};
use crate::file::FileKind;
use crate::key::{BlobPointer, Entry, EntryKind, Lookup, RangeTombstone, Version};
use crate::memtable::Memtable;
use crate::read::merge::{Merge, Run};
use crate::table::TableStream;
use crate::tombstones::range_tombstones::RangeTombstones;
use crate::version::context::TreeContext;
use crate::version::tree_version::{TableFile, TreeVersion};

/// Bytes that are copied out of a memtable under one hold of the heap's lock: about 50 us.
const PIECE_BYTES: usize = 256 << 10;
/// Entries between two progress reports.
const PROGRESS_ENTRIES: u64 = 1024;

/// A callback that gets the bytes read so far; an error ends the work.
pub(crate) type Progress<'p> = dyn Fn(u64) -> Result<()> + Sync + 'p;

/// Writes a frozen memtable to tables of level 0. With `is_least`, leaves out entries that newer
/// memtables remove, at the cost of looking for them: the removal is durable whenever this table
/// is.
pub(crate) fn flush(
    heap: &Heap,
    parts: TreeParts<'_>,
    tree_version: &TreeVersion,
    memtable: &Memtable,
    (oldest_seen, is_least): (u64, bool),
    progress: &Progress<'_>,
) -> Result<Outcome> {
    let (context, _) = parts;
    let newer = || tree_version.memtables().take_while(|newer| !std::ptr::eq(&***newer, memtable));
    let goes = |entry: &Entry| {
        let lookup = Lookup::new(&entry.key, oldest_seen);
        is_least && newer().any(|newer| newer.newest(&lookup) > entry.version.sequence)
    };
    let is_bottom = tree_version.levels.iter().all(Vec::is_empty)
        && tree_version.frozen.last().is_some_and(|oldest| std::ptr::eq(&**oldest, memtable));
    let cover = cover(context, memtable.emptied().all(), oldest_seen);
    let survivors = VisibilityFilter::new(oldest_seen, cover, is_bottom);
    let mut output = Output::new(parts, tree_version, 0, survivors, BTreeSet::new());
    let mut last: Option<Entry> = None;
    loop {
        let piece = {
            let view = heap.brief_view()?;
            memtable.copy_behind(&view, last.as_ref(), PIECE_BYTES)?
        };
        if piece.len() == 0 {
            break;
        }
        progress(piece.bytes() as u64)?;
        for entry in piece.finish() {
            last = Some(entry.clone());
            if !goes(&entry) {
                output.add(entry)?;
            }
        }
    }
    output.finish()
}

/// Merges the inputs of a job, with a filter or without.
pub(crate) fn compact(
    parts: TreeParts<'_>,
    tree_version: &TreeVersion,
    job: &Job,
    (oldest_seen, mut filtering): (u64, Option<Filtering>),
    progress: &Progress<'_>,
) -> Result<Outcome> {
    let (context, _) = parts;
    let mut ranges = Vec::new();
    let mut runs: Vec<Run<'_>> = Vec::new();
    for file in &job.inputs {
        ranges.extend_from_slice(file.open()?.range_tombstones());
    }
    for inputs in runs_of(tree_version, &job.inputs) {
        let stream = inputs.into_iter().flat_map(|file| stream_of(context, &file));
        runs.push(Box::new(stream));
    }
    let cover = cover(context, ranges, oldest_seen);
    let survivors = VisibilityFilter::new(oldest_seen, cover, job.is_bottom);
    let moved = job.moved_blobs.clone();
    let mut output = Output::new(parts, tree_version, job.target, survivors, moved);
    let (mut entries, mut bytes) = (0_u64, 0_u64);
    for entry in Merge::new(runs, true)? {
        let entry = entry?;
        entries += 1;
        bytes += (entry.key.len() + entry.version.value.len()) as u64;
        if entries.is_multiple_of(PROGRESS_ENTRIES) {
            progress(std::mem::take(&mut bytes))?;
        }
        match &mut filtering {
            Some(filtering) => output.add_filtered(entry, filtering)?,
            None => output.add(entry)?,
        }
    }
    progress(bytes)?;
    let mut outcome = output.finish()?;
    outcome.filtered_from = filtering.and_then(|filtering| filtering.lowest());
    Ok(outcome)
}

/// These ranges, as far as a reader at `oldest_seen` or later can tell them apart. Snapshots that
/// are opened from now on see all of them.
fn cover(context: &TreeContext, ranges: Vec<RangeTombstone>, oldest_seen: u64) -> RangeTombstones {
    let mut moments = context.sequences().seen();
    moments.insert(moments.partition_point(|moment| *moment <= oldest_seen), oldest_seen);
    RangeTombstones::new(ranges, &moments)
}

/// Rewrites one table without the entries that no reader sees any more, as all tables say; `None`
/// where that would free too little. It is no merge: whatever covers an entry here stays where it
/// is, so it needs no more room than the rest of one table. For a full device.
pub(crate) fn reclaim(
    parts: TreeParts<'_>,
    tree_version: &TreeVersion,
    (level, file): (usize, &Arc<TableFile>),
    (oldest_seen, is_bottom): (u64, bool),
    progress: &Progress<'_>,
) -> Result<Option<Outcome>> {
    let (context, _) = parts;
    let is_absent = |entry: &Entry| {
        let Version { kind, sequence, .. } = entry.version;
        is_bottom && kind == EntryKind::Tombstone && sequence <= oldest_seen
    };
    let goes = |entry: &Entry| {
        Ok::<bool, Error>(is_absent(entry) || !tree_version.may_see(entry, oldest_seen)?)
    };
    let (mut entries, mut all, mut gone) = (0_u64, 0, 0);
    for entry in stream_of(context, file) {
        let entry = entry?;
        entries += 1;
        if entries.is_multiple_of(PROGRESS_ENTRIES) {
            progress(0)?;
        }
        let bytes = entry_bytes(&entry);
        all += bytes;
        gone += if goes(&entry)? { bytes } else { 0 };
    }
    let goes_as_a_whole = gone == all && (all > 0 || is_bottom);
    if !goes_as_a_whole && (gone == 0 || gone * RECLAIMED_PART < all) {
        return Ok(None);
    }
    let cover = cover(context, file.open()?.range_tombstones().to_vec(), oldest_seen);
    let survivors = VisibilityFilter::new(oldest_seen, cover, is_bottom);
    let output = Output::new(parts, tree_version, level, survivors, BTreeSet::new());
    let mut output = output.without_folding();
    // A table of which nothing is left is read only for its blob pointers.
    let is_read = !goes_as_a_whole || !file.meta.blob_references.is_empty();
    for entry in stream_of(context, file).take_while(|_| is_read) {
        let entry = entry?;
        if goes(&entry)? { output.note_stale(&entry)? } else { output.add(entry)? }
    }
    output.finish().map(Some)
}

/// A table is rewritten if at least an eighth of it can be dropped.
const RECLAIMED_PART: u64 = 8;

/// Bytes of an entry, with the value that it points to.
fn entry_bytes(entry: &Entry) -> u64 {
    let pointed = match entry.version.kind {
        EntryKind::Blob => BlobPointer::from_bytes(&entry.version.value),
        EntryKind::Value | EntryKind::Tombstone | EntryKind::Merge => None,
    };
    let pointed = pointed.map_or(0, |pointer| u64::from(pointer.stored_bytes));
    (entry.key.len() + entry.version.value.len()) as u64 + pointed
}

/// Tables as ordered runs: those of a level below 0 form one run, each of level 0 one of its own.
fn runs_of(tree_version: &TreeVersion, inputs: &[Arc<TableFile>]) -> Vec<Vec<Arc<TableFile>>> {
    let mut runs = Vec::new();
    for (level, files) in tree_version.levels.iter().enumerate() {
        let is_input = |file: &&Arc<TableFile>| inputs.iter().any(|i| Arc::ptr_eq(i, file));
        let of_level: Vec<_> = files.iter().filter(is_input).cloned().collect();
        if level == 0 {
            runs.extend(of_level.into_iter().map(|file| vec![file]));
        } else if !of_level.is_empty() {
            runs.push(of_level);
        }
    }
    runs
}

/// The entries of a table, through its own descriptor.
fn stream_of(context: &Arc<TreeContext>, file: &TableFile) -> Run<'static> {
    let identity = context.identity(file.meta.number);
    match TableStream::open(context.directory(FileKind::Tables), identity) {
        Ok(stream) => Box::new(stream),
        Err(error) => Box::new(std::iter::once(Err(error))),
    }
}

/// The level that a load goes to, the sequence number of its entries, and the threads that may
/// write its tables.
pub(crate) struct LoadPlace {
    pub(crate) level: usize,
    pub(crate) sequence: u64,
    pub(crate) threads: usize,
}

/// Writes ascending pairs of one commit to tables, each thread a part of them: most of the time is
/// that of compression and checksums.
pub(crate) fn load<K: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync>(
    parts: TreeParts<'_>,
    tree_version: &TreeVersion,
    place: &LoadPlace,
    pairs: &[(K, V)],
) -> Result<Outcome> {
    let part = pairs.len().div_ceil(place.threads.max(1)).max(1);
    check_parts(parts.0, pairs, part)?;
    let failed_syncs = parts.0.failed_syncs();
    let outcome = load_files(parts, tree_version, place, (pairs, part))?;
    // Once for all of them: a thread whose sync fails would fail those of the others, which could
    // not say why.
    outcome.sync_names(failed_syncs)?;
    Ok(outcome)
}

/// Writes the files of a load, of which each thread takes `part` pairs.
fn load_files<K: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync>(
    parts: TreeParts<'_>,
    tree_version: &TreeVersion,
    place: &LoadPlace,
    (pairs, part): (&[(K, V)], usize),
) -> Result<Outcome> {
    let (first, rest) = pairs.split_at(part.min(pairs.len()));
    let write = |pairs| load_part(parts, tree_version, place, pairs);
    thread::scope(|scope| {
        let spawn = |pairs| {
            let thread = thread::Builder::new().name("adamant-load".to_owned());
            thread.spawn_scoped(scope, move || write(pairs)).map_err(|_| pairs)
        };
        let others: Vec<_> = rest.chunks(part).map(spawn).collect();
        let mut outcome = write(first);
        for other in others {
            let written = match other {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // The system has no more threads.
                Err(pairs) => write(pairs),
            };
            outcome = outcome.and_then(|outcome| Ok(outcome.joined(written?)));
        }
        outcome
    })
}

/// Verifies that each part begins above the end of the one before; within a part its writer does.
fn check_parts<K: AsRef<[u8]>, V>(
    context: &TreeContext,
    pairs: &[(K, V)],
    part: usize,
) -> Result<()> {
    let is_below = |at: &usize| pairs[at - 1].0.as_ref() < pairs[*at].0.as_ref();
    match (part..pairs.len()).step_by(part).find(|at| !is_below(at)) {
        Some(position) => {
            let file = context.directory(FileKind::Tables).path().into();
            Err(Error::NotAscending { file, position: position as u64 })
        }
        None => Ok(()),
    }
}

fn load_part<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    parts: TreeParts<'_>,
    tree_version: &TreeVersion,
    place: &LoadPlace,
    pairs: &[(K, V)],
) -> Result<Outcome> {
    let survivors = VisibilityFilter::new(0, RangeTombstones::default(), false);
    let mut output = Output::new(parts, tree_version, place.level, survivors, BTreeSet::new());
    for (key, value) in pairs {
        let (sequence, value) = (place.sequence, Slice::new(value.as_ref()));
        let version = Version { sequence, kind: EntryKind::Value, value };
        output.add(Entry { key: Slice::new(key.as_ref()), version })?;
    }
    output.finish_files()
}
