//! Files and directories of the operating system.
//!
//! Purpose: [`Directory`] and [`File`] on system calls, relative to an open directory, so that a
//! directory renamed while open stays ours.
//! Invariants: reads and writes are complete or fail; interrupted ones are repeated, syncs never.
//! Thread safety: a file is its descriptor (`handle.rs`), and every call names its offset; nothing
//! is shared but the window for stores through memory, which has a lock of its own.
//!
//! A write or allocation beyond the process's file size limit (`ulimit -f`) is `OutOfSpace`, but
//! only in a process that ignores SIGXFSZ: by default that signal kills it first. We change no
//! signal handlers: they belong to the program.

use std::any::Any;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

#[cfg(target_os = "linux")]
use crate::address::bell::Bell;
#[cfg(target_os = "linux")]
use crate::address::futex::FileBell;
#[cfg(target_os = "linux")]
use crate::address::persist::{Flushing, Persist};
#[cfg(target_os = "linux")]
use crate::address::region::Region;
use crate::error::{Error, Result};
use crate::names::{name_of, text_of};
use crate::storage::{Directory, File, Lock, StartedSync, check_name, unsupported};
use crate::system::allocate::allocate;
use crate::system::complete::{create_directory, read_all, write_all};
use crate::system::handle::{Handle, Handles, source_of};
use crate::system::lock::OsLock;
use crate::system::random::random;
use crate::system::sync_beside::sync_beside;

/// Mode of new files: the umask decides who may use them.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// The same of directories.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

/// A directory of a file system.
#[derive(Debug)]
pub struct OsDirectory {
    directory: Arc<Handle>,
    /// Handles opened through it and its subdirectories, including its own.
    opened: Arc<Handles>,
    path: PathBuf,
    is_read_only: bool,
}

impl OsDirectory {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// `Error::Io` when it does not exist or is something else.
    pub fn open(path: impl AsRef<Path>) -> Result<OsDirectory> {
        let path = path.as_ref();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
            .map_err(|error| Error::io("open directory", path, None, 0, error.into()))?;
        Self::with(directory, Arc::default(), path.into(), false)
    }

    /// Opens an existing directory that this handle never changes: files are opened for reading,
    /// subdirectories have to exist, and a lock can only be shared. So no permission to write is
    /// needed.
    ///
    /// # Errors
    /// As [`OsDirectory::open`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<OsDirectory> {
        Ok(OsDirectory { is_read_only: true, ..Self::open(path)? })
    }

    /// Opens a directory, creating it (but not its parents) if missing. Its name is durable
    /// when this returns.
    ///
    /// # Errors
    /// `Error::Io` when its parent does not exist or the path is something else.
    pub fn create(path: impl AsRef<Path>) -> Result<OsDirectory> {
        create_directory(path.as_ref(), |path| Self::open(path))
    }

    fn with(
        directory: OwnedFd,
        opened: Arc<Handles>,
        path: PathBuf,
        is_read_only: bool,
    ) -> Result<OsDirectory> {
        let directory = opened.add(directory)?;
        Ok(OsDirectory { directory, opened, path, is_read_only })
    }

    fn open_directory(&self, name: &str) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.directory.with(|directory| {
            retry_on_intr(|| rustix::fs::openat(directory, &*name_of(name), flags, Mode::empty()))
        })
    }

    fn error(&self, operation: &'static str, name: &str, error: Errno) -> Error {
        Error::io(operation, &self.path.join(name_of(name)), None, 0, source_of(error))
    }

    /// Fails for a read-only directory.
    fn check_writable(&self, operation: &'static str, name: &str) -> Result<()> {
        check_name(operation, &self.path, name)?;
        if self.is_read_only {
            return Err(self.error(operation, name, Errno::ROFS));
        }
        Ok(())
    }

    fn open_file(&self, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let access = if self.is_read_only { OFlags::RDONLY } else { OFlags::RDWR };
        let flags = flags | access | OFlags::CLOEXEC;
        self.directory.with(|directory| {
            retry_on_intr(|| rustix::fs::openat(directory, &*name_of(name), flags, FILE_MODE))
        })
    }

    /// A descriptor of the directory, for operations with errors of their own.
    fn duplicate(&self, operation: &'static str, name: &str) -> Result<OwnedFd> {
        let copied = self.directory.with(|directory| rustix::io::fcntl_dupfd_cloexec(directory, 0));
        copied.map_err(|error| self.error(operation, name, error))
    }

    fn file(&self, file: OwnedFd, name: &str) -> Result<Arc<dyn File>> {
        let path = self.path.join(name_of(name));
        Ok(Arc::new(OsFile { file: self.opened.add(file)?, path }))
    }
}

impl Directory for OsDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        check_name("open", &self.path, name)?;
        match self.open_file(name, OFlags::empty()) {
            Ok(file) => self.file(file, name).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.error("open", name, error)),
        }
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>> {
        self.check_writable("create", name)?;
        let made = self.open_file(name, OFlags::CREATE | OFlags::EXCL);
        self.file(made.map_err(|error| self.error("create", name, error))?, name)
    }

    fn rename(&self, source: &str, target: &str) -> Result<()> {
        self.check_writable("rename", source)?;
        check_name("rename to", &self.path, target)?;
        self.directory
            .with(|directory| {
                rustix::fs::renameat(directory, &*name_of(source), directory, &*name_of(target))
            })
            .map_err(|error| self.error("rename", source, error))
    }

    fn exchange(&self, one: &str, other: &str) -> Result<()> {
        self.check_writable("exchange", one)?;
        check_name("exchange with", &self.path, other)?;
        let (one, other) = (&*name_of(one), &*name_of(other));
        self.directory.with(|directory| exchange(directory, one, other)).map_err(|error| {
            let source = match error {
                Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL => {
                    io::Error::from(io::ErrorKind::Unsupported)
                }
                error => source_of(error),
            };
            Error::io("exchange names in", &self.path.join(one), None, 0, source)
        })
    }

    fn link(&self, name: &str, target: &dyn Directory) -> Result<bool> {
        check_name("link", &self.path, name)?;
        let Some(target) = (target as &dyn Any).downcast_ref::<Self>() else {
            return Err(unsupported("link", &self.path, name));
        };
        target.check_writable("link", name)?;
        let to = target.duplicate("link", name)?;
        let name_at = &*name_of(name);
        let linked = self.directory.with(|directory| {
            rustix::fs::linkat(directory, name_at, &to, name_at, AtFlags::empty())
        });
        match linked {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            // Another file system, or one without links, or too many of them.
            Err(Errno::XDEV | Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                Err(unsupported("link", &self.path, name))
            }
            Err(error) => Err(self.error("link", name, error)),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.check_writable("remove", name)?;
        self.directory
            .with(|directory| rustix::fs::unlinkat(directory, &*name_of(name), AtFlags::empty()))
            .map_err(|error| self.error("remove", name, error))
    }

    fn remove_all(&self, name: &str) -> Result<()> {
        self.check_writable("remove", name)?;
        let path = self.path.join(name_of(name));
        self.directory.with(|_| Ok(())).map_err(|error| self.error("remove", name, error))?;
        std::fs::remove_dir_all(&path).map_err(|error| Error::io("remove", &path, None, 0, error))
    }

    fn list(&self) -> Result<Vec<String>> {
        let failed = |error: Errno| Error::io("list", &self.path, None, 0, source_of(error));
        let mut names = Vec::new();
        for entry in self
            .directory
            .with(|directory| rustix::fs::Dir::read_from(directory))
            .map_err(failed)?
        {
            let entry = entry.map_err(failed)?;
            let name = text_of(OsStr::from_bytes(entry.file_name().to_bytes()));
            if name != "." && name != ".." {
                names.push(name.into_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync(&self) -> Result<()> {
        self.directory
            .with(|directory| rustix::fs::fsync(directory))
            .map_err(|error| Error::io("sync directory", &self.path, None, 0, source_of(error)))
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>> {
        check_name("create directory", &self.path, name)?;
        if !self.is_read_only {
            let make = |directory: &OwnedFd| {
                rustix::fs::mkdirat(directory, &*name_of(name), DIRECTORY_MODE)
            };
            match self.directory.with(make) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(self.error("create directory", name, error)),
            }
        }
        let opened = self.open_directory(name);
        let directory = opened.map_err(|error| self.error("open directory", name, error))?;
        let (opened, path) = (Arc::clone(&self.opened), self.path.join(name_of(name)));
        Ok(Arc::new(Self::with(directory, opened, path, self.is_read_only)?))
    }

    fn open_again(&self) -> Result<Option<Arc<dyn Directory>>> {
        let failed = |error| Error::io("open directory", &self.path, None, 0, source_of(error));
        let directory = self.open_directory(".").map_err(failed)?;
        let (path, opened) = (self.path.clone(), Arc::default());
        Ok(Some(Arc::new(Self::with(directory, opened, path, self.is_read_only)?)))
    }

    fn close(&self) {
        self.opened.close();
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.check_writable("lock", name)?;
        let directory = self.duplicate("lock", name)?;
        Ok(Box::new(OsLock::take(directory, name, self.path.join(name))?))
    }

    fn lock_shared(&self, name: &str) -> Result<Box<dyn Lock>> {
        check_name("lock", &self.path, name)?;
        match OsLock::share(self.duplicate("lock", name)?, name, self.path.join(name))? {
            Some(lock) => Ok(Box::new(lock)),
            None => Ok(Box::new(NoLock)),
        }
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        random(buffer)
            .map_err(|error| Error::io("draw random bytes for", &self.path, None, 0, error))
    }

    /// Only Linux says whether a file is persistent memory.
    #[cfg(target_os = "linux")]
    fn persist(&self, how: Flushing, name: &str) -> Result<Option<Arc<dyn Persist>>> {
        crate::system::dax::persist(&self.duplicate("look at", ".")?, &self.path, how, name)
    }
}

/// Stands in for a lock where no process can have one.
#[derive(Debug)]
struct NoLock;

impl Lock for NoLock {}

/// A file of a file system.
#[derive(Debug)]
pub(crate) struct OsFile {
    file: Arc<Handle>,
    path: PathBuf,
}

impl OsFile {
    /// A file without a name, in memory.
    ///
    /// # Errors
    /// Those of the system.
    #[cfg(target_os = "linux")]
    pub(crate) fn in_memory(path: &Path) -> Result<Self> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file = rustix::fs::memfd_create("adamant", flags)
            .map_err(|error| Error::io("create", path, None, 0, error.into()))?;
        Ok(Self { file: Arc::new(Handle::new(file)?), path: path.into() })
    }

    /// A page beyond the end would raise a signal at its first touch instead of an error here.
    #[cfg(target_os = "linux")]
    fn check_mapped(&self, file_offset: u64, len: u64) -> Result<()> {
        let found_bytes = self.len()?.saturating_sub(file_offset);
        if found_bytes < len {
            let (path, offset) = (self.path.clone(), file_offset);
            return Err(Error::Truncated { path, offset, expected_bytes: len, found_bytes });
        }
        Ok(())
    }

    fn error(&self, operation: &'static str, offset: u64, bytes: u64, error: Errno) -> Error {
        Error::io(operation, &self.path, Some(offset), bytes, source_of(error))
    }
}

impl File for OsFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        let stat = self.file.with(|file| rustix::fs::fstat(file));
        let stat = stat.map_err(|error| self.error("measure", 0, 0, error))?;
        Ok(stat.st_size.unsigned_abs())
    }

    #[cfg(not(target_vendor = "apple"))]
    fn expect_random(&self) {
        let advice = rustix::fs::Advice::Random;
        // A hint: if it fails, more is read than needed.
        let _ = self.file.with(|file| rustix::fs::fadvise(file, 0, None, advice));
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        read_all(&self.path, buffer, offset, |rest, at| {
            self.file.with(|file| retry_on_intr(|| rustix::io::pread(file, &mut *rest, at)))
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        write_all(&self.path, bytes, offset, |rest, at| {
            self.file.with(|file| retry_on_intr(|| rustix::io::pwrite(file, rest, at)))
        })
    }

    #[cfg(target_os = "linux")]
    fn write_mapped_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let stored = self.file.store(bytes, offset);
        self.write_at(&bytes[stored..], offset.saturating_add(stored as u64))
    }

    #[cfg(target_os = "linux")]
    fn bell(&self, offset: u64, rings: bool) -> Option<Arc<dyn Bell>> {
        let bell = self.file.with(|file| Ok(FileBell::new(file, offset, rings)));
        bell.ok().flatten().map(|bell| Arc::new(bell) as Arc<dyn Bell>)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        self.file
            .with(|file| allocate(file, offset, len))
            .map_err(|error| self.error("allocate space in", offset, len, error))
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        self.file.with(|file| retry_on_intr(|| punch(file, offset, len))).map_err(|error| {
            let source = match error {
                Errno::OPNOTSUPP | Errno::NOSYS => io::ErrorKind::Unsupported.into(),
                error => source_of(error),
            };
            Error::io("give back space of", &self.path, Some(offset), len, source)
        })
    }

    fn set_len(&self, len: u64) -> Result<()> {
        // A store beyond the end would raise a signal.
        #[cfg(target_os = "linux")]
        self.file.forget_stores();
        self.file
            .with(|file| retry_on_intr(|| rustix::fs::ftruncate(file, len)))
            .map_err(|error| self.error("set the length of", len, len, error))
    }

    fn sync(&self) -> Result<()> {
        // Never repeated: after a failure the kernel may have dropped pages that it could not
        // write.
        let flushed = self.file.with(flush);
        flushed.map_err(|error| Error::io("sync", &self.path, None, 0, source_of(error)))
    }

    fn start_sync(self: Arc<Self>) -> StartedSync {
        sync_beside(self)
    }

    #[cfg(target_os = "linux")]
    unsafe fn map_private(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> Result<()> {
        self.check_mapped(file_offset, len)?;
        let mapped = self.file.with(|file| {
            // SAFETY: our caller promises the contract of `map_file`.
            unsafe { region.map_file(region_offset, len, file, file_offset) }
        });
        mapped.map_err(|error| self.error("map", file_offset, len, error))?;
        region.advise(region_offset, len)
    }

    #[cfg(target_os = "linux")]
    fn drops_private(&self) -> bool {
        true
    }

    #[cfg(target_os = "linux")]
    unsafe fn drop_private(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
        is_mapped: bool,
    ) -> Result<()> {
        if !is_mapped {
            // SAFETY: our caller promises the same.
            return unsafe { self.map_private(region, region_offset, file_offset, len) };
        }
        // SAFETY: our caller promises it.
        let dropped = unsafe { region.drop_pages(region_offset, len) };
        dropped.map_err(|error| self.error("drop the image of", file_offset, len, error))
    }

    #[cfg(target_os = "linux")]
    unsafe fn copy_private(&self, region: &Region, region_offset: u64, len: u64) {
        // Changing existing page-table entries takes an interrupt to other processors for each; new
        // entries are made without that cost. Dropping all of them at once takes one such
        // interrupt.
        // SAFETY: no thread has stored to the pages: the dropped bytes are the file's.
        if unsafe { region.drop_pages(region_offset, len) }.is_ok() {
            region.populate(region_offset, len);
        }
    }

    #[cfg(target_os = "linux")]
    unsafe fn map_shared(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> Result<()> {
        self.check_mapped(file_offset, len)?;
        let mapped = self.file.with(|file| {
            // SAFETY: our caller promises the contract of `map_file_shared`.
            unsafe { region.map_file_shared(region_offset, len, file, file_offset) }
        });
        mapped.map_err(|error| self.error("map", file_offset, len, error))?;
        region.advise(region_offset, len)
    }
}

/// Syncs data, and the metadata that reading it needs: length and allocation.
#[cfg(not(target_vendor = "apple"))]
fn flush(file: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::fdatasync(file)
}

/// There fsync stops at the device's volatile cache; only this goes through it.
#[cfg(target_vendor = "apple")]
fn flush(file: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::fcntl_fullfsync(file)
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(directory: &OwnedFd, one: &OsStr, other: &OsStr) -> rustix::io::Result<()> {
    let flags = rustix::fs::RenameFlags::EXCHANGE;
    rustix::fs::renameat_with(directory, one, directory, other, flags)
}

/// Other systems have no such call.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_directory: &OwnedFd, _one: &OsStr, _other: &OsStr) -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn punch(file: &OwnedFd, offset: u64, len: u64) -> rustix::io::Result<()> {
    use rustix::fs::FallocateFlags;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, flags, offset, len)
}

/// Other systems have calls of their own, or none.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn punch(_file: &OwnedFd, _offset: u64, _len: u64) -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}
