//! Iterators of transactions.
//!
//! Purpose: merges the snapshot's entries and the transaction's own writes, in order, from both
//! ends. Neither is copied: own writes are walked in place. Ranges that the transaction has emptied
//! are remembered (`spans.rs`) and skipped.
//! Invariants: the read set covers all keys from each end up to the last one yielded there, with
//! the gaps between them, and the whole range once the iterator has ended. A key that is remembered
//! as empty has an own write that removes it, or did not exist when the transaction began.

use std::cmp::Ordering;
use std::collections::btree_map::Range;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;

use adamant_slice::Slice;

use crate::bounds::{Direction, KeyBounds, KeyRange};
use crate::common::spans;
use crate::error::Result;
use crate::keyspace::entry::{Entry, Shape};
use crate::keyspace::handle::Keyspace;
use crate::keyspace::iterate::Iter;
use crate::reserved::Written;
use crate::transaction::handle::{Ahead, Parts, Transaction};
use crate::transaction::merged::merged;

/// A run of at least this many skipped keys is remembered even between other keys.
const WORTH_NOTING: usize = 8;

/// Entries of a keyspace as a transaction sees them, by key, from both ends: pairs, or what
/// [`TransactionIter::keys`] and [`TransactionIter::entries`] make of them.
///
/// Keys that the transaction has removed are skipped at once after the first time: taking the first
/// entry out, time and again, is O(log n) each.
pub struct TransactionIter<'t, T = (Slice, Slice)> {
    /// Until the first step, if the range can hold a key.
    begin: Option<Begin<'t, T>>,
    /// `None` before the first step and after the end; an error is yielded first.
    walk: Result<Option<Walk<'t, T>>>,
}

impl Transaction {
    /// All entries, by key. Yielded entries count as read, and no others: a caller that stops at
    /// the first entry conflicts only with commits up to its key.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.extend([("apples", "7"), ("pears", "3")])?;
    /// let mut transaction = store.begin()?;
    /// let last = transaction.iter(&stock).next_back().transpose()?;
    /// assert_eq!(last, Some(("pears".into(), "3".into())));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// A keyspace of another store yields an error first.
    pub fn iter(&mut self, keyspace: &Keyspace) -> TransactionIter<'_> {
        self.iter_over(keyspace, Some(KeyRange::all()))
    }

    /// The entries in a range of keys, like [`Transaction::iter`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let mut transaction = store.begin()?;
    /// transaction.put(&stock, "bananas", "2")?;
    /// // What was there and what it wrote itself, in one order.
    /// assert_eq!(transaction.range(&stock, "a".."c").count(), 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn range(&mut self, keyspace: &Keyspace, range: impl KeyBounds) -> TransactionIter<'_> {
        self.iter_over(keyspace, KeyRange::new(&range))
    }

    /// The entries whose keys start with `prefix`, like [`Transaction::iter`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// transaction.put(&stock, "apples/red", "7")?;
    /// transaction.put(&stock, "pears", "3")?;
    /// assert_eq!(transaction.prefix(&stock, "apples/").count(), 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> TransactionIter<'_> {
        self.iter_over(keyspace, KeyRange::prefix(prefix.as_ref()))
    }

    /// The entry with the lowest key. O(log n), however much the transaction has removed before it.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let jobs = store.keyspace("jobs")?;
    /// jobs.extend([("1", "sweep"), ("2", "mop")])?;
    /// store.transaction(|tx| {
    ///     while let Some((number, _)) = tx.first(&jobs)? {
    ///         tx.delete(&jobs, number)?;
    ///     }
    ///     Ok::<_, adamant::Error>(())
    /// })?;
    /// assert!(jobs.is_empty()?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn first(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.end_of(keyspace, 0)
    }

    /// The entry with the highest key. Like [`Transaction::first`].
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn last(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.end_of(keyspace, 1)
    }

    /// The entry at an end: 0 the low one, 1 the high one.
    pub(super) fn end_of(
        &mut self,
        keyspace: &Keyspace,
        end: usize,
    ) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).go(end).transpose()
    }

    /// The entries in a range of keys; none without one.
    pub(crate) fn iter_over(
        &mut self,
        keyspace: &Keyspace,
        range: Option<KeyRange>,
    ) -> TransactionIter<'_> {
        match self.parts(keyspace) {
            Ok((tables, kept)) => {
                let begin = range.map(|range| Begin { tables, range, kept: Some(kept) });
                TransactionIter { begin, walk: Ok(None) }
            }
            Err(error) => TransactionIter { begin: None, walk: Err(error) },
        }
    }
}

impl<'t> TransactionIter<'t> {
    /// The remaining keys, without their values, like [`Iter::keys`]. Reading a key counts as
    /// reading its value, too: a commit that changes it conflicts.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let mut transaction = store.begin()?;
    /// transaction.put(&stock, "bananas", "2")?;
    /// let keys = transaction.iter(&stock).keys().collect::<adamant::Result<Vec<_>>>()?;
    /// assert_eq!(keys, ["apples", "bananas"].map(adamant::Slice::from));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn keys(self) -> TransactionIter<'t, Slice> {
        self.shaped(Iter::keys)
    }

    /// The remaining entries, whose values are read lazily, like [`Iter::entries`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let scans = store.keyspace("scans")?;
    /// scans.put("page 1", vec![7; 100_000])?;
    /// let mut transaction = store.begin()?;
    /// for page in transaction.iter(&scans).entries() {
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
        let begin =
            self.begin.map(|Begin { tables, range, .. }| Begin { tables, range, kept: None });
        let end = |End { near, near_own, is_begun, has_yielded }: End<'t, (Slice, Slice)>| {
            let near = near.map(|(key, value)| T::of_pair(key, value));
            End { near, near_own, is_begun, has_yielded }
        };
        let shape = |walk: Walk<'t, (Slice, Slice)>| {
            let Walk { tables, range, left, inner, own, ends, is_narrowed, own_yielded } = walk;
            let inner = Inner::Own(shaped(inner.into_own(&tables)));
            let ends = ends.map(end);
            Walk { tables, range, left, inner, own, ends, is_narrowed, own_yielded }
        };
        TransactionIter { begin, walk: self.walk.map(|walk| walk.map(shape)) }
    }
}

impl<'t, T> TransactionIter<'t, T> {
    /// The next entry from an end: 0 the low one, 1 the high one.
    fn go(&mut self, end: usize) -> Option<Result<T>>
    where
        T: Shape,
    {
        if let Some(begin) = self.begin.take() {
            self.walk = Ok(begin.walk(end));
        }
        let outcome = match &mut self.walk {
            Ok(Some(walk)) => walk.step(end),
            Ok(None) => return None,
            Err(_) => match std::mem::replace(&mut self.walk, Ok(None)) {
                Err(error) => return Some(Err(error)),
                Ok(_) => return None,
            },
        };
        if outcome.is_err() {
            self.walk = Ok(None);
        }
        outcome.transpose()
    }
}

/// An iterator before its first step.
struct Begin<'t, T> {
    tables: Parts<'t>,
    range: KeyRange,
    /// The pre-read entries at the low end of a range, and at the high end of one.
    kept: Option<&'t mut [Option<Ahead<T>>; 2]>,
}

impl<'t, T> Begin<'t, T> {
    /// Begins at an end.
    fn walk(self, end: usize) -> Option<Walk<'t, T>> {
        let Self { tables, range, kept } = self;
        tables.notes.borrow_mut().read.settle();
        let kept = kept.map(|kept| &mut kept[end]);
        let is_ahead =
            kept.as_ref().is_some_and(|kept| kept.as_ref().is_some_and(|it| it.is_for(&range)));
        // The pre-read is not narrowed at the other end.
        let left = tables.notes.borrow().empty.narrowed(&range, is_ahead.then_some(end));
        let Some(left) = left else {
            // That the range is empty was read, too.
            tables.notes.borrow_mut().read.cover(0, &range, None);
            return None;
        };
        let own = tables.writes.range::<[u8], _>(left.bounds());
        let mut ends = [End::new(), End::new()];
        let inner = match kept {
            None => Inner::Own(tables.iterate(&left)),
            Some(kept) => {
                if !is_ahead {
                    *kept = None;
                }
                let kept =
                    kept.get_or_insert_with(|| Ahead::new(range.clone(), tables.iterate(&left)));
                ends[end].near = kept.near.take();
                kept.is_at_end = false;
                Inner::Kept(kept)
            }
        };
        let (is_narrowed, own_yielded) = (is_ahead, false);
        Some(Walk { tables, range, left, inner, own, ends, is_narrowed, own_yielded })
    }
}

/// The iterator over the snapshot.
#[expect(clippy::large_enum_variant, reason = "there is one for each iterator, on the stack")]
enum Inner<'t, T> {
    Own(Iter<T>),
    /// Stays with the transaction, for a caller that repeatedly takes an entry out from an end.
    Kept(&'t mut Ahead<T>),
}

impl<T> Inner<'_, T> {
    fn get(&mut self) -> &mut Iter<T> {
        match self {
            Self::Own(inner) => inner,
            Self::Kept(kept) => &mut kept.inner,
        }
    }

    fn into_own(self, tables: &Parts<'_>) -> Iter<T> {
        match self {
            Self::Own(inner) => inner,
            Self::Kept(kept) => {
                let all = tables.iterate(&KeyRange::all());
                std::mem::replace(&mut kept.inner, all)
            }
        }
    }
}

/// A walk over the snapshot's entries and the own writes.
struct Walk<'t, T> {
    tables: Parts<'t>,
    /// The whole range, which counts as read when the walk has ended.
    range: KeyRange,
    /// The range that may hold more entries; shrinks past ranges known to be empty.
    left: KeyRange,
    /// The entries when the transaction began.
    inner: Inner<'t, T>,
    own: Range<'t, Slice, Written>,
    /// The low end and the high end.
    ends: [End<'t, T>; 2],
    /// Whether the next of `inner` may lie outside `left`: check it.
    is_narrowed: bool,
    /// Whether the last entry yielded is an own write.
    own_yielded: bool,
}

/// An end of a walk.
struct End<'t, T> {
    /// The next entry of the snapshot and the next own write, taken and not yielded.
    near: Option<T>,
    near_own: Option<Own<'t>>,
    /// Whether this end was stepped, and whether it yielded an entry.
    is_begun: bool,
    has_yielded: bool,
}

impl<T> End<'_, T> {
    fn new() -> Self {
        Self { near: None, near_own: None, is_begun: false, has_yielded: false }
    }
}

/// A write of the transaction.
type Own<'t> = (&'t Slice, &'t Written);

/// A run of adjacent keys without values, as they are skipped.
#[derive(Default)]
struct Passed {
    first: Option<Slice>,
    last: Option<Slice>,
    count: usize,
}

impl<'t, T: Shape> Walk<'t, T> {
    /// The next entry from an end.
    fn step(&mut self, end: usize) -> Result<Option<T>> {
        self.ends[end].is_begun = true;
        self.own_yielded = false;
        let mut passed = Passed::default();
        let found = self.pass(end, &mut passed)?;
        self.learn(end, passed);
        self.keep(end, found.as_ref());
        self.ends[end].has_yielded |= found.is_some();
        self.tables.notes.borrow_mut().read.cover(end, &self.range, found.as_ref().map(T::key));
        Ok(found)
    }

    /// Keeps the snapshot's next entry for the next request for the first one. Nothing is kept
    /// after a second step, which passes entries that have no own write.
    fn keep(&mut self, end: usize, found: Option<&T>) {
        let Inner::Kept(kept) = &mut self.inner else { return };
        let [this, other] = [&self.ends[end], &self.ends[1 - end]];
        kept.is_at_end = !this.has_yielded && !other.has_yielded && !other.is_begun;
        if kept.is_at_end {
            let next = if self.own_yielded { this.near.as_ref() } else { found };
            kept.near = next.cloned();
        }
    }

    /// Steps to the next entry, and notes what it skips.
    fn pass(&mut self, end: usize, passed: &mut Passed) -> Result<Option<T>> {
        loop {
            self.fill(end)?;
            let End { near, near_own, .. } = &mut self.ends[end];
            let order = match (&near_own, &near) {
                (None, None) => return Ok(None),
                (None, Some(_)) => return Ok(near.take()),
                (Some(_), None) => Ordering::Less,
                (Some((key, _)), Some(other)) if end == 0 => (*key).cmp(other.key()),
                (Some((key, _)), Some(other)) => other.key().cmp(key),
            };
            if order.is_gt() {
                return Ok(near.take());
            }
            if order.is_eq() {
                *near = None;
            }
            let Some((key, written)) = near_own.take() else { continue };
            let Parts { keyspace, snapshot, .. } = self.tables;
            let value = match T::WITH_VALUES {
                true => written.value(|operand| merged(snapshot, keyspace, key, operand))?,
                false => written.is_value().then_some(Slice::EMPTY),
            };
            if let Some(value) = value {
                self.own_yielded = true;
                return Ok(Some(T::of_pair(key.clone(), value)));
            }
            // Skips a key that the transaction removed, and the range around it that is known to be
            // empty.
            passed.note(key);
            if !self.jump(end, key) {
                return Ok(None);
            }
        }
    }

    /// Fills both candidates of an end: the snapshot's next entry and the next own write.
    fn fill(&mut self, end: usize) -> Result<()> {
        let far = 1 - end;
        loop {
            if self.ends[end].near.is_none() {
                let inner = self.inner.get();
                let next = if end == 0 { inner.next() } else { inner.next_back() };
                self.ends[end].near = next.transpose()?.or_else(|| self.ends[far].near.take());
            }
            let near = self.ends[end].near.as_ref();
            if !self.is_narrowed {
                break;
            }
            self.is_narrowed = false;
            if near.is_none_or(|near| self.left.holds(near.key())) {
                break;
            }
            // The range up to there is known to be empty: seek instead of stepping.
            self.ends[end].near = None;
            *self.inner.get() = self.tables.iterate(&self.left);
        }
        if self.ends[end].near_own.is_none() {
            let next = if end == 0 { self.own.next() } else { self.own.next_back() };
            self.ends[end].near_own = next.or_else(|| self.ends[far].near_own.take());
        }
        #[cfg(test)]
        {
            self.tables.notes.borrow_mut().steps += 1;
        }
        Ok(())
    }

    /// Seeks past the range around this key that is known to be empty; false if that is the end.
    /// Not if the other end was stepped, whose position would be lost: there is less to save.
    fn jump(&mut self, end: usize, key: &Slice) -> bool {
        if self.ends[1 - end].is_begun {
            return true;
        }
        let notes = self.tables.notes.borrow();
        let Some((first, behind)) = notes.empty.over(key) else { return true };
        let rest = match (end, behind) {
            (0, None) => None,
            (0, Some(behind)) => {
                self.left.clone().rest(Direction::Up, spans::lower(behind).map(Slice::from))
            }
            _ if first.is_empty() => None,
            _ => self.left.clone().rest(Direction::Down, Bound::Excluded(first.clone())),
        };
        let Some(rest) = rest else { return false };
        self.own = self.tables.writes.range::<[u8], _>(rest.bounds());
        self.is_narrowed = true;
        self.left = rest;
        true
    }

    /// Remembers the skipped keys, if that saves work later.
    fn learn(&mut self, end: usize, passed: Passed) {
        let Passed { first: Some(first), last: Some(last), count } = passed else { return };
        let has_yielded = self.ends[end].has_yielded;
        let mut notes = self.tables.notes.borrow_mut();
        if !has_yielded {
            // From the end of the range: no entry came before.
            return notes.note_empty(end, &self.range, last);
        }
        let empty = &mut notes.empty;
        if count >= WORTH_NOTING || empty.touches(&first) {
            let (lower, highest) = if end == 0 { (first, last) } else { (last, first) };
            empty.insert(lower, Some(spans::after(&highest)));
        }
    }
}

impl Passed {
    fn note(&mut self, key: &Slice) {
        self.first.get_or_insert_with(|| key.clone());
        self.last = Some(key.clone());
        self.count += 1;
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
        let begin = self.begin.as_ref().map(|begin| &begin.range);
        let range = self.walk.as_ref().map(|walk| walk.as_ref().map(|walk| &walk.range).or(begin));
        f.debug_struct("TransactionIter").field("range", &range).finish_non_exhaustive()
    }
}
