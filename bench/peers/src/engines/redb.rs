//! redb: a B-tree that is copied on write.
//!
//! Set up as its documentation advises: a cache that holds all the data, `Durability::Immediate`
//! for commits that must last, and `Durability::None` with an immediate commit at the end for
//! loads.

use std::path::Path;

use ::redb::{
    AccessGuard, Database, ReadOnlyTable, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    Table, TableDefinition, WriteTransaction,
};
use adamant_bench::harness::engine::{
    Changes, Chooses, Direction, Durability, Engine, Setup, Space,
};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;

use crate::engines::{CACHE_BYTES, space_of};
use crate::peer::{Facts, Kind, Peer, Survives};

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("bench");

/// A database with one table.
pub struct RedbEngine {
    database: Database,
    durability: ::redb::Durability,
}

/// A value in a page that is kept while it is looked at.
pub struct Value {
    guard: AccessGuard<'static, &'static [u8]>,
    /// Keeps what it was read from: version 4.1 asserts, in debug builds, that nobody has a page of
    /// a read that has ended while a commit without durability frees it.
    _table: ReadOnlyTable<&'static [u8], &'static [u8]>,
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self.guard.value()
    }
}

impl RedbEngine {
    fn begin(&self) -> Result<WriteTransaction> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(self.durability)?;
        Ok(transaction)
    }
}

impl Peer for RedbEngine {
    const FACTS: Facts = Facts {
        version_of: ("redb", ""),
        kind: Kind::Tree,
        sync: Some(Survives::PowerLoss("`Durability::Immediate`: fsync in every commit")),
        buffered: None,
        deferred: Some(Survives::Nothing("`Durability::None`, until an immediate commit")),
        settings: "cache 1 GiB; one-phase commits as by default",
    };
}

impl Engine for RedbEngine {
    const NAME: &'static str = "redb";
    const DURABILITIES: &'static [Durability] = &[Durability::Sync, Durability::Deferred];
    const IS_PERSISTENT: bool = true;
    type Value = Value;

    fn open(directory: &Path, setup: Setup) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join("redb");
        let is_new = !path.exists();
        let cache_bytes = usize::try_from(CACHE_BYTES)?;
        let database = Database::builder().set_cache_size(cache_bytes).create(path)?;
        if is_new {
            let transaction = database.begin_write()?;
            transaction.open_table(TABLE)?;
            transaction.commit()?;
        }
        let durability = match setup.durability {
            Durability::Sync | Durability::Buffered => ::redb::Durability::Immediate,
            Durability::Deferred => ::redb::Durability::None,
        };
        Ok(Self { database, durability })
    }

    fn close(self) -> Result<()> {
        self.sync()
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        let transaction = self.begin()?;
        transaction.open_table(TABLE)?.insert(&key[..], value)?;
        Ok(transaction.commit()?)
    }

    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()> {
        let transaction = self.begin()?;
        let mut table = transaction.open_table(TABLE)?;
        for (key, value) in entries {
            table.insert(&key[..], *value)?;
        }
        drop(table);
        Ok(transaction.commit()?)
    }

    fn remove_batch(&self, keys: &[Key]) -> Result<()> {
        let transaction = self.begin()?;
        let mut table = transaction.open_table(TABLE)?;
        for key in keys {
            table.remove(&key[..])?;
        }
        drop(table);
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &Key) -> Result<Option<Value>> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        Ok(table.get(&key[..])?.map(|guard| Value { guard, _table: table }))
    }

    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        Ok(table.get(&key[..])?.map(|value| read(value.value())).is_some())
    }

    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let range = match (direction, from) {
            (_, None) => table.iter()?,
            (Direction::Ascending, Some(key)) => table.range::<&[u8]>(&key[..]..)?,
            (Direction::Descending, Some(key)) => table.range::<&[u8]>(..=&key[..])?,
        };
        let mut count = 0;
        match direction {
            Direction::Ascending => {
                for entry in range.take(limit) {
                    let (key, value) = entry?;
                    visit(key.value(), value.value());
                    count += 1;
                }
            }
            Direction::Descending => {
                for entry in range.rev().take(limit) {
                    let (key, value) = entry?;
                    visit(key.value(), value.value());
                    count += 1;
                }
            }
        }
        Ok(count)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.database.begin_read()?.open_table(TABLE)?.len()?)
    }

    fn sync(&self) -> Result<()> {
        // An empty immediate commit makes all those before it last.
        Ok(self.database.begin_write()?.commit()?)
    }

    const HAS_TRANSACTIONS: bool = true;

    fn transaction(&self, work: &mut dyn FnMut(&mut dyn Changes) -> Result<()>) -> Result<()> {
        let transaction = self.begin()?;
        work(&mut Running { table: transaction.open_table(TABLE)? })?;
        Ok(transaction.commit()?)
    }

    fn extract(&self, is_handed_out: bool, takes: &mut Chooses<'_>) -> Result<u64> {
        let transaction = self.begin()?;
        let mut table = transaction.open_table(TABLE)?;
        let before = table.len()?;
        if is_handed_out {
            let mut handed_out = Vec::new();
            for entry in table.extract_if(|key, value| takes(key, value))? {
                let (key, value) = entry?;
                handed_out.push((key.value().to_vec(), value.value().to_vec()));
            }
        } else {
            table.retain(|key, value| !takes(key, value))?;
        }
        let removed = before - table.len()?;
        drop(table);
        transaction.commit()?;
        Ok(removed)
    }

    fn compact(directory: &Path, setup: Setup) -> Result<()> {
        let mut engine = Self::open(directory, setup)?;
        // Each call moves what it can; the documentation says to repeat it until nothing moves.
        while engine.database.compact()? {}
        engine.close()
    }

    fn space(directory: &Path) -> Result<Option<Space>> {
        space_of(directory, &|_| false)
    }
}

/// A transaction that has begun.
struct Running<'t> {
    table: Table<'t, &'static [u8], &'static [u8]>,
}

impl Changes for Running<'_> {
    fn put(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        self.table.insert(&key[..], value)?;
        Ok(())
    }

    fn pop(&mut self, direction: Direction, read: &mut dyn FnMut(&[u8], &[u8])) -> Result<bool> {
        let popped = match direction {
            Direction::Ascending => self.table.pop_first()?,
            Direction::Descending => self.table.pop_last()?,
        };
        Ok(popped.map(|(key, value)| read(key.value(), value.value())).is_some())
    }
}
