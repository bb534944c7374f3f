//! Snapshot reads of multimaps.

use adamant_slice::Slice;

use super::handle::Multimap;
use super::iterate::{DistinctKeys, Pairs, StoredRows, Values, end_pair, end_value, has_key};
use super::rows;
use crate::bounds::{Direction, KeyRange};
use crate::error::Result;
use crate::keyspace::iterate::{Iter, Keys};
use crate::keyspace::snapshot::Snapshot;
use crate::typed::{Key, KeyBoundsFor, KeyFor, PrefixFor};

impl<K: Key, V: Key> Multimap<K, V> {
    /// The multimap as a snapshot sees it.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let tags = store.multimap("tags")?;
    /// tags.insert("rust", "adamant")?;
    /// let before = store.snapshot()?;
    /// tags.remove_all("rust")?;
    /// assert_eq!(tags.at(&before).count("rust")?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn at<'s>(&'s self, snapshot: &'s Snapshot) -> MultimapSnapshot<'s, K, V> {
        MultimapSnapshot { multimap: self, snapshot }
    }
}

/// A multimap as a snapshot sees it, see [`Multimap::at`].
#[derive(Debug)]
pub struct MultimapSnapshot<'s, K, V> {
    multimap: &'s Multimap<K, V>,
    snapshot: &'s Snapshot,
}

impl<K: Key, V: Key> MultimapSnapshot<'_, K, V> {
    /// The values of a key. Like [`Multimap::get`].
    pub fn get<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Values<Keys, V> {
        self.values_range(key, ..)
    }

    /// The values of a key that lie in a range. Like [`Multimap::values_range`].
    pub fn values_range<Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        range: impl KeyBoundsFor<V>,
    ) -> Values<Keys, V> {
        let rows = self.rows_in(rows::of_values(key, &range));
        Values::new(rows, rows::start_of(key).len(), &self.multimap.rows)
    }

    /// Whether a key had this value. Like [`Snapshot::contains`].
    ///
    /// # Errors
    /// As [`Snapshot::contains`].
    pub fn contains<Q, W>(&self, key: &Q, value: &W) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        self.snapshot.contains(&self.multimap.rows, rows::row(key, value))
    }

    /// Whether a key had a value. O(log n).
    ///
    /// # Errors
    /// As [`Snapshot::first`].
    pub fn contains_key<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<bool> {
        has_key(&mut self.stored(), key)
    }

    /// The lowest value of a key. O(log n).
    ///
    /// # Errors
    /// As [`Snapshot::first`]; [`Error::Encoding`](crate::Error::Encoding).
    pub fn first_value<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        end_value(&mut self.stored(), (&self.multimap.rows, key), Direction::Up)
    }

    /// The highest value of a key. O(log n).
    ///
    /// # Errors
    /// As [`MultimapSnapshot::first_value`].
    pub fn last_value<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        end_value(&mut self.stored(), (&self.multimap.rows, key), Direction::Down)
    }

    /// The number of values of a key. Like [`Multimap::count`].
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn count<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<u64> {
        self.rows_in(rows::of_key(key)).count_all()
    }

    /// The pair with the lowest key, and its lowest value. O(log n).
    ///
    /// # Errors
    /// As [`MultimapSnapshot::first_value`].
    pub fn first(&self) -> Result<Option<(K, V)>> {
        end_pair(&mut self.stored(), &self.multimap.rows, Direction::Up)
    }

    /// The pair with the highest key, and its highest value. O(log n).
    ///
    /// # Errors
    /// As [`MultimapSnapshot::first_value`].
    pub fn last(&self) -> Result<Option<(K, V)>> {
        end_pair(&mut self.stored(), &self.multimap.rows, Direction::Down)
    }

    /// The number of pairs. Like [`Snapshot::len`].
    ///
    /// # Errors
    /// As [`Snapshot::len`].
    pub fn len(&self) -> Result<u64> {
        self.snapshot.len(&self.multimap.rows)
    }

    /// Whether there was no pair. Like [`Snapshot::is_empty`].
    ///
    /// # Errors
    /// As [`Snapshot::is_empty`].
    pub fn is_empty(&self) -> Result<bool> {
        self.snapshot.is_empty(&self.multimap.rows)
    }

    /// All pairs, from both ends. Like [`Snapshot::iter`].
    pub fn iter(&self) -> Pairs<Keys, K, V> {
        self.range(..)
    }

    /// The pairs whose keys lie in a range. Like [`Multimap::range`].
    pub fn range(&self, range: impl KeyBoundsFor<K>) -> Pairs<Keys, K, V> {
        Pairs::new(self.rows_in(rows::of_keys(&range)), &self.multimap.rows)
    }

    /// The pairs whose keys have a prefix. Like [`Multimap::prefix`].
    pub fn prefix<P: PrefixFor<K> + ?Sized>(&self, prefix: &P) -> Pairs<Keys, K, V> {
        Pairs::new(self.rows_in(rows::of_prefix(prefix)), &self.multimap.rows)
    }

    /// The keys in a range that had values, each once. Like [`Multimap::keys`].
    pub fn keys(&self, range: impl KeyBoundsFor<K>) -> DistinctKeys<StoredRows, K> {
        DistinctKeys::new(self.stored(), rows::of_keys(&range), &self.multimap.rows)
    }

    fn rows_in(&self, range: Option<KeyRange>) -> Iter<Slice> {
        Iter::new(self.multimap.rows.clone(), range, Some(self.snapshot.clone()))
    }

    fn stored(&self) -> StoredRows {
        let keyspace = self.multimap.rows.clone();
        StoredRows { keyspace, snapshot: Some(self.snapshot.clone()) }
    }
}
