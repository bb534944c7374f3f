//! Writes of multimaps, each in a commit of its own or as a part of a batch.

use super::handle::Multimap;
use super::rows::{self, new_row};
use crate::batch::builder::Batch;
use crate::error::{Error, Result};
use crate::keyspace::load::Loaded;
use crate::typed::{Key, KeyFor};

impl<K: Key, V: Key> Multimap<K, V> {
    /// Gives a key one more value; false, and nothing is changed, if it has it. Costs as
    /// [`Keyspace::insert_unique`](crate::Keyspace::insert_unique): O(log n), and in `lsm` a search
    /// as well, which may read the device.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let tags = store.multimap("tags")?;
    /// assert!(tags.insert("rust", "adamant")?);
    /// assert!(!tags.insert("rust", "adamant")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`](crate::Keyspace::put); [`Error::PairTooLong`] above 65,535 bytes;
    /// [`Error::WrongTypes`] for a handle of bytes, if the multimap was given other types.
    pub fn insert<Q, W>(&self, key: &Q, value: &W) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        self.rows_to_write()?.insert_unique(new_row(key, value)?, [])
    }

    /// Gives a key one more value, whether it has it or not. Costs as
    /// [`Keyspace::put`](crate::Keyspace::put): O(log n), and reads no file in `lsm`.
    ///
    /// # Errors
    /// As [`Multimap::insert`].
    pub fn put<Q, W>(&self, key: &Q, value: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        self.rows_to_write()?.put(new_row(key, value)?, [])
    }

    /// Like [`Multimap::put`], as one of the changes of a batch.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let (books, authors) = (store.keyspace("books")?, store.multimap("books by author")?);
    /// let mut batch = store.batch();
    /// batch.put(&books, "1", "Notes")?;
    /// authors.put_into(&mut batch, "Ada", "1")?;
    /// batch.commit()?;
    /// assert!(authors.contains("Ada", "1")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Multimap::insert`] and [`Batch::put`].
    pub fn put_into<Q, W>(&self, batch: &mut Batch, key: &Q, value: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        batch.put(self.rows_to_write()?, new_row(key, value)?, [])
    }

    /// Takes a value from a key, and reports whether the key had it. Costs as
    /// [`Keyspace::remove`](crate::Keyspace::remove): O(log n), and in `lsm` a search as well,
    /// which may read the device.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let tags = store.multimap("tags")?;
    /// tags.insert("rust", "adamant")?;
    /// assert!(tags.remove("rust", "adamant")?);
    /// assert!(!tags.contains_key("rust")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::remove`](crate::Keyspace::remove), and as [`Multimap::insert`].
    pub fn remove<Q, W>(&self, key: &Q, value: &W) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        self.rows_to_write()?.remove(new_row(key, value)?)
    }

    /// Takes a value from a key, whether it has it or not. Costs as
    /// [`Keyspace::delete`](crate::Keyspace::delete): O(log n), and reads no file in `lsm`.
    ///
    /// # Errors
    /// As [`Multimap::remove`].
    pub fn delete<Q, W>(&self, key: &Q, value: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        self.rows_to_write()?.delete(new_row(key, value)?)
    }

    /// Like [`Multimap::delete`], as one of the changes of a batch.
    ///
    /// # Errors
    /// As [`Multimap::remove`] and [`Batch::delete`].
    pub fn delete_from<Q, W>(&self, batch: &mut Batch, key: &Q, value: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: KeyFor<V> + ?Sized,
    {
        batch.delete(self.rows_to_write()?, new_row(key, value)?)
    }

    /// Takes all values from a key, in one commit, and returns how many there were. O(log n) for
    /// each of them; memory holds their rows until the commit has ended, see
    /// [`Keyspace::delete_range`](crate::Keyspace::delete_range).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let tags = store.multimap("tags")?;
    /// tags.extend([("rust", "adamant"), ("rust", "ripgrep"), ("c", "sqlite")])?;
    /// assert_eq!(tags.remove_all("rust")?, 2);
    /// assert_eq!(tags.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Multimap::remove`]; nothing was removed.
    pub fn remove_all<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<u64> {
        let removed = self.rows_to_write()?.extract(rows::of_key(key), |_, _| Ok(Some(())))?;
        Ok(removed.len() as u64)
    }

    /// Removes all pairs, in one commit whose size does not depend on how many there are. Like
    /// [`Keyspace::clear`](crate::Keyspace::clear).
    ///
    /// # Errors
    /// As [`Keyspace::clear`](crate::Keyspace::clear).
    pub fn clear(&self) -> Result<()> {
        self.rows.clear()
    }

    /// Inserts pairs that are strictly ascending, by key and then by value: the fastest way to fill
    /// a multimap. Like [`Keyspace::load_sorted`](crate::Keyspace::load_sorted), which see.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let multiples = store.multimap("multiples")?.typed::<u32, u32>()?;
    /// let pairs = (1..=100).flat_map(|n| (1..=100 / n).map(move |m| (n, n * m)));
    /// assert_eq!(multiples.load_sorted(pairs)?.entries, 482);
    /// assert_eq!(multiples.count(&7)?, 14);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::load_sorted`](crate::Keyspace::load_sorted), and as [`Multimap::insert`]: the
    /// pairs before one that is too long are there.
    pub fn load_sorted<Q: KeyFor<K>, W: KeyFor<V>>(
        &self,
        pairs: impl IntoIterator<Item = (Q, W)>,
    ) -> Result<Loaded> {
        let mut failed = None;
        let loaded = self.rows_to_write()?.load_sorted(rows_of(pairs, &mut failed))?;
        failed.map_or(Ok(loaded), Err)
    }

    /// Inserts pairs in any order. Like [`Keyspace::extend`](crate::Keyspace::extend).
    ///
    /// # Errors
    /// As [`Keyspace::extend`](crate::Keyspace::extend), and as [`Multimap::load_sorted`].
    pub fn extend<Q: KeyFor<K>, W: KeyFor<V>>(
        &self,
        pairs: impl IntoIterator<Item = (Q, W)>,
    ) -> Result<Loaded> {
        let mut failed = None;
        let loaded = self.rows_to_write()?.extend(rows_of(pairs, &mut failed))?;
        failed.map_or(Ok(loaded), Err)
    }

    /// Inserts rows as [`Multimap::untyped`] shows them, whatever their types are, in strictly
    /// ascending order: for copies of multimaps.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let scores = store.multimap("scores")?.typed::<String, i32>()?;
    /// scores.extend([("ada", 100), ("ada", -3)])?;
    /// let rows = scores.untyped().iter().keys().collect::<Result<Vec<_>, _>>()?;
    /// let copy = store.multimap("copy")?;
    /// copy.load_stored(rows)?;
    /// assert_eq!(copy.typed::<String, i32>()?.first_value("ada")?, Some(-3));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::load_sorted`](crate::Keyspace::load_sorted).
    pub fn load_stored<R: AsRef<[u8]>>(&self, rows: impl IntoIterator<Item = R>) -> Result<Loaded> {
        self.rows.load_sorted(rows.into_iter().map(|row| (row, [])))
    }

    /// Waits until everything committed so far is as durable as a write through this handle. Like
    /// [`Keyspace::settle`](crate::Keyspace::settle).
    ///
    /// # Errors
    /// As [`Keyspace::settle`](crate::Keyspace::settle).
    pub fn settle(&self) -> Result<()> {
        self.rows.settle()
    }
}

/// The rows of pairs, up to the first that is too long.
fn rows_of<K, V, Q: KeyFor<K>, W: KeyFor<V>>(
    pairs: impl IntoIterator<Item = (Q, W)>,
    failed: &mut Option<Error>,
) -> impl Iterator<Item = (Vec<u8>, [u8; 0])> {
    pairs.into_iter().map_while(|(key, value)| {
        let row = new_row(&key, &value).map_err(|error| *failed = Some(error));
        row.ok().map(|row| (row, []))
    })
}
