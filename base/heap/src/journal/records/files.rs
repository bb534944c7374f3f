//! The set of log files: used, spare and held ones, within a limit.
//!
//! Purpose: space for the log. Invariants: a file in use is given back only by `recycle`, after the
//! checkpoint that no longer needs it is durable (R1). All files together stay within `bytes_max`,
//! unless `prepare` was told that one record needs more; `trim` ends that. Extents that are held
//! back from the pool keep a part of the log, which does not count. Once space was given back no
//! more files are kept than a small log needs, until one more is prepared. Files held for a backup
//! come on top, and are released when the device has no space for writers.
//! Thread safety: any thread; one thread at a time prepares files, outside of the lock that
//! `take_spare` needs. Locks: `preparing`, then `state`.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::Directory;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::journal::records::layout::{LOG_FILE_BYTES_MAX, LOG_FILE_BYTES_MIN};
use crate::journal::records::log_file::{LogFile, is_usable};
use crate::journal::records::options::LOG_BYTES_MIN;

/// Files that are prepared before the first record: with two, one is free after a checkpoint,
/// however full the disk is. So small records always find room.
pub(in crate::journal) const FILES_MIN: usize = 2;
/// Bytes of those.
const LEAST_BYTES: u64 = FILES_MIN as u64 * LOG_FILE_BYTES_MIN;
/// The part of the bytes of held extents that their records take beside them, a quarter; and how
/// many times its limit the log may take more for all of that.
const HELD_HEADS_PART: u64 = 4;
const HELD_LIMITS_MAX: u64 = 2;

/// A log file in use.
#[derive(Clone, Debug)]
pub(in crate::journal) struct Used {
    /// Its ordinal in the log.
    pub(in crate::journal) ordinal: u64,
    /// CRC of the frame before it.
    pub(in crate::journal) previous: u32,
    pub(in crate::journal) file: Arc<LogFile>,
}

#[derive(Debug, Default)]
struct State {
    spare: VecDeque<Arc<LogFile>>,
    used: VecDeque<Used>,
    /// Files that only a backup still needs; not counted in `bytes`, so that it delays no writer.
    held: VecDeque<Used>,
    /// Whether a backup is being made.
    is_holding: bool,
    /// Whether the space of files has been given to a caller that makes more of it.
    is_given: bool,
    bytes: u64,
    bytes_largest: u64,
    number_last: u64,
    /// The file with the newest header.
    number_newest: u64,
    /// Whether no more files are kept than a small log needs, until one is prepared again.
    is_small: bool,
    /// Bytes that are kept beside these.
    kept_bytes: u64,
    /// The largest limit since space was given back: files are not removed and made again as held
    /// extents come and go.
    bytes_max_largest: u64,
}

/// The space of log files that were given back: none is added until this is dropped.
#[derive(Debug)]
pub(crate) struct LentLogSpace<'f>(&'f Files);

impl Drop for LentLogSpace<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_given = false;
    }
}

/// The log files of a store.
#[derive(Debug)]
pub(in crate::journal) struct Files {
    directory: Arc<dyn Directory>,
    /// Without what held extents keep.
    bytes_max: u64,
    /// Bytes of held extents, and how much of the log they may keep.
    held: (Arc<AtomicU64>, u64),
    preparing: Mutex<()>,
    state: Mutex<State>,
}

impl Files {
    /// All files spare, that of the newest header first. Files that this code did not prepare are
    /// left alone. Surplus files are not removed before a checkpoint is durable.
    pub(in crate::journal) fn new(
        directory: Arc<dyn Directory>,
        bytes_max: u64,
        files: Vec<Arc<LogFile>>,
    ) -> Self {
        let number_newest = files.first().map_or(0, |file| file.number);
        let mut state = State { number_newest, ..State::default() };
        for file in files {
            state.number_last = state.number_last.max(file.number);
            if is_usable(&file) {
                state.bytes += file.bytes;
                state.bytes_largest = state.bytes_largest.max(file.bytes);
                state.spare.push_back(file);
            }
        }
        let bytes_max = bytes_max.max(LOG_BYTES_MIN);
        let (preparing, held) = (Mutex::new(()), (Arc::default(), 0));
        Self { directory, bytes_max, held, preparing, state: Mutex::new(state) }
    }

    /// With the bytes of held extents, as they change, and how much of the log they may keep.
    pub(in crate::journal) fn beside(self, held: (Arc<AtomicU64>, u64)) -> Self {
        Self { held, ..self }
    }

    /// Whether the files are memory.
    pub(in crate::journal) fn are_direct(&self) -> bool {
        self.directory.stores().is_some()
    }

    /// Bytes of all files at most.
    pub(in crate::journal) fn bytes_max(&self) -> u64 {
        self.bytes_max.saturating_add(self.held_bytes())
    }

    /// Bytes of the log that held extents may keep: half of what there is without them, and what
    /// comes on top for them.
    pub(in crate::journal) fn held_bytes_max(&self) -> u64 {
        self.held.1.min((self.bytes_max / 2).saturating_add(self.held_bytes()))
    }

    /// Bytes of the log beside its limit: those of held extents and of their records' heads.
    fn held_bytes(&self) -> u64 {
        let (held, held_bytes_max) = &self.held;
        let held = held.load(Ordering::Acquire);
        let bytes_max = self.bytes_max.saturating_mul(HELD_LIMITS_MAX).min(*held_bytes_max);
        held.saturating_add(held / HELD_HEADS_PART).min(bytes_max)
    }

    /// Bytes of all files.
    pub(in crate::journal) fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// Bytes of all spare files.
    pub(in crate::journal) fn spare_bytes(&self) -> u64 {
        self.state.lock().spare.iter().map(|file| file.bytes).sum()
    }

    /// Bytes of spare files and of those that may be added.
    pub(in crate::journal) fn room_bytes(&self) -> u64 {
        self.spare_bytes().saturating_add(self.bytes_max().saturating_sub(self.bytes()))
    }

    /// Makes the names of all files durable.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn sync_names(&self) -> Result<()> {
        Ok(self.directory.sync()?)
    }

    /// Prepares files until there are as many as a log needs at least.
    ///
    /// # Errors
    /// As `prepare`.
    pub(in crate::journal) fn prepare_first(&self) -> Result<()> {
        while self.count() < FILES_MIN {
            self.prepare(true)?;
        }
        Ok(())
    }

    /// Prepares one more file, if the limit allows it or `beyond_max`. Returns whether it did.
    /// Takes two syncs of metadata.
    ///
    /// # Errors
    /// Those of the medium; no space for even the smallest file among them.
    pub(in crate::journal) fn prepare(&self, beyond_max: bool) -> Result<bool> {
        self.prepare_of(beyond_max, u64::MAX)
    }

    /// As `prepare`, of at most `bytes_most` bytes, rounded up.
    fn prepare_of(&self, beyond_max: bool, bytes_most: u64) -> Result<bool> {
        let spare_bytes = self.spare_bytes();
        let _one_at_a_time = self.preparing.lock();
        if self.spare_bytes() > spare_bytes {
            // Another thread did, while this one waited.
            return Ok(true);
        }
        let (number, mut bytes) = {
            let state = self.state.lock();
            let most = bytes_most.div_ceil(LOG_FILE_BYTES_MIN).saturating_mul(LOG_FILE_BYTES_MIN);
            let bytes = self.bytes_next(&state, beyond_max).min(most);
            if bytes == 0 {
                return Ok(false);
            }
            (state.number_last + 1, bytes)
        };
        let file = loop {
            match LogFile::prepare(self.directory.as_ref(), number, bytes) {
                Ok(file) => break file,
                Err(error) if error.is_out_of_space() && bytes > LOG_FILE_BYTES_MIN => {
                    bytes = (bytes / 2).next_multiple_of(LOG_FILE_BYTES_MIN);
                }
                Err(error) if error.is_out_of_space() && self.give_up_held() => return Ok(true),
                Err(error) => return Err(error),
            }
        };
        let mut state = self.state.lock();
        state.is_small = false;
        state.number_last = number;
        state.bytes += bytes;
        state.bytes_largest = state.bytes_largest.max(bytes);
        state.spare.push_back(Arc::new(file));
        Ok(true)
    }

    /// Twice the largest one, so that a busy log soon has large files and an idle one stays small.
    fn bytes_next(&self, state: &State, beyond_max: bool) -> u64 {
        if state.spare.len() + state.used.len() < FILES_MIN {
            return LOG_FILE_BYTES_MIN;
        }
        if state.is_given && !beyond_max {
            return 0;
        }
        let most = LOG_FILE_BYTES_MAX.min(self.bytes_max / 4).max(LOG_FILE_BYTES_MIN);
        let wanted = (state.bytes_largest * 2).clamp(LOG_FILE_BYTES_MIN, most);
        let left = self.bytes_max().saturating_sub(state.bytes);
        let bytes = if beyond_max { wanted } else { wanted.min(left) };
        bytes / LOG_FILE_BYTES_MIN * LOG_FILE_BYTES_MIN
    }

    /// A spare file, to be given back or put to use.
    pub(in crate::journal) fn take_spare(&self) -> Option<Arc<LogFile>> {
        self.state.lock().spare.pop_front()
    }

    /// Takes back spare files that were not used, in the order they were taken in.
    pub(in crate::journal) fn give_back(&self, files: &mut Vec<Arc<LogFile>>) {
        if files.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        while let Some(file) = files.pop() {
            state.spare.push_front(file);
        }
    }

    /// Adds a file in use, the next by ordinal.
    pub(in crate::journal) fn put_to_use(&self, used: Used) {
        let mut state = self.state.lock();
        state.number_newest = used.file.number;
        state.used.push_back(used);
    }

    /// Gives back the files before `ordinal`: their records are in the pool, durably.
    ///
    /// # Errors
    /// Those of the medium, from removing files beyond the limit.
    pub(in crate::journal) fn recycle(&self, ordinal: u64) -> Result<()> {
        {
            let mut state = self.state.lock();
            while state.used.front().is_some_and(|used| used.ordinal < ordinal) {
                let Some(used) = state.used.pop_front() else { break };
                if state.is_holding {
                    state.bytes -= used.file.bytes;
                    state.held.push_back(used);
                } else {
                    state.spare.push_back(used.file);
                }
            }
        }
        self.trim()
    }

    /// From now on files are held rather than given back. To be called while none is given back.
    pub(in crate::journal) fn hold(&self) {
        self.state.lock().is_holding = true;
    }

    /// The files held and those in use, by ordinal; `None` if they were released for lack of space.
    pub(in crate::journal) fn held(&self) -> Option<Vec<Used>> {
        let state = self.state.lock();
        let files = state.held.iter().chain(&state.used).cloned().collect();
        state.is_holding.then_some(files)
    }

    /// Gives back all files held. Those beyond the limit are removed by the next `trim`.
    pub(in crate::journal) fn release(&self) {
        let mut state = self.state.lock();
        state.is_holding = false;
        let held = std::mem::take(&mut state.held);
        state.bytes += held.iter().map(|used| used.file.bytes).sum::<u64>();
        state.spare.extend(held.into_iter().map(|used| used.file));
    }

    /// Gives back all files held, if there are any: writers take precedence over backups.
    fn give_up_held(&self) -> bool {
        let any = !self.state.lock().held.is_empty();
        if any {
            self.release();
        }
        any
    }

    /// Does work that takes space of the device; if there is none, again without the held files and
    /// those that held extents needed once.
    ///
    /// # Errors
    /// Those of `work`, and of removing files.
    pub(in crate::journal) fn with_space(&self, work: impl Fn() -> Result<()>) -> Result<()> {
        match work() {
            Err(error) if error.is_out_of_space() && (self.give_up_held() | self.has_more()) => {
                self.trim()?;
                work()
            }
            done => done,
        }
    }

    /// Whether there are more files than the limit allows now, which `trim` removes from here on.
    fn has_more(&self) -> bool {
        let mut state = self.state.lock();
        state.bytes_max_largest = 0;
        state.bytes > self.bytes_max() && !state.spare.is_empty()
    }

    /// For messages.
    pub(in crate::journal) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Gives back space that a busy time took: the smallest spare files stay, and so for those in
    /// use as they become spare, until the log grows again; except for `kept_bytes` beside what a
    /// log needs at least.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn give_space_back(&self, kept_bytes: u64) -> Result<()> {
        {
            let mut state = self.state.lock();
            state.is_small = true;
            state.kept_bytes = kept_bytes.saturating_add(LEAST_BYTES);
            state.bytes_largest = LOG_FILE_BYTES_MIN;
            state.bytes_max_largest = 0;
        }
        self.trim()
    }

    /// Makes sure that there are files of `bytes` bytes beside those that a log needs at least, or
    /// as many as the limit allows.
    ///
    /// # Errors
    /// As `prepare`; also while the files are given back.
    pub(in crate::journal) fn keep(&self, bytes: u64) -> Result<()> {
        let wanted = bytes.saturating_add(LEAST_BYTES).min(self.bytes_max);
        while self.bytes() < wanted {
            if self.prepare_of(false, wanted - self.bytes())? {
                continue;
            }
            if !self.state.lock().is_given {
                break;
            }
            return Err(Error::Medium(MediumError::OutOfSpace {
                operation: "keep room for tables in",
                path: self.path().into(),
                bytes: wanted,
                source: std::io::ErrorKind::StorageFull.into(),
            }));
        }
        Ok(())
    }

    /// Removes all files except as many as a log needs at least, the smallest ones. None may be in
    /// use, and none is added until the returned value is dropped. The file of the newest header
    /// goes only by a `trim` after a newer one is durable. A backup that needs files is given up.
    ///
    /// # Errors
    /// Those of the medium; then files that could not be removed are left.
    pub(in crate::journal) fn give_up(&self) -> Result<LentLogSpace<'_>> {
        // No thread prepares one meanwhile.
        let _one_at_a_time = self.preparing.lock();
        self.release();
        let given = {
            let mut state = self.state.lock();
            debug_assert!(state.used.is_empty(), "files in use hold records");
            state.is_given = true;
            state.bytes_largest = LOG_FILE_BYTES_MIN;
            state.bytes_max_largest = 0;
            // The log continues in the smallest.
            state.spare.make_contiguous().sort_by_key(|file| file.bytes);
            LentLogSpace(self)
        };
        self.trim()?;
        Ok(given)
    }

    /// Removes spare files while all together exceed the limit, or are more than a small log needs,
    /// or more than any log does while its space is given back. Never the file of the newest
    /// header: nothing else tells a pool of an earlier moment from the one that belongs to this
    /// log. The other files that stay lose their headers: otherwise, to such a pool, the log would
    /// seem to end where one between them is missing.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn trim(&self) -> Result<()> {
        let mut state = self.state.lock();
        let bytes_max = self.bytes_max().max(state.bytes_max_largest);
        state.bytes_max_largest = bytes_max;
        while let Some(at) = Self::too_many(&state, bytes_max) {
            let is_older = |file: &&Arc<LogFile>| file.number != state.number_newest;
            for file in state.spare.iter().filter(is_older) {
                file.forget_header()?;
            }
            let Some(file) = state.spare.remove(at) else { break };
            state.bytes -= file.bytes;
            self.directory.remove(&file.name()).map_err(Error::from)?;
        }
        Ok(())
    }

    /// The spare file to remove next, by index: the largest one.
    fn too_many(state: &State, bytes_max: u64) -> Option<usize> {
        let is_small = |file: &LogFile| file.bytes <= LOG_FILE_BYTES_MIN;
        let is_newest = |file: &LogFile| file.number == state.number_newest;
        let in_use = state.used.iter().map(|used| &used.file);
        let newest = state.spare.iter().chain(in_use).find(|file| is_newest(file));
        // Small ones, in which the log can restart, stay beside a large one that cannot go.
        let least = FILES_MIN + usize::from(newest.is_some_and(|file| !is_small(file)));
        if state.spare.len() + state.used.len() <= least {
            return None;
        }
        let older = (0..state.spare.len()).filter(|&at| !is_newest(&state.spare[at]));
        let largest = older.max_by_key(|&at| state.spare[at].bytes)?;
        let file = &state.spare[largest];
        let is_kept = is_small(file) || state.bytes - file.bytes < state.kept_bytes;
        let goes = state.is_given || state.bytes > bytes_max || (state.is_small && !is_kept);
        goes.then_some(largest)
    }

    /// Whether the log is larger than it needs to be (`kept_bytes` beside its minimum) only because
    /// of the file of the newest header: it would have to restart.
    pub(in crate::journal) fn would_be_smaller_anew(&self, kept_bytes: u64) -> bool {
        let state = self.state.lock();
        let newest = state.used.back().filter(|used| used.file.number == state.number_newest);
        let bytes = newest.map_or(0, |used| used.file.bytes);
        let needed = kept_bytes.saturating_add(LEAST_BYTES);
        !state.is_holding && bytes > LOG_FILE_BYTES_MIN && state.bytes > needed
    }

    fn count(&self) -> usize {
        let state = self.state.lock();
        state.spare.len() + state.used.len()
    }
}
