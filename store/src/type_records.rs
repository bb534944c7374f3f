//! Recording and comparing the types of a keyspace's keys and values.
//!
//! Purpose: the first typed handle to an empty keyspace records its types, in a commit; each later
//! one compares its own with them. A keyspace that holds entries already is used as it is: the
//! types of its old bytes are unknown, and a wrong guess would make it refuse the right ones.
//! Thread safety: any thread. Of two first handles at once, one records and the other compares.

use adamant_heap::access::Read;
use adamant_heap::durability::Durability;

use crate::common::shared::Shared;
use crate::common::state::KeyspaceState;
use crate::error::{Error, Result};
use crate::kind::KeyspaceKind;
use crate::types::KeyspaceTypes;

impl Shared {
    /// The recorded types of a keyspace.
    pub(crate) fn recorded_types(&self, state: &KeyspaceState) -> Result<Option<KeyspaceTypes>> {
        let (name, entry) = state.find(&self.view()?, self.catalogue())?;
        entry.types(&name)
    }

    /// Whether these types are recorded for the keyspace; fails if others are.
    pub(crate) fn has_types(&self, state: &KeyspaceState, asked: &KeyspaceTypes) -> Result<bool> {
        self.compare(&self.view()?, state, asked)
    }

    fn compare<R: Read>(
        &self,
        heap: &R,
        state: &KeyspaceState,
        asked: &KeyspaceTypes,
    ) -> Result<bool> {
        let (name, entry) = state.find(heap, self.catalogue())?;
        match entry.types(&name)? {
            None => Ok(false),
            Some(recorded) if recorded == *asked => Ok(true),
            Some(recorded) => {
                let (recorded, asked) = (Box::new(recorded), Box::new(asked.clone()));
                Err(Error::WrongTypes { name, recorded, asked })
            }
        }
    }

    /// Whether types can be recorded for a keyspace that has none: it holds entries of the kind
    /// that they are for, and the store is not open for reading only.
    pub(crate) fn takes_types(&self, state: &KeyspaceState, kind: KeyspaceKind) -> bool {
        let is_read_only = self.heap().and_then(|heap| Ok(heap.check_writable()?));
        state.kind == kind && !is_read_only.is_err_and(|error| error.is_read_only())
    }

    /// Records the types of a keyspace if it has none and no entry; otherwise like
    /// [`Shared::has_types`].
    pub(crate) fn record_first_types(
        &self,
        state: &KeyspaceState,
        types: &KeyspaceTypes,
    ) -> Result<()> {
        self.change_list(None, Durability::Sync, &[], |transaction, _| {
            let map = state.map(transaction, self.catalogue())?;
            let is_first =
                !self.compare(transaction, state, types)? && map.is_empty(transaction)?;
            if !is_first {
                return Ok(());
            }
            let (name, entry) = state.find(transaction, self.catalogue())?;
            self.catalogue().record(transaction, (&name, &entry), types)
        })
    }

    /// Records the types of a keyspace, whatever it has recorded and stored.
    pub(crate) fn record_types(&self, state: &KeyspaceState, types: &KeyspaceTypes) -> Result<()> {
        self.change_list(None, Durability::Sync, &[], |transaction, _| {
            let (name, entry) = state.find(transaction, self.catalogue())?;
            self.catalogue().record(transaction, (&name, &entry), types)
        })
    }
}
