//! Directories of Windows.
//!
//! Purpose: [`Directory`] by paths. Each directory is open meanwhile, shared for everything but
//! its removal and renaming, so that paths stay those of the same directory. Files are shared for
//! removal as well: they can be removed and replaced while they are open, as everywhere.
//! Invariants: paths for calls are verbatim (`\\?\`), so that no name means a device or another
//! stream, and none is too long.
//! Thread safety: any thread.

use std::fs::{self, File as SystemFile, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_DIRECTORY_NOT_SUPPORTED, ERROR_INVALID_FUNCTION,
    ERROR_NOT_SAME_DEVICE, ERROR_SHARING_VIOLATION, ERROR_TOO_MANY_LINKS, GENERIC_WRITE,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE,
};

use crate::error::{Error, Result};
use crate::names::{name_of, text_of};
use crate::storage::{Directory, File, Lock, check_name, unsupported};
use crate::system::complete::create_directory;
use crate::system::handle::{Handle, Handles, source_of};
use crate::system::random::random;
use crate::system::windows::file::OsFile;
use crate::system::windows::lock::OsLock;

/// Virus scanners and indexers open what has just been closed, mostly for some milliseconds. So
/// long a renaming waits for them, between tries.
const PAUSES_MS: [u64; 4] = [1, 10, 50, 200];

/// A directory of a file system.
#[derive(Debug)]
pub struct OsDirectory {
    directory: Arc<Handle>,
    /// Handles opened through it and its subdirectories, including its own.
    opened: Arc<Handles>,
    /// For messages.
    path: PathBuf,
    /// For calls.
    verbatim: PathBuf,
    is_read_only: bool,
}

/// Opens a directory, shared as above; with a further access.
fn open_directory(path: &Path, access: u32) -> io::Result<SystemFile> {
    let mut options = OpenOptions::new();
    options.read(true).share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE);
    if access != 0 {
        options.access_mode(access);
    }
    let directory = options.custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)?;
    match directory.metadata()?.is_dir() {
        true => Ok(directory),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

/// Renames, and tries again while something has it open that does not let it.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    for pause in PAUSES_MS {
        let renamed = fs::rename(from, to);
        let code = renamed.as_ref().err().and_then(io::Error::raw_os_error);
        match code.map(|code| code as u32) {
            Some(ERROR_ACCESS_DENIED | ERROR_SHARING_VIOLATION) => {}
            _ => return renamed,
        }
        thread::sleep(Duration::from_millis(pause));
    }
    fs::rename(from, to)
}

impl OsDirectory {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// `Error::Io` when it does not exist or is something else.
    pub fn open(path: impl AsRef<Path>) -> Result<OsDirectory> {
        Self::with(path.as_ref(), Arc::default(), false)
    }

    /// Opens an existing directory that this handle never changes: files are opened for reading,
    /// subdirectories have to exist, and a lock can only be shared. So no permission to write is
    /// needed.
    ///
    /// # Errors
    /// As [`OsDirectory::open`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<OsDirectory> {
        Self::with(path.as_ref(), Arc::default(), true)
    }

    /// Opens a directory, creating it (but not its parents) if missing. Its name is durable when
    /// this returns.
    ///
    /// # Errors
    /// `Error::Io` when its parent does not exist or the path is something else.
    pub fn create(path: impl AsRef<Path>) -> Result<OsDirectory> {
        create_directory(path.as_ref(), |path| Self::open(path))
    }

    fn with(path: &Path, opened: Arc<Handles>, is_read_only: bool) -> Result<OsDirectory> {
        let failed = |error| Error::io("open directory", path, None, 0, error);
        let verbatim = fs::canonicalize(path).map_err(failed)?;
        let directory = opened.add(open_directory(&verbatim, 0).map_err(failed)?)?;
        Ok(OsDirectory { directory, opened, path: path.into(), verbatim, is_read_only })
    }

    fn error(&self, operation: &'static str, name: &str, error: io::Error) -> Error {
        Error::io(operation, &self.path.join(name_of(name)), None, 0, source_of(error))
    }

    /// Fails for a read-only directory.
    fn check_writable(&self, operation: &'static str, name: &str) -> Result<()> {
        check_name(operation, &self.path, name)?;
        if self.is_read_only {
            return Err(self.error(operation, name, io::ErrorKind::ReadOnlyFilesystem.into()));
        }
        Ok(())
    }

    /// The result of a call on a name in here, unless the directory was closed.
    fn call<T>(&self, name: &str, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        self.directory.with(|_| call(&self.verbatim.join(name_of(name))))
    }

    fn open_file(&self, name: &str, is_new: bool) -> io::Result<SystemFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(!self.is_read_only).create_new(is_new);
        options.share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE);
        self.call(name, |path| options.open(path))
    }

    fn file(&self, file: SystemFile, name: &str) -> Result<Arc<dyn File>> {
        let path = self.path.join(name_of(name));
        Ok(Arc::new(OsFile::new(self.opened.add(file)?, path)))
    }
}

impl Directory for OsDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        check_name("open", &self.path, name)?;
        match self.open_file(name, false) {
            Ok(file) => self.file(file, name).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // The system only says that access to a directory is denied.
            Err(_) if self.verbatim.join(name_of(name)).is_dir() => {
                let code = ERROR_DIRECTORY_NOT_SUPPORTED as i32;
                Err(self.error("open", name, io::Error::from_raw_os_error(code)))
            }
            Err(error) => Err(self.error("open", name, error)),
        }
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>> {
        self.check_writable("create", name)?;
        let made = self.open_file(name, true);
        self.file(made.map_err(|error| self.error("create", name, error))?, name)
    }

    fn rename(&self, source: &str, target: &str) -> Result<()> {
        self.check_writable("rename", source)?;
        check_name("rename to", &self.path, target)?;
        let to = self.verbatim.join(name_of(target));
        self.call(source, |from| rename(from, &to))
            .map_err(|error| self.error("rename", source, error))
    }

    fn renames_open(&self) -> bool {
        false
    }

    fn link(&self, name: &str, target: &dyn Directory) -> Result<bool> {
        check_name("link", &self.path, name)?;
        let Some(target) = (target as &dyn std::any::Any).downcast_ref::<Self>() else {
            return Err(unsupported("link", &self.path, name));
        };
        target.check_writable("link", name)?;
        let linked = self.call(name, |from| target.call(name, |to| fs::hard_link(from, to)));
        let code = |error: &io::Error| error.raw_os_error().map(|code| code as u32);
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            // Another file system, or one without links, or too many of them.
            Err(error)
                if matches!(
                    code(&error),
                    Some(ERROR_NOT_SAME_DEVICE | ERROR_INVALID_FUNCTION | ERROR_TOO_MANY_LINKS)
                ) =>
            {
                Err(unsupported("link", &self.path, name))
            }
            Err(error) => Err(self.error("link", name, error)),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.check_writable("remove", name)?;
        self.call(name, |path| fs::remove_file(path))
            .map_err(|error| self.error("remove", name, error))
    }

    fn remove_all(&self, name: &str) -> Result<()> {
        self.check_writable("remove", name)?;
        self.call(name, |path| fs::remove_dir_all(path))
            .map_err(|error| self.error("remove", name, error))
    }

    fn list(&self) -> Result<Vec<String>> {
        let read = || {
            let entries = self.directory.with(|_| fs::read_dir(&self.verbatim))?;
            entries.map(|entry| Ok(text_of(&entry?.file_name()).into_owned())).collect()
        };
        let names: io::Result<Vec<String>> = read();
        let mut names =
            names.map_err(|error| Error::io("list", &self.path, None, 0, source_of(error)))?;
        names.sort_unstable();
        Ok(names)
    }

    /// Through a handle for writing: others flush nothing.
    fn sync(&self) -> Result<()> {
        let flush = || open_directory(&self.verbatim, GENERIC_WRITE)?.sync_all();
        self.directory
            .with(|_| flush())
            .map_err(|error| Error::io("sync directory", &self.path, None, 0, source_of(error)))
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>> {
        check_name("create directory", &self.path, name)?;
        if !self.is_read_only {
            match self.call(name, |path| fs::create_dir(path)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(self.error("create directory", name, error));
                }
                _ => {}
            }
        }
        let verbatim = self.verbatim.join(name_of(name));
        let directory = self.directory.with(|_| open_directory(&verbatim, 0));
        let directory = directory.map_err(|error| self.error("open directory", name, error))?;
        Ok(Arc::new(Self {
            directory: self.opened.add(directory)?,
            opened: Arc::clone(&self.opened),
            path: self.path.join(name_of(name)),
            verbatim,
            is_read_only: self.is_read_only,
        }))
    }

    fn open_again(&self) -> Result<Option<Arc<dyn Directory>>> {
        let opened = Self::with(&self.verbatim, Arc::default(), self.is_read_only)?;
        Ok(Some(Arc::new(Self { path: self.path.clone(), ..opened })))
    }

    fn close(&self) {
        self.opened.close();
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.check_writable("lock", name)?;
        let at = self.verbatim.join(name_of(name));
        Ok(Box::new(OsLock::take(&at, self.path.join(name_of(name)))?))
    }

    fn lock_shared(&self, name: &str) -> Result<Box<dyn Lock>> {
        check_name("lock", &self.path, name)?;
        let at = self.verbatim.join(name_of(name));
        match OsLock::share(&at, self.path.join(name_of(name)))? {
            Some(lock) => Ok(Box::new(lock)),
            None => Ok(Box::new(NoLock)),
        }
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        random(buffer)
            .map_err(|error| Error::io("draw random bytes for", &self.path, None, 0, error))
    }
}

/// Stands in for a lock where no process can have one.
#[derive(Debug)]
struct NoLock;

impl Lock for NoLock {}
