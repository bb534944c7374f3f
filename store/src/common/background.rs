//! Background workers of the LSM trees: flushing full memtables, merging tables.
//!
//! Purpose: two threads, of which one flushes and one merges, so that a long merge delays no flush.
//! Without threads, the commits that fill a memtable do the work. While the store is idle, the
//! first thread gives the memtables' space in the pool back.
//! Invariants: failed work is retried when there is a new reason, or after a while; the trees are
//! unchanged. Threads end before the heap is closed.
//! Thread safety: any thread that does not hold the write permit.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use adamant_heap::{Heap, events};
use adamant_lsm::{Error as LsmError, Lsm};
use adamant_medium::error::Error as MediumError;
use parking_lot::Mutex;
use tracing::{debug, warn};

use crate::common::versions::Versions;
use crate::engine::lsm_trees::LsmTrees;
use crate::engine::write_stall::WriteStall;
use crate::error::{Error, Result};

/// How long threads wait before they retry failed work.
const RETRY: Duration = Duration::from_millis(500);
/// How long the store must be idle before free space of the pool is given back: that blocks all
/// access for some syncs of the pool file, some 10 ms.
const FLUSH_REST: Duration = Duration::from_millis(250);
/// How long it must be idle before tables are merged that would wait for more of them: that blocks
/// no access.
const COMPACT_REST: Duration = Duration::from_millis(50);
/// A pool of at most this many bytes keeps its free space: an empty store may take as much.
const POOL_BYTES_MIN: u64 = 4 << 20;
/// Threads that write the tables of a load, at most: each has a table of its own.
const LOAD_THREADS_MAX: usize = 4;

/// The two kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Flush,
    Compact,
}

/// Called with the bytes that a merge has read; an error ends the merge.
type MergeProgress<'p> = dyn Fn(u64) -> adamant_lsm::Result<()> + Sync + 'p;

/// Idle timer: the last commit seen, and since when.
#[derive(Debug)]
struct Rest {
    sequence: u64,
    since: Instant,
}

impl Rest {
    fn new() -> Self {
        Self { sequence: 0, since: Instant::now() }
    }

    /// How long to wait until the store has been idle for this time; `None`: it has. Early wake-ups
    /// do not count as idle time, and neither does time while writers are `held_up`: a write stall
    /// may last longer than the idle time.
    fn wait_for(
        &mut self,
        rest: Duration,
        sequence: u64,
        held_up: bool,
        now: Instant,
    ) -> Option<Duration> {
        if sequence != self.sequence || held_up {
            *self = Self { sequence, since: now };
        }
        let rested = now.saturating_duration_since(self.since);
        rest.checked_sub(rested).filter(|wait| !wait.is_zero())
    }
}

/// The background workers of a store's LSM trees.
#[derive(Debug)]
pub(crate) struct BackgroundWorkers {
    heap: Arc<Heap>,
    versions: Arc<Versions>,
    lsm_trees: Arc<LsmTrees>,
    /// Whether threads are wanted.
    background: bool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    has_threads: AtomicBool,
    /// Whether memtables were flushed whose space in the pool was not given back.
    has_room: AtomicBool,
    /// How often room was made on a full device; the mutex is held while it is made.
    rooms: AtomicU64,
    making_room: Mutex<()>,
    /// Whether merges have to give up for that; the mutex is held by a running merge.
    wants_room: AtomicBool,
    merging: Mutex<()>,
}

impl BackgroundWorkers {
    /// The workers for the trees of a store; with threads if `background`.
    pub(crate) fn new(
        heap: Arc<Heap>,
        versions: Arc<Versions>,
        lsm_trees: Arc<LsmTrees>,
        background: bool,
    ) -> Arc<Self> {
        let (threads, has_threads) = (Mutex::default(), AtomicBool::new(false));
        let has_room = AtomicBool::new(false);
        let (rooms, making_room) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Self {
            heap,
            versions,
            lsm_trees,
            background,
            threads,
            has_threads,
            has_room,
            rooms,
            making_room,
            wants_room: AtomicBool::new(false),
            merging: Mutex::default(),
        })
    }

    /// Starts the threads if there is work for them, or space to be given back, and they are not
    /// running; wakes them.
    pub(crate) fn start(self: &Arc<Self>) -> Result<()> {
        let has_work = || self.lsm_trees.all().iter().any(|tree| tree.has_work());
        if !self.background || !(self.has_room.load(Ordering::Relaxed) || has_work()) {
            return Ok(());
        }
        let mut threads = self.threads.lock();
        if threads.is_empty() && !self.write_stall().is_stopped() {
            for work in [Work::Flush, Work::Compact] {
                let name = format!("adamant-{work:?}").to_lowercase();
                // The caller that ends the threads joins them, so that none holds the last
                // reference.
                let workers = Arc::clone(self);
                let run = move || workers.run(work);
                let thread = std::thread::Builder::new().name(name).spawn(run);
                let path = self.heap.path();
                let failed = |error| MediumError::io("start a thread for", path, None, 0, error);
                threads.push(thread.map_err(failed)?);
            }
            self.has_threads.store(true, Ordering::Release);
        }
        drop(threads);
        self.write_stall().wake();
        Ok(())
    }

    /// The loop of a thread.
    fn run(&self, work: Work) {
        let (mut last, mut time_max, mut rest) = (0, None, Rest::new());
        while self.write_stall().wait(&mut last, time_max) {
            let has_failed = self.go(work);
            time_max = has_failed.then_some(RETRY);
            if !has_failed && self.wants_rest(work) {
                let time = if work == Work::Flush { FLUSH_REST } else { COMPACT_REST };
                time_max = rest.wait_for(
                    time,
                    self.sequence(),
                    self.write_stall().holds_up(),
                    Instant::now(),
                );
                if time_max.is_none() {
                    self.use_rest(work);
                }
            }
        }
    }

    /// Whether there is work for idle time.
    fn wants_rest(&self, work: Work) -> bool {
        match work {
            Work::Flush => {
                let is_stepped_over = |tree: &Arc<Lsm>| tree.wants_flush_at_rest();
                self.has_room.load(Ordering::Relaxed)
                    || self.lsm_trees.all().iter().any(is_stepped_over)
            }
            Work::Compact => self.lsm_trees.all().iter().any(|tree| tree.wants_rest()),
        }
    }

    /// Does the work of idle time. Failed work is left for the next idle time.
    fn use_rest(&self, work: Work) {
        match work {
            Work::Flush => {
                if let Err(error) = self.flush_stepped_over() {
                    warn!(target: events::STORE, %error, "flushing at rest failed");
                }
                self.give_back();
            }
            Work::Compact => {
                let merged = self.each_tree(|tree| {
                    self.merge(|progress| {
                        tree.compact_at_rest(&self.heap, &|| self.oldest_seen(), progress)
                    })
                });
                if let Err(error) = merged {
                    warn!(target: events::STORE, %error, "merging at rest failed");
                }
            }
        }
    }

    /// The number of the last commit, of any kind.
    fn sequence(&self) -> u64 {
        self.heap.stats().journal.last_sequence
    }

    /// Gives free space of the pool file back.
    fn give_back(&self) {
        self.has_room.store(false, Ordering::Relaxed);
        if self.heap.stats().pool_bytes <= POOL_BYTES_MIN {
            return;
        }
        match self.heap.give_back() {
            Ok(shrunk) => debug!(target: events::STORE, ?shrunk, "gave free room back"),
            // The space is reused, or given back the next time.
            Err(error) => warn!(target: events::STORE, %error, "giving free room back failed"),
        }
    }

    /// Ends the threads and joins them. Unfinished work is left for the next open.
    pub(crate) fn end(&self) {
        self.write_stall().stop();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // Its panic hook has reported a panic.
            let _ = thread.join();
        }
    }

    fn write_stall(&self) -> &WriteStall {
        self.lsm_trees.write_stall()
    }

    /// How many threads may write the tables of a load: one where the store has no threads.
    pub(crate) fn load_threads(&self) -> usize {
        if !self.background {
            return 1;
        }
        available_parallelism().map_or(1, NonZero::get).min(LOAD_THREADS_MAX)
    }

    fn has_threads(&self) -> bool {
        self.has_threads.load(Ordering::Acquire)
    }

    /// Does all pending work of a kind; returns whether some failed.
    fn go(&self, work: Work) -> bool {
        let outcome = match work {
            Work::Flush => self.flush(),
            Work::Compact => self.compact(),
        };
        match outcome {
            Ok(is_done) => {
                if is_done && work == Work::Flush {
                    // There are new tables to merge.
                    self.write_stall().wake();
                }
                false
            }
            Err(_) if self.write_stall().is_stopped() => false,
            Err(error) if error.is_out_of_space() && self.make_room(false) => {
                warn!(target: events::STORE, %error, ?work, "the device is full; room was made");
                true
            }
            Err(error) => {
                warn!(target: events::STORE, %error, ?work, "failed; it will be tried again");
                true
            }
        }
    }

    /// Starts the work that commits left to do, and stalls the writer for its share of it. To be
    /// called under no lock.
    #[inline]
    pub(crate) fn settle(self: &Arc<Self>) {
        if self.write_stall().take_wanted() {
            self.maintain();
        }
        self.write_stall().pay();
    }

    #[cold]
    fn maintain(self: &Arc<Self>) {
        // If no thread can be started, the caller that filled a memtable does the work.
        self.try_start();
        self.tell_debt(false);
        if self.has_threads() {
            return self.write_stall().wake();
        }
        // The caller could do nothing about an error here: the work is retried.
        let done = self.flush().and_then(|_| self.compact());
        let done = match done {
            Err(error) if error.is_out_of_space() && self.make_room(false) => Ok(true),
            done => done,
        };
        if let Err(error) = done {
            warn!(target: events::STORE, %error, "flushing or merging failed; it will be tried again");
        }
    }

    /// As [`BackgroundWorkers::start`], for a caller that has done its own work.
    fn try_start(self: &Arc<Self>) {
        if let Err(error) = self.start() {
            warn!(target: events::STORE, %error, "a thread could not be started");
        }
    }

    fn tell_debt(&self, is_failing: bool) {
        let trees = self.lsm_trees.all();
        let debt = trees.iter().map(|tree| tree.debt()).fold(0.0, f64::max);
        // Without threads the writer that fills a memtable does the work.
        let debt = if self.has_threads() { debt } else { 0.0 };
        self.write_stall().set_debt(debt, is_failing);
    }

    /// The oldest moment that a snapshot sees, or will see.
    fn oldest_seen(&self) -> adamant_lsm::Result<u64> {
        let _view = self.heap.brief_view()?;
        Ok(self.versions.oldest_moment())
    }

    fn progress(&self) -> impl Fn(u64) -> adamant_lsm::Result<()> + Sync {
        |bytes| match self.write_stall().progress(bytes) || !self.has_threads() {
            true => Ok(()),
            false => Err(LsmError::Stopped),
        }
    }

    /// Merges, unless room is being made: the space gained is for flushes first.
    fn merge(
        &self,
        work: impl FnOnce(&MergeProgress<'_>) -> adamant_lsm::Result<bool>,
    ) -> adamant_lsm::Result<bool> {
        let _one = self.merging.lock();
        let progress = self.progress();
        let wants_room = || self.wants_room.load(Ordering::Acquire);
        if wants_room() {
            return Err(LsmError::Stopped);
        }
        work(&|bytes| if wants_room() { Err(LsmError::Stopped) } else { progress(bytes) })
    }

    /// Writes all full memtables to tables; returns whether there was one.
    fn flush(&self) -> Result<bool> {
        self.each_tree(|tree| {
            if tree.is_full() {
                tree.rotate(&self.heap)?;
            }
            let is_done = tree.flush(&self.heap, &|| self.oldest_seen(), &self.progress())?;
            if is_done {
                self.has_room.store(true, Ordering::Relaxed);
            }
            Ok(is_done)
        })
    }

    /// Flushes memtables in which scans skipped many tombstones, so that these are merged.
    fn flush_stepped_over(&self) -> Result<()> {
        for tree in self.lsm_trees.all().iter().filter(|tree| tree.wants_flush_at_rest()) {
            tree.rotate(&self.heap).map_err(Error::of_lsm(""))?;
        }
        self.flush()?;
        self.write_stall().wake();
        Ok(())
    }

    /// Merges tables until no level needs it; returns whether one did.
    fn compact(&self) -> Result<bool> {
        self.each_tree(|tree| {
            self.merge(|progress| tree.compact_once(&self.heap, &|| self.oldest_seen(), progress))
        })
    }

    /// Repeats work on each tree until there is none left.
    fn each_tree(&self, work: impl Fn(&Arc<Lsm>) -> adamant_lsm::Result<bool>) -> Result<bool> {
        let (mut is_done, mut failed) = (false, None);
        for tree in self.lsm_trees.all() {
            loop {
                match work(&tree) {
                    Ok(true) => is_done = true,
                    Ok(false) | Err(LsmError::Stopped) => break,
                    Err(error) => {
                        // Go on with the other trees.
                        failed = Some(Error::of_lsm("")(error));
                        break;
                    }
                }
                self.tell_debt(false);
            }
        }
        self.tell_debt(failed.is_some());
        match failed {
            Some(error) => Err(error),
            None => Ok(is_done),
        }
    }

    /// Merges all of a keyspace's tree into one sorted run. If there is no space for that, first
    /// gains what other ways give.
    pub(crate) fn compact_all(self: &Arc<Self>, name: &str, tree: &Arc<Lsm>) -> Result<()> {
        let compact = || {
            let done = tree.compact_all(&self.heap, &|| self.oldest_seen(), &|_| Ok(()));
            done.map_err(Error::of_lsm(name))
        };
        match compact() {
            Err(error) if error.is_out_of_space() && self.make_room(true) => compact()?,
            done => done?,
        }
        // A memtable was flushed: an idle store gives its space back.
        self.has_room.store(true, Ordering::Relaxed);
        self.try_start();
        self.lsm_trees.delete_obsolete(&self.heap)
    }

    /// Writes one memtable to tables and gives its space in the pool back, as room for the next;
    /// false if there is none.
    fn flush_for_room(&self, tree: &Arc<Lsm>) -> adamant_lsm::Result<bool> {
        let flush = || tree.flush_least(&self.heap, &|| self.oldest_seen(), &self.progress());
        // A new memtable takes space as well: flush frozen ones first.
        let is_done = flush()? || {
            tree.rotate(&self.heap)?;
            flush()?
        };
        if is_done {
            // The log has already given back all that it can.
            self.heap.shrink_keeping(|| u64::MAX)?;
        }
        Ok(is_done)
    }

    /// Bytes of the log that memtables need on a full device.
    pub(crate) fn log_bytes_kept(&self) -> u64 {
        self.lsm_trees.all().iter().map(|tree| tree.log_bytes_kept()).max().unwrap_or(0)
    }

    /// Makes room on a full device: the log gives its space back, memtables are flushed into it,
    /// the pool gives back theirs, and tables their obsolete versions. Without `removes`, only if
    /// something was removed since the last time: the reserve for removes is not for further
    /// inserts. Returns whether it was done. To be called under no lock, and not by the holder of
    /// the write permit.
    pub(crate) fn make_room(&self, removes: bool) -> bool {
        if self.lsm_trees.environment().is_none() || self.heap.has_writer() {
            return false;
        }
        let before = self.rooms.load(Ordering::Acquire);
        let _one = self.making_room.lock();
        if self.rooms.load(Ordering::Acquire) > before {
            // Another thread did so while this one waited.
            return true;
        }
        if !self.write_stall().take_removed() && !removes {
            // There may be room again without this.
            let is_short = self.lsm_trees.all().iter().any(|tree| tree.is_short());
            return is_short && self.flush().is_ok();
        }
        debug!(target: events::STORE, "the device is full: making room");
        self.wants_room.store(true, Ordering::Release);
        // A running merge gives up, and frees what it has written.
        drop(self.merging.lock());
        // If this fails, the caller's retry fails the same way.
        let made = self.heap.lend_log_space(|| {
            let flushed = self.each_tree(|tree| self.flush_for_room(tree));
            let reclaimed = self.each_tree(|tree| {
                tree.reclaim(&self.heap, &|| self.oldest_seen(), &self.progress())?;
                Ok(false)
            });
            flushed.and(reclaimed)
        });
        let made = made.map_err(Error::from).flatten();
        if let Err(error) = made {
            warn!(target: events::STORE, %error, "making room on a full device failed in part");
        }
        self.wants_room.store(false, Ordering::Release);
        // Writers must not wait for merges that find no room.
        self.tell_debt(true);
        self.rooms.fetch_add(1, Ordering::AcqRel);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_a_time_without_commits_however_often_somebody_looks() {
        let mut rest = Rest::new();
        let start = Instant::now();
        let mut look = |millis, sequence, held_up| {
            let now = start + Duration::from_millis(millis);
            let wait = rest.wait_for(FLUSH_REST, sequence, held_up, now);
            wait.map(|wait| wait.as_millis())
        };
        assert_eq!(look(1_000, 7, false), Some(250));
        assert_eq!(look(1_000, 7, false), Some(250), "woken at once");
        assert_eq!(look(1_249, 7, false), Some(1));
        assert_eq!(look(1_249, 8, false), Some(250));
        assert_eq!(look(1_498, 8, false), Some(1));
        assert_eq!(look(1_499, 8, false), None);
        assert_eq!(look(1_600, 8, true), Some(250), "who writes waits for merges");
        assert_eq!(look(1_849, 8, false), Some(1));
        assert_eq!(look(1_850, 8, false), None);
    }
}
