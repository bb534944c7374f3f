//! Point reads.
//!
//! Purpose: a get takes the shared lock, asks the engine, and copies the value or lends it to a
//! closure.
//! Invariants: nothing borrowed from the heap outlives the view it was read under (S1); the heap
//! keeps blocks that slices borrow (S2, S5).

use std::ops::ControlFlow;

use adamant_slice::Slice;

use crate::bounds::{Direction, KeyRange};
use crate::common::shared::OpenStore;
use crate::engine::scan::{ScanItem, ScanOptions};
use crate::error::Result;
use crate::guard::Guard;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::snapshot::ViewOf;

/// The most memtable entries that a search for the first entry visits in one hold of the lock.
const LOOK_ENTRIES_MAX: usize = 256;

impl Keyspace {
    /// The value of a key, or `None`.
    ///
    /// O(log n), and a copy of a value of up to 4 KiB: one descent in `bplus`, `btree`, `critbit`
    /// and `redblack`; in `lsm` a search of the memtables, and of the tables from the newest down
    /// until one has the key, which may read the device.
    ///
    /// A longer value is not copied: the slice borrows its block in the store's memory. The block
    /// does not change while the slice lives, whatever becomes of the key, of the keyspace and of
    /// the store; its memory is reused when the last clone is gone. When the store is closed, the
    /// block is copied to memory of its own, and nothing else of the store is kept for it. The
    /// child of a `fork` does not have that memory, and must not read slices that were borrowed
    /// before it.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// assert_eq!(towns.get("Bern")?, Some("134,000".into()));
    /// assert_eq!(towns.get("Rome")?, None);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The keyspace was dropped, the store closed, or the pool damaged where the key should be.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let key = key.as_ref();
        let view = self.shared.view()?;
        let map = self.state.map(&view, self.shared.catalogue())?;
        self.state.counts().note_lookups(1);
        map.get(view, key, None)
    }

    /// Calls the closure with the value of a key and returns its result, or `None` without calling
    /// it. The closure borrows the bytes; nothing is copied.
    ///
    /// The closure runs under the store's shared lock. Writers wait until it returns, and other
    /// closures wait behind a waiting writer; `get`, scans, `snapshot` and all other reads go on.
    /// It must not use the same store, which gives [`Error::Reentrant`](crate::Error::Reentrant).
    /// It may panic.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let texts = store.keyspace("texts")?;
    /// texts.put("greeting", "hello, world")?;
    /// let commas = texts.get_with("greeting", |value| value.iter().filter(|b| **b == b',').count())?;
    /// assert_eq!(commas, Some(1));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn get_with<T>(
        &self,
        key: impl AsRef<[u8]>,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.lend_value(OpenStore::long_view, key.as_ref(), reader)
    }

    /// Like [`Keyspace::get_with`], for a closure that takes some microseconds and waits for
    /// nothing, such as a copy: it does not wait behind other closures. If it takes longer, all
    /// other readers wait for it too, as soon as there is a writer.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// assert_eq!(towns.get_briefly("Bern", |value| value.len())?, Some(7));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn get_briefly<T>(
        &self,
        key: impl AsRef<[u8]>,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.lend_value(OpenStore::view, key.as_ref(), reader)
    }

    fn lend_value<T>(
        &self,
        view: ViewOf,
        key: &[u8],
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let view = view(&self.shared)?;
        let map = self.state.map(&view, self.shared.catalogue())?;
        self.state.counts().note_lookups(1);
        map.get_with(view, key, None, |value| {
            let _guard = Guard::new(self.shared.number());
            reader(value)
        })
    }

    /// Whether the key has a value. O(log n).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// assert!(towns.contains("Bern")? && !towns.contains("Rome")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        let view = self.shared.view()?;
        let map = self.state.map(&view, self.shared.catalogue())?;
        self.state.counts().note_lookups(1);
        map.contains(view, key, None)
    }

    /// The entry with the lowest key. O(log n); the engine `lsm` also passes once over removed keys
    /// that are not merged yet.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.extend([("Bern", "134,000"), ("Chur", "38,000")])?;
    /// assert_eq!(towns.first()?, Some(("Bern".into(), "134,000".into())));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.end(Direction::Up)
    }

    /// The entry with the highest key. O(log n); for the engine `lsm` as [`Keyspace::first`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.extend([("Bern", "134,000"), ("Chur", "38,000")])?;
    /// assert_eq!(towns.last()?, Some(("Chur".into(), "38,000".into())));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.end(Direction::Down)
    }

    /// The number of entries. O(1), but O(n) for the engine `lsm`, which counts them at one moment.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// assert!(towns.is_empty()?);
    /// towns.put("Bern", "134,000")?;
    /// assert_eq!(towns.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn len(&self) -> Result<u64> {
        let view = self.shared.view()?;
        self.state.map(&view, self.shared.catalogue())?.count(view)
    }

    /// Whether there is no entry. O(1); for the engine `lsm` as [`Keyspace::first`].
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.first_of(Direction::Up, KeyRange::all(), None, false, |_, _| Ok(()))?.is_none())
    }

    /// The first entry in a direction.
    pub(crate) fn end(&self, direction: Direction) -> Result<Option<(Slice, Slice)>> {
        let copied = |key: &[u8], met: ScanItem<'_, '_>| {
            met.with(key, |value| (Slice::from(key), Slice::from(value)))
        };
        self.first_of(direction, KeyRange::all(), None, true, copied)
    }

    /// Calls the closure with the first entry of a range in a direction, at a moment of the engine;
    /// `None`: after the last complete commit. Each search takes the lock anew.
    pub(crate) fn first_of<T>(
        &self,
        direction: Direction,
        range: KeyRange,
        at: Option<u64>,
        with_values: bool,
        reader: impl Fn(&[u8], ScanItem<'_, '_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let (mut found, mut rest, mut entries_min) = (None, Some(range), 1);
        // More than once if the engine `lsm` finds only tombstones.
        while let Some(range) = rest.take().filter(|_| found.is_none()) {
            let view = self.shared.view()?;
            let map = self.state.map(&view, self.shared.catalogue())?;
            let bounds = range.bounds();
            let reach = ScanOptions { direction, bounds, entries_min, with_values };
            let bound = map.scan(view, &reach, at, |key, met| {
                found = Some(reader(key, met));
                ControlFlow::Break(())
            })?;
            self.state.counts().note_scanned(u64::from(found.is_some()));
            rest = bound.and_then(|bound| range.rest(direction, bound));
            entries_min = (entries_min * 4).min(LOOK_ENTRIES_MAX);
        }
        found.transpose()
    }
}
