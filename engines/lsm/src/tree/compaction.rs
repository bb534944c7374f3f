//! Compactions of a tree: tables are merged with one another, or rewritten one by one.
//!
//! Purpose: which work is due, and doing it: the picker chooses the tables, the merge writes them,
//! and an edit names them in place of the inputs.
//! Invariants: files that cannot be read are parked, and others are merged around them. A result
//! that a filter changed is committed only if no snapshot sees what it removed.
//! Thread safety: one compaction at a time, on any thread, beside a flush.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use adamant_heap::{Durability, Heap};

use super::Lsm;
use crate::compact::{
    Job, Outcome, Pace, Parked, Picker, compact, is_bottom, pick, pick_all, reclaim,
};
use crate::compaction_filter::Filtering;
use crate::error::{Error, Result};
use crate::file::FileKind;
use crate::version::edit::Edit;
use crate::version::tree_version::{TableFile, TreeVersion};

/// Memtables of full size in memory beyond which the excess counts twice: one that is filled and
/// one that is flushed, half of it on average.
const HELD_SOFT: f64 = 1.5;

/// How long a filtered compaction waits for snapshots to be closed, and how often: some 100 ms.
const SNAPSHOT_WAIT: Duration = Duration::from_millis(1);
const SNAPSHOT_WAITS_MAX: u32 = 100;

impl Lsm {
    /// Whether there is a memtable to be flushed, or tables to be merged.
    pub fn has_work(&self) -> bool {
        self.is_full() || !self.current.load().frozen.is_empty() || self.wants_rest()
    }

    /// Whether [`Lsm::compact_at_rest`] finds work, maybe such as [`Lsm::compact_once`] does not.
    pub fn wants_rest(&self) -> bool {
        let options = self.options();
        let parked = self.parked.lock();
        pick(&self.current.load(), (&options, Pace::Rest), &mut Picker::default(), &parked)
            .is_some()
    }

    /// The compaction debt, in memtables of full size: the content of memtables, of which the part
    /// beyond one and a half counts twice, because it is memory; and half for each table of level 0
    /// beyond those that are merged at once.
    pub fn debt(&self) -> f64 {
        let tree_version = self.current.load();
        let options = self.context.options();
        let bytes: u64 = tree_version.memtables().map(|memtable| memtable.bytes()).sum();
        let held = bytes as f64 / options.memtable_bytes_max.max(1) as f64;
        let held = held + (held - HELD_SOFT).max(0.0);
        // Files that cannot be merged must not stall writers.
        let tables = self.parked.lock().movable(&tree_version);
        let bytes = tables.iter().map(|file| file.meta.file_bytes).sum();
        let share = options.level0_share(tables.len(), bytes).max(1.0);
        held + tables.len() as f64 * (1.0 - 1.0 / share) / 2.0
    }

    /// Merges the tables that need it most; false if none do. As [`Lsm::flush`]. A file that turns
    /// out to be damaged is left alone from then on, and others are merged, until the tree is
    /// opened again or [`Lsm::compact_all`] is called.
    ///
    /// # Errors
    /// As [`Lsm::flush`].
    pub fn compact_once(
        self: &Arc<Self>,
        heap: &Heap,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        self.compact_next(heap, Pace::Busy, oldest_seen, progress)
    }

    /// As [`Lsm::compact_once`], for an idle store: also does what is worth it only then.
    ///
    /// # Errors
    /// As [`Lsm::flush`].
    pub fn compact_at_rest(
        self: &Arc<Self>,
        heap: &Heap,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        self.compact_next(heap, Pace::Rest, oldest_seen, progress)
    }

    fn compact_next(
        self: &Arc<Self>,
        heap: &Heap,
        pace: Pace,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        let mut picker = self.compacting.lock();
        picker.is_stepped_over |= self.gaps.take_stepped_over();
        let tree_version = self.tree_version();
        let parked = self.parked.lock().clone();
        let options = self.options();
        let Some(job) = pick(&tree_version, (&options, pace), &mut picker, &parked) else {
            return Ok(false);
        };
        let done = self.run(heap, &tree_version, &job, oldest_seen()?, progress);
        if let Some(file) = done.as_ref().err().and_then(Error::unreadable_file) {
            self.park(&job, file);
        }
        done
    }

    /// Parks a file of a job.
    fn park(&self, job: &Job, file: &Path) {
        let is_it = |kind: FileKind, number: u64| {
            let name = self.context.identity(number).name();
            file.ends_with(&name) && file == self.context.directory(kind).path().join(name)
        };
        let mut parked = self.parked.lock();
        let tables = job.inputs.iter().map(|input| input.meta.number);
        parked.tables.extend(tables.filter(|number| is_it(FileKind::Tables, *number)));
        let blobs = job.moved_blobs.iter().copied();
        parked.blobs.extend(blobs.filter(|number| is_it(FileKind::Blobs, *number)));
    }

    /// Numbers of the tables that merges leave alone, because they cannot be read.
    pub(crate) fn parked_tables(&self) -> Vec<u64> {
        self.parked.lock().tables.iter().copied().collect()
    }

    /// Merges all tables to one ordered run on the last level, without entries that no reader sees
    /// any more. As [`Lsm::flush`].
    ///
    /// # Errors
    /// As [`Lsm::flush`].
    pub fn compact_all(
        self: &Arc<Self>,
        heap: &Heap,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<()> {
        self.rotate(heap)?;
        while self.flush(heap, oldest_seen, progress)? {}
        let _picker = self.compacting.lock();
        // The job reads all of them: it fails, or they are intact again.
        *self.parked.lock() = Parked::default();
        let tree_version = self.tree_version();
        let is_changed = self.has_changed_options.swap(false, Ordering::AcqRel);
        let is_anew = is_changed || self.filters();
        let Some(job) = pick_all(&tree_version, is_anew) else { return Ok(()) };
        let done = self.run(heap, &tree_version, &job, oldest_seen()?, progress);
        if done.is_err() && is_changed {
            self.has_changed_options.store(true, Ordering::Release);
        }
        done.map(drop)
    }

    /// Reclaims the room of entries that no reader sees any more, table by table, from the oldest
    /// on. Each rewrite takes no more room than what is left of its table, and none if nothing is
    /// left. For a device that is too full for a merge. Returns whether any room was reclaimed.
    ///
    /// # Errors
    /// As [`Lsm::flush`]. If there is no room for a table the others are tried, too; that is an
    /// error if none was written.
    pub fn reclaim(
        self: &Arc<Self>,
        heap: &Heap,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        let _picker = self.compacting.lock();
        let all = self.tree_version();
        let files = all.levels.iter().enumerate().rev();
        let files = files.flat_map(|(level, files)| files.iter().rev().map(move |f| (level, f)));
        let (mut is_done, mut failed) = (false, None);
        for (level, file) in files {
            match self.reclaim_table(heap, (level, file), oldest_seen()?, progress) {
                Ok(is_some) => is_done |= is_some,
                // Damage of one table must not prevent others from giving room back.
                Err(error) if error.is_out_of_space() || error.is_damage() => {
                    failed = failed.or(Some(error));
                }
                Err(error) => return Err(error),
            }
        }
        match failed {
            Some(error) if !is_done => Err(error),
            _ => Ok(is_done),
        }
    }

    fn reclaim_table(
        self: &Arc<Self>,
        heap: &Heap,
        (level, file): (usize, &Arc<TableFile>),
        oldest_seen: u64,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        let tree_version = self.tree_version();
        let is_bottom = is_bottom(&tree_version, std::slice::from_ref(file), level);
        let of = (oldest_seen, is_bottom);
        let options = self.options();
        let parts = (&self.context, &*options);
        let written = reclaim(parts, &tree_version, (level, file), of, progress)?;
        let Some(outcome) = written else { return Ok(false) };
        self.replace(heap, [file.meta.number].into(), (level, outcome), || true)
    }

    fn run(
        self: &Arc<Self>,
        heap: &Heap,
        tree_version: &TreeVersion,
        job: &Job,
        oldest_seen: u64,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        let numbers = job.inputs.iter().map(|file| file.meta.number);
        if job.is_move {
            let moved = numbers.map(|number| (number, job.target)).collect();
            let is_done = heap.transaction(Durability::Buffered, |transaction| {
                self.edit(transaction, Edit { moved, ..Edit::default() })
            })?;
            self.work.moves.fetch_add(is_done.into(), Ordering::Relaxed);
            return Ok(is_done);
        }
        let sequences = self.context.sequences();
        let after = || sequences.newest_held().unwrap_or(0);
        let filtering = if self.filters() { self.filter.next(after()) } else { None };
        let is_filtered = filtering.is_some();
        let mut done =
            self.run_once(heap, tree_version, job, (oldest_seen, filtering), progress)?;
        if is_filtered {
            self.filter.note(done.is_some());
        }
        if done.is_none() {
            // A snapshot was opened meanwhile that sees what the filter would have taken from it.
            done = self.run_once(heap, tree_version, job, (oldest_seen, None), progress)?;
        }
        Ok(done.unwrap_or(false))
    }

    /// Runs a job; `None` if a snapshot sees what the filter removed or changed.
    fn run_once(
        self: &Arc<Self>,
        heap: &Heap,
        tree_version: &TreeVersion,
        job: &Job,
        seen: (u64, Option<Filtering>),
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<Option<bool>> {
        let options = self.options();
        let outcome = compact((&self.context, &options), tree_version, job, seen, progress)?;
        let sequences = self.context.sequences();
        let filtered_from = outcome.filtered_from.unwrap_or(u64::MAX);
        let is_in_the_way = || sequences.newest_held().is_some_and(|held| held >= filtered_from);
        for _ in 0..SNAPSHOT_WAITS_MAX {
            if !is_in_the_way() {
                break;
            }
            // Most are open for a short time.
            progress(0)?;
            thread::sleep(SNAPSHOT_WAIT);
        }
        let is_seen = Cell::new(false);
        let removed = job.inputs.iter().map(|file| file.meta.number).collect();
        let is_done = self.replace(heap, removed, (job.target, outcome), || {
            is_seen.set(is_in_the_way());
            !is_seen.get()
        })?;
        Ok((!is_seen.get()).then_some(is_done))
    }

    /// Commits an outcome on a level in place of the tables that it was written from; see
    /// [`Lsm::commit`].
    fn replace(
        self: &Arc<Self>,
        heap: &Heap,
        removed: BTreeSet<u64>,
        (level, outcome): (usize, Outcome),
        is_wanted: impl Fn() -> bool,
    ) -> Result<bool> {
        let (tables, blobs) = outcome.bytes();
        let edit = Edit { removed, ..outcome.edit(level) };
        let is_done = self.commit(heap, outcome, edit, is_wanted)?;
        if is_done {
            self.work.note_compaction(level, tables, blobs);
            self.context.delete_obsolete(heap)?;
        }
        Ok(is_done)
    }
}
