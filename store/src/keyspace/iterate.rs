//! Iterating over ranges of keys, from both ends.
//!
//! Purpose: `Iter` takes entries in bunches, each under a short hold of the shared lock, and
//! seeks again from the last key for the next one; so it owns all it yields and holds no lock
//! between calls.
//! Invariants: entries in `front` are below `middle`, entries in `back` above it; what was
//! yielded is outside all three, so the ends meet without a gap or a repetition.
//! Thread safety: an iterator may move to another thread; it sees commits that come between its
//! bunches.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use adamant_slice::Slice;

use crate::bounds::{Direction, KeyBounds, KeyRange};
use crate::common::shared::Shared;
use crate::engine::scan::{ScanItem, ScanOptions};
use crate::engine::scan_batch::{EntryLocation, Filler, ScanBatch};
use crate::error::{Error, Result};
use crate::keyspace::entry::{Entry, Shape};
use crate::keyspace::handle::Keyspace;
use crate::keyspace::snapshot::Snapshot;

/// Entries of the first bunch: small, since many iterators are asked for a few entries only.
const BUNCH_ENTRIES_MIN: usize = 16;
/// Entries of a bunch at most, give or take a node of the tree: a hold of the lock of some 20
/// microseconds.
const BUNCH_ENTRIES_MAX: usize = 256;
/// Bytes of an entry and the rest of its node, as the first bunch expects them.
const ENTRY_BYTES: usize = 256;
/// Bytes that a bunch has room for at least.
const BUNCH_BYTES_MIN: usize = 1 << 10;
/// Bytes of keys and values after which a bunch is full, so that large values do not pile up, and
/// that a slice which is kept keeps at most.
const BUNCH_BYTES_MAX: usize = 32 << 10;

/// Entries of a keyspace in the order of their keys, from both ends.
///
/// An iterator takes entries in bunches of some 256 at most. Within a bunch it sees one state of
/// the keyspace; between bunches it sees what was committed meanwhile. Keys come strictly in order
/// whatever is written beside it, and an entry that stays untouched is never missed.
///
/// Slices of one bunch share an allocation of at most some 32 KiB, which lives until the last of
/// them is dropped: who keeps few of many entries copies those (`Slice::new(&value)`).
///
/// After an error it yields nothing more.
///
/// It yields pairs of keys and values; [`Iter::keys`] and [`Iter::entries`] make iterators of it that yield
/// keys only, and entries whose values are read when they are asked for.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// let numbers = store.keyspace("numbers")?;
/// numbers.load_sorted((0..1000).map(|number| (format!("{number:03}"), "")))?;
/// let mut entries = numbers.iter();
/// assert_eq!(entries.next().transpose()?.map(|(key, _)| key), Some("000".into()));
/// assert_eq!(entries.next_back().transpose()?.map(|(key, _)| key), Some("999".into()));
/// numbers.clear()?;
/// // Some were fetched before, and what is gone since is not seen.
/// assert!(entries.count() < 998);
/// # Ok::<(), adamant::Error>(())
/// ```
pub struct Iter<T = (Slice, Slice)> {
    pub(crate) keyspace: Keyspace,
    /// What it looks at; `None`: what is there when it comes by.
    pub(crate) snapshot: Option<Snapshot>,
    /// What was not fetched yet; `None` when nothing is left there.
    pub(crate) middle: Option<KeyRange>,
    /// Fetched from the low end, ascending.
    pub(crate) front: ScanBatch,
    /// Fetched from the high end, descending.
    pub(crate) back: ScanBatch,
    batch_entries: usize,
    /// Bytes of an entry, about, with some to spare.
    entry_bytes: usize,
    yields: PhantomData<fn() -> T>,
}

/// Keys in their order, from both ends: what [`Iter::keys`] makes.
pub type Keys = Iter<Slice>;

/// Entries whose values are read when they are asked for, from both ends: what [`Iter::entries`] makes.
pub type Entries = Iter<Entry>;

impl Keyspace {
    /// All entries, by key.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let numbers = store.keyspace("numbers")?;
    /// for key in ["2", "1", "3"] {
    ///     numbers.insert(key, "")?;
    /// }
    /// let keys = numbers.iter().map(|entry| Ok(entry?.0)).collect::<adamant::Result<Vec<_>>>()?;
    /// assert_eq!(keys, ["1", "2", "3"].map(adamant::Slice::from));
    /// assert_eq!(numbers.iter().next_back().unwrap()?.0, *"3");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn iter(&self) -> Iter {
        Iter::new(self.clone(), Some(KeyRange::all()), None)
    }

    /// The entries whose keys are in a range. A range that ends before it begins is empty.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let numbers = store.keyspace("numbers")?;
    /// for key in ["1", "2", "3", "4"] {
    ///     numbers.insert(key, "")?;
    /// }
    /// assert_eq!(numbers.range("2"..).count(), 3);
    /// assert_eq!(numbers.range("2"..="3").count(), 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn range(&self, range: impl KeyBounds) -> Iter {
        Iter::new(self.clone(), KeyRange::new(&range), None)
    }

    /// The entries whose keys start with `prefix`.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let files = store.keyspace("files")?;
    /// for key in ["etc/hosts", "usr/bin/ls", "usr/bin/mv"] {
    ///     files.insert(key, "")?;
    /// }
    /// assert_eq!(files.prefix("usr/").rev().count(), 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        Iter::new(self.clone(), KeyRange::prefix(prefix.as_ref()), None)
    }
}

impl Snapshot {
    /// The entry with the lowest key. O(log n), and what was changed since then near that end.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let log = store.keyspace("log")?;
    /// log.insert("0001", "started")?;
    /// let before = store.snapshot()?;
    /// log.clear()?;
    /// assert_eq!(before.first(&log)?, Some(("0001".into(), "started".into())));
    /// assert_eq!(before.first(&log)?, before.last(&log)?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn first(&self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next().transpose()
    }

    /// The entry with the highest key. As [`Snapshot::first`].
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn last(&self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next_back().transpose()
    }

    /// All entries that the keyspace had, by key, from both ends. The iterator keeps the snapshot.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.insert("apples", "7")?;
    /// let before = store.snapshot()?;
    /// stock.clear()?;
    /// for entry in before.iter(&stock) {
    ///     let (key, value) = entry?;
    ///     assert_eq!((&key[..], &value[..]), (&b"apples"[..], &b"7"[..]));
    /// }
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn iter(&self, keyspace: &Keyspace) -> Iter {
        Iter::new(keyspace.clone(), Some(KeyRange::all()), Some(self.clone()))
    }

    /// The entries that the keyspace had in a range of keys.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.insert("apples", "7")?;
    /// let before = store.snapshot()?;
    /// stock.clear()?;
    /// assert_eq!(before.range(&stock, "a"..).count(), 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn range(&self, keyspace: &Keyspace, range: impl KeyBounds) -> Iter {
        Iter::new(keyspace.clone(), KeyRange::new(&range), Some(self.clone()))
    }

    /// The entries that the keyspace had under keys that start with `prefix`.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.insert("apples", "7")?;
    /// let before = store.snapshot()?;
    /// stock.clear()?;
    /// assert_eq!(before.prefix(&stock, "app").rev().count(), 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Iter {
        Iter::new(keyspace.clone(), KeyRange::prefix(prefix.as_ref()), Some(self.clone()))
    }
}

impl Iter {
    /// The keys that are left, without their values: no value is copied, and of the engine `lsm` no blob file
    /// is read.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let files = store.keyspace("files")?;
    /// files.extend([("etc/hosts", "..."), ("usr/bin/ls", "..."), ("usr/bin/mv", "...")])?;
    /// let names = files.prefix("usr/bin/").keys().collect::<adamant::Result<Vec<_>>>()?;
    /// assert_eq!(names, ["usr/bin/ls", "usr/bin/mv"].map(adamant::Slice::from));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn keys(self) -> Keys {
        self.shaped()
    }

    /// The entries that are left, whose values are read when they are asked for: for who wants large values
    /// of few of them.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let scans = store.keyspace("scans")?;
    /// scans.extend([("2025/1", vec![1; 50_000]), ("2026/1", vec![2; 50_000])])?;
    /// for scan in scans.iter().entries() {
    ///     let scan = scan?;
    ///     if scan.key().starts_with(b"2026/") {
    ///         assert_eq!(scan.value()?.len(), 50_000);
    ///     }
    /// }
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn entries(self) -> Entries {
        self.shaped()
    }

    fn shaped<T>(self) -> Iter<T> {
        let Self { keyspace, snapshot, middle, front, back, batch_entries, entry_bytes, .. } = self;
        let yields = PhantomData;
        Iter { keyspace, snapshot, middle, front, back, batch_entries, entry_bytes, yields }
    }
}

impl<T> Iter<T> {
    pub(crate) fn new(
        keyspace: Keyspace,
        middle: Option<KeyRange>,
        snapshot: Option<Snapshot>,
    ) -> Self {
        Self {
            keyspace,
            snapshot,
            middle,
            front: ScanBatch::default(),
            back: ScanBatch::default(),
            batch_entries: BUNCH_ENTRIES_MIN,
            entry_bytes: ENTRY_BYTES,
            yields: PhantomData,
        }
    }

    /// Moves the next bunch of the middle to one of the ends.
    fn fetch(&mut self, direction: Direction) -> Result<()>
    where
        T: Shape,
    {
        let Some(middle) = self.middle.take() else { return Ok(()) };
        let entries_min = self.batch_entries;
        self.batch_entries = (entries_min * 4).min(BUNCH_ENTRIES_MAX);
        let scan_batch = match direction {
            Direction::Up => &mut self.front,
            Direction::Down => &mut self.back,
        };
        let bytes = (entries_min * self.entry_bytes).clamp(BUNCH_BYTES_MIN, BUNCH_BYTES_MAX);
        let mut filler = Filler::new(std::mem::take(scan_batch), entries_min, bytes);
        let mut failed = None;
        let mut each = |key: &[u8], met: ScanItem<'_, '_>| {
            if let Err(error) = T::add(&mut filler, key, met) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            let is_full = filler.bytes() >= BUNCH_BYTES_MAX;
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let (keyspace, bounds) = (&self.keyspace, middle.bounds());
        let reach = ScanOptions { direction, bounds, entries_min, with_values: T::WITH_VALUES };
        let rest = match &self.snapshot {
            Some(snapshot) => snapshot.scan(Shared::view, keyspace, &reach, &mut each)?,
            None => {
                let view = keyspace.shared.view()?;
                let map = keyspace.state.map(&view, keyspace.shared.catalogue())?;
                map.scan(view, &reach, None, each)?
            }
        };
        if let Some(error) = failed {
            return Err(error);
        }
        self.middle = rest.and_then(|bound| middle.rest(direction, bound));
        // A quarter more than the average: growing would copy all of the next bunch.
        self.entry_bytes = filler.bytes() * 5 / 4 / filler.len().max(1);
        *scan_batch = filler.finish();
        Ok(())
    }

    /// Counts the entries that are left.
    pub(crate) fn count_all(self) -> Result<u64>
    where
        T: Shape,
    {
        let mut count = 0;
        for entry in self {
            entry?;
            count += 1;
        }
        Ok(count)
    }

    /// What it yields of an entry that was taken from the bunch of an end.
    fn yielded(&mut self, taken: Option<(EntryLocation, bool)>) -> Option<Result<T>>
    where
        T: Shape,
    {
        let (place, is_front) = taken?;
        let scan_batch = if is_front { &self.front } else { &self.back };
        let yielded = T::of(scan_batch, place, &self.keyspace);
        Some(yielded.map_err(|error| self.fuse(error)))
    }

    /// Ends the iteration with an error: all that is left is let go.
    pub(crate) fn fuse(&mut self, error: Error) -> Error {
        self.middle = None;
        self.front.clear();
        self.back.clear();
        error
    }
}

impl<T: Shape> Iterator for Iter<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        // More than once where a snapshot sees nothing of what is there.
        while self.front.is_empty() && self.middle.is_some() {
            if let Err(error) = self.fetch(Direction::Up) {
                return Some(Err(self.fuse(error)));
            }
        }
        let near = self.front.take_first().map(|place| (place, true));
        let taken = near.or_else(|| self.back.take_last().map(|place| (place, false)));
        self.yielded(taken)
    }
}

impl<T: Shape> DoubleEndedIterator for Iter<T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        while self.back.is_empty() && self.middle.is_some() {
            if let Err(error) = self.fetch(Direction::Down) {
                return Some(Err(self.fuse(error)));
            }
        }
        let near = self.back.take_first().map(|place| (place, false));
        let taken = near.or_else(|| self.front.take_last().map(|place| (place, true)));
        self.yielded(taken)
    }
}

impl<T: Shape> FusedIterator for Iter<T> {}

impl<T> fmt::Debug for Iter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter")
            .field("keyspace", &self.keyspace)
            .field("middle", &self.middle)
            .field("fetched", &(self.front.len() + self.back.len()))
            .finish()
    }
}
