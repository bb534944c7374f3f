//! Files written by stores of the processor: persistent memory as a medium of the journal.
//!
//! Purpose: where the bytes of files are memory (a file system with DAX, or tmpfs), a write is a
//! copy past the caches and a fence, some 150 ns, and a sync has nothing left to do; by system
//! calls they take 1 us and 100. Everything above writes and syncs as it does on any medium.
//! Invariants: when a write returns, its bytes are durable, unless the file is said to need a sync:
//! for its length, its space, and what was written by a call. A page is stored to only after space
//! was asked for it, because a hole of a full device is a signal instead of an error. Memory is
//! mapped no further than the file is long, and let go of before the file is cut.
//! Thread safety: any thread. Writes to one file wait for each other; closing waits for them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::error::Result;
use crate::persist::{Flushing, Persist};
use crate::region::Region;
use crate::storage::{Directory, File, Lock};

/// Bytes of a file that are mapped at a time: mapping costs some 10 us, and a pool of 100 GiB takes
/// 1,600 of the 65,530 mappings that a process may have.
const PIECE_BYTES: u64 = 64 << 20;
/// Space is asked for in units of this.
const PAGE_BYTES: u64 = 4096;

/// A directory whose files are written by stores.
#[derive(Debug)]
pub struct DirectDirectory {
    directory: Arc<dyn Directory>,
    stores: Arc<Stores>,
}

/// What the files of a directory have in common.
#[derive(Debug)]
struct Stores {
    persist: Arc<dyn Persist>,
    is_closed: RwLock<bool>,
}

impl DirectDirectory {
    /// The same directory, written by stores if its files are memory as `how` asks. `name` is of a
    /// file that may be in it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn over(
        directory: Arc<dyn Directory>,
        how: Flushing,
        name: &str,
    ) -> Result<Arc<dyn Directory>> {
        let Some(persist) = directory.persist(how, name)? else { return Ok(directory) };
        let stores = Arc::new(Stores { persist, is_closed: RwLock::new(false) });
        Ok(Arc::new(Self { directory, stores }))
    }

    fn file(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        let stores = Arc::clone(&self.stores);
        let (called, synced) = (AtomicU64::new(1), AtomicU64::new(0));
        Arc::new(DirectFile { file, stores, mapped: Mutex::default(), called, synced })
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
        Ok(Arc::new(Self { directory, stores: Arc::clone(&self.stores) }))
    }

    fn close(&self) {
        *self.stores.is_closed.write().unwrap_or_else(PoisonError::into_inner) = true;
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

/// A file that is written by stores.
#[derive(Debug)]
struct DirectFile {
    file: Arc<dyn File>,
    stores: Arc<Stores>,
    mapped: Mutex<BTreeMap<u64, Piece>>,
    /// Calls that changed it, which a sync has to cover, and how many of them one has. A file that
    /// is opened begins with one: whoever had it before may have left something.
    called: AtomicU64,
    synced: AtomicU64,
}

/// A piece of a file as memory, and for which of its pages space was asked.
#[derive(Debug)]
struct Piece {
    region: Region,
    bytes: u64,
    backed: Box<[u64]>,
}

impl Piece {
    /// Maps the piece of a file that begins at `start`; `None` where the file has no whole page
    /// there.
    fn map(file: &dyn File, start: u64) -> Result<Option<Self>> {
        let page_bytes = rustix::param::page_size() as u64;
        let bytes = file.len()?.saturating_sub(start).min(PIECE_BYTES);
        let bytes = bytes - bytes % page_bytes;
        if bytes == 0 {
            return Ok(None);
        }
        let region = Region::reserve(bytes, bytes)?;
        // SAFETY: the region is new, so nobody has a reference into it, and this value gives out
        // none; what else changes the file does so through the same pages.
        unsafe { file.map_shared(&region, 0, start, bytes) }?;
        let backed = vec![0; bytes.div_ceil(64 * PAGE_BYTES) as usize].into();
        Ok(Some(Self { region, bytes, backed }))
    }

    /// The words of the pages of a range within the piece, each with the bits that stand for them.
    fn words(offset: u64, len: u64) -> impl Iterator<Item = (usize, u64)> {
        let (first, end) = (offset / PAGE_BYTES, (offset + len).div_ceil(PAGE_BYTES));
        (first / 64..end.div_ceil(64)).map(move |word| {
            let low = first.saturating_sub(word * 64);
            let high = (end - word * 64).min(64);
            (word as usize, (u64::MAX >> (64 - (high - low))) << low)
        })
    }

    fn is_backed(&self, offset: u64, len: u64) -> bool {
        Self::words(offset, len).all(|(word, mask)| self.backed[word] & mask == mask)
    }

    fn set_backed(&mut self, offset: u64, len: u64, is_backed: bool) {
        for (word, mask) in Self::words(offset, len) {
            match is_backed {
                true => self.backed[word] |= mask,
                false => self.backed[word] &= !mask,
            }
        }
    }
}

/// The parts of a range that lie in one piece each: the start of the piece, where in it, how long.
fn parts(offset: u64, len: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let (mut at, end) = (offset, offset.saturating_add(len));
    std::iter::from_fn(move || {
        let start = at - at % PIECE_BYTES;
        let part =
            (at < end).then(|| (start, at - start, (end - at).min(start + PIECE_BYTES - at)));
        at += part.map_or(0, |(_, _, len)| len);
        part
    })
}

impl DirectFile {
    fn mapped(&self) -> MutexGuard<'_, BTreeMap<u64, Piece>> {
        // No caller's code runs under this lock, so a panic leaves it whole.
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what a store does not: to the length, to space, to bytes by a call. Counted when it has
    /// happened, so that no sync counts as one that covers it and began before.
    fn call<T>(&self, call: impl FnOnce(&dyn File) -> Result<T>) -> Result<T> {
        let result = call(&*self.file);
        self.called.fetch_add(1, Ordering::AcqRel);
        result
    }

    /// Stores bytes at a place in a piece; `false` where that piece is not mapped so far.
    fn store(&self, bytes: &[u8], (start, within): (u64, u64)) -> Result<bool> {
        let len = bytes.len() as u64;
        let mut mapped = self.mapped();
        let ends_within = |piece: &Piece| within + len <= piece.bytes;
        if !mapped.get(&start).is_some_and(ends_within) {
            // The file may have grown since. A system that maps no more writes by calls.
            let Ok(Some(piece)) = Piece::map(&*self.file, start) else { return Ok(false) };
            mapped.insert(start, piece);
        }
        let Some(piece) = mapped.get_mut(&start).filter(|piece| ends_within(piece)) else {
            return Ok(false);
        };
        if piece.region.fork().is_child() {
            // The call says why it is refused.
            return Ok(false);
        }
        if !piece.is_backed(within, len) {
            let first = within - within % PAGE_BYTES;
            let end = (within + len).next_multiple_of(PAGE_BYTES);
            self.call(|file| file.allocate(start + first, end - first))?;
            piece.set_backed(within, len, true);
        }
        // SAFETY: mapped shared as far as was just looked at; nobody has a reference into it, and
        // its lock is held.
        unsafe { self.stores.persist.copy(&piece.region, within, bytes) };
        Ok(true)
    }

    /// Notes for pages of mapped pieces whether they have space.
    fn note_space(&self, offset: u64, len: u64, is_backed: bool) {
        let mut mapped = self.mapped();
        for (start, within, len) in parts(offset, len) {
            if let Some(piece) = mapped.get_mut(&start) {
                let len = len.min(piece.bytes.saturating_sub(within));
                if len > 0 {
                    piece.set_backed(within, len, is_backed);
                }
            }
        }
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
        let is_closed = self.stores.is_closed.read().unwrap_or_else(PoisonError::into_inner);
        let (mut done, mut has_stored) = (0, false);
        for (start, within, len) in parts(offset, bytes.len() as u64) {
            let part = &bytes[done..done + len as usize];
            if !*is_closed && self.store(part, (start, within))? {
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
        self.call(|file| file.allocate(offset, len))?;
        self.note_space(offset, len, true);
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        // Before: whoever stores there next asks for space again.
        self.note_space(offset, len, false);
        self.call(|file| file.punch(offset, len))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut mapped = self.mapped();
        // A store beyond the end would be a signal. What was asked for is asked for again.
        mapped.retain(|start, piece| start + piece.bytes <= len);
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

    fn prepare_stores(&self, offset: u64, len: u64) {
        let mut mapped = self.mapped();
        for (start, within, len) in parts(offset, len) {
            if !mapped.contains_key(&start)
                && let Ok(Some(mut piece)) = Piece::map(&*self.file, start)
                && within + len <= piece.bytes
            {
                piece.set_backed(within, len, true);
                piece.region.populate(within, len);
                mapped.insert(start, piece);
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
