//! Compaction filters: entries that compactions remove or change.
//!
//! Purpose: what a user decides about entries that a compaction reads anyway.
//! Invariants: a filter sees the newest version of a key among the inputs, unless a snapshot sees
//! it, too. What it removes becomes a tombstone with the same number, so no older version is seen
//! in its place.
//! Thread safety: shared freely; a filter runs on the threads of compactions, under no lock.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_slice::Slice;
use arc_swap::ArcSwapOption;

use crate::key::{Entry, EntryKind};

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stays.
    Keep,
    /// The key is absent from now on.
    Remove,
    /// The key has this value from now on.
    Change(Vec<u8>),
}

/// Decides about the entries that compactions read. A panic keeps the entry.
///
/// Closures are filters:
///
/// ```
/// use adamant_lsm::{CompactionFilter, Verdict};
///
/// let filter = |_: &[u8], value: &[u8]| match value {
///     [] => Verdict::Remove,
///     _ => Verdict::Keep,
/// };
/// assert_eq!(filter.filter(b"key", b""), Verdict::Remove);
/// ```
pub trait CompactionFilter: Send + Sync {
    /// Decides about an entry.
    fn filter(&self, key: &[u8], value: &[u8]) -> Verdict;

    /// Whether it is asked about values in blob files, too, which are read for it. Default: false;
    /// these entries stay.
    fn reads_blobs(&self) -> bool {
        false
    }
}

impl<F: Fn(&[u8], &[u8]) -> Verdict + Send + Sync> CompactionFilter for F {
    fn filter(&self, key: &[u8], value: &[u8]) -> Verdict {
        self(key, value)
    }
}

/// The most compactions without a filter after one whose result a snapshot was in the way of.
const PAUSE_MAX: u64 = 32;

/// The filter of a tree.
#[derive(Default)]
pub(crate) struct FilterSlot {
    filter: ArcSwapOption<Box<dyn CompactionFilter>>,
    /// Compactions that go without it, and how many that were the last time.
    pause: AtomicU64,
    last_pause: AtomicU64,
}

impl FilterSlot {
    pub(crate) fn set(&self, filter: Box<dyn CompactionFilter>) {
        self.filter.store(Some(Arc::new(filter)));
    }

    pub(crate) fn is_set(&self) -> bool {
        self.filter.load().is_some()
    }

    /// The filter for the next compaction, about entries with larger numbers than `after`.
    pub(crate) fn next(&self, after: u64) -> Option<Filtering> {
        let filter = self.filter.load_full()?;
        let waits =
            self.pause.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        waits.is_err().then(|| Filtering { filter, after, key: None, lowest: None })
    }

    /// Notes whether the result of a filtered compaction was used: if not, the next ones go
    /// without, so that a store in which some snapshot is always open does not do all of them
    /// twice.
    pub(crate) fn note(&self, is_used: bool) {
        let last = self.last_pause.load(Ordering::Acquire);
        let pause = if is_used { 0 } else { (2 * last).clamp(1, PAUSE_MAX) };
        self.last_pause.store(pause, Ordering::Release);
        self.pause.store(pause, Ordering::Release);
    }
}

impl fmt::Debug for FilterSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterSlot").field("is_set", &self.is_set()).finish_non_exhaustive()
    }
}

/// A filter in a compaction, which gets entries in order.
pub(crate) struct Filtering {
    filter: Arc<Box<dyn CompactionFilter>>,
    /// Snapshots see this number, or a smaller one.
    after: u64,
    /// The key of the previous entry.
    key: Option<Slice>,
    /// The lowest number of an entry that was removed or changed.
    lowest: Option<u64>,
}

impl Filtering {
    /// The lowest number of an entry that was removed or changed; `None` if none was.
    pub(crate) fn lowest(&self) -> Option<u64> {
        self.lowest
    }

    /// Whether it is asked about an entry, the next in order.
    pub(crate) fn is_asked(&mut self, entry: &Entry) -> bool {
        let is_newest = self.key.as_ref() != Some(&entry.key);
        if is_newest {
            self.key = Some(entry.key.clone());
        }
        let is_value = match entry.version.kind {
            EntryKind::Value => true,
            EntryKind::Blob => self.filter.reads_blobs(),
            EntryKind::Tombstone | EntryKind::Merge => false,
        };
        is_newest && is_value && entry.version.sequence > self.after
    }

    /// The entry in place of one with that value; `None` if it stays.
    pub(crate) fn replaced(&mut self, entry: &Entry, value: &[u8]) -> Option<Entry> {
        let verdict = catch_unwind(AssertUnwindSafe(|| self.filter.filter(&entry.key, value)));
        let mut entry = entry.clone();
        let version = &mut entry.version;
        match verdict.unwrap_or(Verdict::Keep) {
            Verdict::Keep => return None,
            Verdict::Remove => {
                (version.kind, version.value) = (EntryKind::Tombstone, Slice::EMPTY);
            }
            Verdict::Change(value) => {
                u32::try_from(value.len()).ok()?;
                (version.kind, version.value) = (EntryKind::Value, value.into());
            }
        }
        let sequence = version.sequence;
        self.lowest = Some(self.lowest.map_or(sequence, |lowest| lowest.min(sequence)));
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::merge::tests::entry;

    #[test]
    fn only_the_newest_version_that_no_snapshot_sees_is_asked_about() {
        let slot = FilterSlot::default();
        assert!(slot.next(0).is_none());
        slot.set(Box::new(|_: &[u8], _: &[u8]| Verdict::Remove));
        let mut filtering = slot.next(5).unwrap();
        let asked = [
            (b"a", 9, EntryKind::Value, true),
            (b"a", 7, EntryKind::Value, false),
            (b"b", 5, EntryKind::Value, false),
            (b"c", 9, EntryKind::Tombstone, false),
            (b"c", 8, EntryKind::Value, false),
            (b"d", 9, EntryKind::Blob, false),
            (b"e", 6, EntryKind::Value, true),
        ];
        for (key, sequence, kind, expected) in asked {
            let entry = entry(key, sequence, kind, b"");
            assert_eq!(filtering.is_asked(&entry), expected, "{entry:?}");
            if expected {
                let gone = filtering.replaced(&entry, b"").unwrap();
                assert_eq!(
                    (gone.version.kind, gone.version.sequence),
                    (EntryKind::Tombstone, sequence)
                );
            }
        }
        assert_eq!(filtering.lowest(), Some(6));
    }

    #[test]
    fn a_panic_keeps_the_entry() {
        let slot = FilterSlot::default();
        slot.set(Box::new(|_: &[u8], _: &[u8]| panic!("on purpose")));
        let mut filtering = slot.next(0).unwrap();
        assert_eq!(filtering.replaced(&entry(b"a", 9, EntryKind::Value, b"1"), b"1"), None);
        assert_eq!(filtering.lowest(), None);
    }

    #[test]
    fn after_a_result_that_could_not_be_used_there_are_compactions_without_a_filter() {
        let slot = FilterSlot::default();
        slot.set(Box::new(|_: &[u8], _: &[u8]| Verdict::Keep));
        let mut pauses = Vec::new();
        for _ in 0..8 {
            slot.note(false);
            pauses.push((0..100).take_while(|_| slot.next(0).is_none()).count());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 32, 32]);
        slot.note(true);
        assert!(slot.next(0).is_some());
    }
}
