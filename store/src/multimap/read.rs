//! Reads of multimaps.

use adamant_slice::Slice;

use super::handle::Multimap;
use super::iterate::{DistinctKeys, Pairs, StoredRows, Values, end_pair, end_value, has_key};
use super::rows;
use crate::bounds::{Direction, KeyRange};
use crate::error::Result;
use crate::keyspace::iterate::{Iter, Keys};
use crate::typed::{Key, KeyBoundsFor, KeyFor, PrefixFor};

impl<K: Key, V: Key> Multimap<K, V> {
    /// The values of a key in their order, from both ends; none if it has none. O(log n), and O(1)
    /// for each value. Sees later commits as [`Keyspace::iter`](crate::Keyspace::iter) does.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let lines = store.multimap("lines by word")?.typed::<String, u64>()?;
    /// lines.extend([("sea", 7), ("ship", 2), ("sea", 1)])?;
    /// let found: Result<Vec<_>, _> = lines.get("sea").rev().collect();
    /// assert_eq!(found?, [7, 1]);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn get<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Values<Keys, V> {
        self.values_range(key, ..)
    }

    /// The values of a key that lie in a range, like [`Multimap::get`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let lines = store.multimap("lines by word")?.typed::<String, u64>()?;
    /// lines.extend([("sea", 1), ("sea", 7), ("sea", 9)])?;
    /// let found: Result<Vec<_>, _> = lines.values_range("sea", 2..=7).collect();
    /// assert_eq!(found?, [7]);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn values_range<Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        range: impl KeyBoundsFor<V>,
    ) -> Values<Keys, V> {
        let rows = self.rows_in(rows::of_values(key, &range));
        Values::new(rows, rows::start_of(key).len(), &self.rows)
    }

    /// Whether a key has this value. O(log n).
    ///
    /// # Errors
    /// As [`Keyspace::contains`](crate::Keyspace::contains).
    pub fn contains<Q, W>(&self, key: &Q, value: &W) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        self.rows.contains(rows::row(key, value))
    }

    /// Whether a key has a value. O(log n).
    ///
    /// # Errors
    /// As [`Keyspace::first`](crate::Keyspace::first).
    pub fn contains_key<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<bool> {
        has_key(&mut self.stored(), key)
    }

    /// The lowest value of a key. O(log n).
    ///
    /// # Errors
    /// As [`Keyspace::first`](crate::Keyspace::first);
    /// [`Error::Encoding`](crate::Error::Encoding) if it is not of type `V`.
    pub fn first_value<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        end_value(&mut self.stored(), (&self.rows, key), Direction::Up)
    }

    /// The highest value of a key. O(log n).
    ///
    /// # Errors
    /// As [`Multimap::first_value`].
    pub fn last_value<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        end_value(&mut self.stored(), (&self.rows, key), Direction::Down)
    }

    /// The number of values of a key. O(log n), and O(1) for each of them: they are counted.
    ///
    /// # Errors
    /// As [`Keyspace::get`](crate::Keyspace::get).
    pub fn count<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<u64> {
        self.rows_in(rows::of_key(key)).count_all()
    }

    /// The pair with the lowest key, and its lowest value. O(log n).
    ///
    /// # Errors
    /// As [`Multimap::first_value`].
    pub fn first(&self) -> Result<Option<(K, V)>> {
        end_pair(&mut self.stored(), &self.rows, Direction::Up)
    }

    /// The pair with the highest key, and its highest value. O(log n).
    ///
    /// # Errors
    /// As [`Multimap::first_value`].
    pub fn last(&self) -> Result<Option<(K, V)>> {
        end_pair(&mut self.stored(), &self.rows, Direction::Down)
    }

    /// The number of pairs. O(1), but O(n) for the engine `lsm`, as
    /// [`Keyspace::len`](crate::Keyspace::len).
    ///
    /// # Errors
    /// As [`Keyspace::len`](crate::Keyspace::len).
    pub fn len(&self) -> Result<u64> {
        self.rows.len()
    }

    /// Whether there is no pair. O(1).
    ///
    /// # Errors
    /// As [`Keyspace::is_empty`](crate::Keyspace::is_empty).
    pub fn is_empty(&self) -> Result<bool> {
        self.rows.is_empty()
    }

    /// All pairs, by key and value, from both ends. Sees later commits as
    /// [`Keyspace::iter`](crate::Keyspace::iter) does.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let lines = store.multimap("lines by word")?.typed::<String, u64>()?;
    /// lines.extend([("ship", 2), ("sea", 7), ("sea", 1)])?;
    /// let pairs = lines.iter().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(pairs, [("sea".into(), 1), ("sea".into(), 7), ("ship".into(), 2)]);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn iter(&self) -> Pairs<Keys, K, V> {
        self.range(..)
    }

    /// The pairs whose keys lie in a range, like [`Multimap::iter`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let lines = store.multimap("lines by word")?.typed::<String, u64>()?;
    /// lines.extend([("sea", 1), ("sea", 7), ("ship", 2)])?;
    /// assert_eq!(lines.range(..="sea").count(), 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn range(&self, range: impl KeyBoundsFor<K>) -> Pairs<Keys, K, V> {
        Pairs::new(self.rows_in(rows::of_keys(&range)), &self.rows)
    }

    /// The pairs whose keys have a prefix: characters of a text, or the first parts of a tuple.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let lines = store.multimap("lines by word")?.typed::<String, u64>()?;
    /// lines.extend([("sea", 1), ("ship", 2), ("shore", 3)])?;
    /// assert_eq!(lines.prefix("sh").count(), 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn prefix<P: PrefixFor<K> + ?Sized>(&self, prefix: &P) -> Pairs<Keys, K, V> {
        Pairs::new(self.rows_in(rows::of_prefix(prefix)), &self.rows)
    }

    /// The keys in a range that have values, each once, from both ends: `keys(..)` are all. O(log
    /// n) for each, however many values it has. Sees later commits as
    /// [`Keyspace::iter`](crate::Keyspace::iter) does.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let lines = store.multimap("lines by word")?.typed::<String, u64>()?;
    /// lines.extend([("sea", 1), ("sea", 7), ("ship", 2)])?;
    /// let words: Result<Vec<_>, _> = lines.keys(..).collect();
    /// assert_eq!(words?, ["sea", "ship"]);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn keys(&self, range: impl KeyBoundsFor<K>) -> DistinctKeys<StoredRows, K> {
        DistinctKeys::new(self.stored(), rows::of_keys(&range), &self.rows)
    }

    fn rows_in(&self, range: Option<KeyRange>) -> Iter<Slice> {
        Iter::new(self.rows.clone(), range, None)
    }

    fn stored(&self) -> StoredRows {
        StoredRows { keyspace: self.rows.clone(), snapshot: None }
    }
}
