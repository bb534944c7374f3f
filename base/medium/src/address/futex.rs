//! A futex in a file: processes that share it wait for each other.
//!
//! Purpose: a process that writes rings, and others that wait are woken: a store of 5 ns if none
//! waits, and a system call of some 1 us if one does. Only in files that may be mapped, see
//! `window.rs`; callers look after a while where there is none, or where another process has none.
//! Invariants: a process that waits says for the end of which count, then looks at the count; one
//! that rings counts on, then looks whether one waits for the end of the count before (`SeqCst`).
//! So each ring ends all waits that began before it. A process that says so too late ends them
//! itself, since it may have overwritten what another one said. One that dies in between delays
//! others until they look; nothing else that it left behind means anything.
//! Thread safety: any thread, of any process.
//!
//! Two words: the count, which is never 0, and the count that a process waits for the end of.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::pwrite;
use rustix::thread::futex::{self, Flags, Timespec};

use crate::address::bell::Bell;
use crate::address::window::{Window, overwrites_in_place};

/// A bell at an offset of a file.
#[derive(Debug)]
pub(crate) struct FileBell {
    window: Window,
    offset: u64,
}

// SAFETY: the window is memory of the process, of which only atomic words are accessed.
unsafe impl Sync for FileBell {}

impl FileBell {
    /// The bell at a multiple of 8 of a file, which is longer. `None` if it cannot be mapped. One
    /// process at a time has it to ring, and makes it; others find `None` before.
    pub(crate) fn new(file: impl AsFd, offset: u64, rings: bool) -> Option<Self> {
        if !overwrites_in_place(&file) {
            return None;
        }
        let page_bytes = rustix::param::page_size() as u64;
        let start = offset - offset % page_bytes;
        let window = Window::map(&file, start, page_bytes as usize)?;
        let bell = Self { window, offset };
        let count = bell.words()?.0.load(Ordering::Relaxed);
        if !rings {
            return (count != 0).then_some(bell);
        }
        // A store to a page that has no space yet might find none, and raise a signal: a call does
        // not.
        pwrite(&file, &count.max(1).to_le_bytes(), offset).ok()?;
        Some(bell)
    }

    fn words(&self) -> Option<(&AtomicU32, &AtomicU32)> {
        Some((self.window.word(self.offset)?, self.window.word(self.offset + 4)?))
    }
}

fn wake_all(count: &AtomicU32) {
    // Fails only for memory that is none.
    let _ = futex::wake(count, Flags::empty(), i32::MAX as u32);
}

impl Bell for FileBell {
    fn ring(&self) {
        let Some((count, waiting)) = self.words() else { return };
        let before = count.fetch_add(1, Ordering::SeqCst);
        if before == u32::MAX {
            count.fetch_add(1, Ordering::SeqCst);
        }
        if waiting.load(Ordering::SeqCst) == before {
            wake_all(count);
        }
    }

    fn count(&self) -> u32 {
        self.words().map_or(0, |(count, _)| count.load(Ordering::SeqCst))
    }

    fn wait(&self, seen: u32, longest: Duration) {
        let Some((count, waiting)) = self.words() else { return };
        waiting.store(seen, Ordering::SeqCst);
        if count.load(Ordering::SeqCst) != seen {
            return wake_all(count);
        }
        let Ok(longest) = Timespec::try_from(longest) else { return };
        // Whatever ends it, the caller looks again.
        let _ = futex::wait(count, Flags::empty(), seen, Some(&longest));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn file() -> std::fs::File {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(65_536).expect("is made longer");
        file
    }

    #[test]
    fn each_ring_ends_waits() {
        let file = file();
        // As two processes have it.
        assert!(FileBell::new(&file, 61_440, false).is_none());
        let bells = [true, false].map(|rings| FileBell::new(&file, 61_440, rings));
        let [Some(one), Some(other)] = bells else { return };
        assert_eq!((one.count(), other.count()), (1, 1));
        const ROUNDS: u32 = 20_000;
        let follow = || {
            let mut seen = 1;
            while seen < ROUNDS {
                let start = Instant::now();
                other.wait(seen, Duration::from_secs(20));
                assert!(start.elapsed() < Duration::from_secs(10), "{seen} of {}", other.count());
                seen = other.count();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| (1..ROUNDS).for_each(|_| one.ring()));
            scope.spawn(follow);
            scope.spawn(follow);
        });
        let start = Instant::now();
        other.wait(ROUNDS, Duration::from_millis(20));
        assert!(start.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn a_file_that_has_no_such_bytes_has_no_bell() {
        let file = file();
        assert!(FileBell::new(&file, 61_441, true).is_none());
    }
}
