//! Iterating within a transaction.
//!
//! Purpose: what a snapshot sees and own writes, in one order, from both ends. Neither is copied:
//! own writes are walked where they are. Where nothing is left, since the transaction has removed
//! it, is remembered (`spans.rs`) and passed over at once.
//! Invariants: the read set covers all keys from each end up to what was yielded there last, the
//! gaps between them too; the whole range once the iterator has ended. Keys that are remembered as
//! empty have an own write that removes them, or were not there when the transaction began.

use std::cmp::Ordering;
use std::collections::btree_map::Range;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;

use adamant_slice::Slice;

use crate::bounds::{Direction, KeyBounds, KeyRange};
use crate::entry::{Entry, Shape};
use crate::error::Result;
use crate::iterate::Iter;
use crate::keyspace::Keyspace;
use crate::reserved::Written;
use crate::spans;
use crate::transaction::{Ahead, Parts, Transaction};

/// Keys that were passed over at once which are remembered, even in the midst of others.
const WORTH_NOTING: usize = 8;

/// Entries of a keyspace as a transaction sees them, by key, from both ends: pairs, or what
/// [`TransactionIter::keys`] and [`TransactionIter::entries`] make of them.
///
/// What the transaction has removed is passed over at once where that has been done before: taking
/// the first entry out, time and again, is O(log n) each.
pub struct TransactionIter<'t, T = (Slice, Slice)> {
    /// Until something is asked for, if there can be a key.
    begin: Option<Begin<'t, T>>,
    /// `None` before that, and after the end; an error is yielded first.
    walk: Result<Option<Walk<'t, T>>>,
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
    /// let last = transaction.iter(&stock).next_back().transpose()?;
    /// assert_eq!(last, Some(("pears".into(), "3".into())));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// A keyspace of another store is an error that comes first.
    pub fn iter(&mut self, keyspace: &Keyspace) -> TransactionIter<'_> {
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
    /// assert_eq!(transaction.range(&stock, "a".."c").count(), 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn range(&mut self, keyspace: &Keyspace, range: impl KeyBounds) -> TransactionIter<'_> {
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
    /// assert_eq!(transaction.prefix(&stock, "apples/").count(), 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> TransactionIter<'_> {
        self.iter_over(keyspace, KeyRange::prefix(prefix.as_ref()))
    }

    /// The entry with the lowest key. O(log n), whatever the transaction has removed before it.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let jobs = store.keyspace("jobs")?;
    /// jobs.extend([("1", "sweep"), ("2", "mop")])?;
    /// store.transaction(|tx| {
    ///     while let Some((number, _)) = tx.first(&jobs)? {
    ///         tx.remove(&jobs, number)?;
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

    /// The entry with the highest key. As [`Transaction::first`].
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn last(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.end_of(keyspace, 1)
    }

    /// The entry at an end.
    fn end_of(&mut self, keyspace: &Keyspace, end: usize) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).go(end).transpose()
    }

    fn iter_over(&mut self, keyspace: &Keyspace, range: Option<KeyRange>) -> TransactionIter<'_> {
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
    /// The keys that are left, without their values, as [`Iter::keys`]. Who reads a key has read its value,
    /// too: a commit that changes it conflicts.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.insert("apples", "7")?;
    /// let mut transaction = store.begin()?;
    /// transaction.insert(&stock, "bananas", "2")?;
    /// let keys = transaction.iter(&stock).keys().collect::<adamant::Result<Vec<_>>>()?;
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
        let shape = |walk: Walk<'t, (Slice, Slice)>| {
            let Walk { tables, range, left, inner, near, .. } = walk;
            let Walk { own, near_own, is_begun, has_yielded, is_narrowed, own_yielded, .. } = walk;
            let near = near.map(|pair| pair.map(|(key, value)| T::of_pair(key, value)));
            let inner = Inner::Own(shaped(inner.into_own(&tables)));
            Walk {
                tables,
                range,
                left,
                inner,
                near,
                own,
                near_own,
                is_begun,
                has_yielded,
                is_narrowed,
                own_yielded,
            }
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

/// An iterator that was not asked for anything.
struct Begin<'t, T> {
    tables: Parts<'t>,
    range: KeyRange,
    /// What was fetched at the low end of a range, and at the high end of one.
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
        // What was fetched is not narrowed at the other end.
        let left = tables.notes.borrow().empty.narrowed(&range, is_ahead.then_some(end));
        let Some(left) = left else {
            // That nothing is there was looked at, too.
            tables.notes.borrow_mut().read.cover(0, &range, None);
            return None;
        };
        let (mut near, own) = ([None, None], tables.writes.range::<[u8], _>(left.bounds()));
        let inner = match kept {
            None => Inner::Own(tables.iterate(&left)),
            Some(kept) => {
                if !is_ahead {
                    *kept = None;
                }
                let kept =
                    kept.get_or_insert_with(|| Ahead::new(range.clone(), tables.iterate(&left)));
                near[end] = kept.near.take();
                kept.is_at_end = false;
                Inner::Kept(kept)
            }
        };
        let (near_own, flags) = ([None, None], [false; 2]);
        let (is_begun, has_yielded) = (flags, flags);
        Some(Walk {
            tables,
            range,
            left,
            inner,
            near,
            own,
            near_own,
            is_begun,
            has_yielded,
            is_narrowed: is_ahead,
            own_yielded: false,
        })
    }
}

/// What a snapshot sees, as it is walked through.
#[expect(clippy::large_enum_variant, reason = "there is one for each iterator, on the stack")]
enum Inner<'t, T> {
    Own(Iter<T>),
    /// Stays with the transaction: who takes entries out from an end asks again.
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

/// Goes through what a snapshot sees and own writes.
struct Walk<'t, T> {
    tables: Parts<'t>,
    /// All of it, which counts as read when the walk has ended.
    range: KeyRange,
    /// The keys that may be left; moves where it is known that nothing is.
    left: KeyRange,
    /// What was there when the transaction began, and what was taken of it at each end and not
    /// yielded.
    inner: Inner<'t, T>,
    near: [Option<T>; 2],
    own: Range<'t, Slice, Written>,
    near_own: [Option<Own<'t>>; 2],
    /// Whether something was asked for at an end, and whether something was yielded there.
    is_begun: [bool; 2],
    has_yielded: [bool; 2],
    /// Whether what is next of `inner` may lie before all that is left: to be looked at next.
    is_narrowed: bool,
    /// Whether what was yielded last is an own write.
    own_yielded: bool,
}

/// A write of the transaction.
type Own<'t> = (&'t Slice, &'t Written);

/// Keys next to each other under which nothing is, as they are passed over.
#[derive(Default)]
struct Passed {
    first: Option<Slice>,
    last: Option<Slice>,
    count: usize,
}

impl<'t, T: Shape> Walk<'t, T> {
    /// The next entry from an end.
    fn step(&mut self, end: usize) -> Result<Option<T>> {
        self.is_begun[end] = true;
        self.own_yielded = false;
        let mut passed = Passed::default();
        let found = self.pass(end, &mut passed)?;
        self.learn(end, passed);
        self.keep(end, found.as_ref());
        self.has_yielded[end] |= found.is_some();
        self.tables.notes.borrow_mut().read.cover(end, &self.range, found.as_ref().map(T::key));
        Ok(found)
    }

    /// Has what comes next in the snapshot kept for who asks for the first entry again; where more than that is
    /// asked for it is not, for entries are passed that have no own write.
    fn keep(&mut self, end: usize, found: Option<&T>) {
        let Inner::Kept(kept) = &mut self.inner else { return };
        kept.is_at_end = self.has_yielded == [false; 2] && !self.is_begun[1 - end];
        if kept.is_at_end {
            let next = if self.own_yielded { self.near[end].as_ref() } else { found };
            kept.near = next.cloned();
        }
    }

    /// Goes on to the next entry, and notes what it passes over.
    fn pass(&mut self, end: usize, passed: &mut Passed) -> Result<Option<T>> {
        loop {
            self.fill(end)?;
            let order = match (&self.near_own[end], &self.near[end]) {
                (None, None) => return Ok(None),
                (None, Some(_)) => return Ok(self.near[end].take()),
                (Some(_), None) => Ordering::Less,
                (Some((key, _)), Some(other)) if end == 0 => (*key).cmp(other.key()),
                (Some((key, _)), Some(other)) => other.key().cmp(key),
            };
            if order.is_gt() {
                return Ok(self.near[end].take());
            }
            if order.is_eq() {
                self.near[end] = None;
            }
            let Some((key, written)) = self.near_own[end].take() else { continue };
            if let Some(value) = written.value() {
                self.own_yielded = true;
                return Ok(Some(T::of_pair(key.clone(), value)));
            }
            // One that the transaction removed is passed over, and so is all that is known to be
            // empty there.
            passed.note(key);
            if !self.jump(end, key) {
                return Ok(None);
            }
        }
    }

    /// Takes what is next from an end, of each of the two.
    fn fill(&mut self, end: usize) -> Result<()> {
        let far = 1 - end;
        loop {
            if self.near[end].is_none() {
                let inner = self.inner.get();
                let next = if end == 0 { inner.next() } else { inner.next_back() };
                self.near[end] = next.transpose()?.or_else(|| self.near[far].take());
            }
            let near = self.near[end].as_ref();
            if !self.is_narrowed {
                break;
            }
            self.is_narrowed = false;
            if near.is_none_or(|near| self.left.holds(near.key())) {
                break;
            }
            // Nothing is left up to where that begins: not asked for one by one.
            self.near[end] = None;
            *self.inner.get() = self.tables.iterate(&self.left);
        }
        if self.near_own[end].is_none() {
            let next = if end == 0 { self.own.next() } else { self.own.next_back() };
            self.near_own[end] = next.or_else(|| self.near_own[far].take());
        }
        #[cfg(test)]
        {
            self.tables.notes.borrow_mut().steps += 1;
        }
        Ok(())
    }

    /// Goes on behind the keys around this one under which nothing is; false if that is the end.
    /// Not where the other end was begun with, whose place is not kept: there is less to be spared.
    fn jump(&mut self, end: usize, key: &Slice) -> bool {
        if self.is_begun[1 - end] {
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

    /// Remembers what was passed over, if that spares something to those who come by later.
    fn learn(&mut self, end: usize, passed: Passed) {
        let Passed { first: Some(first), last: Some(last), count } = passed else { return };
        let empty = &mut self.tables.notes.borrow_mut().empty;
        let is_worth_it = !self.has_yielded[end] || count >= WORTH_NOTING || empty.touches(&first);
        if !is_worth_it {
            return;
        }
        // From the end of the range, if nothing came before.
        let (lower, upper) = self.range.bounds();
        match (end, self.has_yielded[end]) {
            (0, false) => empty.insert(spans::start_of(lower), Some(spans::after(&last))),
            (0, true) => empty.insert(first, Some(spans::after(&last))),
            (_, false) => empty.insert(last, spans::end_of(upper)),
            (_, true) => empty.insert(last, Some(spans::after(&first))),
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
