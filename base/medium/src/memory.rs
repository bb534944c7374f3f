//! Files and directories in memory: for `Store::in_memory`.
//!
//! Purpose: the same behaviour as the operating system's file system, without a disk. The contents
//! live as long as a handle to them; a sync has nothing to do.
//! Invariants: bytes beyond a file's length are never stored, so a file that grows again shows
//! zeros. A removed file lives on for the handles that have it open. A file that was mapped shared
//! is one of the system's, without a name, from then on; none of its bytes are in pieces any more.
//! Thread safety: a directory and a file each have one lock; no call holds two locks of the same
//! kind, and none is held while waiting for anything.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

#[cfg(target_os = "linux")]
use crate::address::lines::lines;
#[cfg(target_os = "linux")]
use crate::address::persist::{Flushing, Persist};
#[cfg(target_os = "linux")]
use crate::address::region::Region;
use crate::error::{Error, Result};
use crate::storage::{Directory, File, Lock, check_name, end_of_range};
use crate::system::holder::held_here;
use crate::system::os::OsFile;
use crate::system::random::random;

/// Bytes of the pieces that a file is stored in; a piece never written is a hole.
const PIECE_BYTES: u64 = 4096;

/// A directory in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryDirectory {
    path: PathBuf,
    names: Arc<Mutex<Names>>,
}

#[derive(Debug, Default)]
struct Names {
    entries: BTreeMap<String, Entry>,
    locked: Vec<String>,
    /// One for each share.
    shared: Vec<String>,
}

#[derive(Clone, Debug)]
enum Entry {
    File(Arc<MemoryFile>),
    Directory(MemoryDirectory),
}

impl MemoryDirectory {
    /// An empty directory.
    #[expect(clippy::new_without_default, reason = "there is nothing to default: it is created")]
    pub fn new() -> MemoryDirectory {
        Self::at("memory".into())
    }

    fn at(path: PathBuf) -> MemoryDirectory {
        MemoryDirectory { path, names: Arc::default() }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        // No caller's code runs under this lock, so a panic leaves the names whole.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, operation: &'static str, name: &str, kind: io::ErrorKind) -> Error {
        Error::io(operation, &self.path.join(name), None, 0, kind.into())
    }
}

impl Directory for MemoryDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        check_name("open", &self.path, name)?;
        match self.names().entries.get(name) {
            None => Ok(None),
            Some(Entry::File(file)) => Ok(Some(file.clone())),
            Some(Entry::Directory(_)) => Err(self.error("open", name, io::ErrorKind::IsADirectory)),
        }
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>> {
        check_name("create", &self.path, name)?;
        let mut names = self.names();
        if names.entries.contains_key(name) {
            return Err(self.error("create", name, io::ErrorKind::AlreadyExists));
        }
        let content = RwLock::default();
        let file = Arc::new(MemoryFile { path: self.path.join(name), content });
        names.entries.insert(name.into(), Entry::File(file.clone()));
        Ok(file)
    }

    fn rename(&self, source: &str, target: &str) -> Result<()> {
        check_name("rename", &self.path, source)?;
        check_name("rename to", &self.path, target)?;
        let mut names = self.names();
        let Some(moved) = names.entries.get(source).cloned() else {
            return Err(self.error("rename", source, io::ErrorKind::NotFound));
        };
        if source == target {
            return Ok(());
        }
        let refused = match (&moved, names.entries.get(target)) {
            (_, None) | (Entry::File(_), Some(Entry::File(_))) => None,
            (Entry::File(_), Some(Entry::Directory(_))) => Some(io::ErrorKind::IsADirectory),
            (Entry::Directory(_), Some(Entry::File(_))) => Some(io::ErrorKind::NotADirectory),
            (Entry::Directory(_), Some(Entry::Directory(old))) => {
                let empty = old.names().entries.is_empty();
                (!empty).then_some(io::ErrorKind::DirectoryNotEmpty)
            }
        };
        if let Some(kind) = refused {
            return Err(self.error("rename", source, kind));
        }
        names.entries.remove(source);
        names.entries.insert(target.into(), moved);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name("remove", &self.path, name)?;
        let mut names = self.names();
        match names.entries.get(name) {
            None => Err(self.error("remove", name, io::ErrorKind::NotFound)),
            Some(Entry::Directory(_)) => {
                Err(self.error("remove", name, io::ErrorKind::IsADirectory))
            }
            Some(Entry::File(_)) => {
                names.entries.remove(name);
                Ok(())
            }
        }
    }

    fn exchange(&self, one: &str, other: &str) -> Result<()> {
        check_name("exchange", &self.path, one)?;
        check_name("exchange with", &self.path, other)?;
        let mut names = self.names();
        let found = |name| names.entries.get(name).cloned();
        let (Some(first), Some(second)) = (found(one), found(other)) else {
            return Err(self.error("exchange names in", one, io::ErrorKind::NotFound));
        };
        names.entries.insert(one.into(), second);
        names.entries.insert(other.into(), first);
        Ok(())
    }

    fn remove_all(&self, name: &str) -> Result<()> {
        check_name("remove", &self.path, name)?;
        let mut names = self.names();
        let kind = match names.entries.get(name) {
            None => io::ErrorKind::NotFound,
            Some(Entry::File(_)) => io::ErrorKind::NotADirectory,
            Some(Entry::Directory(_)) => {
                names.entries.remove(name);
                return Ok(());
            }
        };
        Err(self.error("remove", name, kind))
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.names().entries.keys().cloned().collect())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>> {
        check_name("create directory", &self.path, name)?;
        let mut names = self.names();
        let entry = names
            .entries
            .entry(name.into())
            .or_insert_with(|| Entry::Directory(Self::at(self.path.join(name))));
        match entry {
            Entry::Directory(directory) => Ok(Arc::new(directory.clone())),
            Entry::File(_) => Err(self.error("open directory", name, io::ErrorKind::NotADirectory)),
        }
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Lock>> {
        check_name("lock", &self.path, name)?;
        // The operating system's lock is a file; so it is listed here too.
        if self.open(name)?.is_none() {
            self.create(name)?;
        }
        let mut names = self.names();
        if names.locked.iter().chain(&names.shared).any(|locked| locked == name) {
            return Err(held_here(&self.path.join(name)));
        }
        names.locked.push(name.into());
        Ok(Box::new(MemoryLock { directory: self.clone(), name: name.into(), is_shared: false }))
    }

    fn lock_shared(&self, name: &str) -> Result<Box<dyn Lock>> {
        check_name("lock", &self.path, name)?;
        if self.open(name)?.is_none() {
            self.create(name)?;
        }
        let mut names = self.names();
        if names.locked.iter().any(|locked| locked == name) {
            return Err(held_here(&self.path.join(name)));
        }
        names.shared.push(name.into());
        Ok(Box::new(MemoryLock { directory: self.clone(), name: name.into(), is_shared: true }))
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        random(buffer)
            .map_err(|error| Error::io("draw random bytes for", &self.path, None, 0, error))
    }

    /// Memory does not survive, so it has to be asked for; any way of flushing will do.
    #[cfg(target_os = "linux")]
    fn persist(&self, how: Flushing, _: &str) -> Result<Option<Arc<dyn Persist>>> {
        Ok(if how == Flushing::Auto { None } else { lines(how) })
    }
}

/// A lock on a name of a directory in memory.
#[derive(Debug)]
struct MemoryLock {
    directory: MemoryDirectory,
    name: String,
    is_shared: bool,
}

impl Lock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut names = self.directory.names();
        let list = if self.is_shared { &mut names.shared } else { &mut names.locked };
        if let Some(at) = list.iter().position(|locked| *locked == self.name) {
            list.swap_remove(at);
        }
    }
}

/// A file in memory.
#[derive(Debug)]
struct MemoryFile {
    path: PathBuf,
    content: RwLock<Content>,
}

#[derive(Debug, Default)]
struct Content {
    /// Set once the file was mapped shared: it then holds all bytes.
    shared: Option<OsFile>,
    len: u64,
    /// By number: the bytes from `number * PIECE_BYTES` on. Those beyond `len` are zero.
    pieces: BTreeMap<u64, Box<[u8; PIECE_BYTES as usize]>>,
}

/// The pieces that a range of bytes touches: number of the piece, the range within it, and the
/// range within a buffer for the whole.
fn pieces(
    offset: u64,
    bytes: usize,
) -> impl Iterator<Item = (u64, std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % PIECE_BYTES) as usize;
        let count = (bytes - done).min(PIECE_BYTES as usize - start);
        let piece = (at / PIECE_BYTES, start..start + count, done..done + count);
        done += count;
        (count > 0).then_some(piece)
    })
}

impl Content {
    fn len(&self) -> Result<u64> {
        self.shared.as_ref().map_or(Ok(self.len), File::len)
    }

    /// Moves all bytes into a file that can be mapped.
    #[cfg(target_os = "linux")]
    fn share(&mut self, path: &Path) -> Result<&OsFile> {
        if self.shared.is_none() {
            let file = OsFile::in_memory(path)?;
            file.set_len(self.len)?;
            for (number, piece) in &self.pieces {
                let start = number * PIECE_BYTES;
                let count = (self.len - start).min(PIECE_BYTES) as usize;
                file.write_at(&piece[..count], start)?;
            }
            self.pieces.clear();
            self.shared = Some(file);
        }
        self.shared
            .as_ref()
            .ok_or_else(|| Error::io("map", path, None, 0, io::ErrorKind::NotFound.into()))
    }

    fn read(&self, buffer: &mut [u8], offset: u64) {
        for (number, within, part) in pieces(offset, buffer.len()) {
            match self.pieces.get(&number) {
                Some(piece) => buffer[part].copy_from_slice(&piece[within]),
                None => buffer[part].fill(0),
            }
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) {
        for (number, within, part) in pieces(offset, bytes.len()) {
            let piece =
                self.pieces.entry(number).or_insert_with(|| Box::new([0; PIECE_BYTES as usize]));
            piece[within].copy_from_slice(&bytes[part]);
        }
    }

    /// Drops the pieces that lie in a range, and zeroes the parts of others.
    fn punch(&mut self, offset: u64, end: u64) {
        for (number, within, _) in pieces(offset, end.saturating_sub(offset) as usize) {
            if within.len() as u64 == PIECE_BYTES {
                self.pieces.remove(&number);
            } else if let Some(piece) = self.pieces.get_mut(&number) {
                piece[within].fill(0);
            }
        }
    }

    fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.pieces.split_off(&len.div_ceil(PIECE_BYTES));
            if let Some(last) = self.pieces.get_mut(&(len / PIECE_BYTES)) {
                last[(len % PIECE_BYTES) as usize..].fill(0);
            }
        }
        self.len = len;
    }
}

impl MemoryFile {
    fn end(&self, operation: &'static str, offset: u64, bytes: u64) -> Result<u64> {
        end_of_range(operation, &self.path, offset, bytes)
    }

    /// Copies the bytes of a range that exists.
    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let content = self.content.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &content.shared {
            return file.read_at(buffer, offset);
        }
        let expected_bytes = buffer.len() as u64;
        let found_bytes = content.len.saturating_sub(offset).min(expected_bytes);
        if found_bytes < expected_bytes {
            let path = self.path.clone();
            return Err(Error::Truncated { path, offset, expected_bytes, found_bytes });
        }
        content.read(buffer, offset);
        Ok(())
    }

    fn change<R>(&self, work: impl FnOnce(&mut Content) -> R) -> R {
        work(&mut self.content.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl File for MemoryFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        self.content.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.read(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = self.end("write", offset, bytes.len() as u64)?;
        self.change(|content| {
            if let Some(file) = &content.shared {
                return file.write_at(bytes, offset);
            }
            content.write(bytes, offset);
            content.len = content.len.max(end);
            Ok(())
        })
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        // Pieces come with the first write. Running out of memory ends the process, as everywhere
        // else in it, so there is nothing to reserve.
        let end = self.end("allocate space in", offset, len)?;
        self.change(|content| {
            if let Some(file) = &content.shared {
                return file.allocate(offset, len);
            }
            content.len = content.len.max(end);
            Ok(())
        })
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        let end = self.end("give back space of", offset, len)?;
        self.change(|content| {
            if let Some(file) = &content.shared {
                return file.punch(offset, len);
            }
            content.punch(offset, end.min(content.len));
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.end("set the length of", len, 0)?;
        self.change(|content| {
            if let Some(file) = &content.shared {
                return file.set_len(len);
            }
            content.set_len(len);
            Ok(())
        })
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    #[cfg(target_os = "linux")]
    unsafe fn map_shared(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> Result<()> {
        self.change(|content| {
            let file = content.share(&self.path)?;
            // SAFETY: our caller promises the same.
            unsafe { file.map_shared(region, region_offset, file_offset, len) }
        })
    }
}
