//! The fork guard: detects that this process is a fork's child of the one that made a value.
//!
//! Purpose: regions are not inherited by a fork (R6), and a child has no right to write a store's
//! files, so a handle used in the child must be refused before it touches either. Asking the system
//! for the process number would cost a system call for every read; a page that the kernel wipes in
//! the child, or a handler of forks where it wipes none, costs one load.
//! Invariants: the page belongs to the process, as a fork does, and to no store: it is made with
//! the first guard and stays. It holds a number that no process before this one had, or 0 in a
//! child that has made no guard of its own yet.
//! Thread safety: any thread; no thread waits, so a fork finds no lock held.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;

/// The last number that this process or one before it took: a child inherits it.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Made at open, checked at every use.
#[derive(Clone, Copy, Debug)]
pub struct ForkGuard {
    word: &'static AtomicU64,
    ours: u64,
}

impl ForkGuard {
    /// A guard of this process.
    ///
    /// # Errors
    /// `Error::AddressSpace` when the system has no page for it.
    pub fn new() -> Result<Self> {
        let word = system::word()?;
        let mut ours = word.load(Ordering::Acquire);
        if ours == 0 {
            let number = NUMBER.fetch_add(1, Ordering::AcqRel) + 1;
            let taken = word.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
            ours = taken.map_or_else(|other| other, |_| number);
        }
        Ok(Self { word, ours })
    }

    /// Whether this is a child that a fork made after the guard. One load.
    #[inline]
    pub fn is_child(&self) -> bool {
        self.word.load(Ordering::Relaxed) != self.ours
    }
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

    use rustix::mm::{MapFlags, ProtFlags};

    use crate::error::{Error, Result};

    /// The page; null before the first guard.
    static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

    /// The word of the page, which is mapped if need be.
    pub(super) fn word() -> Result<&'static AtomicU64> {
        let mut page = PAGE.load(Ordering::Acquire);
        if page.is_null() {
            let bytes = rustix::param::page_size();
            let refused = |error: rustix::io::Errno| Error::AddressSpace {
                needed_bytes: bytes as u64,
                source: error.into(),
            };
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: without MAP_FIXED the kernel picks addresses that nothing else uses.
            let mapped = unsafe {
                rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE)
            };
            let new = mapped.map_err(refused)?;
            let refused = |source| Error::Advice { advice: WIPING, bytes: bytes as u64, source };
            wipe_on_fork(new, bytes).map_err(refused)?;
            let (null, new) = (ptr::null_mut(), new.cast());
            page = match PAGE.compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => new,
                // Another thread was first. Its page is the process's; ours is leaked, one page
                // once.
                Err(other) => other,
            };
        }
        // SAFETY: a page that was mapped above, here or by another thread, zeroed, aligned, never
        // unmapped, and only ever used as this atomic word.
        Ok(unsafe { &*page })
    }

    /// What has a child's page wiped.
    const WIPING: &str =
        if cfg!(target_os = "linux") { "MADV_WIPEONFORK" } else { "a handler of forks" };

    /// Has the kernel give a fork's child zeros in place of these pages.
    #[cfg(target_os = "linux")]
    fn wipe_on_fork(address: *mut std::ffi::c_void, len: usize) -> io::Result<()> {
        // SAFETY: the range is our own, just mapped, and this advice changes no byte of it here.
        let advised =
            unsafe { rustix::mm::madvise(address, len, rustix::mm::Advice::LinuxWipeOnFork) };
        advised.map_err(io::Error::from)
    }

    /// Other systems have no such advice, or one of their own, but all of them handlers: a child of
    /// `fork` runs it, one that was made past the C library does not.
    #[cfg(not(target_os = "linux"))]
    fn wipe_on_fork(_address: *mut std::ffi::c_void, _len: usize) -> io::Result<()> {
        extern "C" fn forked() {
            let page = PAGE.load(Ordering::Relaxed);
            // SAFETY: a page that lives as long as the process, used as an atomic word alone.
            if let Some(word) = unsafe { page.as_ref() } {
                word.store(0, Ordering::Relaxed);
            }
        }
        // SAFETY: the handler only stores to an atomic, as a child of a process of many threads
        // may.
        match unsafe { libc::pthread_atfork(None, None, Some(forked)) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

#[cfg(windows)]
mod system {
    use std::sync::atomic::AtomicU64;

    use crate::error::Result;

    /// No process is a copy of another one here.
    pub(super) fn word() -> Result<&'static AtomicU64> {
        static WORD: AtomicU64 = AtomicU64::new(0);
        Ok(&WORD)
    }
}
