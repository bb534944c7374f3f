//! The savepoints of a store: which there are, and keeping what they need.
//!
//! Purpose: a savepoint is the pool as it was after one commit. Pages of the pool are overwritten
//! in place, so what they were is kept before, once behind each savepoint. See
//! docs/decisions/0140-savepoints.md.
//! Invariants: no page that a savepoint needs is overwritten before its copy has a name durably. A
//! file has a name only once its contents are durable, and the newest name is given anew by each
//! process that writes: a name that is only read may look durable and not be. What one savepoint
//! needs is decided by numbers: the oldest copy in a file with a higher number than its own.
//! Thread safety: any thread; `state` is held while files are written. It comes behind the
//! checkpoint lock, and before that of a view.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use adamant_medium::storage::{Directory, File};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::image::pool_file::PoolFile;
use crate::journal::records::log_file::remove_if_there;
use crate::journal::savepoints::kept_file::{self, read_entries};
use crate::journal::savepoints::layout::SAVEPOINTS_NAME;
use crate::journal::savepoints::names::{
    Named, deleted_name, is_new, kept_name, lost_name, named, new_name, savepoint_name,
};
use crate::journal::savepoints::needed::needed;
use crate::journal::savepoints::page_set::PageSet;
use crate::journal::savepoints::savepoint_file::{self, NewSavepoint, SavepointFile, covers};
use crate::journal::savepoints::state::{Known, State, give_name};
use crate::journal::savepoints::view::{PoolView, ViewIndex, ViewState};
use crate::layout::PAGE_BYTES;

/// The name that the directory has for a moment: see [`Registry::directory_or_new`].
const SAVEPOINTS_NEW_NAME: &str = "savepoints.new";

/// Whether a savepoint can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SavepointState {
    /// It can.
    Whole,
    /// There was no space for what it needs, so it was given up. Deleting it removes its name.
    Lost,
    /// It cannot be read: its file is not what was written, or of a later version of the format,
    /// which [`Heap::check`](crate::Heap::check) tells.
    Damaged,
}

/// A savepoint of a heap.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Savepoint {
    /// Its name; of a damaged one the name of its file.
    pub name: String,
    /// Number of the last commit that it shows; 0 if it is damaged.
    pub sequence: u64,
    /// When it was made: milliseconds since 1970, 0 if that is not known.
    pub made_ms: u64,
    /// Bytes on the device that it takes: its file, and the pages that were kept after it was made
    /// and before the next one was.
    pub bytes: u64,
    /// Whether it can be read.
    pub state: SavepointState,
    /// What was attached to it; nothing if it is damaged or lost.
    pub attached: Vec<u8>,
}

/// The savepoints of a store.
#[derive(Debug)]
pub(crate) struct Registry {
    store: Arc<dyn Directory>,
    /// That of the pool.
    uuid: [u8; 16],
    is_writable: bool,
    has_any: AtomicBool,
    state: Mutex<State>,
}

impl Registry {
    /// Those of the store in a directory with this pool. Reads the names of all pages that the
    /// newest needs. A file that cannot be read does not keep the store from being opened.
    ///
    /// # Errors
    /// Those of the medium; `Error::Unsupported` for a savepoint of a newer format, if the heap is
    /// to be written.
    pub(crate) fn open(
        store: &Arc<dyn Directory>,
        pool: &PoolFile,
        is_writable: bool,
    ) -> Result<Self> {
        let mut state = State { next: 1, ..State::default() };
        if store.list()?.iter().any(|name| name == SAVEPOINTS_NAME) {
            let directory = store.subdirectory(SAVEPOINTS_NAME)?;
            state.directory = Some(Arc::clone(&directory));
            let is_ended = state.read(directory.as_ref(), (pool.uuid(), is_writable))?;
            if is_writable && is_ended {
                // The process that deleted one may have died before its sync: nothing is kept for
                // it from now on, so it must not come back.
                directory.sync()?;
            }
            state.find_kept();
        }
        let has_any = AtomicBool::new(!state.savepoints.is_empty());
        Ok(Self {
            store: Arc::clone(store),
            uuid: *pool.uuid(),
            is_writable,
            has_any,
            state: Mutex::new(state),
        })
    }

    /// Whether there is a savepoint that can be read. Changes only under the checkpoint lock, but
    /// for one that is deleted.
    pub(crate) fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Acquire)
    }

    /// Keeps the present contents of pages of the pool, by heap offset and in the order of the
    /// file, durably, for the savepoints that need them.
    ///
    /// # Errors
    /// Those of the medium, out of space among them. Then no such page may be overwritten.
    pub(in crate::journal) fn keep(&self, pool: &PoolFile, pages: &[u64]) -> Result<()> {
        if !self.has_any() {
            return Ok(());
        }
        let mut state = self.state.lock();
        let end = state.savepoints.iter().map(|known| known.pages).max().unwrap_or(0);
        state.make_durable()?;
        let is_missing = |page: &u64| covers(end, *page) && !state.kept.has(*page);
        let missing: Vec<u64> = pages.iter().copied().filter(is_missing).collect();
        for part in missing.chunks(kept_file::KEPT_PAGES_MAX) {
            state.keep(pool, part)?;
        }
        Ok(())
    }

    /// Gives the oldest savepoint up, durably, and the space that only it took. False if there is
    /// none.
    ///
    /// # Errors
    /// Those of the medium: then no page may be overwritten.
    pub(in crate::journal) fn lose_oldest(&self) -> Result<bool> {
        let mut state = self.state.lock();
        let State { directory: Some(directory), savepoints, .. } = &mut *state else {
            return Ok(false);
        };
        let Some(oldest) = savepoints.first() else { return Ok(false) };
        let (directory, number) = (Arc::clone(directory), oldest.number);
        let name = savepoint_name(number);
        let is_named = match directory.rename(&name, &lost_name(number)) {
            // Not even for another name.
            Err(error) if error.is_out_of_space() => {
                directory.remove(&name)?;
                false
            }
            renamed => renamed.map(|()| true)?,
        };
        if let Err(error) = directory.sync() {
            // As in a deletion: it must not come back after it was listed as lost.
            let _ = directory.rename(&lost_name(number), &name);
            return Err(error.into());
        }
        let oldest = state.savepoints.remove(0);
        if is_named {
            state.lost.push(Known { file: None, ..oldest });
        }
        state.end_views(number, ViewState::Lost);
        self.has_any.store(!state.savepoints.is_empty(), Ordering::Release);
        // What cannot be removed now takes space for longer, no more.
        let _ = state.reclaim(&*directory);
        Ok(true)
    }

    /// Makes a savepoint of the pool as it is. To be called under the checkpoint lock, when the
    /// pool shows one commit exactly, durably. False if the name is taken.
    ///
    /// # Errors
    /// Those of the medium: then there is none of that name.
    pub(in crate::journal) fn create(
        &self,
        pool: &PoolFile,
        new: NewSavepoint<'_>,
    ) -> Result<bool> {
        let mut state = self.state.lock();
        if state.savepoints.iter().chain(&state.lost).any(|known| known.name == new.name) {
            return Ok(false);
        }
        let directory = self.directory_or_new(&mut state)?;
        state.make_durable()?;
        // What a crash left. No number is given again before its removal is durable.
        for name in directory.list()? {
            if is_new(&name) || matches!(named(&name), Named::Deleted(_)) {
                remove_if_there(&*directory, &name)?;
            }
        }
        state.reclaim(&*directory)?;
        directory.sync()?;
        let new = NewSavepoint { number: state.next, ..new };
        let name = savepoint_name(new.number);
        let made = savepoint_file::write(&*directory, &new_name(&name), pool, &new);
        give_name(&*directory, &name, made)?;
        let Some(file) = directory.open(&name)? else {
            debug_assert!(false, "it has its name");
            return Ok(false);
        };
        let file = Some(Arc::new(SavepointFile::open(file, new.number, &self.uuid)?));
        let (name, number, pages) = (new.name.into(), new.number, new.pages);
        let known = Known { name, number, pages, file, fault: None };
        state.next += 1;
        state.savepoints.push(known);
        state.kept = PageSet::default();
        self.has_any.store(true, Ordering::Release);
        Ok(true)
    }

    /// Deletes a savepoint, durably, and what only it needs. Needs no space. False if there is none
    /// of that name.
    ///
    /// # Errors
    /// `Error::Misuse` while it is open; those of the medium: it is there then, or is not.
    pub(crate) fn delete(&self, name: &str) -> Result<bool> {
        let mut state = self.state.lock();
        let Some(directory) = state.directory.clone() else { return Ok(false) };
        if let Some(at) = state.lost.iter().position(|known| known.name == name) {
            remove_if_there(&*directory, &lost_name(state.lost[at].number))?;
            directory.sync()?;
            state.lost.remove(at);
            return Ok(true);
        }
        let Some(at) = state.savepoints.iter().position(|known| known.name == name) else {
            return Ok(false);
        };
        let number = state.savepoints[at].number;
        let mut views = state.views.iter().filter_map(Weak::upgrade);
        if views.any(|view| view.number == number && view.is_open()) {
            return Err(Error::Misuse { what: "this savepoint is open; close it first" });
        }
        let (name, deleted) = (savepoint_name(number), deleted_name(number));
        match directory.rename(&name, &deleted) {
            Err(error) if error.is_out_of_space() => directory.remove(&name)?,
            renamed => renamed?,
        }
        if let Err(error) = directory.sync() {
            // It must not come back when a power cut finds that nothing was kept for it since.
            let _ = directory.rename(&deleted, &name);
            return Err(error.into());
        }
        state.savepoints.remove(at);
        self.has_any.store(!state.savepoints.is_empty(), Ordering::Release);
        let _ = remove_if_there(&*directory, &deleted);
        // What cannot be removed now is when another one is made or deleted.
        state.find_kept();
        let _ = state.reclaim(&*directory);
        Ok(true)
    }

    /// All savepoints, the oldest first. O(pages that were kept).
    pub(crate) fn list(&self) -> Vec<Savepoint> {
        let state = self.state.lock();
        let files = state.read_files(0);
        let copies = needed(&state.needing(), &files);
        let is_damaged = |known: &Known| known.file.is_none();
        let mut listed = Vec::new();
        let ends = state.savepoints.iter().skip(1).map(|known| known.number).chain([u64::MAX]);
        for (known, end) in state.savepoints.iter().zip(ends) {
            let of_it = files.iter().zip(&copies);
            let of_it = of_it.filter(|((number, _), _)| (known.number..end).contains(number));
            let pages = of_it.map(|(_, copies)| copies.iter().filter(|copy| **copy).count() as u64);
            let kept_bytes = pages.sum::<u64>() * PAGE_BYTES;
            let file = known.file.as_deref();
            listed.push(Savepoint {
                name: known.name.clone(),
                sequence: file.map_or(0, |file| file.sequence),
                made_ms: file.map_or(0, |file| file.made_ms),
                bytes: kept_bytes + file.map_or(0, |file| file.bytes),
                state: match is_damaged(known) {
                    true => SavepointState::Damaged,
                    false => SavepointState::Whole,
                },
                attached: file.map(|file| file.attached.clone()).unwrap_or_default(),
            });
        }
        listed.extend(state.lost.iter().map(|known| Savepoint {
            name: known.name.clone(),
            sequence: 0,
            made_ms: 0,
            bytes: 0,
            state: SavepointState::Lost,
            attached: Vec::new(),
        }));
        listed
    }

    /// Names each file that cannot be read, with what is wrong. O(pages that were kept).
    pub(crate) fn faults(&self, each: &mut dyn FnMut(Error)) {
        let state = self.state.lock();
        let Some(directory) = &state.directory else { return };
        for known in &state.savepoints {
            let file = directory.path().join(savepoint_name(known.number));
            match &known.fault {
                None => {}
                Some(Error::Damaged { offset, what, .. }) => {
                    each(Error::Damaged { file, offset: *offset, what: what.clone() });
                }
                Some(other) => each(Error::Damaged { file, offset: 0, what: other.to_string() }),
            }
        }
        for (number, fault) in state.unread_files() {
            each(fault.unwrap_or_else(|| not_kept(&**directory, number)));
        }
    }

    /// What is attached to each savepoint; `None` for one that is damaged.
    pub(crate) fn attached(&self) -> Vec<Option<Vec<u8>>> {
        let state = self.state.lock();
        let files = state.savepoints.iter().map(|known| known.file.as_deref());
        files.map(|file| file.map(|file| file.attached.clone())).collect()
    }

    /// The pool file that a savepoint shows; `None` if there is none of that name that can be read.
    ///
    /// # Errors
    /// `Error::Damaged` for a damaged file of it, or of kept pages; those of the medium.
    pub(crate) fn view(&self, pool: &Arc<dyn File>, name: &str) -> Result<Option<PoolView>> {
        let mut state = self.state.lock();
        if self.is_writable && self.has_any() {
            // Behind this no file gets another name.
            state.make_durable()?;
        }
        let found = state.savepoints.iter().find(|known| known.name == name);
        let Some(savepoint) = found.and_then(|known| known.file.clone()) else { return Ok(None) };
        let Some(directory) = state.directory.clone() else { return Ok(None) };
        let index = Arc::new(ViewIndex::new(savepoint.number, savepoint.pages));
        for number in state.files.iter().filter(|number| **number > savepoint.number) {
            let file = directory.open(&kept_name(*number))?;
            let entries = file.as_ref().map(read_entries).transpose()?.flatten();
            let Some(pages) = entries else {
                return Err(not_kept(&*directory, *number));
            };
            index.note(*number, &pages);
        }
        state.views.retain(|view| view.strong_count() > 0);
        state.views.push(Arc::downgrade(&index));
        Ok(Some(PoolView::new(Arc::clone(pool), directory, savepoint, index)))
    }

    /// Data pages of the largest pool that a savepoint shows.
    pub(in crate::journal) fn pages_max(&self) -> u64 {
        self.state.lock().savepoints.iter().map(|known| known.pages).max().unwrap_or(0)
    }

    /// Number of the last commit that a savepoint shows; 0 if there is none.
    pub(in crate::journal) fn sequence_max(&self) -> u64 {
        let state = self.state.lock();
        let files = state.savepoints.iter().filter_map(|known| known.file.as_deref());
        files.map(|file| file.sequence).max().unwrap_or(0)
    }

    /// Ends all that is open: another process may write from now on.
    pub(crate) fn close(&self) {
        let views = std::mem::take(&mut self.state.lock().views);
        views.iter().filter_map(Weak::upgrade).for_each(|view| view.end(ViewState::Closed));
    }

    /// The directory, made if need be, durably.
    fn directory_or_new(&self, state: &mut State) -> Result<Arc<dyn Directory>> {
        let is_used = !state.savepoints.is_empty() || !state.lost.is_empty();
        if let Some(directory) = state.directory.clone().filter(|_| is_used) {
            return Ok(directory);
        }
        let names = self.store.list()?;
        let has = |name: &str| names.iter().any(|known| known == name);
        if has(SAVEPOINTS_NAME) && self.store.renames_open() {
            // Left by an attempt whose sync failed: its name may look durable and not be. Renaming
            // it writes the name again.
            if has(SAVEPOINTS_NEW_NAME) {
                self.store.remove_all(SAVEPOINTS_NEW_NAME)?;
            }
            self.store.rename(SAVEPOINTS_NAME, SAVEPOINTS_NEW_NAME)?;
            self.store.rename(SAVEPOINTS_NEW_NAME, SAVEPOINTS_NAME)?;
        }
        let directory = self.store.subdirectory(SAVEPOINTS_NAME)?;
        self.store.sync()?;
        state.directory = Some(Arc::clone(&directory));
        Ok(directory)
    }
}

fn not_kept(directory: &dyn Directory, number: u64) -> Error {
    Error::Damaged {
        file: directory.path().join(kept_name(number)),
        offset: 0,
        what: "expected pages that were kept for savepoints, found other bytes: those before it \
               cannot be read; put the file back, or delete them"
            .into(),
    }
}
