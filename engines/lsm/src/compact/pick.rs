//! The compaction picker: which tables are merged next.
//!
//! Purpose: leveled compaction with a dynamic base level (RocksDB's "dynamic leveled", Dong et al.,
//! 2017): the size of the last level determines the targets of the levels above it, so space is at
//! most about a tenth more than the last level takes. See `docs/lsm.md`.
//! Invariants: the inputs of a job include every table of its two levels that overlaps them.
//! Thread safety: pure functions of a tree version.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use adamant_slice::Slice;

use crate::level_compression::LEVELS;
use crate::options::Options;
use crate::version::tree_version::{TableFile, TreeVersion};

/// Tables to be merged.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) inputs: Vec<Arc<TableFile>>,
    /// The level of the result.
    pub(crate) target: usize,
    /// Whether no other table than the inputs has an older version of one of their keys.
    pub(crate) is_bottom: bool,
    /// Whether the inputs can move to their new level unchanged.
    pub(crate) is_move: bool,
    /// Blob files whose values are moved to others.
    pub(crate) moved_blobs: BTreeSet<u64>,
}

/// Files that could not be read: merges leave them in place and go on with others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parked {
    pub(crate) tables: BTreeSet<u64>,
    pub(crate) blobs: BTreeSet<u64>,
}

impl Parked {
    fn has(&self, file: &TableFile) -> bool {
        self.tables.contains(&file.meta.number)
    }

    /// Whether a table can be merged to a level: it and all tables that it overlaps there are
    /// readable.
    fn lets(&self, tree_version: &TreeVersion, file: &TableFile, target: usize) -> bool {
        self.tables.is_empty()
            || !self.has(file)
                && !tree_version.overlapping(target, file.bounds()).any(|below| self.has(below))
    }

    /// Tables of level 0 that can leave it, the newest first: those that overlap no older table
    /// that stays.
    pub(crate) fn movable(&self, tree_version: &TreeVersion) -> Vec<Arc<TableFile>> {
        let (mut moved, mut stays) = (Vec::new(), Vec::<&Arc<TableFile>>::new());
        for file in tree_version.levels[0].iter().rev() {
            let (lower, upper) = file.bounds();
            if self.has(file) || stays.iter().any(|other| other.overlaps(lower, upper)) {
                stays.push(file);
            } else {
                moved.push(Arc::clone(file));
            }
        }
        moved.reverse();
        moved
    }
}

/// How many adjacent small tables of a level below 0 are worth a merge in place. Many small loads
/// leave them; small means less than an eighth of the maximum table size: four threads share a load
/// of a table's maximum before compression, and what they write is not to be written once more.
const SMALL_TABLES_MIN: usize = 8;
const SMALL_PART: u64 = 8;

/// Whether there are writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Writers are active: an early merge of level 0 rewrites the base once more for less data.
    Busy,
    /// The store is idle: level 0 will not grow for a while, so it is merged at a third of its
    /// limit.
    Rest,
}

/// Factor by which tables of level 0 count when the store is idle.
const REST_FACTOR: usize = 3;

/// Where the last job of each level ended. The next one continues there, so that all keys are
/// compacted in turn.
#[derive(Debug, Default)]
pub(crate) struct Picker {
    cursors: BTreeMap<usize, Slice>,
    /// Whether scans have stepped over many removed entries: then level 0 is merged even if it is
    /// small.
    pub(crate) is_stepped_over: bool,
}

/// The target size of each level, and the first level below level 0 that is used.
pub(crate) fn targets(tree_version: &TreeVersion, options: &Options) -> (usize, [u64; LEVELS]) {
    let mut targets = [u64::MAX; LEVELS];
    let largest = (1..LEVELS).map(|level| tree_version.level_bytes(level)).max().unwrap_or(0);
    let mut target = largest.max(options.base_bytes_min);
    let mut base = LEVELS - 1;
    targets[base] = u64::MAX;
    // The last level has no limit; the targets of those above it are fractions of its size.
    let ratio = options.level_ratio.max(2);
    while target / ratio >= options.base_bytes_min && base > 1 {
        base -= 1;
        target /= ratio;
        targets[base] = target;
    }
    // Levels above the base stem from a time when the tree was smaller.
    let first_used = (1..base).find(|&level| !tree_version.levels[level].is_empty());
    targets[first_used.unwrap_or(base)..base].fill(0);
    (base, targets)
}

/// The ratio of a level's size to its target, in thousandths.
fn score(
    tree_version: &TreeVersion,
    level: usize,
    targets: &[u64; LEVELS],
    (options, pace): (&Options, Pace),
) -> u64 {
    let bytes = tree_version.level_bytes(level);
    if level == 0 {
        let tables = tree_version.levels[0].len();
        let tables = if pace == Pace::Rest { REST_FACTOR * tables } else { tables };
        return (options.level0_share(tables, bytes) * 1000.0) as u64;
    }
    match targets[level] {
        0 if bytes > 0 => u64::MAX,
        u64::MAX | 0 => 0,
        target => (u128::from(bytes) * 1000 / u128::from(target)) as u64,
    }
}

/// The most urgent job that reads no parked file, if there is one.
pub(crate) fn pick(
    tree_version: &TreeVersion,
    (options, pace): (&Options, Pace),
    picker: &mut Picker,
    parked: &Parked,
) -> Option<Job> {
    let (base, targets) = targets(tree_version, options);
    let of = (options, pace);
    let scores = (0..LEVELS - 1).map(|level| (score(tree_version, level, &targets, of), level));
    let mut needed: Vec<_> = scores.filter(|(score, _)| *score >= 1000).collect();
    needed.sort_by_key(|&(score, level)| (std::cmp::Reverse(score), level));
    let most_needed = needed.into_iter().find_map(|(_, level)| match level {
        0 => job_of_level0(tree_version, base, parked),
        _ => Some(job(tree_version, vec![choose(tree_version, level, picker, parked)?], level + 1)),
    });
    let mut job = most_needed
        .or_else(|| pick_for_blobs(tree_version, options, parked))
        .or_else(|| pick_for_absences(tree_version, (base, pace), picker, parked))
        .or_else(|| pick_for_small(tree_version, options, parked))?;
    job.is_move &= keeps_compression(tree_version, options, &job);
    Some(job)
}

/// Whether the level of the result has the compression of all levels that the inputs are on: tables
/// that move unchanged keep theirs.
fn keeps_compression(tree_version: &TreeVersion, options: &Options, job: &Job) -> bool {
    let is_there = |level: &usize| {
        let files = &tree_version.levels[*level];
        files.iter().any(|file| job.inputs.iter().any(|input| Arc::ptr_eq(input, file)))
    };
    let wanted = options.compression.level(job.target);
    (0..LEVELS).filter(is_there).all(|level| options.compression.level(level) == wanted)
}

/// Merges level 0 down to the base; if files are parked, around them, to a level above the base if
/// there is one.
fn job_of_level0(tree_version: &TreeVersion, base: usize, parked: &Parked) -> Option<Job> {
    if parked.tables.is_empty() {
        return Some(job(tree_version, tree_version.levels[0].clone(), base));
    }
    let first = parked.movable(tree_version);
    let (lower, upper) = bounds(&first)?;
    let range = (Bound::Included(&lower[..]), Bound::Included(&upper[..]));
    // Tables in between would be older, but on a higher level.
    let is_free = |level: usize| tree_version.overlapping(level, range).next().is_none();
    let highest = (1..=base).find(|&level| !is_free(level)).unwrap_or(base);
    let is_readable =
        |&level: &usize| !tree_version.overlapping(level, range).any(|f| parked.has(f));
    let target = (1..=highest).rev().find(is_readable)?;
    Some(job(tree_version, first, target))
}

/// The table of a level whose merge removes most for what it writes, in key order from the cursor.
fn choose(
    tree_version: &TreeVersion,
    level: usize,
    picker: &mut Picker,
    parked: &Parked,
) -> Option<Arc<TableFile>> {
    let target = level + 1;
    let files =
        tree_version.levels[level].iter().filter(|file| parked.lets(tree_version, file, target));
    let files: Vec<_> = files.collect();
    let after = picker.cursors.get(&level);
    let in_turn = files.iter().find(|file| after.is_none_or(|key| file.meta.key_min > *key));
    // Of the next few, the one that overlaps least.
    let start = in_turn.and_then(|file| files.iter().position(|other| Arc::ptr_eq(file, other)));
    let overlap = |file: &&&Arc<TableFile>| {
        let below = tree_version.overlapping(target, file.bounds());
        let bytes: u64 = below.map(|below| below.meta.file_bytes).sum();
        bytes * 1000 / file.meta.file_bytes.max(1)
    };
    let few = files.iter().skip(start.unwrap_or(0)).take(4);
    let chosen =
        files.iter().find(|file| is_mostly_absences(file)).or_else(|| few.min_by_key(overlap))?;
    picker.cursors.insert(level, chosen.meta.key_min.clone());
    Some(Arc::clone(chosen))
}

/// A job of tables of a level and all tables of the target that overlap them; on level 0, of all
/// its tables.
fn job(tree_version: &TreeVersion, first: Vec<Arc<TableFile>>, target: usize) -> Job {
    let mut inputs = first;
    // Added tables may widen the range. Tables of one level other than 0 do not overlap, so this
    // ends soon.
    while let Some((lower, upper)) = bounds(&inputs) {
        let range = (Bound::Included(&lower[..]), Bound::Included(&upper[..]));
        let is_new = |file: &&Arc<TableFile>| !inputs.iter().any(|known| Arc::ptr_eq(known, file));
        let found: Vec<_> =
            tree_version.overlapping(target, range).filter(is_new).cloned().collect();
        if found.is_empty() {
            break;
        }
        inputs.extend(found);
    }
    let is_bottom = is_bottom(tree_version, &inputs, target);
    // A rewrite on the last level drops tombstones for good.
    let is_rid = |file: &TableFile| is_bottom && is_mostly_absences(file);
    let is_move = inputs.len() == 1 && inputs[0].meta.range_tombstones == 0 && !is_rid(&inputs[0]);
    Job { inputs, target, is_bottom, is_move, moved_blobs: BTreeSet::new() }
}

/// The lowest and the highest key of the tables.
fn bounds(files: &[Arc<TableFile>]) -> Option<(Slice, Slice)> {
    let lower = files.iter().map(|file| &file.meta.key_min).min()?;
    let upper = files.iter().map(|file| &file.meta.key_max).max()?;
    Some((lower.clone(), upper.clone()))
}

/// Whether no other table than the inputs has an older version of one of their keys.
pub(crate) fn is_bottom(
    tree_version: &TreeVersion,
    inputs: &[Arc<TableFile>],
    target: usize,
) -> bool {
    let Some((lower, upper)) = bounds(inputs) else { return false };
    let range = (Bound::Included(&lower[..]), Bound::Included(&upper[..]));
    let is_input = |file: &Arc<TableFile>| inputs.iter().any(|input| Arc::ptr_eq(input, file));
    // Tables of the target level that are no inputs have none of the keys, except on level 0.
    let deeper = if target == 0 { 0..LEVELS } else { target + 1..LEVELS };
    !deeper
        .into_iter()
        .any(|level| tree_version.overlapping(level, range).any(|file| !is_input(file)))
}

/// Rewrites the tables that point into a blob file that is mostly stale.
fn pick_for_blobs(tree_version: &TreeVersion, options: &Options, parked: &Parked) -> Option<Job> {
    let is_stale = |bytes: u64, stale: u64| {
        stale > 0 && stale * 100 > bytes * u64::from(options.blob_stale_percent_max)
    };
    let mut stale = tree_version
        .blobs
        .values()
        .filter(|listed| is_stale(listed.info.stored_bytes, listed.info.stale_bytes))
        .filter(|listed| !parked.blobs.contains(&listed.info.file));
    let moved = stale.next()?.info.file;
    let points = |file: &&Arc<TableFile>| {
        !parked.has(file)
            && file.meta.blob_references.iter().any(|reference| reference.file == moved)
    };
    let (level, file) = tree_version
        .levels
        .iter()
        .enumerate()
        .skip(1)
        .find_map(|(level, files)| Some((level, files.iter().find(points)?)))
        .or_else(|| Some((0, tree_version.levels[0].iter().find(points)?)))?;
    let (base, _) = targets(tree_version, options);
    let mut job = if level == 0 {
        job_of_level0(tree_version, base, parked)?
    } else {
        let inputs = vec![Arc::clone(file)];
        let is_bottom = is_bottom(tree_version, &inputs, level);
        Job { inputs, target: level, is_bottom, is_move: false, moved_blobs: BTreeSet::new() }
    };
    job.is_move = false;
    job.moved_blobs.insert(moved);
    Some(job)
}

/// Whether merging a table removes more than it writes.
fn is_mostly_absences(file: &TableFile) -> bool {
    let meta = &file.meta;
    meta.range_tombstones > 0 || meta.tombstones * 2 > meta.entries
}

/// Whether level 0 is to be merged for its tombstones: while there are writers only if they may
/// remove a quarter of all entries, or ranges of any size, since that merge rewrites the base.
fn frees_enough(tree_version: &TreeVersion, pace: Pace) -> bool {
    let of_level0 = || tree_version.levels[0].iter().map(|file| &file.meta);
    let tombstones: u64 = of_level0().map(|meta| meta.tombstones).sum();
    let entries: u64 = tree_version.levels.iter().flatten().map(|file| file.meta.entries).sum();
    pace == Pace::Rest
        || of_level0().any(|meta| meta.range_tombstones > 0)
        || tombstones * 4 >= entries
}

/// Moves down a table that is mostly tombstones, even if no level is too large: only on the last
/// level does that free space.
fn pick_for_absences(
    tree_version: &TreeVersion,
    (base, pace): (usize, Pace),
    picker: &mut Picker,
    parked: &Parked,
) -> Option<Job> {
    let last = (0..LEVELS).rev().find(|&level| !tree_version.levels[level].is_empty())?;
    let has_absences = || tree_version.levels[0].iter().any(|file| is_mostly_absences(file));
    // Scans are slow because of them, however few they are.
    let is_wanted = std::mem::take(&mut picker.is_stepped_over);
    if is_wanted && last == 0 && tree_version.levels[0].len() > 1 && has_absences() {
        return job_of_level0(tree_version, base, parked);
    }
    let first = if is_wanted || frees_enough(tree_version, pace) { 0 } else { 1 };
    let upper = tree_version.levels.iter().enumerate().take(last).skip(first);
    upper.into_iter().find_map(|(level, files)| {
        let is_worth_it = |file: &&Arc<TableFile>| {
            is_mostly_absences(file) && (level == 0 || parked.lets(tree_version, file, level + 1))
        };
        let file = files.iter().find(is_worth_it)?;
        match level {
            0 => job_of_level0(tree_version, base, parked),
            _ => Some(job(tree_version, vec![Arc::clone(file)], level + 1)),
        }
    })
}

/// Merges many small adjacent tables of a level into one. Loads leave them where nothing else would
/// ever merge them.
fn pick_for_small(tree_version: &TreeVersion, options: &Options, parked: &Parked) -> Option<Job> {
    (1..LEVELS).find_map(|level| {
        let is_small = |file: &Arc<TableFile>| {
            file.meta.file_bytes < options.table_bytes_max / SMALL_PART && !parked.has(file)
        };
        let mut runs = tree_version.levels[level].split(|file| !is_small(file));
        let run = runs.find(|run| run.len() >= SMALL_TABLES_MIN)?;
        let mut bytes = 0;
        // As many as fill a table, so that each job leaves fewer of them.
        let fit = run.iter().take_while(|file| {
            let is_room = bytes < options.table_bytes_max;
            bytes += file.meta.file_bytes;
            is_room
        });
        let inputs: Vec<_> = fit.cloned().collect();
        let is_bottom = is_bottom(tree_version, &inputs, level);
        let moved_blobs = BTreeSet::new();
        Some(Job { inputs, target: level, is_bottom, is_move: false, moved_blobs })
    })
}

/// All tables, to become one ordered run on the last level; `None` if they are one already and
/// nothing can be dropped from it, unless they are to be written anew anyway.
pub(crate) fn pick_all(tree_version: &TreeVersion, is_anew: bool) -> Option<Job> {
    let inputs: Vec<_> = tree_version.levels.iter().flatten().cloned().collect();
    let target = LEVELS - 1;
    let is_settled = tree_version.levels[target].len() == inputs.len()
        && inputs.iter().all(|file| file.meta.tombstones + file.meta.range_tombstones == 0)
        && tree_version.blobs.values().all(|listed| listed.info.stale_values == 0);
    if inputs.is_empty() || (is_settled && !is_anew) {
        return None;
    }
    let moved_blobs = tree_version
        .blobs
        .values()
        .filter(|listed| listed.info.stale_values > 0)
        .map(|l| l.info.file);
    let moved_blobs = moved_blobs.collect();
    Some(Job { inputs, target, is_bottom: true, is_move: false, moved_blobs })
}
