//! Iterators of multimaps: over pairs, over the values of a key, and over distinct keys.
//!
//! Invariants: a row that is not of the types is an error, and the next one comes after it.
//! Distinct keys are found by a search behind the rows of the one before: O(log n) each, however
//! many values it has.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

use adamant_slice::Slice;
use adamant_wire::key::prefix_end;

use super::rows;
use crate::bounds::{Direction, KeyRange};
use crate::common::state::KeyspaceState;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::iterate::Iter;
use crate::keyspace::snapshot::Snapshot;
use crate::typed::{Key, KeyFor};

/// Pairs of a multimap, by key and value, from both ends.
#[must_use = "iterators do nothing unless they are asked"]
pub struct Pairs<I, K, V> {
    rows: I,
    state: Arc<KeyspaceState>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<I, K: Key, V: Key> Pairs<I, K, V> {
    pub(super) fn new(rows: I, keyspace: &Keyspace) -> Self {
        Self { rows, state: Arc::clone(&keyspace.state), types: PhantomData }
    }

    fn pair(&self, row: &Slice) -> Result<(K, V)> {
        rows::pair(&self.state.name, row)
    }
}

impl<I: Iterator<Item = Result<Slice>>, K: Key, V: Key> Iterator for Pairs<I, K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.rows.next()?.and_then(|row| self.pair(&row)))
    }
}

impl<I: DoubleEndedIterator<Item = Result<Slice>>, K: Key, V: Key> DoubleEndedIterator
    for Pairs<I, K, V>
{
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.rows.next_back()?.and_then(|row| self.pair(&row)))
    }
}

impl<I: FusedIterator<Item = Result<Slice>>, K: Key, V: Key> FusedIterator for Pairs<I, K, V> {}

/// Values of one key of a multimap, in their order, from both ends.
#[must_use = "iterators do nothing unless they are asked"]
pub struct Values<I, V> {
    rows: I,
    /// Bytes of the key, with which each row begins.
    start_bytes: usize,
    state: Arc<KeyspaceState>,
    types: PhantomData<fn() -> V>,
}

impl<I, V: Key> Values<I, V> {
    pub(super) fn new(rows: I, start_bytes: usize, keyspace: &Keyspace) -> Self {
        Self { rows, start_bytes, state: Arc::clone(&keyspace.state), types: PhantomData }
    }

    fn value(&self, row: &Slice) -> Result<V> {
        rows::value(&self.state.name, row, self.start_bytes)
    }
}

impl<I: Iterator<Item = Result<Slice>>, V: Key> Iterator for Values<I, V> {
    type Item = Result<V>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.rows.next()?.and_then(|row| self.value(&row)))
    }
}

impl<I: DoubleEndedIterator<Item = Result<Slice>>, V: Key> DoubleEndedIterator for Values<I, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.rows.next_back()?.and_then(|row| self.value(&row)))
    }
}

impl<I: FusedIterator<Item = Result<Slice>>, V: Key> FusedIterator for Values<I, V> {}

/// Searches for the first row of a range.
pub(crate) trait FindRow {
    /// The first row of a range in a direction.
    fn find_row(&mut self, range: KeyRange, direction: Direction) -> Result<Option<Slice>>;
}

/// The first pair in a direction.
pub(super) fn end_pair<K: Key, V: Key>(
    rows: &mut impl FindRow,
    keyspace: &Keyspace,
    direction: Direction,
) -> Result<Option<(K, V)>> {
    let Some(row) = rows.find_row(KeyRange::all(), direction)? else { return Ok(None) };
    rows::pair(keyspace.name(), &row).map(Some)
}

/// The first value of a key in a direction.
pub(super) fn end_value<K, V: Key>(
    rows: &mut impl FindRow,
    (keyspace, key): (&Keyspace, &(impl KeyFor<K> + ?Sized)),
    direction: Direction,
) -> Result<Option<V>> {
    let start = rows::start_of(key);
    let Some(range) = KeyRange::prefix(&start) else { return Ok(None) };
    let Some(row) = rows.find_row(range, direction)? else { return Ok(None) };
    rows::value(keyspace.name(), &row, start.len()).map(Some)
}

/// Whether a key has a value.
pub(super) fn has_key<K>(rows: &mut impl FindRow, key: &(impl KeyFor<K> + ?Sized)) -> Result<bool> {
    let Some(range) = rows::of_key(key) else { return Ok(false) };
    Ok(rows.find_row(range, Direction::Up)?.is_some())
}

/// The rows of a keyspace as they are, or as a snapshot sees them.
pub struct StoredRows {
    pub(super) keyspace: Keyspace,
    pub(super) snapshot: Option<Snapshot>,
}

impl FindRow for StoredRows {
    fn find_row(&mut self, range: KeyRange, direction: Direction) -> Result<Option<Slice>> {
        if self.snapshot.is_none() {
            return self.keyspace.first_of(direction, range, None, false, |row, _| Ok(row.into()));
        }
        let mut rows =
            Iter::<Slice>::new(self.keyspace.clone(), Some(range), self.snapshot.clone());
        match direction {
            Direction::Up => rows.next(),
            Direction::Down => rows.next_back(),
        }
        .transpose()
    }
}

/// Keys of a multimap, each once, in their order, from both ends. After an error of a read it
/// yields nothing more.
#[must_use = "iterators do nothing unless they are asked"]
pub struct DistinctKeys<R, K> {
    rows: R,
    /// The rows that were not passed; `None` at the end.
    range: Option<KeyRange>,
    state: Arc<KeyspaceState>,
    types: PhantomData<fn() -> K>,
}

impl<R, K> DistinctKeys<R, K> {
    pub(super) fn new(rows: R, range: Option<KeyRange>, keyspace: &Keyspace) -> Self {
        Self { rows, range, state: Arc::clone(&keyspace.state), types: PhantomData }
    }

    /// What it searches.
    #[cfg(test)]
    pub(super) fn into_rows(self) -> R {
        self.rows
    }
}

impl<R, K> DistinctKeys<R, K> {
    fn go(&mut self, direction: Direction) -> Option<Result<K>>
    where
        R: FindRow,
        K: Key,
    {
        let range = self.range.take()?;
        let row = match self.rows.find_row(range.clone(), direction).transpose()? {
            Ok(row) => row,
            Err(error) => return Some(Err(error)),
        };
        let (found, bound) = match rows::key(&self.state.name, &row) {
            Ok((key, start)) => {
                let bound = match direction {
                    Direction::Up => prefix_end(start).map(|end| Bound::Included(end[..].into())),
                    Direction::Down => Some(Bound::Excluded(start.into())),
                };
                (Ok(key), bound)
            }
            Err(error) => (Err(error), Some(Bound::Excluded(row))),
        };
        self.range = bound.and_then(|bound| range.rest(direction, bound));
        Some(found)
    }
}

impl<R: FindRow, K: Key> Iterator for DistinctKeys<R, K> {
    type Item = Result<K>;

    fn next(&mut self) -> Option<Self::Item> {
        self.go(Direction::Up)
    }
}

impl<R: FindRow, K: Key> DoubleEndedIterator for DistinctKeys<R, K> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.go(Direction::Down)
    }
}

impl<R: FindRow, K: Key> FusedIterator for DistinctKeys<R, K> {}

impl<I, K, V> fmt::Debug for Pairs<I, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pairs").field("multimap", &self.state.name).finish_non_exhaustive()
    }
}

impl<I, V> fmt::Debug for Values<I, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").field("multimap", &self.state.name).finish_non_exhaustive()
    }
}

impl<R, K> fmt::Debug for DistinctKeys<R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistinctKeys").field("range", &self.range).finish_non_exhaustive()
    }
}

impl fmt::Debug for StoredRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRows").field("keyspace", &self.keyspace).finish_non_exhaustive()
    }
}
