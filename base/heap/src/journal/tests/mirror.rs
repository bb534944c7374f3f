//! Memory of the pages that records name, as a heap has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use adamant_medium::storage::File;
use parking_lot::Mutex;

use crate::error::Result;
use crate::journal::records::record::{Entries, Entry};
use crate::journal::{Copies, Journal, PageBytes, PageSource, RecordBuilder};
use crate::layout::{PAGE_BYTES, file_offset};

#[derive(Debug, Default)]
struct State {
    pages: BTreeMap<u64, PageBytes>,
    dirty: BTreeSet<u64>,
}

/// Runs between two holds.
type Between = Mutex<Option<Box<dyn FnMut() + Send>>>;

/// Shows each record as soon as it was appended: a record is noted before its number is visible.
#[derive(Debug)]
struct Mirror {
    pool: Arc<dyn File>,
    state: Mutex<State>,
    between: Arc<BetweenHolds>,
}

#[derive(Default)]
pub(super) struct BetweenHolds(pub(super) Between);

impl std::fmt::Debug for BetweenHolds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BetweenHolds")
    }
}

/// Makes the checkpoints of a journal copy their pages from a mirror of all appended records.
pub(super) fn mirrored(journal: Journal) -> Journal {
    disturbed(&journal, Arc::default());
    journal
}

/// The same; `between` runs between two holds.
pub(super) fn disturbed(journal: &Journal, between: Arc<BetweenHolds>) {
    let (pool, state) = (Arc::clone(journal.pool().file()), Mutex::default());
    journal.set_source(Arc::new(Mirror { pool, state, between }));
}

impl Mirror {
    fn change(
        &self,
        state: &mut State,
        mut at: u64,
        mut bytes: &[u8],
        change: impl Fn(&mut u8, u8),
    ) {
        while !bytes.is_empty() {
            let (page, within) = (at / PAGE_BYTES, (at % PAGE_BYTES) as usize);
            let known = state.pages.entry(page).or_insert_with(|| {
                let mut read = [0; PAGE_BYTES as usize];
                // Bytes beyond the end are zero.
                let _ = self.pool.read_at(&mut read, file_offset(page * PAGE_BYTES));
                read
            });
            let (now, later) = bytes.split_at(bytes.len().min(known.len() - within));
            known[within..].iter_mut().zip(now).for_each(|(byte, new)| change(byte, *new));
            state.dirty.insert(page);
            (at, bytes) = (at + now.len() as u64, later);
        }
    }
}

impl PageSource for Mirror {
    fn note_named(&self, record: &RecordBuilder) {
        let state = &mut *self.state.lock();
        for entry in record.frames().flat_map(Entries::new) {
            match entry.expect("a record of our own") {
                Entry::Bytes { offset, bytes } => {
                    self.change(state, offset, bytes, |byte, new| *byte = new);
                }
                Entry::Set { offset, mask } => {
                    self.change(state, offset, &mask.to_le_bytes(), |byte, mask| *byte |= mask);
                }
                Entry::Clear { offset, mask } => {
                    self.change(state, offset, &mask.to_le_bytes(), |byte, mask| *byte &= !mask);
                }
                Entry::Hole { offset, len } => {
                    for page in offset / PAGE_BYTES..(offset + len) / PAGE_BYTES {
                        state.pages.insert(page, [0; PAGE_BYTES as usize]);
                        state.dirty.remove(&page);
                    }
                }
            }
        }
        let named = record.pages().iter().flat_map(Clone::clone).collect::<BTreeSet<_>>();
        assert!(state.dirty.is_superset(&named) || named.is_empty(), "{named:?}");
    }

    fn dirty_pages(&self) -> u64 {
        self.state.lock().dirty.len() as u64
    }

    fn hold(&self, _is_alone: bool, work: &mut dyn FnMut()) {
        work();
        // Not within itself.
        let between = self.between.0.lock().take();
        if let Some(mut between) = between {
            between();
            *self.between.0.lock() = Some(between);
        }
    }

    fn end_epoch(&self) -> Option<u32> {
        None
    }

    fn copy(
        &self,
        mut page: u64,
        _epoch: Option<u32>,
        copies: &mut Copies,
        held_end: &dyn Fn(u64) -> Option<u64>,
    ) -> Result<Option<u64>> {
        let state = &mut *self.state.lock();
        // Few, so that others come in between.
        for _ in 0..3 {
            let Some(dirty) = state.dirty.range(page..).next().copied() else { return Ok(None) };
            if copies.is_full() {
                break;
            }
            page = held_end(dirty).unwrap_or_else(|| {
                *copies.add(dirty) = state.pages[&dirty];
                state.dirty.remove(&dirty);
                dirty + 1
            });
        }
        Ok(Some(page))
    }

    fn note_covered(&self, _epoch: u32) {}
}
