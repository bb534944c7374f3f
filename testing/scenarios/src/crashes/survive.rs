//! Survival of storage failures: a store whose storage backend failed once continues correctly, or
//! is poisoned, refuses every write, and is correct after it is reopened.

use adamant::{Durability, Error, Result, Store};
use adamant_sim::Promise;

use crate::crashes::model::{Content, verify_of};
use crate::crashes::workload::Workload;

/// The state after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survived {
    /// The store continued.
    Usable,
    /// It was poisoned, and is open again.
    Poisoned,
    /// It could not be closed or opened, and is open now.
    Closed,
}

impl Workload {
    /// Verifies the store after the error of a step, and reopens it if necessary.
    ///
    /// # Panics
    /// If it is incorrect, or a poisoned one accepts writes.
    pub fn survive(&mut self, error: &Error) -> Survived {
        let Some(store) = &self.store else {
            self.open_again();
            return Survived::Closed;
        };
        self.last().verify(store);
        if !error.is_poisoned() {
            return Survived::Usable;
        }
        assert_refusing(store, self.last());
        self.last().verify(store);
        self.close_at_once();
        self.open_again();
        Survived::Poisoned
    }

    /// Recovers the disk, and continues from there.
    fn open_again(&mut self) {
        let promise = Promise::at_death(&self.disk, self.disk.operation_count());
        let (store, found) = verify_of(self.mix.setup, &self.disk, &self.models, promise);
        let last = self.models.iter().rposition(|model| *model == found);
        self.models.truncate(last.expect("it was verified to be one of them") + 1);
        self.store = Some(store);
    }
}

/// Tries every kind of write on a poisoned store.
///
/// # Panics
/// Unless all are refused.
pub fn assert_refusing(store: &Store, content: &Content) {
    let refused = |outcome: Result<()>| {
        let error = outcome.unwrap_err();
        assert!(error.is_poisoned(), "{error:?}");
    };
    refused(store.create_keyspace("another").map(drop));
    for name in content.keyspaces.keys() {
        let keyspace = store.open_keyspace(name).unwrap();
        for durability in [Durability::Sync, Durability::Buffered, Durability::Deferred] {
            let keyspace = keyspace.with_durability(durability);
            refused(keyspace.insert("key", "value").map(drop));
            refused(keyspace.remove("key").map(drop));
        }
        let mut batch = store.batch();
        batch.put(&keyspace, "key", "value").unwrap();
        refused(batch.commit());
        refused(store.drop_keyspace(name).map(drop));
    }
}
