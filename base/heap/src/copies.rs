//! Pages of the file that become memory of this process: sixteen at a time, where one is not alone.
//!
//! Purpose: the first store to a page of a private image makes the system copy it. Where the page was read
//! before, its entry in the tables of the processor has to be changed for all processors that run a
//! thread of this process, by an interrupt to each: 25 us on a virtual machine, for a copy of 0.5 us. Many entries
//! at once take one interrupt: so the second page of a group that is stored to has the rest of the group copied with
//! it. A store that stays alone in its group copies one page, as ever; so a store with few changes
//! all over a large pool takes no more memory than it did.
//! Invariants: only pages are given back to be copied that nobody has stored to: every store to a page of the file asks
//! here before. Bytes never change. At most `COPIED_BYTES_MAX` more are copied than were stored to.
//! Thread safety: any thread. Whoever is to wait for another that copies waits at most some 50 us.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use adamant_wire::mutants::is_planted;
use parking_lot::Mutex;

use crate::layout::{PAGE_BYTES, ZONE_PAGES};

/// Pages of a group: as many as the system maps around one that is read.
const GROUP_PAGES: u64 = 16;
const GROUP_BYTES: u64 = GROUP_PAGES * PAGE_BYTES;
const ZONE_GROUPS: u64 = ZONE_PAGES / GROUP_PAGES;
/// Bytes that are copied beyond the pages that are stored to, at most.
const COPIED_BYTES_MAX: u64 = 256 << 20;
/// State of a group: nothing of it was stored to; one page only, whose number it is plus one; any may have been.
const NONE: u8 = 0;
const ALL: u8 = u8::MAX;

/// Has pages copied that nobody has stored to; gets the offset of the first byte, and their bytes.
pub(crate) type Copy<'c> = &'c dyn Fn(u64, u64);

/// The states of the groups of a zone.
type Zone = Box<[AtomicU8]>;

/// What this process has copies of.
#[derive(Debug)]
pub(crate) struct Copies {
    /// By zone, made when something in it is first stored to.
    zones: Box<[OnceLock<Zone>]>,
    /// Offset behind the last whole group of the file's pages.
    end: AtomicU64,
    /// No more is copied than what is stored to.
    is_spent: AtomicBool,
    /// Bytes that were copied; held while some are.
    copied_bytes: Mutex<u64>,
}

impl Copies {
    /// Of an image whose first `pages` pages are the file's.
    pub(crate) fn new(pages: u64) -> Self {
        Self {
            zones: (0..pages.div_ceil(ZONE_PAGES)).map(|_| OnceLock::new()).collect(),
            end: AtomicU64::new(pages * PAGE_BYTES / GROUP_BYTES * GROUP_BYTES),
            is_spent: AtomicBool::new(false),
            copied_bytes: Mutex::new(0),
        }
    }

    /// Pages from this one on are no more.
    pub(crate) fn cut(&self, pages: u64) {
        let end = pages * PAGE_BYTES / GROUP_BYTES * GROUP_BYTES;
        self.end.fetch_min(end, Ordering::AcqRel);
    }

    /// `len` bytes at a heap offset are about to be stored to, at most those of one block.
    #[inline]
    pub(crate) fn note(&self, offset: u64, len: u64, copy: Copy<'_>) {
        // Beyond it are pages that have grown, and the tables.
        if offset >= self.end.load(Ordering::Acquire) || self.is_spent.load(Ordering::Relaxed) {
            return;
        }
        let (first, last) = (offset / PAGE_BYTES, (offset + len.max(1) - 1) / PAGE_BYTES);
        for group in first / GROUP_PAGES..=last / GROUP_PAGES {
            let start = group * GROUP_PAGES;
            let (first, last) = (first.max(start), last.min(start + GROUP_PAGES - 1));
            // One page has its number, several are as good as all.
            let wanted = if first == last { (first - start) as u8 + 1 } else { ALL };
            let state = self.state(group).map(|state| state.load(Ordering::Acquire));
            if state.is_some_and(|state| state != ALL && state != wanted) {
                self.change(group, wanted, copy);
            }
        }
    }

    /// The state of a group, if it is the file's.
    fn state(&self, group: u64) -> Option<&AtomicU8> {
        if group * GROUP_BYTES >= self.end.load(Ordering::Acquire) {
            return None;
        }
        let zone = self.zones.get((group / ZONE_GROUPS) as usize)?;
        let none = || (0..ZONE_GROUPS).map(|_| AtomicU8::new(NONE)).collect();
        zone.get_or_init(none).get((group % ZONE_GROUPS) as usize)
    }

    #[cold]
    fn change(&self, group: u64, wanted: u8, copy: Copy<'_>) {
        let mut copied_bytes = self.copied_bytes.lock();
        let Some(state) = self.state(group) else { return };
        let before = state.load(Ordering::Acquire);
        if before == ALL || before == wanted || self.is_spent.load(Ordering::Relaxed) {
            return;
        }
        if before == NONE && wanted != ALL {
            return state.store(wanted, Ordering::Release);
        }
        // Nobody stores to another page of it before the state says so, which is after the last of this.
        let start = group * GROUP_BYTES;
        if before == NONE || is_planted("R6.copies-over-what-was-stored") {
            copy(start, GROUP_BYTES);
        } else {
            let own = start + u64::from(before - 1) * PAGE_BYTES;
            copy(start, own - start);
            copy(own + PAGE_BYTES, start + GROUP_BYTES - own - PAGE_BYTES);
        }
        *copied_bytes += GROUP_BYTES;
        self.is_spent.store(*copied_bytes >= COPIED_BYTES_MAX, Ordering::Relaxed);
        state.store(ALL, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const PAGE: u64 = PAGE_BYTES;

    /// What is copied when some pages are stored to.
    fn copied(copies: &Copies, first: u64, pages: u64) -> Vec<(u64, u64)> {
        let seen = RefCell::new(Vec::new());
        copies.note(first * PAGE, pages * PAGE, &|offset, len| {
            if len > 0 {
                seen.borrow_mut().push((offset / PAGE, len / PAGE));
            }
        });
        seen.into_inner()
    }

    #[test]
    fn the_second_page_of_a_group_brings_the_others_but_the_first() {
        let copies = Copies::new(100);
        assert_eq!(copied(&copies, 21, 1), []);
        assert_eq!(copied(&copies, 21, 1), [], "the same");
        assert_eq!(copied(&copies, 16, 1), [(16, 5), (22, 10)]);
        assert_eq!(copied(&copies, 16, 16), []);
        assert_eq!(copied(&copies, 0, 1), []);
        assert_eq!(copied(&copies, 15, 1), [(1, 15)]);
    }

    #[test]
    fn a_store_over_several_pages_brings_their_groups() {
        let copies = Copies::new(100);
        assert_eq!(copied(&copies, 35, 2), [(32, 16)]);
        assert_eq!(
            copied(&copies, 31, 35),
            [(48, 16), (64, 16)][..],
            "one page of the first group"
        );
        assert_eq!(copied(&copies, 30, 1), [(16, 15)]);
    }

    #[test]
    fn what_is_not_the_files_is_left_alone() {
        let copies = Copies::new(100);
        assert_eq!(copied(&copies, 96, 4), [], "no whole group");
        assert_eq!(copied(&copies, 200, 40), []);
        copies.cut(50);
        assert_eq!(copied(&copies, 48, 2), []);
        assert_eq!(copied(&copies, 0, 20), [(0, 16), (16, 16)]);
    }

    #[test]
    fn no_more_is_copied_than_is_said() {
        let groups = COPIED_BYTES_MAX / GROUP_BYTES;
        let copies = Copies::new((groups + 9) * GROUP_PAGES);
        for group in 0..groups {
            assert_eq!(copied(&copies, group * GROUP_PAGES, 2).len(), 1, "{group}");
        }
        assert_eq!(copied(&copies, groups * GROUP_PAGES, 2), []);
        assert_eq!(copied(&copies, 3, 1), []);
    }
}
