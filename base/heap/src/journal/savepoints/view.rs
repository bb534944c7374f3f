//! The pool file as a savepoint shows it.
//!
//! Purpose: what opens a closed heap for reading opens a savepoint by this, without a difference:
//! pages that were kept, all others of the pool, checksums of the savepoint, and a head of its own.
//! Invariants: a page is read from the pool under a share of the lock under which its copy is
//! noted, and that is done before the page is overwritten. Nothing is written.
//! Thread safety: any thread.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use adamant_medium::error::{Error as MediumError, Result as MediumResult};
use adamant_medium::storage::{Directory, File};
use parking_lot::{Mutex, RwLock};

use crate::error::Error;
use crate::image::pool_file::{closed_checkpoint, closed_head};
use crate::journal::savepoints::kept_file::page_offset;
use crate::journal::savepoints::names::kept_name;
use crate::journal::savepoints::savepoint_file::{SavepointFile, covers};
use crate::layout::{HEAD_BYTES, PAGE_BYTES, file_offset, heap_offset_at};

const PAGE: usize = PAGE_BYTES as usize;

/// A copy of a page: the number of its file, how many pages that has, and which of them it is.
#[derive(Clone, Copy, Debug)]
pub(in crate::journal) struct PageCopyAt {
    file: u64,
    count: u32,
    index: u32,
}

/// Whether a savepoint can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::journal) enum ViewState {
    Open,
    /// Its pages could not be kept.
    Lost,
    /// The heap that it belongs to was closed: another process may write the pool.
    Closed,
}

/// Where the pages of an open savepoint are.
#[derive(Debug)]
pub(in crate::journal) struct ViewIndex {
    /// Number of the savepoint, and the data pages of its pool.
    pub(in crate::journal) number: u64,
    pages: u64,
    copies: RwLock<(ViewState, HashMap<u64, PageCopyAt>)>,
}

impl ViewIndex {
    pub(in crate::journal) fn new(number: u64, pages: u64) -> Self {
        Self { number, pages, copies: RwLock::new((ViewState::Open, HashMap::new())) }
    }

    /// Notes the pages of a file; to be called in the order of the files. Waits for reads.
    pub(in crate::journal) fn note(&self, file: u64, pages: &[u64]) {
        if file < self.number {
            return;
        }
        let copies = &mut self.copies.write().1;
        for (index, page) in (0..).zip(pages).filter(|(_, page)| covers(self.pages, **page)) {
            let at = PageCopyAt { file, count: pages.len() as u32, index };
            copies.entry(*page).or_insert(at);
        }
    }

    /// Whether it can be read.
    pub(in crate::journal) fn is_open(&self) -> bool {
        self.copies.read().0 == ViewState::Open
    }

    /// Ends it: later reads fail. Waits for reads.
    pub(in crate::journal) fn end(&self, state: ViewState) {
        let ended = &mut self.copies.write().0;
        if *ended == ViewState::Open {
            *ended = state;
        }
    }

    /// Heap offsets of all pages that were kept for it.
    pub(in crate::journal) fn kept_pages(&self) -> Vec<u64> {
        self.copies.read().1.keys().copied().collect()
    }
}

/// The pool file of a savepoint.
#[derive(Debug)]
pub(crate) struct PoolView {
    pool: Arc<dyn File>,
    directory: Arc<dyn Directory>,
    savepoint: Arc<SavepointFile>,
    index: Arc<ViewIndex>,
    head: Vec<u8>,
    bytes: u64,
    /// The file of kept pages that was read last.
    last: Mutex<Option<(u64, Arc<dyn File>)>>,
}

impl PoolView {
    pub(in crate::journal) fn new(
        pool: Arc<dyn File>,
        directory: Arc<dyn Directory>,
        savepoint: Arc<SavepointFile>,
        index: Arc<ViewIndex>,
    ) -> Self {
        let checkpoint = closed_checkpoint(savepoint.sequence, savepoint.pages);
        let head = closed_head(&savepoint.uuid, checkpoint);
        let bytes = file_offset((savepoint.pages.max(1) - 1) * PAGE_BYTES) + PAGE_BYTES;
        Self { pool, directory, savepoint, index, head, bytes, last: Mutex::default() }
    }

    /// Where the pages are.
    pub(in crate::journal) fn index(&self) -> &Arc<ViewIndex> {
        &self.index
    }

    /// What is attached to the savepoint.
    pub(crate) fn attached(&self) -> &[u8] {
        &self.savepoint.attached
    }

    /// Whether it can be read.
    pub(crate) fn is_open(&self) -> bool {
        self.index.is_open()
    }

    /// Ends it: later reads fail.
    pub(crate) fn close(&self) {
        self.index.end(ViewState::Closed);
    }

    /// Data pages of the pool.
    pub(in crate::journal) fn data_pages(&self) -> u64 {
        self.savepoint.pages
    }

    /// Reads whole blocks of the file, from a multiple of a block on.
    fn read_blocks(&self, blocks: &mut [u8], offset: u64) -> MediumResult<()> {
        let mut at = 0;
        while at < blocks.len() {
            let start = offset + at as u64;
            let Some(page) = heap_offset_at(start) else {
                let block = &mut blocks[at..at + PAGE];
                match self.head.get(start as usize..start as usize + PAGE) {
                    Some(head) => block.copy_from_slice(head),
                    None => self.savepoint.read_block(start, block).map_err(medium_error)?,
                }
                at += PAGE;
                continue;
            };
            // Pages follow each other in the file, as far as a region reaches.
            let mut len = PAGE;
            while at + len < blocks.len()
                && heap_offset_at(start + len as u64) == Some(page + len as u64)
            {
                len += PAGE;
            }
            self.read_pages(&mut blocks[at..at + len], page)?;
            at += len;
        }
        Ok(())
    }

    /// Reads consecutive pages.
    fn read_pages(&self, bytes: &mut [u8], first: u64) -> MediumResult<()> {
        let copies = self.index.copies.read();
        let refused = |words: &str| {
            let source = io::Error::other(words.to_owned());
            Err(MediumError::io("read", self.savepoint.path(), None, 0, source))
        };
        match copies.0 {
            ViewState::Open => {}
            ViewState::Lost => return refused(LOST),
            ViewState::Closed => return refused(CLOSED),
        }
        let page_at = |index: usize| first + (index * PAGE) as u64;
        let is_kept = |index: usize| copies.1.get(&page_at(index));
        if (0..bytes.len() / PAGE).any(|index| is_kept(index).is_none()) {
            // The heap compares checksums: bytes that are lost are no page.
            let offset = file_offset(first);
            let there = self.pool.len()?.saturating_sub(offset).min(bytes.len() as u64) as usize;
            self.pool.read_with_lost_at(&mut bytes[..there], offset)?;
            bytes[there..].fill(0);
        }
        for (index, page) in bytes.chunks_mut(PAGE).enumerate() {
            if let Some(copy) = is_kept(index) {
                let offset = page_offset(copy.count as usize, copy.index as usize);
                self.kept_file(copy.file)?.read_with_lost_at(page, offset)?;
            }
        }
        Ok(())
    }

    fn kept_file(&self, number: u64) -> MediumResult<Arc<dyn File>> {
        let mut last = self.last.lock();
        if let Some((_, file)) = last.as_ref().filter(|(found, _)| *found == number) {
            return Ok(Arc::clone(file));
        }
        let name = kept_name(number);
        let Some(file) = self.directory.open(&name)? else {
            let path = self.directory.path().join(name);
            return Err(MediumError::io("find", &path, None, 0, io::ErrorKind::NotFound.into()));
        };
        *last = Some((number, Arc::clone(&file)));
        Ok(file)
    }

    fn read_only(&self) -> MediumError {
        let source = io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a savepoint never changes");
        MediumError::io("write", self.savepoint.path(), None, 0, source)
    }
}

const LOST: &str = "there was no space for what it needs, so this savepoint is lost; delete it";
const CLOSED: &str = "the store that this savepoint belongs to was closed; open both again";

/// An error of the heap as one of a file.
fn medium_error(error: Error) -> MediumError {
    match error {
        Error::Medium(error) => error,
        Error::Damaged { file, offset, what } => {
            let source = io::Error::new(io::ErrorKind::InvalidData, what);
            MediumError::io("read", &file, Some(offset), 0, source)
        }
        other => MediumError::io("read", Path::new(""), None, 0, io::Error::other(other)),
    }
}

impl File for PoolView {
    fn path(&self) -> &Path {
        self.savepoint.path()
    }

    fn len(&self) -> MediumResult<u64> {
        Ok(self.bytes)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> MediumResult<()> {
        let found = self.bytes.saturating_sub(offset);
        let expected = buffer.len() as u64;
        if found < expected {
            let (path, expected_bytes, found_bytes) = (self.path().into(), expected, found);
            return Err(MediumError::Truncated { path, offset, expected_bytes, found_bytes });
        }
        let start = offset / PAGE_BYTES * PAGE_BYTES;
        let end = (offset + expected).next_multiple_of(PAGE_BYTES);
        if start == offset && end == offset + expected {
            return self.read_blocks(buffer, offset);
        }
        let mut blocks = vec![0; (end - start) as usize];
        self.read_blocks(&mut blocks, start)?;
        buffer.copy_from_slice(&blocks[(offset - start) as usize..][..buffer.len()]);
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> MediumResult<()> {
        Err(self.read_only())
    }

    fn allocate(&self, _: u64, _: u64) -> MediumResult<()> {
        Err(self.read_only())
    }

    fn punch(&self, _: u64, _: u64) -> MediumResult<()> {
        Err(self.read_only())
    }

    fn set_len(&self, _: u64) -> MediumResult<()> {
        Err(self.read_only())
    }

    /// There is nothing to make durable.
    fn sync(&self) -> MediumResult<()> {
        Ok(())
    }
}

const _: () = assert!(HEAD_BYTES.is_multiple_of(PAGE_BYTES));
