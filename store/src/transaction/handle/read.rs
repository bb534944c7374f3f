//! Point reads of several keys, borrowed values and counts in a transaction.
//!
//! Purpose: each looks at the transaction's own writes first, then at the snapshot.
//! Invariants: what was looked for counts as read, also where nothing was found; a count reads the
//! whole keyspace.

use adamant_slice::Slice;

use super::{Parts, Table, Transaction};
use crate::bounds::KeyRange;
use crate::common::shared::OpenStore;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::snapshot::ViewOf;
use crate::transaction::merged::merged;

impl Transaction {
    /// Calls the closure with the value of a key and returns its result, or `None` without calling
    /// it. Like [`Transaction::get`], without a copy of the value: see [`Keyspace::get_with`],
    /// whose rules for the closure hold here too.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "seven")?;
    /// let letters = store.transaction(|tx| tx.get_with(&stock, "apples", |value| value.len()))?;
    /// assert_eq!(letters, Some(5));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_with<T>(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.lend_value(OpenStore::long_view, keyspace, key.as_ref(), reader)
    }

    /// Like [`Keyspace::get_briefly`], for closures of this crate.
    pub(crate) fn get_briefly<T>(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.lend_value(OpenStore::view, keyspace, key, reader)
    }

    fn lend_value<T>(
        &mut self,
        view: ViewOf,
        keyspace: &Keyspace,
        key: &[u8],
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let table = self.table(keyspace)?;
        let table = &mut self.tables[table];
        if let Some(own) = table.writes.settle().get(key) {
            let notes = table.notes.get_mut();
            let value = own.value(|operand| {
                notes.read.note(key);
                merged(&self.snapshot, keyspace, key, operand)
            })?;
            return Ok(value.as_deref().map(reader));
        }
        let made = self.snapshot.lend_value(view, keyspace, key, reader)?;
        table.notes.borrow_mut().read.note(key);
        Ok(made)
    }

    /// The values of many keys, in the order of the keys. Like [`Snapshot::multi_get`], and it sees
    /// the transaction's own writes. All of the keys count as read.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let mut transaction = store.begin()?;
    /// transaction.put(&stock, "pears", "3")?;
    /// let found = transaction.multi_get(&stock, ["pears", "plums", "apples"])?;
    /// assert_eq!(found, [Some("3".into()), None, Some("7".into())]);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// [`Snapshot::multi_get`]: crate::Snapshot::multi_get
    pub fn multi_get<Q: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<Slice>>> {
        let keys: Vec<Q> = keys.into_iter().collect();
        let table = self.table(keyspace)?;
        let Table { writes, notes, .. } = &mut self.tables[table];
        let writes = writes.settle();
        let others = keys.iter().map(AsRef::as_ref).filter(|key| !writes.contains_key(*key));
        let mut read = self.snapshot.multi_get(keyspace, others.clone())?.into_iter();
        let notes = notes.get_mut();
        others.for_each(|key| notes.read.note(key));
        let value = |key: &Q| match writes.get(key.as_ref()) {
            None => Ok(read.next().flatten()),
            Some(own) => own.value(|operand| {
                notes.read.note(key.as_ref());
                merged(&self.snapshot, keyspace, key.as_ref(), operand)
            }),
        };
        keys.iter().map(value).collect()
    }

    /// The number of entries. The whole keyspace counts as read: the commit fails with
    /// [`Error::Conflict`](crate::Error::Conflict) if another one changed any of its keys.
    ///
    /// O(w log n) in the w writes of the transaction to the keyspace; for the engine `lsm` O(n), as
    /// [`Snapshot::len`](crate::Snapshot::len).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let mut transaction = store.begin()?;
    /// transaction.put(&stock, "apples", "8")?;
    /// transaction.put(&stock, "pears", "3")?;
    /// assert_eq!((transaction.len(&stock)?, stock.len()?), (2, 1));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn len(&mut self, keyspace: &Keyspace) -> Result<u64> {
        let (Parts { keyspace, snapshot, writes, notes }, _) = self.parts(keyspace)?;
        let read = &mut notes.borrow_mut().read;
        read.settle();
        read.cover(0, &KeyRange::all(), None);
        let mut len = snapshot.len(keyspace)?;
        for (key, written) in writes {
            match (snapshot.contains(keyspace, key)?, written.is_value()) {
                (true, false) => len -= 1,
                (false, true) => len += 1,
                (true, true) | (false, false) => {}
            }
        }
        Ok(len)
    }

    /// Whether there is no entry. Reads the first key, like [`Transaction::first`], O(log n).
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn is_empty(&mut self, keyspace: &Keyspace) -> Result<bool> {
        Ok(self.iter(keyspace).keys().next().transpose()?.is_none())
    }
}
