//! Iterators over ranges of keys, from both ends.
//!
//! Purpose: `Iter` takes entries in scan batches, each under a short hold of the shared lock, and
//! seeks again from the last key for the next one. So it owns all it yields and holds no lock
//! between calls.
//! Invariants: entries in `front` are below `middle`, entries in `back` above it; yielded entries
//! are outside all three, so the ends meet without a gap or a repetition.
//! Thread safety: an iterator may move to another thread; it sees commits that come between its
//! batches.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use adamant_slice::Slice;

use crate::bounds::{Direction, KeyBounds, KeyRange};
use crate::common::shared::OpenStore;
use crate::engine::scan::{ScanItem, ScanOptions};
use crate::engine::scan_batch::{EntryLocation, Filler, ScanBatch};
use crate::error::{Error, Result};
use crate::keyspace::entry::{Entry, Shape};
use crate::keyspace::handle::Keyspace;
use crate::keyspace::snapshot::Snapshot;

/// Entries of the first batch: small, since many iterators are asked for a few entries only.
const BATCH_ENTRIES_MIN: usize = 16;
/// Entries of a batch at most, give or take a node of the tree: a hold of the lock of some 20
/// microseconds.
const BATCH_ENTRIES_MAX: usize = 256;
/// Bytes per entry, with the rest of its node, that the first batch allows for.
const ENTRY_BYTES: usize = 256;
/// The least bytes that a batch allocates.
const BATCH_BYTES_MIN: usize = 1 << 10;
/// Bytes of keys and values after which a batch is full, so that large values do not pile up. Also
/// the most memory that one kept slice keeps alive.
const BATCH_BYTES_MAX: usize = 32 << 10;

/// Entries of a keyspace in the order of their keys, from both ends.
///
/// An iterator takes entries in batches of some 256 at most. Within a batch it sees one state of
/// the keyspace; between batches it sees later commits. Keys come in strict order whatever is
/// written meanwhile, and an entry that stays untouched is never missed.
///
/// Slices of one batch share an allocation of at most some 32 KiB, which lives until the last of
/// them is dropped: to keep a few of many entries, copy those (`Slice::new(&value)`).
///
/// After an error it yields nothing more.
///
/// It yields pairs of keys and values; [`Iter::keys`] and [`Iter::entries`] convert it into
/// iterators over keys only, and over entries with lazy values.
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
    /// The snapshot to read; `None`: the current state.
    pub(crate) snapshot: Option<Snapshot>,
    /// The range not fetched yet; `None` if it is empty.
    pub(crate) middle: Option<KeyRange>,
    /// Fetched from the low end, ascending.
    pub(crate) front: ScanBatch,
    /// Fetched from the high end, descending.
    pub(crate) back: ScanBatch,
    batch_entries: usize,
    /// Bytes per entry, about, with some to spare.
    entry_bytes: usize,
    yields: PhantomData<fn() -> T>,
}

/// Keys in order, from both ends: the result of [`Iter::keys`].
pub type Keys = Iter<Slice>;

/// Entries with lazy values, from both ends: the result of [`Iter::entries`].
pub type Entries = Iter<Entry>;

impl Keyspace {
    /// All entries, by key.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let numbers = store.keyspace("numbers")?;
    /// for key in ["2", "1", "3"] {
    ///     numbers.put(key, "")?;
    /// }
    /// let keys = numbers.iter().map(|entry| Ok(entry?.0)).collect::<adamant::Result<Vec<_>>>()?;
    /// assert_eq!(keys, ["1", "2", "3"].map(adamant::Slice::from));
    /// assert_eq!(numbers.iter().next_back().unwrap()?.0, *"3");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn iter(&self) -> Iter {
        Iter::new(self.clone(), Some(KeyRange::all()), None)
    }

    /// The entries in a range of keys. A range that ends before it begins is empty.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let numbers = store.keyspace("numbers")?;
    /// for key in ["1", "2", "3", "4"] {
    ///     numbers.put(key, "")?;
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
    ///     files.put(key, "")?;
    /// }
    /// assert_eq!(files.prefix("usr/").rev().count(), 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        Iter::new(self.clone(), KeyRange::prefix(prefix.as_ref()), None)
    }
}

impl Snapshot {
    /// The entry with the lowest key. O(log n), plus the versions near that end that changed since
    /// then.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let log = store.keyspace("log")?;
    /// log.put("0001", "started")?;
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

    /// The entry with the highest key. Like [`Snapshot::first`].
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn last(&self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next_back().transpose()
    }

    /// All entries of the keyspace, by key, from both ends. The iterator keeps the snapshot open.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
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

    /// The entries of the keyspace in a range of keys.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let before = store.snapshot()?;
    /// stock.clear()?;
    /// assert_eq!(before.range(&stock, "a"..).count(), 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn range(&self, keyspace: &Keyspace, range: impl KeyBounds) -> Iter {
        Iter::new(keyspace.clone(), KeyRange::new(&range), Some(self.clone()))
    }

    /// The entries of the keyspace whose keys start with `prefix`.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
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
    /// The remaining keys, without their values: no value is copied, and no blob file of the engine
    /// `lsm` is read.
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

    /// The remaining entries with lazy values: suits callers that want few of many large values.
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
            batch_entries: BATCH_ENTRIES_MIN,
            entry_bytes: ENTRY_BYTES,
            yields: PhantomData,
        }
    }

    /// Moves the next batch of the middle to one of the ends.
    fn fetch(&mut self, direction: Direction) -> Result<()>
    where
        T: Shape,
    {
        let Some(middle) = self.middle.take() else { return Ok(()) };
        let entries_min = self.batch_entries;
        self.batch_entries = (entries_min * 4).min(BATCH_ENTRIES_MAX);
        let scan_batch = match direction {
            Direction::Up => &mut self.front,
            Direction::Down => &mut self.back,
        };
        let bytes = (entries_min * self.entry_bytes).clamp(BATCH_BYTES_MIN, BATCH_BYTES_MAX);
        let mut filler = Filler::new(std::mem::take(scan_batch), entries_min, bytes);
        let mut failed = None;
        let mut each = |key: &[u8], met: ScanItem<'_, '_>| {
            if let Err(error) = T::add(&mut filler, key, met) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            let is_full = filler.bytes() >= BATCH_BYTES_MAX;
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let (keyspace, bounds) = (&self.keyspace, middle.bounds());
        let reach = ScanOptions { direction, bounds, entries_min, with_values: T::WITH_VALUES };
        let rest = match &self.snapshot {
            Some(snapshot) => snapshot.scan(OpenStore::view, keyspace, &reach, &mut each)?,
            None => {
                let view = keyspace.shared.view()?;
                let map = keyspace.state.map(&view, keyspace.shared.catalogue())?;
                map.scan(view, &reach, None, each)?
            }
        };
        if let Some(error) = failed {
            return Err(error);
        }
        keyspace.state.counts().note_scanned(filler.len() as u64);
        self.middle = rest.and_then(|bound| middle.rest(direction, bound));
        // A quarter above the average: growing would copy all of the next batch.
        self.entry_bytes = filler.bytes() * 5 / 4 / filler.len().max(1);
        *scan_batch = filler.finish();
        Ok(())
    }

    /// Counts the remaining entries.
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

    /// The item for an entry taken from the batch of an end.
    fn yielded(&mut self, taken: Option<(EntryLocation, bool)>) -> Option<Result<T>>
    where
        T: Shape,
    {
        let (place, is_front) = taken?;
        let scan_batch = if is_front { &self.front } else { &self.back };
        let yielded = T::of(scan_batch, place, &self.keyspace);
        Some(yielded.map_err(|error| self.fuse(error)))
    }

    /// Ends the iteration with an error; drops all that remains.
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
        // More than once if a snapshot sees none of the entries fetched.
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
