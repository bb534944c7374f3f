//! Giving a keyspace options of its own.
//!
//! Purpose: options that are asked for when a keyspace is opened, and that differ from those it
//! has, are recorded in one commit, and hold for its tree from then on.
//! Thread safety: any thread. Of two that ask for different values, the last one has its way.

use adamant_heap::Error as HeapError;
use adamant_heap::durability::Durability;
use adamant_lsm::TreeOptions;

use crate::common::shared::Shared;
use crate::common::state::KeyspaceState;
use crate::error::Result;

impl Shared {
    /// The recorded options of a keyspace.
    pub(crate) fn recorded_options(&self, state: &KeyspaceState) -> Result<TreeOptions> {
        let (name, entry) = state.find(&self.view()?, self.catalogue())?;
        entry.options(&name)
    }

    /// Records those options that are set, beside others that are recorded. Does nothing if it has
    /// them, or if the store is open for reading only.
    pub(crate) fn give_options(&self, state: &KeyspaceState, asked: &TreeOptions) -> Result<()> {
        let is_new = |recorded: &TreeOptions| asked.or(recorded) != *recorded;
        if *asked == TreeOptions::default() || !is_new(&self.recorded_options(state)?) {
            return Ok(());
        }
        if self.heap()?.check_writable().is_err_and(|e| matches!(e, HeapError::ReadOnly)) {
            return Ok(());
        }
        self.change_list(None, Durability::Sync, &[], |transaction, _| {
            let (name, entry) = state.find(transaction, self.catalogue())?;
            let recorded = entry.options(&name)?;
            if !is_new(&recorded) {
                return Ok(());
            }
            let own = asked.or(&recorded);
            self.catalogue().give_options(transaction, (&name, &entry), &own)
        })
    }
}
