//! Direct files: written by store instructions, for persistent memory.
//!
//! Purpose: if the bytes of files are memory (a file system with DAX, or tmpfs), a write is a copy
//! past the caches and a fence, some 150 ns, and a sync has nothing left to do; by system calls
//! they take 1 us and 100. Everything above writes and syncs as it does on any medium.
//! Invariants: when a write returns, its bytes are durable, unless the file needs a sync: for its
//! length, its space, and bytes written by a call. A page is stored to only after space was
//! allocated for it, because a hole of a full device raises a signal instead of an error. Memory is
//! mapped no further than the file is long, and unmapped before the file is cut. If a file cannot
//! be mapped so that a fence makes stores durable, or a store would raise a signal, it is written
//! by calls. Whether a page has space changes together with the record of that.
//! Thread safety: any thread. Writes to one file wait for each other; closing waits for them.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use crate::address::persist::{Flushing, Persist};
use crate::address::region::Region;
use crate::error::Result;
use crate::fork::ForkGuard;
use crate::storage::{Directory, File, Lock};
use crate::system::pieces::{Mapped, PAGE_BYTES, parts};

/// A directory whose files are written by store instructions.
#[derive(Debug)]
pub struct DirectDirectory {
    directory: Arc<dyn Directory>,
    stores: Arc<Stores>,
}

/// State that the files of a directory share.
#[derive(Debug)]
struct Stores {
    how: Flushing,
    persist: Arc<dyn Persist>,
    fork: ForkGuard,
    /// The memory of the files; `None` once they are closed.
    files: RwLock<Option<Vec<Weak<Mutex<Mapped>>>>>,
}

impl Stores {
    /// Adds a file.
    fn add(&self) -> Arc<Mutex<Mapped>> {
        let mapped = Arc::default();
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = &mut *files {
            if files.len() == files.capacity() {
                // Before it grows, so that closed files are removed each time its length doubles.
                files.retain(|file| file.strong_count() > 0);
            }
            files.push(Arc::downgrade(&mapped));
        }
        mapped
    }

    /// Unmaps the memory of all files, which are written no more.
    fn close(&self) {
        let files = self.files.write().unwrap_or_else(PoisonError::into_inner).take();
        for file in files.iter().flatten().filter_map(Weak::upgrade) {
            file.lock().unwrap_or_else(PoisonError::into_inner).pieces.clear();
        }
    }
}

impl DirectDirectory {
    /// The same directory, written by store instructions if its files are memory as `how` asks.
    /// `name` is that of a file that may be in it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn over(
        directory: Arc<dyn Directory>,
        how: Flushing,
        name: &str,
    ) -> Result<Arc<dyn Directory>> {
        let Some(persist) = directory.persist(how, name)? else { return Ok(directory) };
        let (fork, files) = (ForkGuard::new()?, RwLock::new(Some(Vec::new())));
        let stores = Arc::new(Stores { how, persist, fork, files });
        Ok(Arc::new(Self { directory, stores }))
    }

    fn file(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        let stores = Arc::clone(&self.stores);
        let (called, synced) = (AtomicU64::new(1), AtomicU64::new(0));
        let mapped = stores.add();
        Arc::new(DirectFile { file, stores, mapped, called, synced })
    }
}

impl Directory for DirectDirectory {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        Ok(self.directory.open(name)?.map(|file| self.file(file)))
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>> {
        Ok(self.file(self.directory.create(name)?))
    }

    fn rename(&self, source: &str, target: &str) -> Result<()> {
        self.directory.rename(source, target)
    }

    fn exchange(&self, one: &str, other: &str) -> Result<()> {
        self.directory.exchange(one, other)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.directory.remove(name)
    }

    fn remove_all(&self, name: &str) -> Result<()> {
        self.directory.remove_all(name)
    }

    fn list(&self) -> Result<Vec<String>> {
        self.directory.list()
    }

    #[track_caller]
    fn sync(&self) -> Result<()> {
        self.directory.sync()
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>> {
        let directory = self.directory.subdirectory(name)?;
        if directory.persist(self.stores.how, "")?.is_none() {
            // A link to another file system, which is no memory.
            return Ok(directory);
        }
        Ok(Arc::new(Self { directory, stores: Arc::clone(&self.stores) }))
    }

    fn close(&self) {
        if !self.stores.fork.is_child() {
            self.stores.close();
        }
        self.directory.close();
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.directory.lock(name)
    }

    fn lock_shared(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.directory.lock_shared(name)
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        self.directory.random(buffer)
    }

    fn persist(&self, how: Flushing, name: &str) -> Result<Option<Arc<dyn Persist>>> {
        self.directory.persist(how, name)
    }

    fn stores(&self) -> Option<&Arc<dyn Persist>> {
        Some(&self.stores.persist)
    }
}

/// A file that is written by store instructions.
#[derive(Debug)]
struct DirectFile {
    file: Arc<dyn File>,
    stores: Arc<Stores>,
    mapped: Arc<Mutex<Mapped>>,
    /// Calls that changed it, which a sync has to cover, and how many of them the last sync
    /// covered. An opened file begins with one: an earlier process may have left unsynced changes.
    called: AtomicU64,
    synced: AtomicU64,
}

impl DirectFile {
    fn mapped(&self) -> MutexGuard<'_, Mapped> {
        // No caller's code runs under this lock, so a panic leaves it whole.
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change that a store cannot make: to the length, to space, to bytes by a call.
    /// Counted after it has happened, so that a sync that began before never counts as covering it.
    fn call<T>(&self, call: impl FnOnce(&dyn File) -> Result<T>) -> Result<T> {
        let result = call(&*self.file);
        self.called.fetch_add(1, Ordering::AcqRel);
        result
    }

    /// Stores bytes at an offset in a piece; `false` if they must be written by a call.
    fn store(&self, bytes: &[u8], (start, within): (u64, u64)) -> Result<bool> {
        let end = within + bytes.len() as u64;
        let mut mapped = self.mapped();
        let Some(piece) = mapped.piece(&*self.file, start, end) else { return Ok(false) };
        if !piece.is_backed(within, end - within) {
            let (first, end) = (within - within % PAGE_BYTES, end.next_multiple_of(PAGE_BYTES));
            match self.call(|file| file.allocate(start + first, end - first)) {
                // There may be space all the same: then a call needs none, and else reports it.
                Err(error) if error.is_out_of_space() || error.is_unsupported() => {
                    return Ok(false);
                }
                asked => asked?,
            }
            if !piece.region.populate(first, end - first) {
                return Ok(false);
            }
            piece.set_backed(first, end - first, true);
        }
        // SAFETY: mapped shared, within the range just checked; no reference into it exists, and
        // its lock is held.
        unsafe { self.stores.persist.copy(&piece.region, within, bytes) };
        Ok(true)
    }
}

impl File for DirectFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        if self.stores.fork.is_child() {
            // Before any lock, which a thread that the child does not have may hold. The call
            // reports the refusal.
            return self.file.write_at(bytes, offset);
        }
        let files = self.stores.files.read().unwrap_or_else(PoisonError::into_inner);
        let (mut done, mut has_stored) = (0, false);
        for (start, within, len) in parts(offset, bytes.len() as u64) {
            let part = &bytes[done..done + len as usize];
            if files.is_some() && self.store(part, (start, within))? {
                has_stored = true;
            } else {
                self.call(|file| file.write_at(part, start + within))?;
            }
            done += part.len();
        }
        if has_stored {
            self.stores.persist.fence();
        }
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        if self.stores.fork.is_child() {
            return self.file.allocate(offset, len);
        }
        let mut mapped = self.mapped();
        self.call(|file| file.allocate(offset, len))?;
        mapped.note_space(offset, len, true);
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        if self.stores.fork.is_child() {
            return self.file.punch(offset, len);
        }
        let mut mapped = self.mapped();
        mapped.note_space(offset, len, false);
        self.call(|file| file.punch(offset, len))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        if self.stores.fork.is_child() {
            return self.file.set_len(len);
        }
        let mut mapped = self.mapped();
        // A store beyond the end would raise a signal. Later writes ask for space again.
        mapped.pieces.retain(|start, piece| start + piece.bytes <= len);
        self.call(|file| file.set_len(len))
    }

    #[track_caller]
    fn sync(&self) -> Result<()> {
        let called = self.called.load(Ordering::Acquire);
        if self.synced.load(Ordering::Acquire) < called {
            self.file.sync()?;
            self.synced.fetch_max(called, Ordering::AcqRel);
        }
        Ok(())
    }

    fn is_direct(&self) -> bool {
        true
    }

    fn expect_random(&self) {
        self.file.expect_random();
    }

    fn prepare_stores(&self, offset: u64, len: u64) {
        if self.stores.fork.is_child() {
            return;
        }
        let mut mapped = self.mapped();
        for (start, within, len) in parts(offset, len) {
            if let Some(piece) = mapped.piece(&*self.file, start, within + len)
                && piece.region.populate(within, len)
            {
                piece.set_backed(within, len, true);
            }
        }
    }

    unsafe fn map_private(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> Result<()> {
        // SAFETY: our caller promises the same.
        unsafe { self.file.map_private(region, region_offset, file_offset, len) }
    }

    fn drops_private(&self) -> bool {
        self.file.drops_private()
    }

    unsafe fn drop_private(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
        is_mapped: bool,
    ) -> Result<()> {
        // SAFETY: our caller promises the same.
        unsafe { self.file.drop_private(region, region_offset, file_offset, len, is_mapped) }
    }

    unsafe fn copy_private(&self, region: &Region, region_offset: u64, len: u64) {
        // SAFETY: our caller promises the same.
        unsafe { self.file.copy_private(region, region_offset, len) }
    }

    unsafe fn map_shared(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> Result<()> {
        // SAFETY: our caller promises the same.
        unsafe { self.file.map_shared(region, region_offset, file_offset, len) }
    }
}
