//! Iterating within a transaction.
//!
//! Purpose: what a snapshot sees and own writes, in one order, from both ends.
//! Invariants: the read set covers all keys from each end up to what was yielded there last, the
//! gaps between them too; the whole range once the iterator has ended.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;

use adamant_slice::Slice;

use crate::bounds::{KeyBounds, KeyRange};
use crate::entry::{Entry, Shape};
use crate::error::Result;
use crate::iterate::Iter;
use crate::keyspace::Keyspace;
use crate::transaction::Transaction;
use crate::versions::ReadSet;

/// Entries of a keyspace as a transaction sees them, by key, from both ends: pairs, or what
/// [`TransactionIter::keys`] and [`TransactionIter::entries`] make of them.
pub struct TransactionIter<'t, T = (Slice, Slice)> {
    range: Option<KeyRange>,
    /// What was there when the transaction began.
    inner: Option<Iter<T>>,
    /// Taken from it at each end, and not yielded.
    front: Option<T>,
    back: Option<T>,
    own: VecDeque<(Slice, Option<Slice>)>,
    read: &'t RefCell<ReadSet>,
    /// Which ranges of the read set are this iterator's: from the low end, and from the high one.
    covered: [Option<usize>; 2],
}

impl Transaction {
    /// All entries, by key. What is yielded counts as read, and no more: who stops at the first
    /// entry conflicts only with commits up to its key.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.extend([("apples", "7"), ("pears", "3")])?;
    /// let mut transaction = store.begin()?;
    /// let last = transaction.iter(&stock)?.next_back().transpose()?;
    /// assert_eq!(last, Some(("pears".into(), "3".into())));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The keyspace is of another store.
    pub fn iter(&mut self, keyspace: &Keyspace) -> Result<TransactionIter<'_>> {
        self.iter_over(keyspace, Some(KeyRange::all()))
    }

    /// The entries in a range of keys, as [`Transaction::iter`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.insert("apples", "7")?;
    /// let mut transaction = store.begin()?;
    /// transaction.insert(&stock, "bananas", "2")?;
    /// // What was there and what it wrote itself, in one order.
    /// assert_eq!(transaction.range(&stock, "a".."c")?.count(), 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::iter`].
    pub fn range(
        &mut self,
        keyspace: &Keyspace,
        range: impl KeyBounds,
    ) -> Result<TransactionIter<'_>> {
        self.iter_over(keyspace, KeyRange::new(&range))
    }

    /// The entries under keys that start with `prefix`, as [`Transaction::iter`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// transaction.insert(&stock, "apples/red", "7")?;
    /// transaction.insert(&stock, "pears", "3")?;
    /// assert_eq!(transaction.prefix(&stock, "apples/")?.count(), 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::iter`].
    pub fn prefix(
        &mut self,
        keyspace: &Keyspace,
        prefix: impl AsRef<[u8]>,
    ) -> Result<TransactionIter<'_>> {
        self.iter_over(keyspace, KeyRange::prefix(prefix.as_ref()))
    }

    /// The entry with the lowest key.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn first(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace)?.next().transpose()
    }

    /// The entry with the highest key.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn last(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace)?.next_back().transpose()
    }

    fn iter_over(
        &mut self,
        keyspace: &Keyspace,
        range: Option<KeyRange>,
    ) -> Result<TransactionIter<'_>> {
        let (snapshot, writes, read) = self.parts(keyspace)?;
        let own = range.as_ref().map(|range| {
            let own = writes.range::<[u8], _>(range.bounds());
            own.map(|(key, written)| (key.clone(), written.value())).collect()
        });
        let snapshot = snapshot.clone();
        let inner = range.clone().map(|r| Iter::new(keyspace.clone(), Some(r), Some(snapshot)));
        let (front, back, covered) = (None, None, [None; 2]);
        Ok(TransactionIter {
            range,
            inner,
            front,
            back,
            own: own.unwrap_or_default(),
            read,
            covered,
        })
    }
}

impl<'t> TransactionIter<'t> {
    /// The keys that are left, without their values, as [`Iter::keys`]. Who reads a key has read its value,
    /// too: a commit that changes it conflicts.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.insert("apples", "7")?;
    /// let mut transaction = store.begin()?;
    /// transaction.insert(&stock, "bananas", "2")?;
    /// let keys = transaction.iter(&stock)?.keys().collect::<adamant::Result<Vec<_>>>()?;
    /// assert_eq!(keys, ["apples", "bananas"].map(adamant::Slice::from));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn keys(self) -> TransactionIter<'t, Slice> {
        self.shaped(Iter::keys)
    }

    /// The entries that are left, whose values are read when they are asked for, as [`Iter::entries`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let scans = store.keyspace("scans")?;
    /// scans.insert("page 1", vec![7; 100_000])?;
    /// let mut transaction = store.begin()?;
    /// for page in transaction.iter(&scans)?.entries() {
    ///     let page = page?;
    ///     if page.key().ends_with(b" 1") {
    ///         assert_eq!(page.value()?.len(), 100_000);
    ///     }
    /// }
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn entries(self) -> TransactionIter<'t, Entry> {
        self.shaped(Iter::entries)
    }

    fn shaped<T: Shape>(self, shaped: fn(Iter) -> Iter<T>) -> TransactionIter<'t, T> {
        let Self { range, inner, front, back, own, read, covered } = self;
        let taken = |pair: Option<(Slice, Slice)>| pair.map(|(key, value)| T::of_pair(key, value));
        let (inner, front, back) = (inner.map(shaped), taken(front), taken(back));
        TransactionIter { range, inner, front, back, own, read, covered }
    }
}

impl<T> TransactionIter<'_, T> {
    /// Notes that all keys from one end up to this one were looked at; `None`: all of the range.
    fn cover(&mut self, end: usize, key: Option<&Slice>) {
        let Some(range) = &self.range else { return };
        if self.read.borrow().is_needless {
            return;
        }
        let mut covered = range.clone();
        if let Some(key) = key {
            let bound = Bound::Included(key.clone());
            if end == 0 { covered.upper = bound } else { covered.lower = bound }
        }
        let ranges = &mut self.read.borrow_mut().ranges;
        match self.covered[end] {
            Some(index) => ranges[index] = covered,
            None => {
                self.covered[end] = Some(ranges.len());
                ranges.push(covered);
            }
        }
    }

    /// The next entry from an end: 0 the low one, 1 the high one.
    fn step(&mut self, end: usize) -> Result<Option<T>>
    where
        T: Shape,
    {
        loop {
            let (near, far) = match end {
                0 => (&mut self.front, &mut self.back),
                _ => (&mut self.back, &mut self.front),
            };
            if near.is_none()
                && let Some(inner) = &mut self.inner
            {
                let next = if end == 0 { inner.next() } else { inner.next_back() };
                *near = next.transpose()?.or_else(|| far.take());
            }
            let own = if end == 0 { self.own.front() } else { self.own.back() };
            let order = match (own, &near) {
                (None, None) => return Ok(None),
                (None, Some(_)) => return Ok(near.take()),
                (Some(_), None) => std::cmp::Ordering::Less,
                (Some((key, _)), Some(other)) if end == 0 => key.cmp(other.key()),
                (Some((key, _)), Some(other)) => other.key().cmp(key),
            };
            if order.is_gt() {
                return Ok(near.take());
            }
            if order.is_eq() {
                *near = None;
            }
            let own = if end == 0 { self.own.pop_front() } else { self.own.pop_back() };
            // One that the transaction removed is passed over.
            if let Some((key, Some(value))) = own {
                return Ok(Some(T::of_pair(key, value)));
            }
        }
    }

    fn go(&mut self, end: usize) -> Option<Result<T>>
    where
        T: Shape,
    {
        match self.step(end) {
            Ok(entry) => {
                self.cover(end, entry.as_ref().map(T::key));
                entry.map(Ok)
            }
            Err(error) => {
                self.inner = None;
                self.own.clear();
                Some(Err(error))
            }
        }
    }
}

impl<T: Shape> Iterator for TransactionIter<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.go(0)
    }
}

impl<T: Shape> DoubleEndedIterator for TransactionIter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.go(1)
    }
}

impl<T: Shape> FusedIterator for TransactionIter<'_, T> {}

impl<T> fmt::Debug for TransactionIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionIter").field("range", &self.range).finish_non_exhaustive()
    }
}
