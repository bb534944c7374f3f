//! Lending the entries of a range to a closure.
//!
//! Purpose: a scan that copies nothing. What a closure is lent lies in the heap, and is there while
//! the shared lock is held: so it runs under the lock, for a bunch of entries at a time.
//! Invariants: nothing borrowed from the heap outlives the view it was read under (S1). What was
//! lent has left the iterator, also when the closure breaks.

use std::ops::ControlFlow;

use adamant_slice::Slice;

use crate::bounds::{Direction, KeyRange};
use crate::bunch::Bunch;
use crate::error::Result;
use crate::guard::Guard;
use crate::iterate::Iter;
use crate::keyspace::Keyspace;

/// Entries lent under one hold of the lock, give or take a node of the tree: some 10 microseconds
/// and the time that the closure takes.
const HOLD_ENTRIES: usize = 256;

impl Iter {
    /// Lends the entries that are left to a closure, from the lowest key up, until it breaks, and
    /// returns what it broke with. Nothing is copied: of many entries and of few this is the
    /// fastest way to look at them.
    ///
    /// The closure runs under the store's shared lock, which is given back after some 256 entries:
    /// writers wait that long. Within these entries it sees one state of the keyspace; between them
    /// it sees what was committed meanwhile. The closure must not use the same store, which gives
    /// [`Error::Reentrant`](crate::Error::Reentrant). It may panic; the iterator is then at its end.
    ///
    /// What the closure was not lent can still be iterated over.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// let store = adamant::Store::in_memory()?;
    /// let numbers = store.keyspace("numbers")?;
    /// for (key, value) in [("1", "one"), ("2", "two"), ("3", "three"), ("4", "four")] {
    ///     numbers.insert(key, value)?;
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

    /// As [`Iter::lend`], from the highest key down.
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
        let broken = self.keyspace.lend_bunch(near, Bunch::take_first, &mut reader);
        if broken.is_some() {
            return Ok(broken);
        }
        while let Some(range) = self.middle.take() {
            match self.lend_hold(range, direction, &mut reader) {
                Ok((rest, None)) => self.middle = rest,
                Ok((rest, broken)) => {
                    self.middle = rest;
                    return Ok(broken);
                }
                Err(error) => return Err(self.fuse(error)),
            }
        }
        let far = if forward { &mut self.back } else { &mut self.front };
        Ok(self.keyspace.lend_bunch(far, Bunch::take_last, &mut reader))
    }

    /// Lends entries of a range under one hold of the lock. Returns what is left of the range.
    fn lend_hold<B>(
        &self,
        range: KeyRange,
        direction: Direction,
        reader: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<(Option<KeyRange>, Option<B>)> {
        let keyspace = &self.keyspace;
        let mut broken = None;
        let mut each = |key: &[u8], value: &[u8]| match reader(key, value) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(with) => {
                broken = Some(with);
                ControlFlow::Break(())
            }
        };
        let (bounds, hold) = (range.bounds(), HOLD_ENTRIES);
        let rest = match &self.snapshot {
            Some(snapshot) => {
                snapshot.scan(keyspace, direction, bounds, hold, &mut |key, value| {
                    let _guard = Guard::new(keyspace.shared.number());
                    each(key, value)
                })?
            }
            None => {
                let view = keyspace.shared.view()?;
                let map = keyspace.state.map(&view, keyspace.shared.catalogue())?;
                let _guard = Guard::new(keyspace.shared.number());
                map.scan(view, direction, bounds, hold, None, each)?
            }
        };
        Ok((rest.and_then(|bound| range.rest(direction, bound)), broken))
    }
}

impl Keyspace {
    /// Lends what an iterator had fetched before. No lock is held, but a closure shall not depend
    /// on that.
    fn lend_bunch<B>(
        &self,
        bunch: &mut Bunch,
        take: fn(&mut Bunch) -> Option<(Slice, Slice)>,
        reader: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Option<B> {
        if bunch.is_empty() {
            return None;
        }
        let _guard = Guard::new(self.shared.number());
        while let Some((key, value)) = take(bunch) {
            if let ControlFlow::Break(broken) = reader(&key, &value) {
                return Some(broken);
            }
        }
        None
    }
}
