//! Directories, files and locks of a [`SimDisk`].

use std::any::Any;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_medium::address::persist::{Flushing, Persist};
use adamant_medium::address::region::Region;
use adamant_medium::error::{Error, Result};
use adamant_medium::storage::{Directory, File, Lock, check_name};

use crate::calls::Call;
use crate::disk::{Inner, SimDisk};
use crate::names::Node;
use crate::pages::{PAGE_BYTES, SECTOR_BYTES, Space, pages_of};
use crate::persist::SimPersist;
use crate::site::{Kind, Site};
use crate::state::{Operation, ROOT};

/// A directory of a simulated disk.
#[derive(Clone, Debug)]
pub struct SimDirectory {
    disk: SimDisk,
    number: u64,
    path: PathBuf,
}

impl SimDirectory {
    /// The directory that all others of the disk are in.
    pub fn root(disk: &SimDisk) -> SimDirectory {
        SimDirectory { disk: disk.clone(), number: ROOT, path: "sim".into() }
    }

    /// A hash of all that a program can read under a name in it: names, lengths, space and bytes.
    /// O(bytes).
    pub fn digest(&self, name: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        let inner = self.disk.inner();
        if let Some(node) = self.node(&inner, name) {
            inner.state.hash_visible(node, &mut hasher);
        }
        hasher.finish()
    }

    fn error(&self, operation: &'static str, name: &str, kind: io::ErrorKind) -> Error {
        Error::io(operation, &self.path.join(name), None, 0, kind.into())
    }

    fn held(&self, name: &str) -> Error {
        let holder = Some("another handle of this simulation".into());
        Error::Locked { path: self.path.join(name), holder }
    }

    fn node(&self, inner: &Inner, name: &str) -> Option<Node> {
        inner.state.directory(self.number).get(name)
    }

    fn file(&self, name: &str, number: u64) -> Arc<dyn File> {
        Arc::new(SimFile { disk: self.disk.clone(), number, path: self.path.join(name) })
    }
}

impl Directory for SimDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        check_name("open", &self.path, name)?;
        match self.node(&self.disk.inner(), name) {
            None => Ok(None),
            Some(Node::File(number)) => Ok(Some(self.file(name, number))),
            Some(Node::Directory(_)) => Err(self.error("open", name, io::ErrorKind::IsADirectory)),
        }
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>> {
        check_name("create", &self.path, name)?;
        let mut inner = self.disk.inner();
        if self.node(&inner, name).is_some() {
            return Err(self.error("create", name, io::ErrorKind::AlreadyExists));
        }
        let path = self.path.join(name);
        inner.check(Call::Create, "create", &path)?;
        let file = inner.state.unused_number();
        let (directory, name) = (self.number, name.to_owned());
        inner.record(Operation::Create { directory, name: name.clone(), file, path: path.into() });
        Ok(self.file(&name, file))
    }

    fn rename(&self, source: &str, target: &str) -> Result<()> {
        check_name("rename", &self.path, source)?;
        check_name("rename to", &self.path, target)?;
        let mut inner = self.disk.inner();
        let moved = self.node(&inner, source);
        let is_locked = |directory| {
            let held = || inner.locked.iter().chain(&inner.shared);
            !inner.renames_open && held().any(|(within, _)| *within == directory)
        };
        let refused = match (moved, self.node(&inner, target)) {
            (None, _) => Some(io::ErrorKind::NotFound),
            (Some(Node::Directory(moved)), _) if is_locked(moved) => {
                Some(io::ErrorKind::PermissionDenied)
            }
            (Some(_), None) | (Some(Node::File(_)), Some(Node::File(_))) => None,
            (Some(_), Some(_)) if source == target => None,
            (Some(Node::File(_)), Some(Node::Directory(_))) => Some(io::ErrorKind::IsADirectory),
            (Some(Node::Directory(_)), Some(Node::File(_))) => Some(io::ErrorKind::NotADirectory),
            (Some(Node::Directory(_)), Some(Node::Directory(old))) => {
                let empty = inner.state.directory(old).visible().is_empty();
                (!empty).then_some(io::ErrorKind::DirectoryNotEmpty)
            }
        };
        if let Some(kind) = refused {
            return Err(self.error("rename", source, kind));
        }
        if source == target {
            return Ok(());
        }
        inner.check(Call::Rename, "rename", &self.path.join(source))?;
        let (source, target) = (source.into(), target.into());
        inner.record(Operation::Rename { directory: self.number, source, target });
        Ok(())
    }

    fn renames_open(&self) -> bool {
        self.disk.inner().renames_open
    }

    fn exchange(&self, one: &str, other: &str) -> Result<()> {
        check_name("exchange", &self.path, one)?;
        check_name("exchange with", &self.path, other)?;
        let mut inner = self.disk.inner();
        if !inner.can_exchange {
            return Err(self.error("exchange names in", one, io::ErrorKind::Unsupported));
        }
        if self.node(&inner, one).is_none() || self.node(&inner, other).is_none() {
            return Err(self.error("exchange names in", one, io::ErrorKind::NotFound));
        }
        inner.check(Call::Rename, "exchange names in", &self.path.join(one))?;
        let (one, other) = (one.into(), other.into());
        inner.record(Operation::Exchange { directory: self.number, one, other });
        Ok(())
    }

    fn link(&self, name: &str, target: &dyn Directory) -> Result<bool> {
        check_name("link", &self.path, name)?;
        let target = (target as &dyn Any).downcast_ref::<Self>();
        let Some(target) = target.filter(|target| target.disk.is(&self.disk)) else {
            return Err(self.error("link", name, io::ErrorKind::Unsupported));
        };
        let mut inner = self.disk.inner();
        let Some(Node::File(file)) = self.node(&inner, name) else { return Ok(false) };
        if target.node(&inner, name).is_some() {
            return Err(target.error("link", name, io::ErrorKind::AlreadyExists));
        }
        inner.check(Call::Create, "link", &target.path.join(name))?;
        inner.record(Operation::Link { directory: target.number, name: name.into(), file });
        Ok(true)
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name("remove", &self.path, name)?;
        let mut inner = self.disk.inner();
        match self.node(&inner, name) {
            None => Err(self.error("remove", name, io::ErrorKind::NotFound)),
            Some(Node::Directory(_)) => {
                Err(self.error("remove", name, io::ErrorKind::IsADirectory))
            }
            Some(Node::File(_)) => {
                inner.check(Call::Remove, "remove", &self.path.join(name))?;
                inner.record(Operation::Remove { directory: self.number, name: name.into() });
                Ok(())
            }
        }
    }

    fn remove_all(&self, name: &str) -> Result<()> {
        let node = self.node(&self.disk.inner(), name);
        let Some(Node::Directory(number)) = node else {
            return Err(self.error("remove", name, io::ErrorKind::NotADirectory));
        };
        let path = self.path.join(name);
        let inside = SimDirectory { disk: self.disk.clone(), number, path };
        for name in inside.list()? {
            let node = inside.node(&self.disk.inner(), &name);
            match node {
                Some(Node::Directory(_)) => inside.remove_all(&name)?,
                _ => inside.remove(&name)?,
            }
        }
        let mut inner = self.disk.inner();
        inner.check(Call::Remove, "remove", &inside.path)?;
        inner.record(Operation::Remove { directory: self.number, name: name.into() });
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>> {
        let mut inner = self.disk.inner();
        inner.check_call(Call::List, "list", &self.path)?;
        Ok(inner.state.directory(self.number).visible().keys().cloned().collect())
    }

    #[track_caller]
    fn sync(&self) -> Result<()> {
        let site = Site::new(Kind::SyncDirectory, Location::caller());
        let mut inner = self.disk.inner();
        if !inner.sites.meet(site) {
            return Ok(());
        }
        let fault = inner.fault(Call::SyncDirectory);
        let failed = fault.is_some();
        inner.record(Operation::SyncDirectory { directory: self.number, failed });
        fault.map_or(Ok(()), |fault| Err(fault.error("sync directory", &self.path, None)))
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>> {
        check_name("create directory", &self.path, name)?;
        let mut inner = self.disk.inner();
        let path = self.path.join(name);
        let number = match self.node(&inner, name) {
            Some(Node::Directory(number)) => number,
            Some(Node::File(_)) => {
                return Err(self.error("open directory", name, io::ErrorKind::NotADirectory));
            }
            None => {
                inner.check(Call::Create, "create directory", &path)?;
                let created = inner.state.unused_number();
                let (directory, name) = (self.number, name.into());
                inner.record(Operation::CreateDirectory { directory, name, created });
                created
            }
        };
        Ok(Arc::new(SimDirectory { disk: self.disk.clone(), number, path }))
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Lock>> {
        // The operating system's lock is a file; so it is here.
        if self.open(name)?.is_none() {
            self.create(name)?;
        }
        let key = (self.number, name.to_owned());
        let mut inner = self.disk.inner();
        if inner.locked.contains(&key) || inner.shared.contains(&key) {
            return Err(self.held(name));
        }
        inner.locked.push(key.clone());
        Ok(Box::new(SimLock { disk: self.disk.clone(), key, is_shared: false }))
    }

    fn lock_shared(&self, name: &str) -> Result<Box<dyn Lock>> {
        if self.open(name)?.is_none() {
            self.create(name)?;
        }
        let key = (self.number, name.to_owned());
        let mut inner = self.disk.inner();
        if inner.locked.contains(&key) {
            return Err(self.held(name));
        }
        inner.shared.push(key.clone());
        Ok(Box::new(SimLock { disk: self.disk.clone(), key, is_shared: true }))
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        self.disk.inner().random.fill(buffer);
        Ok(())
    }

    /// Simulated memory has to be asked for, as it does not survive.
    fn persist(&self, how: Flushing, _: &str) -> Result<Option<Arc<dyn Persist>>> {
        let persist = || Arc::new(SimPersist::new(&self.disk)) as Arc<dyn Persist>;
        Ok((how != Flushing::Auto).then(persist))
    }
}

/// A lock on a name of a simulated directory.
#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    key: (u64, String),
    is_shared: bool,
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut inner = self.disk.inner();
        let list = if self.is_shared { &mut inner.shared } else { &mut inner.locked };
        if let Some(at) = list.iter().position(|key| *key == self.key) {
            list.swap_remove(at);
        }
    }
}

/// A file of a simulated disk.
struct SimFile {
    disk: SimDisk,
    number: u64,
    path: PathBuf,
}

impl SimFile {
    /// One past the last byte of a range, which must be one that a file can have.
    fn end(&self, operation: &'static str, offset: u64, bytes: u64) -> Result<u64> {
        let end = offset.checked_add(bytes).filter(|&end| i64::try_from(end).is_ok());
        end.ok_or_else(|| self.out_of_space(operation, bytes, io::ErrorKind::FileTooLarge))
    }

    fn out_of_space(&self, operation: &'static str, bytes: u64, kind: io::ErrorKind) -> Error {
        Error::OutOfSpace { operation, path: self.path.clone(), bytes, source: kind.into() }
    }

    /// Makes the mapped content as long as the file.
    fn follow_length(&self, inner: &Inner) -> Result<()> {
        match inner.mapped.content(self.number) {
            Some(content) => content.set_len(inner.state.file(self.number).len()),
            None => Ok(()),
        }
    }

    /// Reads; `over_zeros`: the buffer holds zeros.
    fn read(&self, buffer: &mut [u8], offset: u64, over_zeros: bool) -> Result<()> {
        let inner = self.disk.inner();
        let file = inner.state.file(self.number);
        let expected_bytes = buffer.len() as u64;
        let found_bytes = file.len().saturating_sub(offset).min(expected_bytes);
        if found_bytes < expected_bytes {
            let path = self.path.clone();
            return Err(Error::Truncated { path, offset, expected_bytes, found_bytes });
        }
        match inner.mapped.content(self.number) {
            Some(content) => content.read_at(buffer, offset)?,
            None if over_zeros => file.read_over_zeros(buffer, offset),
            None => file.read(buffer, offset),
        }
        Ok(())
    }
}

/// How many of `bytes` bytes at `offset` find room when `pages` pages can be added to `space`.
fn bytes_with_room(space: &Space, offset: u64, bytes: u64, mut pages: u64) -> u64 {
    for page in pages_of(offset, bytes) {
        if space.missing(page..page + 1) > 0 {
            if pages == 0 {
                return (page * PAGE_BYTES as u64).saturating_sub(offset);
            }
            pages -= 1;
        }
    }
    bytes
}

impl File for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        Ok(self.disk.inner().state.file(self.number).len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.disk.inner().check_call(Call::Read, "read", &self.path)?;
        self.read(buffer, offset, false)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.end("write", offset, bytes.len() as u64)?;
        let mut inner = self.disk.inner();
        let fault = inner.fault(Call::Write);
        let space = inner.state.file(self.number).space();
        let room = bytes_with_room(space, offset, bytes.len() as u64, inner.space_pages_left());
        let half = bytes.len() / 2 / SECTOR_BYTES * SECTOR_BYTES;
        let written = if fault.is_some() { half } else { bytes.len() }.min(room as usize);
        let file = self.number;
        inner.record(Operation::Write { file, offset, bytes: bytes[..written].into() });
        if let Some(content) = inner.mapped.content(file) {
            content.write_at(&bytes[..written], offset)?;
        }
        if let Some(fault) = fault {
            return Err(fault.error("write", &self.path, Some(offset)));
        }
        if written < bytes.len() {
            let missing = (bytes.len() - written) as u64;
            return Err(self.out_of_space("write", missing, io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    /// Two writes, cut at any byte: a store is no call, so a process can die, and a page be written
    /// back, in its midst. A failure is reported by the sync, not here.
    fn write_mapped_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let mut inner = self.disk.inner();
        let state = inner.state.file(self.number);
        let (end, count) = (self.end("write", offset, bytes.len() as u64)?, bytes.len() as u64);
        assert!(
            end <= state.len() && state.space().missing(pages_of(offset, count)) == 0,
            "a store to bytes {offset}..{end} of {}, which has {} bytes, would be a signal",
            self.path.display(),
            state.len()
        );
        inner.settle();
        let cut = inner.random.usize(..=bytes.len());
        for (piece, at) in [(&bytes[..cut], offset), (&bytes[cut..], offset + cut as u64)] {
            if !piece.is_empty() {
                let (file, bytes) = (self.number, piece.into());
                inner.record(Operation::Write { file, offset: at, bytes });
            }
        }
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let operation = "allocate space in";
        self.end(operation, offset, len)?;
        let mut inner = self.disk.inner();
        inner.check(Call::Allocate, operation, &self.path)?;
        let needed = inner.state.file(self.number).space().missing(pages_of(offset, len));
        if needed > inner.space_pages_left() {
            inner.record(Operation::Failed { verb: operation });
            return Err(self.out_of_space(operation, len, io::ErrorKind::StorageFull));
        }
        inner.record(Operation::Allocate { file: self.number, offset, len });
        self.follow_length(&inner)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        let operation = "give back space of";
        self.end(operation, offset, len)?;
        assert!(
            offset.is_multiple_of(PAGE_BYTES as u64) && len.is_multiple_of(PAGE_BYTES as u64),
            "holes are whole pages, found {len} bytes at {offset} of {}",
            self.path.display()
        );
        let mut inner = self.disk.inner();
        inner.check(Call::Punch, operation, &self.path)?;
        inner.record(Operation::Punch { file: self.number, offset, len });
        match inner.mapped.content(self.number) {
            Some(content) => content.punch(offset, len),
            None => Ok(()),
        }
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.end("set the length of", len, 0)?;
        let mut inner = self.disk.inner();
        inner.check(Call::SetLen, "set the length of", &self.path)?;
        inner.record(Operation::SetLen { file: self.number, len });
        self.follow_length(&inner)
    }

    #[track_caller]
    fn sync(&self) -> Result<()> {
        let site = Site::new(Kind::Sync, Location::caller());
        let mut inner = self.disk.inner();
        if !inner.sites.meet(site) {
            return Ok(());
        }
        let fault = inner.fault(Call::Sync);
        let failed = fault.is_some();
        inner.record(Operation::Sync { file: self.number, failed });
        fault.map_or(Ok(()), |fault| Err(fault.error("sync", &self.path, None)))
    }

    unsafe fn map_private(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> Result<()> {
        self.disk.inner().check_call(Call::Map, "map", &self.path)?;
        // Pages that the file does not have are not touched: most pages of a small pool.
        // SAFETY: our caller promises that no reference into the range exists.
        unsafe { region.release(region_offset, len) }?;
        let source = |part: &mut [u8], at| self.read(part, file_offset + at, true);
        // SAFETY: as above; released pages are zero when they are committed again.
        unsafe { region.fill(region_offset, len, source) }
    }

    fn drops_private(&self) -> bool {
        true
    }

    unsafe fn drop_private(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
        _: bool,
    ) -> Result<()> {
        let unsynced = self.disk.inner().state.file(self.number).unsynced_in(file_offset, len);
        assert_eq!(
            unsynced,
            None,
            "dropped an image of bytes of {} that no successful sync covers",
            self.path.display()
        );
        let source = |part: &mut [u8], at| self.read(part, file_offset + at, false);
        // SAFETY: references into the range find the same bytes in it: our caller promises that,
        // and that no thread stores to it.
        unsafe { region.fill(region_offset, len, source) }
    }

    unsafe fn map_shared(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> Result<()> {
        let mut inner = self.disk.inner();
        inner.check(Call::MapShared, "map", &self.path)?;
        let Inner { mapped, state, .. } = &mut *inner;
        let content = mapped.create_content(self.number, state.file(self.number))?;
        // SAFETY: our caller promises the same.
        unsafe { content.map_shared(region, region_offset, file_offset, len) }?;
        mapped.add(region, region_offset, self.number, file_offset, len);
        Ok(())
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimFile").field("path", &self.path).finish_non_exhaustive()
    }
}
