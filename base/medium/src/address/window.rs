//! A window: a mapped piece of a file that shares the file's pages.
//!
//! Purpose: a small write costs a copy, and 4 us for each page that it is first to touch, instead
//! of a system call of 1.0 to 1.8 us each. Only in files whose range is allocated and was written,
//! and only on file systems that then overwrite in place: elsewhere the store might need missing
//! space, which raises a signal, not an error.
//! Invariants: a window lies within the file's length at the time of mapping; only `store` and
//! `word` touch its memory, and not that of the same one.
//! Thread safety: a file's stores have a lock of their own; a window belongs to its holder.

use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::mm::{MapFlags, ProtFlags};

use crate::fork::ForkGuard;

/// Bytes of a window at most. Mapping another one costs some 10 us, which a log record of 200 bytes
/// never notices at this size; and of a log of 128 MiB only this much counts as our memory.
const WINDOW_BYTES: u64 = 1 << 20;

/// The stores through memory of one file.
#[derive(Debug, Default)]
pub(crate) struct Stores(Mutex<Mapped>);

/// The mapping state of a file.
#[derive(Debug, Default)]
enum Mapped {
    /// Not tried yet.
    #[default]
    Unknown,
    /// It is to be written by calls.
    Refused,
    /// It may be mapped; the last window.
    Window(Option<Window>),
}

impl Stores {
    /// Stores bytes at a file offset and returns how many: the rest is to be written by calls.
    pub(crate) fn store(&self, file: impl AsFd, bytes: &[u8], offset: u64) -> usize {
        let mut mapped = self.mapped();
        let mut stored = 0;
        while stored < bytes.len() {
            let at = offset.saturating_add(stored as u64);
            let count = match &mut *mapped {
                Mapped::Window(Some(window)) => window.store(&bytes[stored..], at),
                _ => 0,
            };
            if count == 0 && !mapped.move_to(&file, at) {
                break;
            }
            stored += count;
        }
        stored
    }

    /// Unmaps the memory, because the file is about to be cut.
    pub(crate) fn forget(&self) {
        if let Mapped::Window(window) = &mut *self.mapped() {
            *window = None;
        }
    }

    fn mapped(&self) -> MutexGuard<'_, Mapped> {
        // No caller's code runs under this lock, so a panic leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mapped {
    /// Maps the window that holds `offset`; returns whether there is one.
    fn move_to(&mut self, file: impl AsFd, offset: u64) -> bool {
        if matches!(self, Self::Unknown) {
            let in_place = overwrites_in_place(&file);
            *self = if in_place { Self::Window(None) } else { Self::Refused };
        }
        let Self::Window(window) = self else { return false };
        *window = None;
        let file_bytes = rustix::fs::fstat(&file).map_or(0, |stat| stat.st_size.unsigned_abs());
        if offset >= file_bytes {
            return false;
        }
        let start = offset - offset % WINDOW_BYTES;
        let bytes = file_bytes.saturating_sub(start).min(WINDOW_BYTES) as usize;
        match Window::map(&file, start, bytes) {
            Some(found) => *window = Some(found),
            // Too many mappings, or too little memory for one more: calls work as well.
            None => *self = Self::Refused,
        }
        matches!(self, Self::Window(_))
    }
}

/// A mapped piece of a file.
#[derive(Debug)]
pub(crate) struct Window {
    address: NonNull<u8>,
    /// File offset of the first byte.
    start: u64,
    bytes: usize,
    fork: ForkGuard,
}

// SAFETY: the window is memory of the process, not tied to the thread that mapped it.
unsafe impl Send for Window {}

impl Window {
    /// Maps bytes of a file, which lie below its length, from a multiple of the page size on.
    pub(crate) fn map(file: impl AsFd, start: u64, bytes: usize) -> Option<Self> {
        let fork = ForkGuard::new().ok()?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without MAP_FIXED the kernel picks addresses that nothing else uses.
        let address = unsafe {
            rustix::mm::mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, file, start)
        };
        let address = NonNull::new(address.ok()?.cast())?;
        let window = Self { address, start, bytes, fork };
        window.keep_from_children().ok()?;
        Some(window)
    }

    /// The word at a file offset, a multiple of its size; `None` if it does not lie in the window.
    pub(crate) fn word(&self, offset: u64) -> Option<&AtomicU32> {
        if self.holds(offset, size_of::<u32>()) < size_of::<u32>() || !offset.is_multiple_of(4) {
            return None;
        }
        // SAFETY: `holds` found that it lies within the mapping.
        let word = unsafe { self.address.add((offset - self.start) as usize) };
        // SAFETY: mapped, writable memory, as aligned as its offset since the mapping is, for as
        // long as `self`. All that share it, of other processes, too, use atomics.
        Some(unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) })
    }

    /// How many of `len` bytes at a file offset lie in the window.
    fn holds(&self, offset: u64, len: usize) -> usize {
        match offset.checked_sub(self.start) {
            Some(within) if within < self.bytes as u64 => (self.bytes - within as usize).min(len),
            _ => 0,
        }
    }

    /// Stores bytes at a file offset, as many as the window holds, and returns how many.
    fn store(&mut self, bytes: &[u8], offset: u64) -> usize {
        let count = self.holds(offset, bytes.len());
        if count > 0 {
            // SAFETY: `holds` found `count` bytes from there on within the mapping.
            let target = unsafe { self.address.add((offset - self.start) as usize) };
            // SAFETY: the target is mapped and writable; no reference to a window's bytes exists,
            // so the source, which is one, does not overlap it.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target.as_ptr(), count) };
        }
        count
    }

    /// Keeps the window from a fork's child, which has no right to write the file.
    fn keep_from_children(&self) -> rustix::io::Result<()> {
        let (address, advice) = (self.address.as_ptr().cast(), rustix::mm::Advice::LinuxDontFork);
        // SAFETY: the range was just mapped, and this advice changes no byte of it.
        unsafe { rustix::mm::madvise(address, self.bytes, advice) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if self.fork.is_child() {
            // It is not mapped here, and another mapping may be at its addresses by now.
            return;
        }
        // SAFETY: exactly the range that `map` mapped; no reference into it exists.
        let unmapped = unsafe { rustix::mm::munmap(self.address.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
    }
}

/// Whether a file lies on a file system that overwrites in place, so that a store needs no space,
/// and whose mappings, reads, writes and syncs see the same pages.
pub(crate) fn overwrites_in_place(file: impl AsFd) -> bool {
    /// From linux/magic.h: ext2, ext3 and ext4.
    const EXT: u64 = 0xEF53;
    /// tmpfs.
    const TMPFS: u64 = 0x0102_1994;
    rustix::fs::fstatfs(file).is_ok_and(|found| [EXT, TMPFS].contains(&(found.f_type as u64)))
}
