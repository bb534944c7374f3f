//! The directory of a pool that is still under the name of a new one.
//!
//! Purpose: what opens a heap opens it there, before it takes its place. Its log is in memory: a
//! closed heap needs none, and one that was not closed never takes its place.
//! Invariants: of the files of the store only the new pool is touched. Each page that is written is
//! noted before.
//! Thread safety: any thread.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use adamant_medium::error::Result;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::{Directory, File, Lock};
use parking_lot::Mutex;

use crate::layout::{PAGE_BYTES, POOL_NAME, POOL_NEW_NAME, heap_offset_at};

/// A directory with the new pool of another one, under the name of a pool.
#[derive(Debug)]
pub(super) struct NewPool {
    store: Arc<dyn Directory>,
    others: MemoryDirectory,
    written: Arc<Mutex<BTreeSet<u64>>>,
}

/// The pool file, which notes what is written.
#[derive(Debug)]
struct NotedFile {
    file: Arc<dyn File>,
    /// Heap offsets of pages.
    written: Arc<Mutex<BTreeSet<u64>>>,
}

impl NewPool {
    pub(super) fn new(store: Arc<dyn Directory>) -> Self {
        Self { store, others: MemoryDirectory::new(), written: Arc::default() }
    }

    /// Heap offsets of the pages that were written, ascending.
    pub(super) fn written(&self) -> Vec<u64> {
        self.written.lock().iter().copied().collect()
    }
}

impl Directory for NewPool {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        match name {
            POOL_NAME => Ok(self.store.open(POOL_NEW_NAME)?.map(|file| {
                let written = Arc::clone(&self.written);
                Arc::new(NotedFile { file, written }) as Arc<dyn File>
            })),
            name => self.others.open(name),
        }
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>> {
        self.others.create(name)
    }

    fn rename(&self, source: &str, target: &str) -> Result<()> {
        self.others.rename(source, target)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.others.remove(name)
    }

    fn list(&self) -> Result<Vec<String>> {
        let mut names = self.others.list()?;
        names.push(POOL_NAME.into());
        names.sort_unstable();
        Ok(names)
    }

    /// The name of the new pool is durable before it takes its place.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>> {
        self.others.subdirectory(name)
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.others.lock(name)
    }

    fn lock_shared(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.others.lock_shared(name)
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        self.store.random(buffer)
    }
}

impl NotedFile {
    fn note(&self, offset: u64, len: u64) {
        let blocks = offset / PAGE_BYTES..offset.saturating_add(len).div_ceil(PAGE_BYTES);
        let pages = blocks.filter_map(|block| heap_offset_at(block * PAGE_BYTES));
        self.written.lock().extend(pages);
    }
}

impl File for NotedFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_at(buffer, offset)
    }

    fn read_with_lost_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_with_lost_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.note(offset, bytes.len() as u64);
        self.file.write_at(bytes, offset)
    }

    /// What was not there before has no contents that anyone needs.
    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.file.allocate(offset, len)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.note(offset, len);
        self.file.punch(offset, len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
}
