//! Multimaps in transactions, borrowed alone or shared with other views.

use std::fmt;

use adamant_slice::Slice;

use super::handle::Multimap;
use super::iterate::{DistinctKeys, FindRow, Pairs, Values, end_pair, end_value, has_key};
use super::rows::{self, new_row};
use crate::bounds::{Direction, KeyRange};
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::transaction::handle::Transaction;
use crate::transaction::iterate::TransactionIter;
use crate::transaction::shared::{SharedTransaction, SharedTransactionIter, TransactionAccess};
use crate::typed::{Key, KeyBoundsFor, KeyFor, PrefixFor};

impl<K: Key, V: Key> Multimap<K, V> {
    /// The multimap within a transaction, which it borrows. For several views at once see
    /// [`Multimap::within_shared`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let (books, authors) = (store.keyspace("books")?, store.multimap("books by author")?);
    /// store.transaction(|tx| {
    ///     tx.put(&books, "1", "Notes")?;
    ///     authors.within(tx).insert("Ada", "1")?;
    ///     Ok::<_, adamant::Error>(())
    /// })?;
    /// assert_eq!(authors.first_value("Ada")?, Some("1".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn within<'t>(&'t self, transaction: &'t mut Transaction) -> MultimapTransaction<'t, K, V> {
        MultimapTransaction { multimap: self, transaction }
    }

    /// The multimap within a transaction that other views use, too.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let old = store.multimap("old")?;
    /// let new = store.multimap("new")?;
    /// old.extend([("a", "1"), ("a", "2")])?;
    /// store.transaction(|tx| {
    ///     let tx = tx.share();
    ///     let (old, mut new) = (old.within_shared(&tx), new.within_shared(&tx));
    ///     for pair in old.iter() {
    ///         let (key, value) = pair?;
    ///         new.insert(&value, &key)?;
    ///     }
    ///     Ok::<_, adamant::Error>(())
    /// })?;
    /// assert_eq!(new.keys(..).count(), 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn within_shared<'s, 't>(
        &'s self,
        transaction: &'s SharedTransaction<'t>,
    ) -> MultimapTransaction<'s, K, V, &'s SharedTransaction<'t>> {
        MultimapTransaction { multimap: self, transaction }
    }
}

/// A multimap within a transaction, see [`Multimap::within`] and [`Multimap::within_shared`].
#[derive(Debug)]
pub struct MultimapTransaction<'t, K, V, T = &'t mut Transaction> {
    multimap: &'t Multimap<K, V>,
    transaction: T,
}

/// The rows of a multimap as a transaction sees them, for [`DistinctKeys`].
pub struct TransactionRows<'a, T> {
    transaction: &'a mut T,
    keyspace: &'a Keyspace,
}

impl<T: TransactionAccess> FindRow for TransactionRows<'_, T> {
    fn find_row(&mut self, range: KeyRange, direction: Direction) -> Result<Option<Slice>> {
        self.transaction.access(|tx| {
            let mut rows = tx.iter_over(self.keyspace, Some(range)).keys();
            match direction {
                Direction::Up => rows.next(),
                Direction::Down => rows.next_back(),
            }
            .transpose()
        })
    }
}

impl<K: Key, V: Key, T: TransactionAccess> MultimapTransaction<'_, K, V, T> {
    /// Whether a key has this value. Like [`Transaction::contains`].
    ///
    /// # Errors
    /// As [`Transaction::contains`].
    pub fn contains<Q, W>(&mut self, key: &Q, value: &W) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        let (keyspace, row) = (&self.multimap.rows, rows::row(key, value));
        self.transaction.access(|tx| tx.contains(keyspace, row))
    }

    /// Whether a key has a value. O(log n); only its lowest value counts as read.
    ///
    /// # Errors
    /// As [`Transaction::first`].
    pub fn contains_key<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<bool> {
        has_key(&mut self.rows(), key)
    }

    /// The lowest value of a key. O(log n).
    ///
    /// # Errors
    /// As [`Transaction::first`]; [`Error::Encoding`](crate::Error::Encoding).
    pub fn first_value<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<Option<V>> {
        let keyspace = &self.multimap.rows;
        end_value(&mut self.rows(), (keyspace, key), Direction::Up)
    }

    /// The highest value of a key. O(log n).
    ///
    /// # Errors
    /// As [`MultimapTransaction::first_value`].
    pub fn last_value<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<Option<V>> {
        let keyspace = &self.multimap.rows;
        end_value(&mut self.rows(), (keyspace, key), Direction::Down)
    }

    /// The number of values of a key, which all count as read. Like [`Multimap::count`].
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn count<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<u64> {
        let (keyspace, range) = (&self.multimap.rows, rows::of_key(key));
        self.transaction.access(|tx| {
            let mut count = 0;
            for row in tx.iter_over(keyspace, range).keys() {
                row?;
                count += 1;
            }
            Ok(count)
        })
    }

    /// The pair with the lowest key, and its lowest value. O(log n).
    ///
    /// # Errors
    /// As [`MultimapTransaction::first_value`].
    pub fn first(&mut self) -> Result<Option<(K, V)>> {
        let keyspace = &self.multimap.rows;
        end_pair(&mut self.rows(), keyspace, Direction::Up)
    }

    /// The pair with the highest key, and its highest value. O(log n).
    ///
    /// # Errors
    /// As [`MultimapTransaction::first_value`].
    pub fn last(&mut self) -> Result<Option<(K, V)>> {
        let keyspace = &self.multimap.rows;
        end_pair(&mut self.rows(), keyspace, Direction::Down)
    }

    /// The number of pairs. Like [`Transaction::len`]: the whole multimap counts as read.
    ///
    /// # Errors
    /// As [`Transaction::len`].
    pub fn len(&mut self) -> Result<u64> {
        let keyspace = &self.multimap.rows;
        self.transaction.access(|tx| tx.len(keyspace))
    }

    /// Whether there is no pair. Like [`Transaction::is_empty`].
    ///
    /// # Errors
    /// As [`Transaction::is_empty`].
    pub fn is_empty(&mut self) -> Result<bool> {
        let keyspace = &self.multimap.rows;
        self.transaction.access(|tx| tx.is_empty(keyspace))
    }

    /// The keys in a range that have values, each once. Like [`Multimap::keys`]; of each key, its
    /// lowest value counts as read.
    pub fn keys(&mut self, range: impl KeyBoundsFor<K>) -> DistinctKeys<TransactionRows<'_, T>, K> {
        let keyspace = &self.multimap.rows;
        DistinctKeys::new(self.rows(), rows::of_keys(&range), keyspace)
    }

    /// Gives a key one more value; false, and nothing is changed, if it has it. Like
    /// [`Transaction::insert_unique`].
    ///
    /// # Errors
    /// As [`Transaction::insert_unique`]; as [`Multimap::insert`].
    pub fn insert<Q, W>(&mut self, key: &Q, value: &W) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        let (keyspace, row) = (self.multimap.rows_to_write()?, new_row(key, value)?);
        self.transaction.access(|tx| tx.insert_unique(keyspace, row, []))
    }

    /// Gives a key one more value, whether it has it or not. Like [`Transaction::put`].
    ///
    /// # Errors
    /// As [`Transaction::put`]; as [`Multimap::insert`].
    pub fn put<Q, W>(&mut self, key: &Q, value: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        let (keyspace, row) = (self.multimap.rows_to_write()?, new_row(key, value)?);
        self.transaction.access(|tx| tx.put(keyspace, row, []))
    }

    /// Takes a value from a key, and reports whether the key had it. Like [`Transaction::remove`].
    ///
    /// # Errors
    /// As [`Transaction::remove`]; as [`Multimap::remove`].
    pub fn remove<Q, W>(&mut self, key: &Q, value: &W) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        let (keyspace, row) = (self.multimap.rows_to_write()?, new_row(key, value)?);
        self.transaction.access(|tx| tx.remove(keyspace, row))
    }

    /// Takes a value from a key, whether it has it or not. Like [`Transaction::delete`].
    ///
    /// # Errors
    /// As [`Transaction::delete`]; as [`Multimap::remove`].
    pub fn delete<Q, W>(&mut self, key: &Q, value: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        let (keyspace, row) = (self.multimap.rows_to_write()?, new_row(key, value)?);
        self.transaction.access(|tx| tx.delete(keyspace, row))
    }

    /// Takes all values from a key, and returns how many there were; all of them count as read.
    ///
    /// # Errors
    /// As [`Transaction::delete_range`]; as [`Multimap::remove`].
    pub fn remove_all<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<u64> {
        let (keyspace, range) = (self.multimap.rows_to_write()?, rows::of_key(key));
        let removed =
            self.transaction.access(|tx| tx.extract(keyspace, range, |_, _| Ok(Some(()))))?;
        Ok(removed.len() as u64)
    }

    /// Removes all pairs. O(n), unlike [`Multimap::clear`].
    ///
    /// # Errors
    /// As [`Transaction::clear`].
    pub fn clear(&mut self) -> Result<()> {
        let keyspace = &self.multimap.rows;
        self.transaction.access(|tx| tx.clear(keyspace))
    }

    fn rows(&mut self) -> TransactionRows<'_, T> {
        TransactionRows { transaction: &mut self.transaction, keyspace: &self.multimap.rows }
    }
}

impl<K: Key, V: Key> MultimapTransaction<'_, K, V> {
    /// The values of a key. Like [`Multimap::get`]; those that it yields count as read.
    pub fn get<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Values<TransactionIter<'_, Slice>, V> {
        self.values_range(key, ..)
    }

    /// The values of a key that lie in a range. Like [`Multimap::values_range`].
    pub fn values_range<Q: KeyFor<K> + ?Sized>(
        &mut self,
        key: &Q,
        range: impl KeyBoundsFor<V>,
    ) -> Values<TransactionIter<'_, Slice>, V> {
        let keyspace = &self.multimap.rows;
        let rows = self.rows_in(rows::of_values(key, &range));
        Values::new(rows, rows::start_of(key).len(), keyspace)
    }

    /// All pairs, from both ends. Like [`Transaction::iter`].
    pub fn iter(&mut self) -> Pairs<TransactionIter<'_, Slice>, K, V> {
        self.range(..)
    }

    /// The pairs whose keys lie in a range. Like [`Multimap::range`].
    pub fn range(
        &mut self,
        range: impl KeyBoundsFor<K>,
    ) -> Pairs<TransactionIter<'_, Slice>, K, V> {
        let keyspace = &self.multimap.rows;
        Pairs::new(self.rows_in(rows::of_keys(&range)), keyspace)
    }

    /// The pairs whose keys have a prefix. Like [`Multimap::prefix`].
    pub fn prefix<P: PrefixFor<K> + ?Sized>(
        &mut self,
        prefix: &P,
    ) -> Pairs<TransactionIter<'_, Slice>, K, V> {
        let keyspace = &self.multimap.rows;
        Pairs::new(self.rows_in(rows::of_prefix(prefix)), keyspace)
    }

    fn rows_in(&mut self, range: Option<KeyRange>) -> TransactionIter<'_, Slice> {
        self.transaction.iter_over(&self.multimap.rows, range).keys()
    }
}

/// The rows of a shared transaction.
type SharedRows<'s, 't> = SharedTransactionIter<'s, 't, Slice>;

impl<'s, 't, K: Key, V: Key> MultimapTransaction<'s, K, V, &'s SharedTransaction<'t>> {
    /// The values of a key, see [`SharedTransactionIter`].
    pub fn get<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Values<SharedRows<'s, 't>, V> {
        self.values_range(key, ..)
    }

    /// The values of a key that lie in a range, see [`SharedTransactionIter`].
    pub fn values_range<Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        range: impl KeyBoundsFor<V>,
    ) -> Values<SharedRows<'s, 't>, V> {
        let rows = self.rows_in(rows::of_values(key, &range));
        Values::new(rows, rows::start_of(key).len(), &self.multimap.rows)
    }

    /// All pairs, from both ends, see [`SharedTransactionIter`].
    pub fn iter(&self) -> Pairs<SharedRows<'s, 't>, K, V> {
        self.range(..)
    }

    /// The pairs whose keys lie in a range, see [`SharedTransactionIter`].
    pub fn range(&self, range: impl KeyBoundsFor<K>) -> Pairs<SharedRows<'s, 't>, K, V> {
        Pairs::new(self.rows_in(rows::of_keys(&range)), &self.multimap.rows)
    }

    /// The pairs whose keys have a prefix, see [`SharedTransactionIter`].
    pub fn prefix<P: PrefixFor<K> + ?Sized>(&self, prefix: &P) -> Pairs<SharedRows<'s, 't>, K, V> {
        Pairs::new(self.rows_in(rows::of_prefix(prefix)), &self.multimap.rows)
    }

    fn rows_in(&self, range: Option<KeyRange>) -> SharedRows<'s, 't> {
        SharedTransactionIter::new(self.transaction, &self.multimap.rows, range).keys()
    }
}

impl<T> fmt::Debug for TransactionRows<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionRows").field("keyspace", &self.keyspace).finish_non_exhaustive()
    }
}
