//! The journal of a store that is open for writing.
//!
//! Purpose: the calls that transactions make: append, finish, checkpoint, grow; and the background
//! threads.
//! Invariants: see the modules below. The first call that writes starts the log (R4), so a store
//! that is only read is not changed.
//! Thread safety: any thread. Locks, in this order: `applied` (the checkpoint lock), then those
//! that the page source takes in a hold, then those of `Log`. A thread that has one of the second
//! kind never waits for the first (C8): an append takes another log file instead. The first call
//! that writes takes `appending` and then `applied`, before any checkpoint can be made.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use adamant_medium::fork::ForkGuard;
use adamant_medium::storage::Directory;
use parking_lot::{Mutex, MutexGuard};
use tracing::{Level, debug, enabled};

use super::stats::JournalStats;
use super::worker::{Signal, Worker, Workers};
use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::events;
use crate::image::pool_file::PoolFile;
use crate::journal::checkpoints::checkpoint::{CheckpointOptions, CheckpointState, Target};
use crate::journal::checkpoints::holds::{GivingUp, Holds};
use crate::journal::checkpoints::keepers::Keepers;
use crate::journal::checkpoints::pace::{Pace, READY_BYTES};
use crate::journal::checkpoints::source::PageSource;
use crate::journal::readers::{Reader, Readers};
use crate::journal::records::files::{Files, LentLogSpace};
use crate::journal::records::log::Log;
use crate::journal::records::options::JournalOptions;
use crate::journal::records::record::RecordBuilder;
use crate::journal::recovery::backup::{Source, back_up};
use crate::journal::recovery::go_back::{Arrival, go_back, remove_left};
use crate::journal::recovery::recover::{Recovered, Recovery, recover};
use crate::journal::savepoints::registry::Registry;
use crate::journal::savepoints::savepoint_file::NewSavepoint;
use crate::journal::savepoints::view::PoolView;
use crate::layout::{BELL_OFFSET, CHECKPOINT_OFFSETS, LOG_NAME, ZONE_PAGES};

/// The journal. Dropping it without `close` writes pending records to the disk and leaves the rest
/// to the next opening.
#[derive(Debug)]
pub(crate) struct Journal {
    shared: Arc<Shared>,
    workers: Workers,
    fork: ForkGuard,
}

/// The right to make checkpoints, held by one thread at a time.
#[derive(Debug)]
pub(crate) struct CheckpointLock<'j>(MutexGuard<'j, CheckpointState>);

#[derive(Debug)]
struct Shared {
    directory: Arc<dyn Directory>,
    /// The source of the pages that checkpoints copy.
    source: OnceLock<Arc<dyn PageSource>>,
    pool: PoolFile,
    log: Log,
    options: JournalOptions,
    applied: Mutex<CheckpointState>,
    /// Copy of `applied` after the last checkpoint, for callers that must not wait for the next.
    applied_last: Mutex<CheckpointState>,
    /// Held while the log restarts, by the thread that has the heap exclusively, and by a backup
    /// that begins: the backup holds the files of the old log, which then stays, or of the new one.
    beginning: Mutex<()>,
    applied_bytes: AtomicU64,
    /// Bytes of the log that are kept for extents that checkpoints hold back.
    held_bytes: AtomicU64,
    holds: Arc<Holds>,
    pace: Pace,
    keepers: Keepers,
    started: AtomicBool,
    checkpoint_wanted: Arc<Signal>,
    file_wanted: Arc<Signal>,
    flush_wanted: Arc<Signal>,
}

impl Journal {
    /// Opens pool and log and brings the pool up to date.
    ///
    /// # Errors
    /// `Error::Unsupported` for a file that is no pool or a newer one, `Error::Damaged` when
    /// durable data is damaged; those of the medium.
    pub(crate) fn open(
        directory: &Arc<dyn Directory>,
        options: JournalOptions,
    ) -> Result<(Self, Recovery)> {
        let pool = PoolFile::open_in(directory.as_ref())?;
        let log_directory = directory.subdirectory(LOG_NAME)?;
        let bytes_max = options.recovery_bytes_max;
        let keepers = Keepers::new(directory, &pool, options.reader_bytes_max)?;
        let Recovered { applied, files, recovery } =
            recover(&pool, log_directory.as_ref(), bytes_max, &keepers)?;
        remove_left(directory.as_ref())?;
        let holds = Arc::<Holds>::default();
        let held = (Arc::clone(holds.bytes()), options.held_bytes_max);
        let files = Files::new(log_directory, options.log_bytes_max, files).beside(held);
        if applied.is_durable {
            files.trim()?;
        }
        let bell = pool.file().bell(BELL_OFFSET, true);
        let log = Log::new(*pool.uuid(), files, applied.cursor.sequence, bell);
        let shared = Arc::new(Shared {
            directory: Arc::clone(directory),
            source: OnceLock::new(),
            pool,
            log,
            options,
            applied: Mutex::new(applied),
            applied_last: Mutex::new(applied),
            beginning: Mutex::new(()),
            applied_bytes: AtomicU64::new(0),
            held_bytes: AtomicU64::new(0),
            holds,
            pace: Pace::default(),
            keepers,
            started: AtomicBool::new(false),
            checkpoint_wanted: Arc::default(),
            file_wanted: Arc::default(),
            flush_wanted: Arc::default(),
        });
        let workers = if shared.options.background { make_workers(&shared) } else { Vec::new() };
        Ok((Self { shared, workers: Workers::new(workers), fork: ForkGuard::new()? }, recovery))
    }

    /// Sets the source of the pages that checkpoints copy. To be called once, before the first
    /// append.
    pub(crate) fn set_source(&self, source: Arc<dyn PageSource>) {
        let is_first = self.shared.source.set(source).is_ok();
        debug_assert!(is_first, "pages have one source");
    }

    /// Waits until a small record finds room, which may take a checkpoint. To be called before any
    /// lock of the heap is taken (C8).
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium.
    pub(crate) fn wait_for_space(&self) -> Result<()> {
        let shared = &self.shared;
        shared.start()?;
        shared.pace.wait(shared.log.appended_bytes());
        loop {
            if shared.log.has_free(READY_BYTES) {
                return Ok(());
            }
            match shared.log.files.prepare(false) {
                Ok(true) => return Ok(()),
                Err(error) if !error.is_out_of_space() => return Err(error),
                Ok(false) | Err(_) => {}
            }
            if !shared.wait_for_checkpoint()? {
                return Ok(());
            }
        }
    }

    /// Appends a record and returns its sequence number. It is not durable, nor with the system,
    /// before `finish`. The pages that it names are dirty from then on; the caller keeps
    /// checkpoints from being made until memory shows it (C1, C2). Never waits for a checkpoint:
    /// the log takes another file, beyond its limit if it must. O(record).
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, out of space among them. Then nothing was appended.
    pub(crate) fn append(&self, record: &RecordBuilder) -> Result<u64> {
        let shared = &self.shared;
        shared.start()?;
        let named = || {
            if let Some(source) = shared.source.get() {
                source.note_named(record);
            }
        };
        let (sequence, switched) = shared.log.append(record, &named)?;
        if shared.options.background {
            let used = shared.used_bytes();
            let held = shared.held_bytes.load(Ordering::Acquire);
            if used > shared.log.files.bytes_max().saturating_sub(held) / 2 {
                shared.checkpoint_wanted.raise();
            }
            if switched && shared.log.files.spare_bytes() == 0 {
                shared.file_wanted.raise();
            }
        }
        Ok(sequence)
    }

    /// Waits until record `sequence` is as durable as asked for. To be called after all locks are
    /// released: it may take a device flush, which it shares with all other waiters.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, which poison.
    pub(crate) fn finish(&self, sequence: u64, durability: Durability) -> Result<()> {
        let log = &self.shared.log;
        match durability {
            Durability::Sync => log.sync(sequence),
            Durability::Buffered => log.write(sequence),
            Durability::Deferred => {
                self.shared.flush_wanted.raise();
                if log.pending_bytes() > self.shared.options.deferred_bytes_max {
                    return log.write(sequence);
                }
                log.poison.check()
            }
        }
    }

    /// Fails once writing has ended.
    ///
    /// # Errors
    /// `Error::Poisoned`.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.shared.log.poison.check()
    }

    /// Backs data pages `0 .. pages` of the pool, with descriptors and checksums. To be called
    /// under the writer's lock.
    ///
    /// # Errors
    /// `Error::TooLarge`; those of the medium. Then the pool is as large as it was.
    pub(crate) fn grow(&self, pages: u64) -> Result<()> {
        self.shared.log.poison.check()?;
        self.shared.with_space(&|| self.shared.pool.grow(pages))
    }

    /// Backs data pages that may be holes of the pool.
    ///
    /// # Errors
    /// Those of the medium, out of space among them.
    pub(crate) fn back(&self, start: u64, pages: u64) -> Result<()> {
        self.shared.log.poison.check()?;
        let pool = &self.shared.pool;
        self.shared.with_space(&|| {
            // A crash may have taken their space back, too, and left the file its length.
            pool.back_tables_of(start / ZONE_PAGES..(start + pages).div_ceil(ZONE_PAGES))?;
            pool.back(start, pages)
        })
    }

    /// Gives back space of the log that a busy time took, except what `keep_log` is asked for;
    /// returns how many bytes. A log whose newest header is in a large file restarts in a small
    /// one, unless a backup needs it. To be called as [`Journal::lend_log_space`].
    ///
    /// # Errors
    /// As [`Journal::lend_log_space`] and [`Journal::keep_log`].
    pub(crate) fn shrink_log(&self, held: &mut CheckpointLock<'_>, kept_bytes: u64) -> Result<u64> {
        let log = &self.shared.log;
        log.poison.check()?;
        let before = log.files.bytes();
        log.files.give_space_back(kept_bytes)?;
        let beginning = self.shared.beginning.lock();
        if log.files.would_be_smaller_anew(kept_bytes) {
            drop(self.begin_anew(held, &beginning)?);
            log.files.keep(kept_bytes)?;
        }
        Ok(before.saturating_sub(log.files.bytes()))
    }

    /// The commit that the oldest reader in another process sees; 0: one is being opened, and may
    /// see any; `None`: there is no reader.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn oldest_reader(&self) -> Result<Option<u64>> {
        let Some(readers) = Readers::of(self.shared.directory.as_ref())? else { return Ok(None) };
        Ok(readers.list()?.iter().map(|reader| reader.place.moment).min())
    }

    /// Keeps nothing for the oldest reader from now on. False if there is none.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn overtake_oldest_reader(&self) -> Result<bool> {
        let Some(readers) = Readers::of(self.shared.directory.as_ref())? else { return Ok(false) };
        let oldest = readers.list()?.into_iter().min_by_key(Reader::age);
        oldest.map_or(Ok(false), |reader| readers.overtake(&reader).map(|()| true))
    }

    /// The savepoints.
    pub(crate) fn savepoints(&self) -> &Arc<Registry> {
        &self.shared.keepers.savepoints
    }

    /// Makes a savepoint of the pool, which has shown exactly the last commit since the checkpoint
    /// that the caller made while it had checkpoints. False if the name is taken.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn create_savepoint(
        &self,
        held: &CheckpointLock<'_>,
        name: &str,
        made_ms: u64,
        attached: &[u8],
    ) -> Result<bool> {
        let (shared, applied) = (&self.shared, &held.0);
        debug_assert!(applied.held.is_none(), "the checkpoint left nothing out");
        let (sequence, pages) = (applied.cursor.sequence, applied.pages);
        let new = NewSavepoint { name, number: 0, sequence, pages, made_ms, attached };
        shared.keepers.savepoints.create(&shared.pool, new)
    }

    /// Makes the pool of a closed journal what a savepoint shows, as a new commit; returns its
    /// number. Nothing may be called afterwards but what ends this.
    ///
    /// # Errors
    /// As [`go_back`].
    pub(crate) fn go_back(&self, view: Arc<PoolView>, arrival: &Arrival<'_>) -> Result<u64> {
        let Shared { directory, pool, keepers, applied, .. } = &*self.shared;
        debug_assert!(self.shared.log.is_closed(), "nothing is appended any more");
        let of_store = (pool, &*keepers.savepoints);
        go_back(&**directory, of_store, &applied.lock(), view, arrival)
    }

    /// Bytes that are kept for readers at most.
    pub(crate) fn reader_bytes_max(&self) -> u64 {
        self.shared.options.reader_bytes_max
    }

    /// Whether the pool can have holes.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium.
    pub(crate) fn can_punch(&self) -> Result<bool> {
        self.shared.log.poison.check()?;
        self.shared.pool.can_punch()
    }

    /// Cuts the pool off after data page `pages - 1`. The pool must hold all that names pages
    /// beyond.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium. The pool may be as long as it was then.
    pub(crate) fn truncate(&self, held: &mut CheckpointLock<'_>, pages: u64) -> Result<()> {
        let (shared, applied) = (&self.shared, &mut held.0);
        applied.pages = applied.pages.min(pages);
        // In both slots: a file that is shorter than a valid slot says counts as cut.
        for _ in 0..CHECKPOINT_OFFSETS.len() {
            let published = applied.publish(&shared.pool, shared.log.stats().durable, false);
            published.map_err(|error| shared.log.poison.set(error))?;
        }
        *shared.applied_last.lock() = **applied;
        shared.pool.truncate(pages)
    }

    /// Ends writing, because of a failure outside of the journal.
    pub(crate) fn poison(&self, error: Error) {
        // The error is kept as the cause that later calls are told.
        let _ = self.shared.log.poison.set(error);
    }

    /// The pool file.
    pub(crate) fn pool(&self) -> &PoolFile {
        &self.shared.pool
    }

    /// Verifies all pages of the file and calls `on_damage` for each that is damaged. No checkpoint
    /// writes the pages that are being verified, some 512 KiB at a time; it waits for no more.
    /// Returns the number of pages verified. O(pool).
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn verify(&self, on_damage: &mut dyn FnMut(Error)) -> Result<u64> {
        self.shared.pool.verify(&mut |_, error| on_damage(error))
    }

    /// Makes an empty file a pool with the contents of this one, as of some record after the call.
    /// `go_on` is called repeatedly. Returns that record's number.
    ///
    /// # Errors
    /// Those of `go_on`; `Error::Poisoned`, `Error::Damaged` for a damaged page; those of the
    /// medium.
    pub(crate) fn back_up(&self, target: &PoolFile, go_on: &dyn Fn() -> Result<()>) -> Result<u64> {
        let shared = &self.shared;
        shared.start()?;
        let Shared { pool, log, applied_last, beginning, .. } = &**shared;
        back_up(Source { pool, log, applied_last, beginning }, target, go_on)
    }

    /// Makes a checkpoint: brings everything appended before the call into the pool file, durably
    /// (R1), except what is held back.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, which poison.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.shared.checkpoint(&mut self.shared.applied.lock(), GivingUp::Beyond).map(|_| ())
    }

    /// The same, including all that is held back: it is not held any more.
    ///
    /// # Errors
    /// As [`Journal::checkpoint`].
    pub(crate) fn checkpoint_held(&self) -> Result<()> {
        self.shared.checkpoint(&mut self.shared.applied.lock(), GivingUp::All).map(|_| ())
    }

    /// Waits for a running checkpoint, and keeps others from making one. To be called before any
    /// lock of the heap is taken (C8).
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium.
    pub(crate) fn hold_checkpoints(&self) -> Result<CheckpointLock<'_>> {
        self.shared.start()?;
        Ok(CheckpointLock(self.shared.applied.lock()))
    }

    /// As [`Journal::checkpoint_held`], for a caller that keeps all other threads from writing.
    /// Data pages that records have made free, by number, become zeros in the file, or holes.
    ///
    /// # Errors
    /// As [`Journal::checkpoint`].
    pub(crate) fn checkpoint_alone(
        &self,
        held: &mut CheckpointLock<'_>,
        holes: &[(u64, u64)],
    ) -> Result<()> {
        let asked = CheckpointOptions { is_alone: true, holes, ..self.shared.asked(GivingUp::All) };
        self.shared.run_checkpoint(&mut held.0, asked).map(|_| ())
    }

    /// Makes the log as large as [`Journal::lend_log_space`] may ask of it, as far as its limit
    /// allows.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, out of space among them.
    pub(crate) fn keep_log(&self, bytes: u64) -> Result<()> {
        self.shared.log.poison.check()?;
        self.shared.log.files.keep(bytes)
    }

    /// Brings the whole log into the pool and gives the space of its files back to the file system,
    /// except for as many as a log needs at least: the log restarts, as one that was closed and
    /// opened again. It stays that small, unless a record needs more, until the returned value is
    /// dropped. For a caller that keeps all other threads from writing.
    ///
    /// # Errors
    /// As `close`, and as the first call that writes.
    pub(crate) fn lend_log_space(&self, held: &mut CheckpointLock<'_>) -> Result<LentLogSpace<'_>> {
        self.begin_anew(held, &self.shared.beginning.lock())
    }

    /// The same, for a caller that has kept backups from beginning.
    fn begin_anew(
        &self,
        held: &mut CheckpointLock<'_>,
        _beginning: &MutexGuard<'_, ()>,
    ) -> Result<LentLogSpace<'_>> {
        let (shared, applied) = (&self.shared, &mut held.0);
        let _no_append = shared.log.hold_appends()?;
        let asked =
            CheckpointOptions { is_last: true, is_alone: true, ..shared.asked(GivingUp::All) };
        shared.run_checkpoint(applied, asked)?;
        let given = shared.log.files.give_up();
        // Whether or not all of them could be removed, no file is in use now.
        applied.start(&shared.pool, &shared.log)?;
        *shared.applied_last.lock() = **applied;
        // The header that was the newest no longer is, durably.
        shared.log.files.trim()?;
        given
    }

    /// The extents whose bytes checkpoints hold back.
    pub(crate) fn holds(&self) -> &Arc<Holds> {
        &self.shared.holds
    }

    /// Makes everything appended before the call durable.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, which poison.
    pub(crate) fn sync(&self) -> Result<()> {
        self.shared.log.sync(self.last_sequence())
    }

    /// Sequence number of the last record appended.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.shared.log.stats().last
    }

    /// Counters. Those of the pool are as of the last checkpoint.
    pub(crate) fn stats(&self) -> JournalStats {
        let log = self.shared.log.stats();
        let applied = *self.shared.applied_last.lock();
        let stores = self.shared.directory.stores();
        let stores = stores.map_or_else(Default::default, |stores| stores.counts());
        JournalStats {
            last_sequence: log.last,
            durable_sequence: log.durable,
            applied_sequence: applied.cursor.sequence,
            log_appended_bytes: log.appended_bytes,
            log_used_bytes: log.appended_bytes.saturating_sub(applied.appended_bytes),
            log_held_bytes: applied.held_bytes(),
            log_allocated_bytes: self.shared.log.files.bytes(),
            records: log.records,
            syncs: log.syncs,
            checkpoints: applied.number,
            pool_written_bytes: applied.written_bytes,
            fences: stores.fences,
            flushed_lines: stores.lines,
        }
    }

    /// Ends the threads and makes the last checkpoint: the next opening has nothing to do. Later
    /// calls that write are refused; closing again does nothing.
    ///
    /// # Errors
    /// As `checkpoint`.
    pub(crate) fn close(&self) -> Result<()> {
        self.workers.stop();
        let shared = &self.shared;
        let was_open = shared.log.close();
        if !was_open || !shared.started.load(Ordering::Acquire) {
            return shared.log.poison.check();
        }
        let asked = CheckpointOptions { is_last: true, ..shared.asked(GivingUp::All) };
        let closed = shared.run_checkpoint(&mut shared.applied.lock(), asked).map(|_| ());
        shared.keepers.readers.tidy();
        closed
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.fork.is_child() {
            // The threads stayed with the parent, and so did the right to write.
            self.workers.forget();
            return;
        }
        self.workers.stop();
        if !self.shared.log.is_closed() {
            // Best effort: no caller is left to get the error.
            let _ = self.sync();
        }
    }
}

impl Shared {
    /// Starts the log, if that has not been done.
    fn start(&self) -> Result<()> {
        self.log.poison.check()?;
        if self.started.load(Ordering::Acquire) {
            return Ok(());
        }
        let _no_append = self.log.hold_appends()?;
        if !self.started.load(Ordering::Acquire) {
            // The names exist, but the process that created them may have died before its sync.
            let synced = self.log.files.sync_names().and_then(|()| Ok(self.directory.sync()?));
            synced.map_err(|error| self.log.poison.set(error))?;
            let mut applied = self.applied.lock();
            applied.start(&self.pool, &self.log)?;
            *self.applied_last.lock() = *applied;
            self.started.store(true, Ordering::Release);
            // Not before: if the newest checkpoint is only in the cache, the one before it may need
            // them.
            self.log.files.trim()?;
        }
        Ok(())
    }

    /// The options of most checkpoints.
    fn asked(&self, gives_up: GivingUp) -> CheckpointOptions<'static> {
        let held_bytes_max = self.log.files.held_bytes_max();
        CheckpointOptions { is_last: false, is_alone: false, gives_up, held_bytes_max, holes: &[] }
    }

    /// Brings everything appended before the call into the pool; false if there was nothing.
    fn checkpoint(&self, applied: &mut CheckpointState, gives_up: GivingUp) -> Result<bool> {
        self.log.poison.check()?;
        if !self.started.load(Ordering::Acquire) || self.log.is_closed() {
            return Ok(false);
        }
        self.run_checkpoint(applied, self.asked(gives_up))
    }

    /// Waits for a checkpoint, or makes one; false if that made no room. Holds are given up when
    /// nothing else is left.
    fn wait_for_checkpoint(&self) -> Result<bool> {
        debug!(target: events::LOG, "a commit waits for space in the log");
        let mut applied = self.applied.lock();
        for gives_up in [GivingUp::Beyond, GivingUp::Oldest] {
            if self.log.has_free(READY_BYTES) || self.checkpoint(&mut applied, gives_up)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn run_checkpoint(
        &self,
        applied: &mut CheckpointState,
        asked: CheckpointOptions<'_>,
    ) -> Result<bool> {
        let Some(source) = self.source.get() else {
            debug_assert!(false, "the source of pages is set before anything is appended");
            return Ok(false);
        };
        let start = enabled!(target: events::CHECKPOINT, Level::DEBUG).then(Instant::now);
        let before = *applied;
        let Self { pool, log, holds, pace, keepers, .. } = self;
        let published = &|applied: &CheckpointState| *self.applied_last.lock() = *applied;
        let source = &**source;
        let to = Target { pool, log, source, holds, pace, keepers, published };
        let is_more = applied.checkpoint(to, asked)?;
        if let (true, Some(start)) = (is_more, start) {
            debug!(
                target: events::CHECKPOINT,
                sequence = applied.cursor.sequence,
                log_bytes = applied.appended_bytes - before.appended_bytes,
                written_bytes = applied.written_bytes - before.written_bytes,
                micros = events::micros(start),
                "checkpoint made"
            );
        }
        *self.applied_last.lock() = *applied;
        self.applied_bytes.store(applied.appended_bytes, Ordering::Release);
        self.held_bytes.store(applied.held_bytes(), Ordering::Release);
        Ok(is_more)
    }

    /// Does what needs space; once more if the device has none, and the log or readers have some.
    fn with_space(&self, work: &dyn Fn() -> Result<()>) -> Result<()> {
        match self.log.files.with_space(work) {
            Err(error) if error.is_out_of_space() && self.keepers.readers.give_up() => work(),
            done => done,
        }
    }

    fn used_bytes(&self) -> u64 {
        self.log.appended_bytes().saturating_sub(self.applied_bytes.load(Ordering::Acquire))
    }
}

/// The threads of a journal, which start when there is work. Failures of the checkpoint and of the
/// sync poison the journal. One of the next log file does not: the next caller prepares it again.
fn make_workers(shared: &Arc<Shared>) -> Vec<Worker> {
    let checkpointer = Arc::clone(shared);
    let preparer = Arc::clone(shared);
    let flusher = Arc::clone(shared);
    let deferred_max = Duration::from_millis(shared.options.deferred_ms_max);
    vec![
        Worker::when_raised("adamant-checkpoint", &shared.checkpoint_wanted, move |signal| {
            while signal.wait() {
                signal.lower();
                let _ = checkpointer.checkpoint(&mut checkpointer.applied.lock(), GivingUp::Beyond);
            }
        }),
        Worker::when_raised("adamant-files", &shared.file_wanted, move |signal| {
            while signal.wait() {
                if preparer.log.files.spare_bytes() == 0 {
                    let _ = preparer.log.files.prepare(false);
                }
                signal.lower();
            }
        }),
        Worker::when_raised("adamant-flusher", &shared.flush_wanted, move |signal| {
            while signal.wait() {
                signal.sleep(deferred_max);
                signal.lower();
                let _ = flusher.log.sync(flusher.log.stats().last);
            }
        }),
    ]
}
