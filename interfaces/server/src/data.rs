//! The databases, and how commands look at them and change them.
//!
//! Purpose: the one place that knows what a database is made of: a keyspace of entries that end. A
//! command sees either what is committed, or what the transaction of its group has made of it.
//! Invariants: whoever watches a key is told before the change can be seen. Keys that cannot be
//! stored are found nowhere; they are refused before anything is written.
//! Thread safety: databases are shared; a [`Data`] belongs to one thread.

use std::collections::HashMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use adamant::expiring::ReservedExpiring;
use adamant::{Deadline, Engine, Expiring, KeyspaceOptions, Result, Slice, Store, Transaction};
use arc_swap::ArcSwap;

use crate::watch::Watchers;

/// Bytes that a key of a database may have: those of a keyspace less a deadline.
pub(crate) const KEY_BYTES_MAX: usize = adamant::KEY_BYTES_MAX - 8;

/// The numbered databases of a store.
#[derive(Debug)]
pub(crate) struct Databases {
    store: Store,
    /// As one: who looks at two of them sees them before or after an exchange.
    all: ArcSwap<Handles>,
}

/// The databases as they are for now.
type Handles = Vec<Arc<Expiring>>;

/// A value, and when it ends.
pub(crate) type Found = (Slice, Option<Deadline>);

/// A key, its value, and when it ends.
type Entry = (Slice, Slice, Option<Deadline>);

/// Bounds of keys.
pub(crate) type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// Is told of an entry, and whether it wants more.
pub(crate) type Visitor<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

impl Databases {
    /// Opens so many databases, making those that are not there.
    pub(crate) fn open(store: &Store, count: usize, engine: Engine) -> Result<Self> {
        let all = (0..count)
            .map(|number| {
                let name = name_of(number);
                let options = match store.open_keyspace(&name) {
                    Ok(_) => KeyspaceOptions::new(),
                    Err(_) => KeyspaceOptions::new().engine(engine),
                };
                Ok(Arc::new(store.expiring_with(&name, options)?))
            })
            .collect::<Result<Handles>>()?;
        Ok(Self { store: store.clone(), all: ArcSwap::from_pointee(all) })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.load().len()
    }

    /// The store that they are in.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// A database.
    pub(crate) fn get(&self, number: usize) -> Arc<Expiring> {
        Arc::clone(&self.all.load()[number])
    }

    /// Whether reads of a database may have to wait for the device.
    pub(crate) fn may_wait(&self, number: usize) -> bool {
        self.all.load()[number].keyspaces().0.engine() == Engine::Lsm
    }

    /// Takes everything out of a database. Nobody else may write meanwhile: its entries and their
    /// deadlines go one after the other.
    pub(crate) fn clear(&self, number: usize) -> Result<()> {
        let database = self.get(number);
        let (entries, deadlines) = database.keyspaces();
        entries.clear()?;
        deadlines.clear()?;
        self.open_again(&[number])
    }

    /// Lets two databases exchange all that they have, in one commit. Nobody else may write meanwhile.
    pub(crate) fn swap(&self, number: usize, other: usize) -> Result<()> {
        self.store.swap_expiring(&name_of(number), &name_of(other))?;
        self.open_again(&[number, other])
    }

    /// Handles from before look for their trees each time.
    fn open_again(&self, numbers: &[usize]) -> Result<()> {
        let mut all = Handles::clone(&self.all.load());
        for &number in numbers {
            all[number] = Arc::new(self.store.expiring(&name_of(number))?);
        }
        self.all.store(Arc::new(all));
        Ok(())
    }
}

fn name_of(number: usize) -> String {
    format!("db{number}")
}

/// Whether this can be a key.
pub(crate) fn is_key(key: &[u8]) -> bool {
    (1..=KEY_BYTES_MAX).contains(&key.len())
}

/// The databases as a command sees them.
pub(crate) struct Data<'d> {
    store: &'d Store,
    all: Arc<Handles>,
    watchers: &'d Watchers,
    /// `None`: nothing is changed, and what is committed is seen.
    transaction: Option<&'d mut Transaction>,
    /// By how much the transaction has changed the number of entries of databases.
    changes: HashMap<usize, i64>,
}

impl<'d> Data<'d> {
    /// As it is committed, to look at only.
    pub(crate) fn committed(databases: &'d Databases, watchers: &'d Watchers) -> Self {
        let all = databases.all.load_full();
        Self { store: databases.store(), all, watchers, transaction: None, changes: HashMap::new() }
    }

    /// As a transaction sees it and changes it, beside which nobody else writes.
    pub(crate) fn within(
        databases: &'d Databases,
        watchers: &'d Watchers,
        transaction: &'d mut Transaction,
    ) -> Self {
        Self { transaction: Some(transaction), ..Self::committed(databases, watchers) }
    }

    /// Whether it is what a transaction sees.
    pub(crate) fn is_within(&self) -> bool {
        self.transaction.is_some()
    }

    /// How many databases there are.
    pub(crate) fn databases(&self) -> usize {
        self.all.len()
    }

    /// The store, for what is not about entries.
    pub(crate) fn store(&self) -> &'d Store {
        self.store
    }

    /// What a key has.
    pub(crate) fn get(&mut self, database: usize, key: &[u8]) -> Result<Option<Found>> {
        if !is_key(key) {
            return Ok(None);
        }
        let database = &self.all[database];
        match &mut self.transaction {
            Some(transaction) => database.within(transaction).get_with_deadline(key),
            None => database.get_with_deadline(key),
        }
    }

    /// Whether a key has something.
    pub(crate) fn contains(&mut self, database: usize, key: &[u8]) -> Result<bool> {
        if self.transaction.is_some() || !is_key(key) {
            return Ok(self.get(database, key)?.is_some());
        }
        self.all[database].contains(key)
    }

    /// Sets what a key has.
    pub(crate) fn put(
        &mut self,
        database: usize,
        key: &[u8],
        value: &[u8],
        deadline: Option<Deadline>,
    ) -> Result<()> {
        let handle = Arc::clone(&self.all[database]);
        let transaction = writing(&mut self.transaction);
        let is_replaced = handle.within(transaction).insert(key, value, deadline)?;
        self.changed(database, key, !is_replaced);
        Ok(())
    }

    /// Sets what a key has to a value that lies where it will be.
    pub(crate) fn put_reserved(
        &mut self,
        database: usize,
        key: &[u8],
        value: ReservedExpiring,
        deadline: Option<Deadline>,
    ) -> Result<()> {
        let handle = Arc::clone(&self.all[database]);
        let transaction = writing(&mut self.transaction);
        let is_replaced = handle.within(transaction).insert_reserved(key, value, deadline)?;
        self.changed(database, key, !is_replaced);
        Ok(())
    }

    /// Notes that a key has something else than it had.
    fn changed(&mut self, database: usize, key: &[u8], is_new: bool) {
        *self.changes.entry(database).or_default() += i64::from(is_new);
        self.watchers.tell(database, key);
    }

    /// Takes a key out; whether it had something.
    pub(crate) fn remove(&mut self, database: usize, key: &[u8]) -> Result<bool> {
        if !is_key(key) {
            return Ok(false);
        }
        let handle = Arc::clone(&self.all[database]);
        let transaction = writing(&mut self.transaction);
        let was_there = handle.within(transaction).remove(key)?;
        if was_there {
            *self.changes.entry(database).or_default() -= 1;
            self.watchers.tell(database, key);
        }
        Ok(was_there)
    }

    /// Takes everything out of a database, within the transaction: O(n).
    pub(crate) fn remove_all(&mut self, database: usize) -> Result<()> {
        let handle = Arc::clone(&self.all[database]);
        let transaction = writing(&mut self.transaction);
        let mut within = handle.within(transaction);
        let keys = within.iter()?.map(|entry| Ok(entry?.0)).collect::<Result<Vec<_>>>()?;
        for key in &keys {
            within.remove(key)?;
            self.watchers.tell(database, key);
        }
        *self.changes.entry(database).or_default() -= i64::try_from(keys.len()).unwrap_or(i64::MAX);
        Ok(())
    }

    /// Lets two databases exchange all that they have, within the transaction: O(n).
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
        let handle = Arc::clone(&self.all[database]);
        handle.within(writing(&mut self.transaction)).iter()?.collect()
    }

    /// How many entries a database has. O(1), and O(log n) for each that is over and still there.
    pub(crate) fn len(&mut self, database: usize) -> Result<u64> {
        let committed = self.all[database].len()?;
        let change = self.changes.get(&database).copied().unwrap_or_default();
        Ok(committed.saturating_add_signed(change))
    }

    /// Visits the entries within bounds, as they are at one moment, up or down.
    pub(crate) fn visit(
        &mut self,
        database: usize,
        bounds: Bounds<'_>,
        is_down: bool,
        visitor: &mut Visitor<'_>,
    ) -> Result<()> {
        let handle = Arc::clone(&self.all[database]);
        match &mut self.transaction {
            Some(transaction) => {
                visit_each(handle.within(transaction).range(bounds)?, is_down, visitor)
            }
            None => {
                let snapshot = self.store.snapshot()?;
                visit_each(handle.at(&snapshot).range(bounds), is_down, visitor)
            }
        }
    }
}

/// The transaction of a command that writes: those run in nothing else.
fn writing<'t>(transaction: &'t mut Option<&mut Transaction>) -> &'t mut Transaction {
    transaction.as_mut().expect("what writes is run by a committing thread, in a transaction")
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
