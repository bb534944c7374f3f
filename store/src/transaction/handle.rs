//! Serializable transactions with optimistic concurrency control.
//!
//! Purpose: a transaction reads from a snapshot, buffers its writes in an overlay, and validates
//! its reads at the commit: if nothing that it read has changed since, all of it takes effect as if
//! it happened at the commit. After H. T. Kung and J. T. Robinson, "On Optimistic Methods for
//! Concurrency Control" (1981).
//! Invariants: the read set covers everything that was returned from a keyspace, including absent
//! keys and the gaps of ranges. Nothing of a transaction is in the store before its commit.
//! Thread safety: a transaction belongs to one thread at a time. It holds no lock and blocks no
//! other thread.

mod change;
mod commit;
mod merge;
mod pop;
mod read;
mod savepoints;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use adamant_heap::Transaction as HeapTransaction;
use adamant_heap::durability::Durability;
use adamant_heap::error::Result as HeapResult;
use adamant_slice::Slice;

use crate::bounds::KeyRange;
use crate::common::shared::Shared;
use crate::common::spans::{self, Spans};
use crate::common::versions::ReadSet;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::keyspace::iterate::Iter;
use crate::keyspace::snapshot::Snapshot;
use crate::limits::{check_key, check_value};
use crate::reserved::{ReservedValue, Written};
use crate::transaction::merged::merged;
use crate::transaction::popping::Popping;
use crate::transaction::writes::{SortedWrites, Writes};

/// Reads and writes of any keyspaces of one store that take effect atomically at the commit; or not
/// at all, with [`Error::Conflict`], if another commit changed meanwhile what was read.
///
/// Reads see the store as it was when the transaction began, and the transaction's own writes.
/// Transactions are serializable: the result is the same as if the committed ones had run one after
/// the other, in the order of their commits. A transaction that writes nothing never conflicts.
///
/// Dropping a transaction without a commit discards it.
/// [`Store::transaction`](crate::Store::transaction) runs a closure again after a conflict.
///
/// ```
/// let store = adamant::Store::in_memory()?;
/// let stock = store.keyspace("stock")?;
/// stock.put("apples", "1")?;
///
/// let mut one = store.begin()?;
/// let mut other = store.begin()?;
/// for transaction in [&mut one, &mut other] {
///     if transaction.get(&stock, "apples")?.is_some() {
///         transaction.delete(&stock, "apples")?;
///     }
/// }
/// one.commit()?;
/// assert!(other.commit().unwrap_err().is_conflict(), "there was only one apple");
/// # Ok::<(), adamant::Error>(())
/// ```
#[must_use = "a transaction does nothing until it is committed"]
pub struct Transaction {
    snapshot: Snapshot,
    /// Whether it began under the writer lock and holds it to its end, so that no other commit
    /// changes anything.
    is_alone: bool,
    /// `None`: the strongest that one of the keyspaces asks for.
    durability: Option<Durability>,
    /// Which run of its closure this is, from 1.
    attempt: u32,
    tables: Vec<Table>,
    /// Undo log of the writes, while a savepoint is set.
    undo: Vec<Undo>,
    savepoints: Vec<Savepoint>,
    /// Savepoints of running closures, and those set before them: only the closures' own ends end
    /// these.
    savepoints_min: usize,
    /// Changes to application objects at the commit.
    works: Vec<ObjectWork>,
}

/// A change to application objects at the commit, see `objects.rs`.
pub(crate) type ObjectWork = Box<dyn FnOnce(&mut HeapTransaction<'_>) -> HeapResult<()> + Send>;

/// A transaction's reads and writes of one keyspace.
struct Table {
    keyspace: Keyspace,
    writes: Writes,
    notes: RefCell<Notes>,
    /// The pre-read entries at the low end and at the high end.
    ahead: [Option<Ahead>; 2],
    /// Pops in progress at an end.
    popping: Option<Popping>,
}

/// The records of reads in a keyspace.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) read: ReadSet,
    /// Ranges in which the transaction is known to see no key; not all of them. A key is taken out
    /// when it is written, and when its write is undone.
    pub(crate) empty: Spans,
    /// Entries and own writes that iterators visited.
    #[cfg(test)]
    pub(crate) steps: u64,
    /// How often a read of the snapshot was started.
    #[cfg(test)]
    pub(crate) begun: u64,
}

impl Notes {
    /// Notes that the transaction sees no key from an end of a range up to this one.
    pub(crate) fn note_empty(&mut self, end: usize, range: &KeyRange, last: Slice) {
        let (lower, upper) = range.bounds();
        match end {
            0 => self.empty.insert(spans::start_of(lower), Some(spans::after(&last))),
            _ => self.empty.insert(last, spans::end_of(upper)),
        }
    }
}

/// A pre-read of the snapshot at an end of a range.
#[derive(Debug)]
pub(crate) struct Ahead<T = (Slice, Slice)> {
    range: KeyRange,
    pub(crate) inner: Iter<T>,
    /// Pre-read, and not returned yet.
    pub(crate) near: Option<T>,
    /// Whether everything before that in the range has an own write.
    pub(crate) is_at_end: bool,
}

impl<T> Ahead<T> {
    /// A pre-read of a range that is just begun.
    pub(crate) fn new(range: KeyRange, inner: Iter<T>) -> Self {
        Self { range, inner, near: None, is_at_end: false }
    }

    /// Whether it is positioned for the beginning of this range.
    pub(crate) fn is_for(&self, range: &KeyRange) -> bool {
        self.is_at_end && self.range == *range
    }
}

/// The parts of a transaction that an iterator borrows.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'t> {
    pub(crate) keyspace: &'t Keyspace,
    pub(crate) snapshot: &'t Snapshot,
    pub(crate) writes: &'t SortedWrites,
    pub(crate) notes: &'t RefCell<Notes>,
}

impl Parts<'_> {
    /// The snapshot's entries in a range.
    pub(crate) fn iterate<T>(&self, range: &KeyRange) -> Iter<T> {
        #[cfg(test)]
        {
            self.notes.borrow_mut().begun += 1;
        }
        Iter::new(self.keyspace.clone(), Some(range.clone()), Some(self.snapshot.clone()))
    }
}

/// The lengths of the lists when it was set.
#[derive(Clone, Copy)]
struct Savepoint {
    undo: usize,
    works: usize,
}

/// A key of a table, and its write before.
struct Undo {
    table: usize,
    key: Slice,
    before: Option<Written>,
}

impl Transaction {
    /// Begins a transaction. `is_alone`: it will be committed under a writer lock that was taken
    /// before.
    pub(crate) fn begin(shared: &Arc<Shared>, is_alone: bool) -> Result<Self> {
        let snapshot = Snapshot::open(shared)?;
        Ok(Self {
            snapshot,
            is_alone,
            durability: None,
            attempt: 1,
            tables: Vec::new(),
            undo: Vec::new(),
            savepoints: Vec::new(),
            savepoints_min: 0,
            works: Vec::new(),
        })
    }

    /// The durability of its commit, whatever the keyspaces that it writes ask for. Default: the
    /// strongest of theirs ([`KeyspaceOptions::durability`](crate::KeyspaceOptions::durability)),
    /// where one without any, and a change of [application objects](crate::Store::heap), ask for
    /// that of the store. A transaction that writes nothing goes by the keyspaces that it read.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// transaction.durability(adamant::Durability::Buffered);
    /// transaction.put(&stock, "apples", "7")?;
    /// transaction.commit()?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn durability(&mut self, durability: Durability) {
        self.durability = Some(durability);
    }

    /// The durability of its commit, which also changes application objects if so.
    fn commit_durability(&self, has_works: bool) -> Durability {
        if let Some(durability) = self.durability {
            return durability;
        }
        let shared = self.snapshot.shared();
        let is_written = |table: &&Table| table.writes.len() > 0;
        let any_written = self.tables.iter().any(|table| is_written(&table));
        let tables = self.tables.iter().filter(|table| !any_written || is_written(table));
        let asked = match has_works && !any_written {
            true => shared.durability(),
            false => shared.durability_over(tables.map(|table| &*table.keyspace.state)),
        };
        if has_works { asked.or_stronger(shared.durability()) } else { asked }
    }

    /// Which run of the closure this is under [`Store::transaction`](crate::Store::transaction),
    /// from 1; 1 for all other transactions.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let counts = store.keyspace("counts")?;
    /// store.transaction(|tx| {
    ///     if tx.attempt() > 1 {
    ///         println!("somebody else was faster");
    ///     }
    ///     tx.put(&counts, "visits", "1")
    /// })?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    pub(crate) fn set_attempt(&mut self, attempt: u32) {
        self.attempt = attempt;
    }

    /// The value of a key: the transaction's own write, or the value when it began. Costs as
    /// [`Snapshot::get`], O(log n); an own write is found in memory.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// transaction.put(&stock, "apples", "7")?;
    /// assert_eq!(transaction.get(&stock, "apples")?, Some("7".into()));
    /// assert_eq!(stock.get("apples")?, None, "it is not committed");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let key = key.as_ref();
        let table = self.table(keyspace)?;
        let Table { writes, notes, .. } = &mut self.tables[table];
        let notes = notes.get_mut();
        if let Some(own) = writes.settle().get(key) {
            return own.value(|operand| {
                notes.read.note(key);
                merged(&self.snapshot, keyspace, key, operand)
            });
        }
        let value = self.snapshot.get(keyspace, key)?;
        notes.read.note(key);
        Ok(value)
    }

    /// Whether a key has a value. Like [`Transaction::get`], but a value in a blob file is not
    /// read.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let names = store.keyspace("names")?;
    /// let mut transaction = store.begin()?;
    /// if !transaction.contains(&names, "ada")? {
    ///     transaction.put(&names, "ada", "mine")?;
    /// }
    /// names.put("ada", "somebody's")?;
    /// assert!(transaction.commit().unwrap_err().is_conflict());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn contains(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        let table = self.table(keyspace)?;
        let table = &mut self.tables[table];
        if let Some(own) = table.writes.settle().get(key) {
            return Ok(own.is_value());
        }
        let is_there = self.snapshot.contains(keyspace, key)?;
        table.notes.borrow_mut().read.note(key);
        Ok(is_there)
    }

    /// Sets the value of a key, whether it had one or not. Reads nothing, so it cannot conflict.
    ///
    /// O(key + value): a copy of both into the transaction. The next read of the keyspace, or the
    /// commit, takes O(log w) more for it in the w writes of the transaction; the commit costs as
    /// [`Batch::put`](crate::Batch::put) for each of them.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let (users, log) = (store.keyspace("users")?, store.keyspace("log")?);
    /// let mut transaction = store.begin()?;
    /// transaction.put(&users, "7", "Ada")?;
    /// transaction.put(&log, "0001", "7 is new")?;
    /// assert_eq!(transaction.get(&users, "7")?, Some("Ada".into()));
    /// assert_eq!(users.get("7")?, None, "nobody else sees it yet");
    /// transaction.commit()?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The key or value is too long, or the keyspace is of another store.
    pub fn put(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        keyspace.check_writes()?;
        self.put_own(keyspace, key.as_ref(), value.as_ref())
    }

    /// Sets the value of a key to one allocated in place. In a tree, for values above 4,096 bytes,
    /// this takes O(1) in their size, except for the log record of the commit. Like
    /// [`Transaction::put`]; reading the value before the commit copies it.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let (pictures, sizes) = (store.keyspace("pictures")?, store.keyspace("sizes")?);
    /// let mut picture = store.reserve(1 << 20)?;
    /// picture.fill(0xff);
    /// let mut transaction = store.begin()?;
    /// transaction.put_reserved(&pictures, "white", picture)?;
    /// transaction.put(&sizes, "white", "1 MiB")?;
    /// transaction.commit()?;
    /// assert_eq!(pictures.get("white")?.map(|value| value.len()), Some(1 << 20));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::put`]. The commit fails if it is of another store.
    pub fn put_reserved(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: ReservedValue,
    ) -> Result<()> {
        keyspace.check_writes()?;
        self.put_placed(keyspace, key.as_ref(), value)
    }

    /// Like [`Transaction::put_reserved`], without the keyspace's check of writes.
    pub(crate) fn put_placed(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        value: ReservedValue,
    ) -> Result<()> {
        let table = self.table_to_write(keyspace, key, true)?;
        self.write_sorted(table, key.into(), Written::reserved(value));
        Ok(())
    }

    /// The store's state.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.snapshot.shared()
    }

    /// Like [`Transaction::put`], without the keyspace's check of writes.
    pub(crate) fn put_own(&mut self, keyspace: &Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        check_value(value)?;
        self.write(keyspace, key, Some(value))
    }

    /// Deletes a key, whether it exists or not. Reads nothing, so it cannot conflict.
    ///
    /// Costs as [`Transaction::put`], without a value; the commit costs as [`Keyspace::delete`] for
    /// each.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let users = store.keyspace("users")?;
    /// users.put("7", "Ada")?;
    /// store.transaction(|tx| tx.delete(&users, "7"))?;
    /// assert!(users.is_empty()?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        keyspace.check_writes()?;
        self.delete_own(keyspace, key.as_ref())
    }

    /// Like [`Transaction::delete`], without the keyspace's check of writes.
    pub(crate) fn delete_own(&mut self, keyspace: &Keyspace, key: &[u8]) -> Result<()> {
        self.write(keyspace, key, None)
    }

    /// Removes a key and returns its value.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let mut transaction = store.begin()?;
    /// assert_eq!(transaction.take(&stock, "apples")?, Some("7".into()));
    /// transaction.commit()?;
    /// assert!(stock.is_empty()?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn take(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let value = self.get(keyspace, key.as_ref())?;
        if value.is_some() {
            self.delete(keyspace, key)?;
        }
        Ok(value)
    }

    fn write(&mut self, keyspace: &Keyspace, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let table = self.table_to_write(keyspace, key, value.is_some())?;
        if self.savepoints.is_empty() {
            self.tables[table].writes.push(key, value);
        } else {
            self.write_sorted(table, key.into(), Written::of(value));
        }
        Ok(())
    }

    /// The table of a keyspace in which a key is about to be written.
    fn table_to_write(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        has_value: bool,
    ) -> Result<usize> {
        check_key(key)?;
        let table = self.table(keyspace)?;
        let popping = self.tables[table].popping.as_mut();
        if popping.is_some_and(|popping| !popping.note_write(key)) && has_value {
            self.end_popping(table);
        }
        let empty = &mut self.tables[table].notes.get_mut().empty;
        if has_value && !empty.is_empty() {
            empty.remove(key);
        }
        Ok(table)
    }

    /// Writes to the map of the table, and notes for the savepoints what was there.
    fn write_sorted(&mut self, table: usize, key: Slice, written: Written) {
        let before = self.tables[table].writes.settle().insert(key.clone(), written);
        if !self.savepoints.is_empty() {
            self.undo.push(Undo { table, key, before });
        }
    }

    /// The index of a keyspace's table.
    fn table(&mut self, keyspace: &Keyspace) -> Result<usize> {
        if !Arc::ptr_eq(&keyspace.shared, self.snapshot.shared()) {
            return Err(Error::OtherStore { name: keyspace.name().into() });
        }
        // Its own writes may lie in the store's memory.
        keyspace.shared.refuse_child()?;
        let id = keyspace.state.id;
        if let Some(found) = self.tables.iter().position(|table| table.keyspace.state.id == id) {
            return Ok(found);
        }
        let keyspace = keyspace.clone();
        let mut notes = Notes::default();
        notes.read.is_needless = self.is_alone;
        let (writes, notes, ahead) = (Writes::default(), RefCell::new(notes), [None, None]);
        self.tables.push(Table { keyspace, writes, notes, ahead, popping: None });
        Ok(self.tables.len() - 1)
    }

    /// Adds a change for the commit, after those added before.
    pub(crate) fn push_work(&mut self, work: ObjectWork) {
        self.works.push(work);
    }

    /// The parts that an iterator borrows, and the pre-read entries at both ends.
    pub(crate) fn parts(
        &mut self,
        keyspace: &Keyspace,
    ) -> Result<(Parts<'_>, &mut [Option<Ahead>; 2])> {
        let table = self.table(keyspace)?;
        self.end_popping(table);
        let Table { keyspace, writes, notes, ahead, .. } = &mut self.tables[table];
        let writes = writes.settle();
        Ok((Parts { keyspace, snapshot: &self.snapshot, writes, notes }, ahead))
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("snapshot", &self.snapshot)
            .field("durability", &self.durability)
            .field("keyspaces", &self.tables.len())
            .finish_non_exhaustive()
    }
}
