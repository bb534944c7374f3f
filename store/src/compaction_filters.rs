//! Compaction filters: which keyspace has which.
//!
//! Purpose: filters are given when the store is opened, by the names of keyspaces; entries of
//! expiring keyspaces can be dropped when their deadlines have passed.
//! Invariants: nothing of it is recorded: a store that is opened without them loses nothing. What
//! the library stores beside a user's values (deadlines, rows of multimaps) no filter changes.
//! Thread safety: values, shared freely.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use adamant_lsm::{CompactionFilter, Verdict};

use crate::clock::Clock;
use crate::layout::{DEADLINE_BYTES, KIND_EXPIRING, KIND_MULTIMAP};

/// The filters that a store is opened with.
#[derive(Clone, Default)]
pub(crate) struct CompactionFilters {
    by_name: BTreeMap<Arc<str>, Arc<dyn CompactionFilter>>,
    /// Drops expired entries by this clock.
    expiry: Option<Clock>,
}

impl CompactionFilters {
    pub(crate) fn add(&mut self, keyspace: &str, filter: Arc<dyn CompactionFilter>) {
        self.by_name.insert(keyspace.into(), filter);
    }

    pub(crate) fn drop_expired(&mut self, clock: Option<Clock>) {
        self.expiry = clock;
    }

    /// The filter of the keyspace with this name and the number of its kind.
    pub(crate) fn of(&self, name: &str, kind: u16) -> Option<Box<dyn CompactionFilter>> {
        let own = self.by_name.get(name).cloned();
        let expiry = self.expiry.clone().filter(|_| kind == KIND_EXPIRING);
        let is_any = own.is_some() || expiry.is_some();
        is_any.then(|| Box::new(KeyspaceFilter { own, expiry, kind }) as _)
    }
}

impl fmt::Debug for CompactionFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.by_name.keys().collect();
        let mut debug = f.debug_struct("CompactionFilters");
        debug.field("by_name", &names).field("drops_expired", &self.expiry.is_some()).finish()
    }
}

/// The filter of one keyspace.
struct KeyspaceFilter {
    own: Option<Arc<dyn CompactionFilter>>,
    expiry: Option<Clock>,
    /// The number of the keyspace's kind.
    kind: u16,
}

impl KeyspaceFilter {
    fn has_ended(&self, deadline: &[u8]) -> bool {
        let (Some(clock), Some(deadline)) = (&self.expiry, deadline.first_chunk()) else {
            return false;
        };
        let deadline = u64::from_le_bytes(*deadline).swap_bytes();
        deadline != 0 && deadline <= clock()
    }
}

impl CompactionFilter for KeyspaceFilter {
    fn filter(&self, key: &[u8], stored: &[u8]) -> Verdict {
        // A value begins with its deadline: see `docs/format/expiring.md`.
        let deadline_bytes = if self.kind == KIND_EXPIRING { DEADLINE_BYTES } else { 0 };
        let Some((deadline, value)) = stored.split_at_checked(deadline_bytes) else {
            return Verdict::Keep;
        };
        if self.has_ended(deadline) {
            return Verdict::Remove;
        }
        match self.own.as_ref().map_or(Verdict::Keep, |own| own.filter(key, value)) {
            // A pair is all in its row's key.
            Verdict::Change(_) if self.kind == KIND_MULTIMAP => Verdict::Keep,
            Verdict::Change(value) => Verdict::Change([deadline, &value].concat()),
            verdict => verdict,
        }
    }

    fn reads_blobs(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.reads_blobs())
    }
}
