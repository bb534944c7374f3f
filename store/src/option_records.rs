//! Giving a keyspace options of its own.
//!
//! Purpose: options that are asked for when a keyspace is opened, and that differ from those it
//! has, are recorded in one commit, and hold for its tree from then on.
//! Thread safety: any thread. Of two that ask for different values, the last one has its way.

use adamant_heap::Error as HeapError;
use adamant_heap::durability::Durability;

use crate::common::shared::Shared;
use crate::common::state::KeyspaceState;
use crate::error::Result;
use crate::keyspace::convert::wrong_operator;
use crate::own_options::OwnOptions;

impl Shared {
    /// The recorded options of a keyspace.
    pub(crate) fn recorded_options(&self, state: &KeyspaceState) -> Result<OwnOptions> {
        let (name, entry) = state.find(&self.view()?, self.catalogue())?;
        entry.options(&name)
    }

    /// Records those options that are set, beside others that are recorded. Does nothing if it has
    /// them, or if the store is open for reading only.
    pub(crate) fn give_options(&self, state: &KeyspaceState, asked: &OwnOptions) -> Result<()> {
        if *asked == OwnOptions::default() {
            return Ok(());
        }
        let mut asked = *asked;
        let recorded = self.recorded_options(state)?;
        if recorded.values.is_none() {
            // To have none is what no option says.
            asked.values = asked.values.filter(|values| !values.is_none());
        }
        if recorded.durability.is_none() {
            asked.durability = asked.durability.filter(Option::is_some);
        }
        if let (Some(asked), Some(found)) = (asked.merge, recorded.merge)
            && asked != found
        {
            return Err(wrong_operator(&state.name, &asked, &found));
        }
        if asked.or(&recorded) == recorded {
            return Ok(());
        }
        if self.heap()?.check_writable().is_err_and(|e| matches!(e, HeapError::ReadOnly)) {
            return Ok(());
        }
        let unseen = self.change_list(None, Durability::Sync, &[], |transaction, list| {
            self.record_options(transaction, list, (state, &asked))
        })?;
        self.destroy_retired(unseen.into_iter().collect());
        Ok(())
    }
}
