//! Closable descriptors: they can be closed while files or directories still use them.
//!
//! Purpose: every call on a file or directory of the operating system passes through here. A call
//! is refused after [`Handles::close`], and in the child of a fork, which has no right to change
//! files that its parent has open, nor the memory that goes with it.
//! Invariants: a descriptor is closed when no call uses it: another file that gets its number is
//! never read or written by mistake.
//! Thread safety: any thread. A call holds the lock of its own handle, shared.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

#[cfg(target_os = "linux")]
use crate::address::window::Stores;
use crate::error;
use crate::fork::ForkGuard;

#[cfg(unix)]
mod system {
    use rustix::io::Errno;

    /// An open file or directory.
    pub(crate) type Descriptor = std::os::fd::OwnedFd;
    /// A failure of a call.
    pub(crate) type Failure = Errno;

    /// The error of calls on a closed handle; no call on an open one returns it.
    pub(super) fn closed() -> Failure {
        Errno::BADF
    }

    /// The error of calls in the child of a fork; no call on a file returns it.
    pub(super) fn child() -> Failure {
        Errno::CHILD
    }

    pub(super) fn is(one: &Failure, other: &Failure) -> bool {
        one == other
    }

    pub(super) fn source_of(error: Failure) -> std::io::Error {
        error.into()
    }
}

#[cfg(windows)]
mod system {
    use std::io;

    use windows_sys::Win32::Foundation::{ERROR_INVALID_HANDLE, ERROR_WAIT_NO_CHILDREN};

    /// An open file or directory.
    pub(crate) type Descriptor = std::fs::File;
    /// A failure of a call.
    pub(crate) type Failure = io::Error;

    /// The error of calls on a closed handle; no call on an open one returns it.
    pub(super) fn closed() -> Failure {
        io::Error::from_raw_os_error(ERROR_INVALID_HANDLE as i32)
    }

    /// That of calls in the child of a fork, which there are none of here.
    pub(super) fn child() -> Failure {
        io::Error::from_raw_os_error(ERROR_WAIT_NO_CHILDREN as i32)
    }

    pub(super) fn is(one: &Failure, other: &Failure) -> bool {
        one.raw_os_error() == other.raw_os_error()
    }

    pub(super) fn source_of(error: Failure) -> io::Error {
        error
    }
}

pub(crate) use system::{Descriptor, Failure};

/// From this many handles on, dropped ones are removed.
const SWEPT_MIN: usize = 16;

/// A failure of a call on a handle, in words.
pub(crate) fn source_of(error: Failure) -> io::Error {
    if system::is(&error, &system::closed()) {
        return io::Error::other("it was closed with its store; open that again");
    }
    if system::is(&error, &system::child()) {
        return io::Error::other(
            "it was opened before a fork; open it in the child after its parent has closed it, or \
             use exec",
        );
    }
    system::source_of(error)
}

/// A descriptor, and memory that shares pages of its file.
#[derive(Debug)]
pub(crate) struct Handle {
    file: RwLock<Option<Descriptor>>,
    #[cfg(target_os = "linux")]
    stores: Stores,
    fork: ForkGuard,
}

impl Handle {
    pub(crate) fn new(file: Descriptor) -> error::Result<Self> {
        let (file, fork) = (RwLock::new(Some(file)), ForkGuard::new()?);
        Ok(Self {
            file,
            #[cfg(target_os = "linux")]
            stores: Stores::default(),
            fork,
        })
    }

    /// The result of a call on the descriptor.
    ///
    /// # Errors
    /// Those of the call; and two that [`source_of`] puts into words: the handle was closed, or
    /// this is the child of a fork.
    pub(crate) fn with<T>(
        &self,
        call: impl FnOnce(&Descriptor) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // First: in a child the lock may be held by a thread that does not exist.
        if self.fork.is_child() {
            return Err(system::child());
        }
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        call(file.as_ref().ok_or_else(system::closed)?)
    }

    /// Stores bytes at a file offset through memory and returns how many: see [`Stores::store`].
    #[cfg(target_os = "linux")]
    pub(crate) fn store(&self, bytes: &[u8], offset: u64) -> usize {
        self.with(|file| Ok(self.stores.store(file, bytes, offset))).unwrap_or(0)
    }

    /// Unmaps the memory, because the file is about to be cut.
    #[cfg(target_os = "linux")]
    pub(crate) fn forget_stores(&self) {
        if !self.fork.is_child() {
            self.stores.forget();
        }
    }

    fn close(&self) {
        drop(self.file.write().unwrap_or_else(PoisonError::into_inner).take());
        // No thread can make another window without the descriptor.
        #[cfg(target_os = "linux")]
        self.stores.forget();
    }
}

/// The handles of a directory and of all that was opened through it.
#[derive(Debug, Default)]
pub(crate) struct Handles(Mutex<Vec<Weak<Handle>>>);

impl Handles {
    /// Adds one.
    pub(crate) fn add(&self, file: Descriptor) -> error::Result<Arc<Handle>> {
        let handle = Arc::new(Handle::new(file)?);
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if handles.len() == handles.capacity() {
            // Before it grows, so that dropped handles are removed each time its length doubles.
            handles.retain(|handle| handle.strong_count() > 0);
            let wanted = (2 * handles.len()).max(SWEPT_MIN);
            let missing = wanted - handles.len();
            handles.reserve(missing);
        }
        handles.push(Arc::downgrade(&handle));
        Ok(handle)
    }

    /// Closes all of them.
    pub(crate) fn close(&self) {
        let handles = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        handles.iter().filter_map(Weak::upgrade).for_each(|handle| handle.close());
    }
}
