//! Extents whose bytes the applier holds back.
//!
//! Purpose: a buffer is filled, written to a file of its own and freed; what is in it need never be
//! in the pool file. So the applier leaves out what records say of its bytes, and checkpoints stay
//! before the first record of which something was left out: a crash finds all of it in the log.
//! Invariants: of a hold, records after `since` and up to `until`, which frees the extent, are held
//! back. A checkpoint passes what was held back only if the record that frees the extent is durable (then
//! nobody will ever read it), or if all of it was taken to the pool after all, and the pool synced.
//! Holds that are in force for one record are disjoint. Memory of an extent is kept (R6)
//! until the file has its bytes, or until its pages are free and nobody looks at them any more.
//! See docs/decisions/0090-held-extents.md. Thread safety: any thread; a mutex around a list.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::chain::Cursor;
use crate::layout::PAGE_BYTES;

/// Of an extent that is in use: no record frees it.
const IN_USE: u64 = u64::MAX;

/// A place in the log, and the bytes appended by then, at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) cursor: Cursor,
    pub(super) appended_bytes: u64,
}

/// What is held back.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Heap offsets.
    start: u64,
    end: u64,
    /// Sequence numbers: the last record before, and the one that frees the extent.
    since: u64,
    until: u64,
    /// Before the first record of which something was held back.
    first: Option<Kept>,
}

impl Held {
    fn is_in_force(&self, sequence: u64) -> bool {
        self.since < sequence && sequence <= self.until
    }

    /// Whether it keeps what was held back in the log.
    fn pins(&self, durable: u64) -> bool {
        self.first.is_some() && self.until > durable
    }
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    held: Held,
    /// Whether records are held back.
    is_active: bool,
    /// Whether memory keeps its pages.
    is_kept: bool,
}

/// Which holds are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GivingUp {
    /// Those that keep more of the log than they may.
    Beyond,
    /// The oldest ones: somebody needs space in the log.
    Oldest,
    All,
}

/// The holds of a journal.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    list: Mutex<Vec<Hold>>,
    /// How many there are: spares those who free extents the lock.
    count: AtomicUsize,
    /// Mistakes, planted to see that tests notice them: checkpoints pass what is held back; a hold ends
    /// before the record that frees its extent is durable.
    #[cfg(test)]
    pub(super) is_passed: std::sync::atomic::AtomicBool,
    #[cfg(test)]
    pub(super) ends_early: std::sync::atomic::AtomicBool,
    /// What happens while a checkpoint is made: when its records are applied.
    #[cfg(test)]
    pub(super) meanwhile: Meanwhile,
}

#[cfg(test)]
#[derive(Default)]
pub(super) struct Meanwhile(pub(super) Mutex<Option<Box<dyn FnOnce() + Send>>>);

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
        list.retain(|hold| hold.is_active || hold.is_kept);
        self.count.store(list.len(), Ordering::Release);
        done
    }

    fn is_none(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Holds back what records after `since` say of an extent that nobody else has.
    pub(crate) fn add(&self, page: u64, pages: u64, since: u64) {
        let (start, end) = (page * PAGE_BYTES, (page + pages) * PAGE_BYTES);
        let held = Held { start, end, since, until: IN_USE, first: None };
        self.change(|list| list.push(Hold { held, is_active: true, is_kept: true }));
    }

    /// An extent was not published: no record names it. Whether it was held.
    pub(crate) fn cancel(&self, page: u64) -> bool {
        let is_it = |hold: &Hold| hold.held.until == IN_USE && hold.held.start == page * PAGE_BYTES;
        !self.is_none()
            && self.change(|list| {
                let found = list.iter().position(is_it);
                found.map(|at| list.swap_remove(at)).is_some()
            })
    }

    /// An extent was freed by that record.
    pub(crate) fn free(&self, page: u64, sequence: u64) {
        if self.is_none() {
            return;
        }
        self.change(|list| {
            for hold in list.iter_mut() {
                if hold.held.until == IN_USE && hold.held.start == page * PAGE_BYTES {
                    hold.held.until = sequence;
                }
            }
        });
    }

    /// Tells `let_go` of extents (first page, pages) whose memory need not be kept any more: the file has
    /// their bytes, or `is_free` says that their pages are free.
    pub(crate) fn let_go(
        &self,
        is_free: impl Fn(u64, u64) -> bool,
        mut let_go: impl FnMut(u64, u64),
    ) {
        if self.is_none() {
            return;
        }
        self.change(|list| {
            for Hold { held, is_active, is_kept } in list.iter_mut().filter(|hold| hold.is_kept) {
                let (page, end) = (held.start / PAGE_BYTES, held.end / PAGE_BYTES);
                let is_in_file = !*is_active && held.until == IN_USE;
                if is_in_file || held.until != IN_USE && is_free(page, end - page) {
                    *is_kept = false;
                    let_go(page, end - page);
                }
            }
        });
    }

    /// Bytes of all extents whose memory is kept.
    pub(crate) fn kept_bytes(&self) -> u64 {
        if self.is_none() {
            return 0;
        }
        let list = self.list.lock();
        let kept = list.iter().filter(|hold| hold.is_kept);
        kept.map(|hold| hold.held.end - hold.held.start).sum()
    }

    /// What is to be held back of records that are durable now.
    pub(super) fn to_hold_back(&self) -> Filter {
        if self.is_none() {
            return Filter::default();
        }
        let list = self.list.lock();
        Filter::new(list.iter().filter(|hold| hold.is_active).map(|hold| hold.held), Mode::Leave)
    }

    /// Notes what was held back, of records before which so many bytes were appended.
    pub(super) fn note(&self, filter: &Filter, appended_bytes: u64) {
        #[cfg(test)]
        if let Some(meanwhile) = self.meanwhile.0.lock().take() {
            meanwhile();
        }
        if filter.first.iter().all(Option::is_none) {
            return;
        }
        self.change(|list| {
            for (held, first) in filter.held.iter().zip(&filter.first) {
                let Some(cursor) = *first else { continue };
                if let Some(hold) = find(list, held) {
                    hold.held.first.get_or_insert(Kept { cursor, appended_bytes });
                }
            }
        });
    }

    /// Ends holds whose extent is free in whatever a crash leaves, as all up to the record `durable` is
    /// there, and of which no record is left to be applied.
    pub(super) fn settle(&self, durable: u64, applied: u64) {
        if self.is_none() {
            return;
        }
        let durable = self.durable(durable);
        self.change(|list| {
            for hold in list.iter_mut().filter(|hold| hold.held.until <= durable.min(applied)) {
                hold.is_active = false;
            }
        });
    }

    /// The first place of the log that a checkpoint must not pass.
    pub(super) fn oldest(&self, durable: u64) -> Option<Kept> {
        #[cfg(test)]
        if self.is_passed.load(Ordering::Relaxed) {
            return None;
        }
        if self.is_none() {
            return None;
        }
        let durable = self.durable(durable);
        let list = self.list.lock();
        let pinning = list.iter().filter(|hold| hold.is_active && hold.held.pins(durable));
        pinning.filter_map(|hold| hold.held.first).min_by_key(|first| first.cursor.sequence)
    }

    /// The holds to be given up, and the place in the log from which on their bytes were held back, if
    /// there are any. `appended_bytes`: by the last record applied. Half of the log that they keep
    /// becomes free: one hold after the other would read the log as often.
    pub(super) fn to_give_up(
        &self,
        which: GivingUp,
        durable: u64,
        appended_bytes: u64,
        bytes_max: u64,
    ) -> Option<(Filter, Cursor)> {
        let oldest = self.oldest(durable)?;
        let kept_bytes = appended_bytes.saturating_sub(oldest.appended_bytes);
        if which == GivingUp::Beyond && kept_bytes <= bytes_max {
            return None;
        }
        let half = oldest.appended_bytes + kept_bytes / 2;
        let is_chosen = |held: &Held| {
            let is_old = held.first.is_some_and(|first| first.appended_bytes <= half);
            held.pins(durable) && (which == GivingUp::All || is_old)
        };
        let list = self.list.lock();
        let active = list.iter().filter(|hold| hold.is_active).map(|hold| hold.held);
        Some((Filter::new(active.filter(is_chosen), Mode::Take), oldest.cursor))
    }

    /// What was held back of these is in the pool file, durably.
    pub(super) fn end(&self, filter: &Filter) {
        self.change(|list| {
            for held in &filter.held {
                if let Some(hold) = find(list, held) {
                    hold.is_active = false;
                    hold.held.first = None;
                }
            }
        });
    }

    #[cfg(not(test))]
    fn durable(&self, durable: u64) -> u64 {
        durable
    }

    #[cfg(test)]
    fn durable(&self, durable: u64) -> u64 {
        if self.ends_early.load(Ordering::Relaxed) { IN_USE - 1 } else { durable }
    }
}

fn find<'l>(list: &'l mut [Hold], held: &Held) -> Option<&'l mut Hold> {
    let is_it = |hold: &&mut Hold| hold.held.start == held.start && hold.held.since == held.since;
    list.iter_mut().find(is_it)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// What is held is left out.
    #[default]
    Leave,
    /// Nothing else is taken.
    Take,
}

/// Which bytes the applier takes to the pool.
#[derive(Debug, Default)]
pub(super) struct Filter {
    mode: Mode,
    /// By start.
    held: Vec<Held>,
    /// For each of them: before the first record of which something was left out.
    first: Vec<Option<Cursor>>,
    /// Bytes of the longest one.
    longest: u64,
}

impl Filter {
    fn new(held: impl Iterator<Item = Held>, mode: Mode) -> Self {
        let mut held: Vec<Held> = held.collect();
        held.sort_unstable_by_key(|held| held.start);
        let longest = held.iter().map(|held| held.end - held.start).max().unwrap_or(0);
        Self { mode, first: vec![None; held.len()], held, longest }
    }

    /// Whether everything is taken.
    pub(super) fn is_all(&self) -> bool {
        self.held.is_empty() && self.mode == Mode::Leave
    }

    /// Whether nothing but bytes of extents is taken.
    pub(super) fn is_of_extents(&self) -> bool {
        self.mode == Mode::Take
    }

    /// Tells `take` of the parts of a range that are taken, of a record that begins after `before`.
    pub(super) fn take<E>(
        &mut self,
        before: &Cursor,
        (offset, bytes): (u64, &[u8]),
        mut take: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let sequence = before.sequence + 1;
        let (mut at, end) = (offset, offset.saturating_add(bytes.len() as u64));
        while at < end {
            let (held, part_end) = self.part(at, end, sequence);
            let is_taken = match (held, self.mode) {
                (Some(index), Mode::Leave) => {
                    self.first[index].get_or_insert(*before);
                    false
                }
                (held, Mode::Take) => held.is_some(),
                (None, Mode::Leave) => true,
            };
            if is_taken {
                take(at, &bytes[(at - offset) as usize..(part_end - offset) as usize])?;
            }
            at = part_end;
        }
        Ok(())
    }

    /// The hold that a byte lies in, and up to where all that follows is as that byte.
    fn part(&self, at: u64, end: u64, sequence: u64) -> (Option<usize>, u64) {
        let mut index = self.held.partition_point(|held| held.start + self.longest <= at);
        while let Some(held) = self.held.get(index).filter(|held| held.start < end) {
            if held.is_in_force(sequence) && at < held.end {
                return if held.start <= at {
                    (Some(index), held.end.min(end))
                } else {
                    (None, held.start)
                };
            }
            index += 1;
        }
        (None, end)
    }
}
