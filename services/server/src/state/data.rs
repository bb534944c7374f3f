//! The databases, and the data access of commands.
//!
//! Purpose: the only module that knows that a database is a keyspace of expiring entries. A command
//! sees either the committed state, or that of its group's transaction.
//! Invariants: watchers of a key are notified before the change is visible. Invalid keys are never
//! found; they are refused before anything is written.
//! Thread safety: databases are shared; a [`Data`] belongs to one thread.

use std::collections::HashMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use adamant::expiring::ReservedExpiring;
use adamant::{
    Deadline, Engine, Error, Expiring, KeyspaceOptions, Result, Slice, Store, Transaction,
};
use arc_swap::ArcSwap;

use crate::state::watch::Watchers;

/// Maximum bytes of a database's key: those of a keyspace's key less a deadline.
pub(crate) const KEY_BYTES_MAX: usize = adamant::KEY_BYTES_MAX - 8;

/// The numbered databases of a store.
#[derive(Debug)]
pub(crate) struct Databases {
    count: usize,
    engine: Engine,
    /// Swapped as one: a reader of two databases sees both before or both after an exchange.
    now: ArcSwap<Handles>,
}

/// The current databases, and their store.
#[derive(Clone, Debug)]
struct Handles {
    store: Store,
    all: Vec<Arc<Expiring>>,
}

/// A recorded change of entries, to be replayed elsewhere.
#[derive(Debug)]
pub(crate) enum Change {
    Put {
        database: usize,
        key: Vec<u8>,
        value: Vec<u8>,
        deadline: Option<Deadline>,
    },
    Remove {
        database: usize,
        key: Vec<u8>,
    },
    Clear {
        database: usize,
    },
    /// Expired entries are removed, at most `entries_max`.
    Expire {
        database: usize,
        now: u64,
        entries_max: usize,
    },
}

/// A value, and its deadline.
pub(crate) type Found = (Slice, Option<Deadline>);

/// A key, its value, and its deadline.
type Entry = (Slice, Slice, Option<Deadline>);

/// Bounds of keys.
pub(crate) type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// A callback for entries; it decides whether to continue.
pub(crate) type Visitor<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

impl Databases {
    /// Opens `count` databases; creates those that do not exist.
    pub(crate) fn open(store: &Store, count: usize, engine: Engine) -> Result<Self> {
        let now = ArcSwap::from_pointee(Handles::open(store, count, engine)?);
        Ok(Self { count, engine, now })
    }

    /// Switches to the databases of another store.
    pub(crate) fn replace(&self, store: &Store) -> Result<()> {
        self.now.store(Arc::new(Handles::open(store, self.count, self.engine)?));
        Ok(())
    }

    /// Number of databases.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The store that they are in.
    pub(crate) fn store(&self) -> Store {
        self.now.load().store.clone()
    }

    /// A database.
    pub(crate) fn get(&self, number: usize) -> Arc<Expiring> {
        Arc::clone(&self.now.load().all[number])
    }

    /// Whether reads of a database may have to wait for the device.
    pub(crate) fn may_wait(&self, number: usize) -> bool {
        self.now.load().all[number].keyspaces().0.engine() == Engine::Lsm
    }

    /// Removes everything from a database.
    pub(crate) fn clear(&self, number: usize) -> Result<()> {
        self.get(number).clear()?;
        self.open_again(&[number])
    }

    /// Exchanges the content of two databases, in one commit. No other thread may write meanwhile.
    pub(crate) fn swap(&self, number: usize, other: usize) -> Result<()> {
        self.store().swap_expiring(&name_of(number), &name_of(other))?;
        self.open_again(&[number, other])
    }

    /// Older handles stay with the keyspaces for which they were opened, and are a little slower.
    fn open_again(&self, numbers: &[usize]) -> Result<()> {
        let mut handles = Handles::clone(&self.now.load());
        for &number in numbers {
            handles.all[number] = Arc::new(handles.store.expiring(&name_of(number))?);
        }
        self.now.store(Arc::new(handles));
        Ok(())
    }
}

impl Handles {
    fn open(store: &Store, count: usize, engine: Engine) -> Result<Self> {
        let all = (0..count)
            .map(|number| {
                let name = name_of(number);
                match store.open_expiring(&name) {
                    Err(Error::UnknownKeyspace { .. }) => {
                        let options = KeyspaceOptions::new().engine(engine);
                        Ok(Arc::new(store.expiring_with(&name, options)?))
                    }
                    opened => Ok(Arc::new(opened?)),
                }
            })
            .collect::<Result<_>>()?;
        Ok(Self { store: store.clone(), all })
    }
}

/// The keyspace of a database.
pub(crate) fn name_of(number: usize) -> String {
    format!("db{number}")
}

/// Whether this can be a key.
pub(crate) fn is_key(key: &[u8]) -> bool {
    key.len() <= KEY_BYTES_MAX
}

/// A command's view of the databases.
pub(crate) struct Data<'d> {
    handles: Arc<Handles>,
    watchers: &'d Watchers,
    /// `None`: read-only, on the committed state.
    transaction: Option<&'d mut Transaction>,
    /// Recorded changes, if they are wanted.
    record: Option<&'d mut Vec<Change>>,
    /// By how much the transaction has changed the number of entries of databases.
    changes: HashMap<usize, i64>,
    /// Numbers of lookups that found their key, and that did not.
    looks: (u64, u64),
}

impl<'d> Data<'d> {
    /// A read-only view of the committed state.
    pub(crate) fn committed(databases: &'d Databases, watchers: &'d Watchers) -> Self {
        let handles = databases.now.load_full();
        let (changes, looks) = (HashMap::new(), (0, 0));
        Self { handles, watchers, transaction: None, record: None, changes, looks }
    }

    /// The view of a transaction, beside which no other thread writes.
    pub(crate) fn within(
        databases: &'d Databases,
        watchers: &'d Watchers,
        transaction: &'d mut Transaction,
    ) -> Self {
        Self { transaction: Some(transaction), ..Self::committed(databases, watchers) }
    }

    /// The view of a transaction that will be rolled back: its changes are recorded, to be replayed
    /// elsewhere.
    pub(crate) fn recorded(
        self,
        transaction: &'d mut Transaction,
        record: &'d mut Vec<Change>,
    ) -> Self {
        Self { transaction: Some(transaction), record: Some(record), ..self }
    }

    /// Whether it is the view of a transaction.
    pub(crate) fn is_within(&self) -> bool {
        self.transaction.is_some()
    }

    /// Whether changes are recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    fn note(&mut self, change: impl FnOnce() -> Change) {
        if let Some(record) = &mut self.record {
            record.push(change());
        }
    }

    /// Number of databases.
    pub(crate) fn databases(&self) -> usize {
        self.handles.all.len()
    }

    /// The store, for operations that are not about entries.
    pub(crate) fn store(&self) -> &Store {
        &self.handles.store
    }

    /// The entry of a key.
    pub(crate) fn get(&mut self, database: usize, key: &[u8]) -> Result<Option<Found>> {
        if !is_key(key) {
            self.looked(false);
            return Ok(None);
        }
        let database = &self.handles.all[database];
        let found = match &mut self.transaction {
            Some(transaction) => database.within(transaction).get_with_deadline(key),
            None => database.get_with_deadline(key),
        }?;
        self.looked(found.is_some());
        Ok(found)
    }

    fn looked(&mut self, is_there: bool) {
        self.looks.0 += u64::from(is_there);
        self.looks.1 += u64::from(!is_there);
    }

    /// Numbers of lookups since the last call that found their key, and that did not.
    pub(crate) fn take_looks(&mut self) -> (u64, u64) {
        std::mem::take(&mut self.looks)
    }

    /// Whether a key is there.
    pub(crate) fn contains(&mut self, database: usize, key: &[u8]) -> Result<bool> {
        if self.transaction.is_some() || !is_key(key) {
            return Ok(self.get(database, key)?.is_some());
        }
        let is_there = self.handles.all[database].contains(key)?;
        self.looked(is_there);
        Ok(is_there)
    }

    /// Sets the entry of a key.
    pub(crate) fn put(
        &mut self,
        database: usize,
        key: &[u8],
        value: &[u8],
        deadline: Option<Deadline>,
    ) -> Result<()> {
        let handle = Arc::clone(&self.handles.all[database]);
        let transaction = writing(&mut self.transaction);
        let is_replaced = handle.within(transaction).insert(key, value, deadline)?;
        self.note(|| Change::Put { database, key: key.into(), value: value.into(), deadline });
        self.changed(database, key, !is_replaced);
        Ok(())
    }

    /// Sets the entry of a key to a value in reserved room.
    pub(crate) fn put_reserved(
        &mut self,
        database: usize,
        key: &[u8],
        value: ReservedExpiring,
        deadline: Option<Deadline>,
    ) -> Result<()> {
        debug_assert!(
            self.record.is_none(),
            "such a value lies in this store, and goes to no other"
        );
        let handle = Arc::clone(&self.handles.all[database]);
        let transaction = writing(&mut self.transaction);
        let is_replaced = handle.within(transaction).insert_reserved(key, value, deadline)?;
        self.changed(database, key, !is_replaced);
        Ok(())
    }

    /// Notes that a key was changed.
    fn changed(&mut self, database: usize, key: &[u8], is_new: bool) {
        *self.changes.entry(database).or_default() += i64::from(is_new);
        self.watchers.tell(database, key);
    }

    /// Removes a key; returns whether it was there.
    pub(crate) fn remove(&mut self, database: usize, key: &[u8]) -> Result<bool> {
        if !is_key(key) {
            return Ok(false);
        }
        let handle = Arc::clone(&self.handles.all[database]);
        let transaction = writing(&mut self.transaction);
        let was_there = handle.within(transaction).remove(key)?;
        if was_there {
            self.note(|| Change::Remove { database, key: key.into() });
            *self.changes.entry(database).or_default() -= 1;
            self.watchers.tell(database, key);
        }
        Ok(was_there)
    }

    /// Removes everything from a database, within the transaction: O(n).
    pub(crate) fn remove_all(&mut self, database: usize) -> Result<()> {
        let handle = Arc::clone(&self.handles.all[database]);
        let transaction = writing(&mut self.transaction);
        let mut within = handle.within(transaction);
        let keys = within.iter().map(|entry| Ok(entry?.0)).collect::<Result<Vec<_>>>()?;
        for key in &keys {
            within.delete(key)?;
            self.watchers.tell(database, key);
        }
        self.note(|| Change::Clear { database });
        *self.changes.entry(database).or_default() -= i64::try_from(keys.len()).unwrap_or(i64::MAX);
        Ok(())
    }

    /// Removes up to `entries_max` expired entries; returns how many.
    pub(crate) fn expire(&mut self, database: usize, entries_max: usize) -> Result<u64> {
        let handle = Arc::clone(&self.handles.all[database]);
        let now = handle.now();
        let handle = handle.with_clock(move || now);
        let gone = handle.within(writing(&mut self.transaction)).remove_expired(entries_max)?;
        if gone > 0 {
            self.note(|| Change::Expire { database, now, entries_max });
        }
        Ok(gone)
    }

    /// Exchanges the content of two databases, within the transaction: O(n).
    pub(crate) fn swap_all(&mut self, one: usize, other: usize) -> Result<()> {
        if one == other {
            return Ok(());
        }
        let (first, second) = (self.entries(one)?, self.entries(other)?);
        for (database, before, after) in [(one, &first, &second), (other, &second, &first)] {
            for (key, ..) in before {
                self.remove(database, key)?;
            }
            for (key, value, deadline) in after {
                self.put(database, key, value, *deadline)?;
            }
        }
        Ok(())
    }

    /// All entries of a database, as the transaction sees them.
    fn entries(&mut self, database: usize) -> Result<Vec<Entry>> {
        let handle = Arc::clone(&self.handles.all[database]);
        handle.within(writing(&mut self.transaction)).iter().collect()
    }

    /// Number of entries of a database. O(1), and O(log n) for each expired one that is still
    /// there.
    pub(crate) fn len(&mut self, database: usize) -> Result<u64> {
        let committed = self.handles.all[database].len()?;
        let change = self.changes.get(&database).copied().unwrap_or_default();
        Ok(committed.saturating_add_signed(change))
    }

    /// Visits the entries within bounds, as of one moment, in ascending or descending order.
    pub(crate) fn visit(
        &mut self,
        database: usize,
        bounds: Bounds<'_>,
        is_down: bool,
        visitor: &mut Visitor<'_>,
    ) -> Result<()> {
        let handle = Arc::clone(&self.handles.all[database]);
        match &mut self.transaction {
            Some(transaction) => {
                visit_each(handle.within(transaction).range(bounds), is_down, visitor)
            }
            None => {
                let snapshot = self.handles.store.snapshot()?;
                visit_each(handle.at(&snapshot).range(bounds), is_down, visitor)
            }
        }
    }
}

/// The transaction of a command that writes: it always runs in one.
fn writing<'t>(transaction: &'t mut Option<&mut Transaction>) -> &'t mut Transaction {
    transaction.as_mut().expect("what writes is run by who has the turn, in a transaction")
}

fn visit_each(
    mut entries: impl DoubleEndedIterator<Item = Result<Entry>>,
    is_down: bool,
    visitor: &mut Visitor<'_>,
) -> Result<()> {
    loop {
        let entry = if is_down { entries.next_back() } else { entries.next() };
        let Some(entry) = entry else { return Ok(()) };
        let (key, value, _) = entry?;
        if visitor(&key, &value).is_break() {
            return Ok(());
        }
    }
}
