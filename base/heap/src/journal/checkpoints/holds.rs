//! Held extents: extents whose bytes checkpoints hold back.
//!
//! Purpose: a buffer is filled, written to a file of its own and freed; its bytes need never be in
//! the pool file. So a checkpoint skips its pages, which stay dirty, and publishes a position
//! before the first record that may name them: after a crash all of it is in the log.
//! Invariants: a checkpoint passes a held extent only if the record that frees it is durable (then
//! it will never be read), or if the hold was given up, and the pages copied like all others. Until
//! then its pages are dirty, and so stay in memory (R6).
//! See docs/decisions/0090-held-extents.md. Thread safety: any thread; a mutex around a list.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::journal::records::chain::Cursor;
use crate::layout::PAGE_BYTES;

/// For an extent that is in use: no record frees it.
const IN_USE: u64 = u64::MAX;

/// A position in the log, and the bytes appended by then.
#[derive(Clone, Copy, Debug)]
pub(in crate::journal) struct Kept {
    pub(in crate::journal) cursor: Cursor,
    pub(in crate::journal) appended_bytes: u64,
}

/// An extent that is held back.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// Its pages, by number.
    start: u64,
    end: u64,
    /// Sequence number of the record that frees it.
    until: u64,
    /// No record before this names a page of it that the file does not have.
    first: Option<Kept>,
}

impl Hold {
    /// Whether it keeps the log.
    fn pins(&self, durable: u64) -> bool {
        self.first.is_some() && self.until > durable
    }
}

/// Which holds are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::journal) enum GivingUp {
    /// Holds that keep more of the log than they may.
    Beyond,
    /// The oldest holds: a caller needs space in the log.
    Oldest,
    All,
}

/// The holds of a journal.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    list: Mutex<Vec<Hold>>,
    /// Number of holds: saves callers that free extents the lock.
    count: AtomicUsize,
    /// Bytes of held extents: so much more log than otherwise there may be.
    bytes: Arc<AtomicU64>,
    /// Runs while a checkpoint is made, after it has read the position of the holds.
    #[cfg(test)]
    pub(in crate::journal) meanwhile: Meanwhile,
}

#[cfg(test)]
#[derive(Default)]
pub(in crate::journal) struct Meanwhile(
    pub(in crate::journal) Mutex<Option<Box<dyn FnOnce() + Send>>>,
);

#[cfg(test)]
impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl Holds {
    fn change<T>(&self, work: impl FnOnce(&mut Vec<Hold>) -> T) -> T {
        let mut list = self.list.lock();
        let done = work(&mut list);
        self.count.store(list.len(), Ordering::Release);
        let pages: u64 = list.iter().map(|hold| hold.end - hold.start).sum();
        self.bytes.store(pages * PAGE_BYTES, Ordering::Release);
        done
    }

    fn is_none(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Holds back an extent that no other caller has.
    pub(crate) fn add(&self, page: u64, pages: u64) {
        let (start, end) = (page, page + pages);
        let hold = Hold { start, end, until: IN_USE, first: None };
        self.change(|list| list.push(hold));
    }

    /// An extent was not published: no record names it.
    pub(crate) fn cancel(&self, page: u64) {
        if !self.is_none() {
            self.change(|list| list.retain(|hold| hold.until != IN_USE || hold.start != page));
        }
    }

    /// An extent was freed by that record.
    pub(crate) fn free(&self, page: u64, sequence: u64) {
        if self.is_none() {
            return;
        }
        self.change(|list| {
            let freed = list.iter_mut().filter(|hold| hold.until == IN_USE && hold.start == page);
            freed.for_each(|hold| hold.until = sequence);
        });
    }

    /// Forgets freed extents whose pages are free: they are never read again.
    pub(crate) fn forget(&self, is_free: impl Fn(u64, u64) -> bool) {
        if self.is_none() {
            return;
        }
        let stays =
            |hold: &Hold| hold.until == IN_USE || !is_free(hold.start, hold.end - hold.start);
        self.change(|list| list.retain(stays));
    }

    /// Pages that stay dirty, at most.
    pub(crate) fn pages(&self) -> u64 {
        self.bytes.load(Ordering::Acquire) / PAGE_BYTES
    }

    /// The bytes of all held extents, as they change.
    pub(in crate::journal) fn bytes(&self) -> &Arc<AtomicU64> {
        &self.bytes
    }

    /// The end of the extent of a dirty page that is held back. `before`: a position before which
    /// the log has no record about the page.
    pub(in crate::journal) fn hold_back(&self, page: u64, before: Kept) -> Option<u64> {
        if self.is_none() {
            return None;
        }
        let mut list = self.list.lock();
        let is_it = |hold: &&mut Hold| (hold.start..hold.end).contains(&page);
        let hold = list.iter_mut().find(is_it)?;
        hold.first.get_or_insert(before);
        Some(hold.end)
    }

    /// The first position that a checkpoint must not pass, if it waits for the record `durable`.
    pub(in crate::journal) fn oldest(&self, durable: u64) -> Option<Kept> {
        if self.is_none() {
            return None;
        }
        let list = self.list.lock();
        let pinning = list.iter().filter(|hold| hold.pins(durable));
        pinning.filter_map(|hold| hold.first).min_by_key(|first| first.cursor.sequence)
    }

    /// Gives holds up: their pages are copied like all others from now on. Returns whether there
    /// were any. Half of the log that they keep becomes free. `appended_bytes`: by now.
    pub(in crate::journal) fn give_up(
        &self,
        which: GivingUp,
        durable: u64,
        appended_bytes: u64,
        bytes_max: u64,
    ) -> bool {
        let mut half = u64::MAX;
        if which != GivingUp::All {
            let Some(oldest) = self.oldest(durable) else { return false };
            let kept_bytes = appended_bytes.saturating_sub(oldest.appended_bytes);
            if which == GivingUp::Beyond && kept_bytes <= bytes_max {
                return false;
            }
            half = oldest.appended_bytes + kept_bytes / 2;
        }
        let is_chosen = |hold: &Hold| match which {
            GivingUp::All => true,
            _ => hold.pins(durable) && hold.first.is_some_and(|first| first.appended_bytes <= half),
        };
        self.change(|list| {
            let count = list.len();
            list.retain(|hold| !is_chosen(hold));
            list.len() < count
        })
    }

    /// Runs what a test wants to happen while a checkpoint is made.
    #[cfg(test)]
    pub(in crate::journal) fn meanwhile(&self) {
        if let Some(meanwhile) = self.meanwhile.0.lock().take() {
            meanwhile();
        }
    }
}
