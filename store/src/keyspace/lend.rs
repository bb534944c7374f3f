//! Scans that lend borrowed entries to a closure.
//!
//! Purpose: a scan that copies nothing. The closure borrows entries from the heap, which are there
//! while the shared lock is held; so it runs under the lock, for a batch of entries at a time.
//! Invariants: nothing borrowed from the heap outlives the view it was read under (S1). Entries
//! that the closure got have left the iterator, also if the closure breaks.

use std::ops::ControlFlow;

use adamant_slice::Slice;

use crate::bounds::{Direction, KeyRange};
use crate::common::shared::OpenStore;
use crate::engine::scan::{ScanItem, ScanOptions};
use crate::engine::scan_batch::{EntryLocation, ScanBatch};
use crate::engine::tree::Engine;
use crate::error::Result;
use crate::guard::Guard;
use crate::keyspace::entry::Shape;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::iterate::Iter;

/// Entries lent under one hold of the lock, give or take a node of the tree: some 10 microseconds
/// and the time that the closure takes.
const HOLD_ENTRIES: usize = 256;
/// The most entries of an LSM keyspace that are lent at once: the lock is held only during the
/// search of the memtables, and each time all tables are searched again.
const LOOSE_ENTRIES_MAX: usize = 16 << 10;

impl Iter {
    /// Lends the remaining entries to a closure, from the lowest key up, until it breaks, and
    /// returns what it broke with. Nothing is copied: this is the fastest way to read entries, many
    /// or few.
    ///
    /// The closure runs under the store's shared lock, which is released after some 256 entries.
    /// Writers wait that long, and other closures behind them; other reads (`get`, scans,
    /// `snapshot`) do not. Within these entries the closure sees one state of the keyspace; between
    /// them it sees later commits. The closure must not use the same store, which gives
    /// [`Error::Reentrant`](crate::Error::Reentrant). It may panic; the iterator is then at its
    /// end.
    ///
    /// Entries that the closure did not get can still be iterated over.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// let store = adamant::Store::in_memory()?;
    /// let numbers = store.keyspace("numbers")?;
    /// for (key, value) in [("1", "one"), ("2", "two"), ("3", "three"), ("4", "four")] {
    ///     numbers.put(key, value)?;
    /// }
    /// let mut bytes = 0;
    /// numbers.range("2"..).lend(|_, value| {
    ///     bytes += value.len();
    ///     ControlFlow::<()>::Continue(())
    /// })?;
    /// assert_eq!(bytes, "two".len() + "three".len() + "four".len());
    ///
    /// let first_long = numbers.iter().lend(|key, value| match value.len() {
    ///     0..=3 => ControlFlow::Continue(()),
    ///     _ => ControlFlow::Break(key.to_vec()),
    /// })?;
    /// assert_eq!(first_long, Some(b"3".to_vec()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`](crate::Keyspace::get); nothing is left then.
    pub fn lend<B>(
        &mut self,
        reader: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        self.lend_all(Direction::Up, reader)
    }

    /// Like [`Iter::lend`], from the highest key down.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use std::ops::ControlFlow;
    ///
    /// let log = store.keyspace("log")?;
    /// log.extend([("1", "started"), ("2", "failed"), ("3", "started")])?;
    /// let failed = log.iter().lend_back(|key, value| match value {
    ///     b"failed" => ControlFlow::Break(key.to_vec()),
    ///     _ => ControlFlow::Continue(()),
    /// })?;
    /// assert_eq!(failed, Some(b"2".to_vec()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Iter::lend`].
    pub fn lend_back<B>(
        &mut self,
        reader: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        self.lend_all(Direction::Down, reader)
    }

    fn lend_all<B>(
        &mut self,
        direction: Direction,
        mut reader: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        let forward = direction == Direction::Up;
        let near = if forward { &mut self.front } else { &mut self.back };
        match self.keyspace.lend_batch(near, ScanBatch::take_first, &mut reader) {
            Ok(None) => {}
            Ok(broken) => return Ok(broken),
            Err(error) => return Err(self.fuse(error)),
        }
        let mut hold = HOLD_ENTRIES;
        while let Some(range) = self.middle.take() {
            match self.lend_hold(range, direction, hold, &mut reader) {
                Ok((rest, None)) => {
                    self.middle = rest;
                    if self.keyspace.engine() == Engine::Lsm {
                        // A short scan wants few entries, a long one all of them.
                        hold = (4 * hold).min(LOOSE_ENTRIES_MAX);
                    }
                }
                Ok((rest, broken)) => {
                    self.middle = rest;
                    return Ok(broken);
                }
                Err(error) => return Err(self.fuse(error)),
            }
        }
        let far = if forward { &mut self.back } else { &mut self.front };
        let lent = self.keyspace.lend_batch(far, ScanBatch::take_last, &mut reader);
        lent.map_err(|error| self.fuse(error))
    }

    /// Lends entries of a range under one hold of the lock. Returns the rest of the range.
    fn lend_hold<B>(
        &self,
        range: KeyRange,
        direction: Direction,
        hold: usize,
        reader: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<(Option<KeyRange>, Option<B>)> {
        let keyspace = &self.keyspace;
        let (mut broken, mut failed) = (None, Ok(()));
        let mut lent = 0;
        let mut each = |key: &[u8], met: ScanItem<'_, '_>| {
            lent += 1;
            match met.with(key, |value| reader(key, value)) {
                Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
                Ok(ControlFlow::Break(with)) => {
                    broken = Some(with);
                    ControlFlow::Break(())
                }
                Err(error) => {
                    failed = Err(error);
                    ControlFlow::Break(())
                }
            }
        };
        let bounds = range.bounds();
        let reach = ScanOptions { direction, bounds, entries_min: hold, with_values: true };
        let rest = match &self.snapshot {
            Some(snapshot) => {
                snapshot.scan(OpenStore::long_view, keyspace, &reach, &mut |key, met| {
                    let _guard = Guard::new(keyspace.shared.number());
                    each(key, met)
                })?
            }
            None => {
                let view = keyspace.shared.long_view()?;
                let map = keyspace.state.map(&view, keyspace.shared.catalogue())?;
                let _guard = Guard::new(keyspace.shared.number());
                map.scan(view, &reach, None, each)?
            }
        };
        keyspace.state.counts().note_scanned(lent);
        failed?;
        Ok((rest.and_then(|bound| range.rest(direction, bound)), broken))
    }
}

impl Keyspace {
    /// Lends entries that an iterator had fetched before. No lock is held, but a closure must not
    /// depend on that.
    fn lend_batch<B>(
        &self,
        scan_batch: &mut ScanBatch,
        take: fn(&mut ScanBatch) -> Option<EntryLocation>,
        reader: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        while let Some(place) = take(scan_batch) {
            let (key, value) = <(Slice, Slice)>::of(scan_batch, place, self)?;
            let _guard = Guard::new(self.shared.number());
            if let ControlFlow::Break(broken) = reader(&key, &value) {
                return Ok(Some(broken));
            }
        }
        Ok(None)
    }
}
