//! The storage traits: everything that Adamant asks of a file system.
//!
//! Purpose: the operating system, memory (`Store::in_memory`) and the simulator of `testing/sim`
//! each implement them.
//! Thread safety: all methods take `&self` and may be called from any thread.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::address::bell::Bell;
use crate::address::persist::{Flushing, Persist};
use crate::address::region::Region;
use crate::error::{Error, Result};
use crate::names::name_of;

/// A directory and the names in it: text, as [`crate::names`] makes it of names that are no UTF-8.
pub trait Directory: Any + Send + Sync + Debug {
    /// For messages only.
    fn path(&self) -> &Path;
    /// Opens a file for reading and writing; `None` if there is none of that name.
    fn open(&self, name: &str) -> Result<Option<Arc<dyn File>>>;
    /// Creates an empty file; an error if the name exists. Its name is durable after `sync`.
    fn create(&self, name: &str) -> Result<Arc<dyn File>>;
    /// The same for a file that is written in order, and synced before anything needs what is in
    /// it: a crash may leave any of its bytes undefined until then.
    fn create_once(&self, name: &str) -> Result<Arc<dyn File>> {
        self.create(name)
    }
    /// Renames a file, replacing a file of the new name. Durable after `sync`.
    fn rename(&self, source: &str, target: &str) -> Result<()>;
    /// Whether a directory can be renamed or removed while it, or a file in it, is open, a lock
    /// among them, and a file be replaced: nowhere else but on Windows is that refused.
    fn renames_open(&self) -> bool {
        true
    }
    /// Swaps two names in here in one atomic step, of files or directories: after a crash both have
    /// changed, or neither. Durable after `sync`. An error that [`Error::is_unsupported`] if that
    /// is not possible; then nothing happened.
    fn exchange(&self, one: &str, other: &str) -> Result<()> {
        let _ = other;
        Err(unsupported("exchange names in", self.path(), one))
    }
    /// Gives a file in here the same name in another directory, too: a hard link. Durable after
    /// `sync` of that one. False if there is no file of that name; an error that
    /// [`Error::is_unsupported`] if it cannot be done there; then nothing happened.
    fn link(&self, name: &str, target: &dyn Directory) -> Result<bool> {
        let _ = target;
        Err(unsupported("link", self.path(), name))
    }
    /// Removes a file. Durable after `sync`.
    fn remove(&self, name: &str) -> Result<()>;
    /// Removes a directory in here with all its contents, one name after the other. Durable after
    /// `sync`, in any order. An error that [`Error::is_unsupported`] if directories cannot be
    /// removed.
    fn remove_all(&self, name: &str) -> Result<()> {
        Err(unsupported("remove", self.path(), name))
    }
    /// Names of the files and directories in here, sorted.
    fn list(&self) -> Result<Vec<String>>;
    /// Makes the names in here durable.
    #[track_caller]
    fn sync(&self) -> Result<()>;
    /// The directory of that name in here, created if missing (durable after `sync` of this one).
    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>>;
    /// A handle of its own to the same directory, which [`Directory::close`] closes with all that
    /// was opened through it; `None` if nothing is held open that could be closed.
    fn open_again(&self) -> Result<Option<Arc<dyn Directory>>> {
        Ok(None)
    }
    /// Closes this handle, and every file and subdirectory that was opened through it, even those
    /// still in use: later calls on them fail. Locks and mappings stay.
    fn close(&self) {}
    /// Takes the exclusive lock `name`, which dies with the process or with the value returned.
    /// `Error::Locked` names the holder. Never waits.
    fn lock(&self, name: &str) -> Result<Box<dyn Lock>>;
    /// Takes a share of the lock `name`: any number of shares may exist, but no exclusive lock
    /// beside them. It changes no file, and creates only that of the lock if it is missing.
    /// `Error::Locked` names the holder of the lock. Never waits.
    fn lock_shared(&self, name: &str) -> Result<Box<dyn Lock>>;
    /// Fills a buffer with random bytes, for identities.
    fn random(&self, buffer: &mut [u8]) -> Result<()>;
    /// The way to make stores to shared mappings of the files in here durable. `None` when they
    /// never are, or not as `how` asks. `name` is that of a file that may be in here already.
    fn persist(&self, how: Flushing, name: &str) -> Result<Option<Arc<dyn Persist>>> {
        let _ = (how, name);
        Ok(None)
    }
    /// The way the files in here are written, if by store instructions instead of calls.
    fn stores(&self) -> Option<&Arc<dyn Persist>> {
        None
    }
}

/// A lock on a directory, or a share of one, released on drop.
pub trait Lock: Send + Sync + Debug {}

/// A sync that may still run.
#[derive(Debug)]
pub enum StartedSync {
    /// It has ended.
    Done(Result<()>),
    /// A thread runs it.
    Running(JoinHandle<Result<()>>),
}

impl StartedSync {
    /// Waits until it has ended.
    ///
    /// # Errors
    /// Those of the sync. Dropped instead, they are lost: then nothing may be assumed of the bytes.
    pub fn wait(self) -> Result<()> {
        match self {
            Self::Done(done) => done,
            Self::Running(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
        }
    }
}

/// An open file.
pub trait File: Send + Sync + Debug {
    /// For messages only.
    fn path(&self) -> &Path;
    /// Length in bytes.
    fn len(&self) -> Result<u64>;
    /// Whether the file holds no byte.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Tells the system that reads come in no order, or read ahead by themselves: from now on none
    /// reads more than it is asked for. A hint.
    fn expect_random(&self) {}
    /// Fills the buffer from the bytes at `offset`; `Error::Truncated` if there are fewer.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()>;
    /// As [`File::read_at`], for what has a checksum of its own: bytes of an encrypted file that
    /// are not what was written are 0xFF instead of an error.
    fn read_with_lost_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.read_at(buffer, offset)
    }
    /// Writes all bytes at `offset`; the file grows if needed. Not durable before `sync`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()>;
    /// As [`File::write_at`], for a log: its parts have checksums of their own, and what is behind
    /// the last one means nothing. In an encrypted file bytes beside these that are not what was
    /// written are 0xFF from then on, instead of an error, and those behind them are undefined, as
    /// far as a sector reaches; so that need not be read.
    fn append_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.write_at(bytes, offset)
    }
    /// As [`File::append_at`], for few bytes of a range that is allocated, was written and is never
    /// cut off: if the medium allows it, a store to memory that shares the file's pages. 184 bytes
    /// behind each other cost 0.2 us of processor each, by a call 1.1; from 1,000 on a call is
    /// cheaper. Reads see it at once, it survives the death of the process, and `sync` makes it
    /// durable; but then the page is set up anew, so this is for bytes whose sync no caller waits
    /// for. A crash may leave any part of them.
    fn write_mapped_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.append_at(bytes, offset)
    }
    /// Whether writes are stores to memory, durable when they return, except for length and space.
    fn is_direct(&self) -> bool {
        false
    }
    /// Makes stores to an allocated range cost no page fault. A hint: it does nothing if writes are
    /// calls.
    fn prepare_stores(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }
    /// Backs the range with space on the device, so that writing it cannot run out of space.
    /// New bytes are zero, existing ones stay; the file grows to the end of the range if shorter.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;
    /// Gives the space of the range back to the device: its bytes are zero from then on, the length
    /// stays. Not durable before `sync`: until then each byte may have its old value. An error that
    /// [`Error::is_unsupported`] if the system or the file system has no holes; then nothing
    /// happened. Offset and `len` are multiples of the page size.
    fn punch(&self, offset: u64, len: u64) -> Result<()>;
    /// Cuts the file, or extends it with a hole.
    fn set_len(&self, len: u64) -> Result<()>;
    /// Makes all bytes and the length durable. After a failure nothing may be assumed.
    #[track_caller]
    fn sync(&self) -> Result<()>;
    /// The same for the bytes written so far, beside what the caller does until it waits for it: in
    /// a thread of its own, some 30 us. A medium without threads syncs at once.
    #[track_caller]
    fn start_sync(self: Arc<Self>) -> StartedSync {
        StartedSync::Done(self.sync())
    }
    /// The bell in 8 bytes of the file, at a multiple of 8 below its end, which are nothing else
    /// and need not survive: for as long as the file is not cut. `None` if the medium has none, or
    /// none that is safe; or, for a process that only waits, if none `rings` yet.
    fn bell(&self, offset: u64, rings: bool) -> Option<Arc<dyn Bell>> {
        let _ = (offset, rings);
        None
    }
    /// Makes `len` bytes of the region at `region_offset` a private, writable image of the file's
    /// bytes at `file_offset`: later stores never reach the file. Offsets and `len` are multiples
    /// of the page size, the range of the file exists. A medium that maps no files reads it, as by
    /// [`File::read_with_lost_at`]: a mapping shows what is damaged, too.
    ///
    /// # Safety
    /// No reference into that range of the region may exist, but to bytes that are the same in the
    /// file, and no thread stores to it meanwhile.
    unsafe fn map_private(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> Result<()> {
        let read = |part: &mut [u8], at| self.read_with_lost_at(part, file_offset + at);
        // SAFETY: our caller promises that no reference into the range exists.
        unsafe { region.fill(region_offset, len, read) }
    }
    /// Whether [`File::drop_private`] gives memory back: not where the file itself is memory.
    fn drops_private(&self) -> bool {
        false
    }
    /// Makes memory of the region the file's bytes again, and gives back the memory that stores to
    /// it took. Arguments and errors as of [`File::map_private`], which mapped that range there
    /// before if `is_mapped` says so; else it is memory that was committed.
    ///
    /// # Safety
    /// As of [`File::map_private`].
    unsafe fn drop_private(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
        is_mapped: bool,
    ) -> Result<()> {
        let _ = is_mapped;
        // SAFETY: our caller promises the same.
        unsafe { self.map_private(region, region_offset, file_offset, len) }
    }
    /// Has memory of its own put behind whole pages of a private image now, all at once, where the
    /// first store to each would take longer. No byte changes. A hint: a medium without such a way
    /// does nothing.
    ///
    /// # Safety
    /// [`File::map_private`] of this file made the pages, and no thread has stored to them, or does
    /// so before this returns.
    unsafe fn copy_private(&self, region: &Region, region_offset: u64, len: u64) {
        let _ = (region, region_offset, len);
    }
    /// Makes `len` bytes of the region at `region_offset` the file's own bytes at `file_offset`:
    /// stores reach the file, and the medium as [`Persist`] says. Offsets and `len` are multiples
    /// of the page size, the range of the file exists and stays for as long as it is mapped. An
    /// error that [`Error::is_unsupported`] if the medium has no such mapping.
    ///
    /// # Safety
    /// No reference into that range of the region may exist. Other code may change the bytes
    /// through the file or a second mapping, but not while references into the range live.
    unsafe fn map_shared(
        &self,
        region: &Region,
        region_offset: u64,
        file_offset: u64,
        len: u64,
    ) -> Result<()> {
        let _ = (region, region_offset, file_offset, len);
        Err(Error::io("map", self.path(), None, 0, io::ErrorKind::Unsupported.into()))
    }
}

pub(crate) fn unsupported(operation: &'static str, directory: &Path, name: &str) -> Error {
    Error::io(operation, &directory.join(name_of(name)), None, 0, io::ErrorKind::Unsupported.into())
}

/// One past the last byte of a range, which must be one that a file can have: an offset is a signed
/// number.
pub(crate) fn end_of_range(
    operation: &'static str,
    path: &Path,
    offset: u64,
    bytes: u64,
) -> Result<u64> {
    let end = offset.checked_add(bytes).filter(|&end| i64::try_from(end).is_ok());
    end.ok_or_else(|| {
        let source = io::ErrorKind::FileTooLarge.into();
        Error::io(operation, path, Some(offset), bytes, source)
    })
}

/// Bytes of no name: those between names, and, on Windows, that before a stream of a file.
const NO_NAME_BYTES: &[u8] = if cfg!(windows) { b"/\\:\0" } else { b"/\0" };

/// Refuses a name that is not one component of a path: the first step of every [`Directory`] call.
///
/// # Errors
/// `Error::Io` of kind `InvalidInput`.
pub fn check_name(operation: &'static str, directory: &Path, name: &str) -> Result<()> {
    let os_name = name_of(name);
    let is_special = name.is_empty() || name == "." || name == "..";
    if is_special || os_name.as_encoded_bytes().iter().any(|byte| NO_NAME_BYTES.contains(byte)) {
        let source = io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("expected the name of a file in it, found {name:?}"),
        );
        return Err(Error::io(operation, directory, None, 0, source));
    }
    Ok(())
}
