//! What a process knows of the savepoints of a store, and the files that it keeps for them.
//!
//! Purpose: the steps of the registry, each on the medium first, and then in memory.
//! Invariants: those of `registry.rs`.
//! Thread safety: none of its own; the registry has a lock.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use adamant_medium::storage::{Directory, File};

use crate::error::{Error, Result};
use crate::image::pool_file::PoolFile;
use crate::journal::records::log_file::remove_if_there;
use crate::journal::savepoints::kept_file::{self, read_entries};
use crate::journal::savepoints::names::{Named, kept_name, named, new_name, savepoint_name};
use crate::journal::savepoints::needed::needed;
use crate::journal::savepoints::page_set::PageSet;
use crate::journal::savepoints::savepoint_file::SavepointFile;
use crate::journal::savepoints::view::{ViewIndex, ViewState};
use crate::layout::{HEAP_BYTES_MAX, PAGE_BYTES};

/// Data pages that a savepoint counts as having whose file cannot be read.
const PAGES_MAX: u64 = HEAP_BYTES_MAX / PAGE_BYTES;

/// A savepoint that is there.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) number: u64,
    pub(super) pages: u64,
    /// `None`: it cannot be read, or is lost.
    pub(super) file: Option<Arc<SavepointFile>>,
    /// Why it cannot be read.
    pub(super) fault: Option<Error>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// `None`: there was never one.
    pub(super) directory: Option<Arc<dyn Directory>>,
    /// By number.
    pub(super) savepoints: Vec<Known>,
    /// Those that are lost, by number.
    pub(super) lost: Vec<Known>,
    /// Numbers of the files of kept pages, ascending.
    pub(super) files: Vec<u64>,
    /// The pages that were kept after the newest savepoint.
    pub(super) kept: PageSet,
    /// The number of the next file.
    pub(super) next: u64,
    /// Whether this process made all names durable.
    pub(super) is_durable: bool,
    pub(super) views: Vec<Weak<ViewIndex>>,
}

impl State {
    /// Reads what is there for a pool with this UUID. Returns whether any was deleted or given up.
    ///
    /// # Errors
    /// Those of the medium; `Error::Unsupported` for a savepoint of a newer format where pages are
    /// to be overwritten: what has to be kept for it is not known here.
    pub(super) fn read(
        &mut self,
        directory: &dyn Directory,
        (uuid, is_writable): (&[u8; 16], bool),
    ) -> Result<bool> {
        let mut is_ended = false;
        for name in directory.list()? {
            let (number, is_lost) = match named(&name) {
                Named::Savepoint(number) => (number, false),
                Named::Lost(number) => (number, true),
                Named::Kept(number) => {
                    self.files.push(number);
                    self.next = self.next.max(number + 1);
                    continue;
                }
                Named::Deleted(number) => {
                    self.next = self.next.max(number + 1);
                    is_ended = true;
                    continue;
                }
                Named::Other => continue,
            };
            is_ended |= is_lost;
            self.next = self.next.max(number + 1);
            let open = || match directory.open(&name)? {
                Some(file) => SavepointFile::open(file, number, uuid).map(Some),
                None => Ok(None),
            };
            let opened = open().or_else(|error| match error {
                // The device may have failed once.
                Error::Medium(_) => open(),
                error => Err(error),
            });
            let known = match opened {
                Ok(None) => continue,
                Ok(Some(file)) => Known {
                    name: file.name.clone(),
                    number,
                    pages: file.pages,
                    file: (!is_lost).then(|| Arc::new(file)),
                    fault: None,
                },
                Err(error @ Error::Unsupported { .. }) if is_writable => return Err(error),
                // It stays, and what it may need, until it is deleted, or can be read again.
                Err(error) => {
                    Known { name, number, pages: PAGES_MAX, file: None, fault: Some(error) }
                }
            };
            if is_lost { &mut self.lost } else { &mut self.savepoints }.push(known);
        }
        self.savepoints.sort_by_key(|known| known.number);
        self.lost.sort_by_key(|known| known.number);
        self.files.sort_unstable();
        self.tell_apart();
        Ok(is_ended)
    }

    /// Gives all but the newest of savepoints of one name the names of their files: one could not
    /// be read while another one got its name.
    fn tell_apart(&mut self) {
        let mut names = HashSet::new();
        for known in self.savepoints.iter_mut().rev() {
            if !names.insert(known.name.clone()) {
                known.name = savepoint_name(known.number);
            }
        }
    }

    /// Numbers of the files of kept pages that cannot be read and may be needed.
    pub(super) fn unread_files(&self) -> Vec<(u64, Option<Error>)> {
        let (Some(directory), Some(first)) = (&self.directory, self.savepoints.first()) else {
            return Vec::new();
        };
        let fault_of = |number: u64| {
            let file = directory.open(&kept_name(number));
            match file
                .map_err(Error::from)
                .and_then(|file| file.as_ref().map(read_entries).transpose())
            {
                Ok(Some(Some(_))) => None,
                Ok(_) => Some((number, None)),
                Err(error) => Some((number, Some(error))),
            }
        };
        let files = self.files.iter().filter(|number| **number > first.number);
        files.filter_map(|number| fault_of(*number)).collect()
    }

    pub(super) fn needing(&self) -> Vec<(u64, u64)> {
        self.savepoints.iter().map(|known| (known.number, known.pages)).collect()
    }

    /// The pages of the files above a number. One that cannot be read has none: it stays, and
    /// its pages are kept once more.
    pub(super) fn read_files(&self, above: u64) -> Vec<(u64, Vec<u64>)> {
        let Some(directory) = &self.directory else { return Vec::new() };
        let pages_of = |number| {
            let file = directory.open(&kept_name(number)).ok()??;
            read_entries(&file).ok()?
        };
        let files = self.files.iter().filter(|number| **number > above);
        files.map(|number| (*number, pages_of(*number).unwrap_or_default())).collect()
    }

    /// Finds which pages were kept after the newest savepoint.
    pub(super) fn find_kept(&mut self) {
        self.kept = PageSet::default();
        let Some(newest) = self.savepoints.last() else { return };
        let files = self.read_files(newest.number);
        files.iter().flat_map(|(_, pages)| pages).for_each(|page| self.kept.add(*page));
    }

    /// Makes sure that names which were only read are durable. The process that gave them may have
    /// died before its sync, or the sync may have failed: then they only look durable, and giving
    /// the newest another name is what writes it again. Those before it were durable before it was
    /// given its name.
    pub(super) fn make_durable(&mut self) -> Result<()> {
        let Some(directory) = self.directory.as_ref().filter(|_| !self.is_durable) else {
            return Ok(());
        };
        let newest = self.savepoints.last().map_or(0, |known| known.number);
        if let Some(last) = self.files.last_mut().filter(|last| **last > newest) {
            directory.rename(&kept_name(*last), &kept_name(self.next))?;
            *last = self.next;
            self.next += 1;
        }
        directory.sync()?;
        self.is_durable = true;
        Ok(())
    }

    /// Keeps pages, and tells the views.
    pub(super) fn keep(&mut self, pool: &PoolFile, pages: &[u64]) -> Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let (number, name) = (self.next, kept_name(self.next));
        let new = new_name(&name);
        remove_if_there(&**directory, &new)?;
        let made = kept_file::write(&**directory, &new, pool, pages);
        give_name(&**directory, &name, made)?;
        self.next += 1;
        self.files.push(number);
        pages.iter().for_each(|page| self.kept.add(*page));
        let views = self.views.iter().filter_map(Weak::upgrade);
        views.for_each(|view| view.note(number, pages));
        Ok(())
    }

    pub(super) fn end_views(&self, number: u64, state: ViewState) {
        let views = self.views.iter().filter_map(Weak::upgrade);
        views.filter(|view| view.number == number).for_each(|view| view.end(state));
    }

    /// Removes the files of pages that no savepoint needs, and makes holes of the others' pages
    /// that none needs. Needs no space.
    pub(super) fn reclaim(&mut self, directory: &dyn Directory) -> Result<()> {
        let files = self.read_files(0);
        let copies = needed(&self.needing(), &files);
        for ((number, pages), copies) in files.iter().zip(&copies) {
            let first = self.savepoints.first().map_or(u64::MAX, |known| known.number);
            // One that cannot be read has no pages, but may have had some.
            let may_be_needed = pages.is_empty() && *number > first;
            if may_be_needed || copies.iter().all(|copy| *copy) && !copies.is_empty() {
                continue;
            }
            let name = kept_name(*number);
            if !copies.contains(&true) {
                remove_if_there(directory, &name)?;
                self.files.retain(|file| file != number);
                continue;
            }
            let Some(file) = directory.open(&name)? else { continue };
            punch(&*file, copies);
        }
        Ok(())
    }
}

/// Makes holes of the pages of a file that are not needed, where that can be done.
fn punch(file: &dyn File, copies: &[bool]) {
    let mut at = 0;
    for run in copies.chunk_by(|one, other| one == other) {
        if !run[0] {
            let offset = kept_file::page_offset(copies.len(), at);
            if file.punch(offset, run.len() as u64 * PAGE_BYTES).is_err() {
                return;
            }
        }
        at += run.len();
    }
}

/// Gives a file its name, durably, once it was made; removes it if it was not.
pub(super) fn give_name(directory: &dyn Directory, name: &str, made: Result<()>) -> Result<()> {
    let new = new_name(name);
    let named = made.and_then(|()| Ok(directory.rename(&new, name)?));
    if let Err(error) = named {
        // Best effort: it is of no use, and its name says so.
        let _ = directory.remove(&new);
        return Err(error);
    }
    directory.sync().map_err(|error| {
        // The name would look durable from then on, and the next sync would not write it.
        let _ = directory.rename(name, &new).and_then(|()| directory.sync());
        error.into()
    })
}
