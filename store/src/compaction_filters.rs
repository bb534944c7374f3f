//! Compaction filters: which keyspace has which.
//!
//! Purpose: filters are given when the store is opened, by the names of keyspaces; entries of
//! expiring keyspaces can be dropped when their deadlines have passed.
//! Invariants: nothing of it is recorded: a store that is opened without them loses nothing.
//! Thread safety: values, shared freely.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use adamant_lsm::{CompactionFilter, Verdict};

use crate::layout::KIND_EXPIRING;

/// A clock: milliseconds since 1970.
type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

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
        (own.is_some() || expiry.is_some()).then(|| Box::new(KeyspaceFilter { own, expiry }) as _)
    }
}

impl fmt::Debug for CompactionFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.by_name.keys().collect();
        let mut debug = f.debug_struct("CompactionFilters");
        debug.field("by_name", &names).field("drops_expired", &self.expiry.is_some()).finish()
    }
}

/// Milliseconds since 1970, by the system's clock.
pub(crate) fn system_clock() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// The filter of one keyspace.
struct KeyspaceFilter {
    own: Option<Arc<dyn CompactionFilter>>,
    expiry: Option<Clock>,
}

impl CompactionFilter for KeyspaceFilter {
    fn filter(&self, key: &[u8], value: &[u8]) -> Verdict {
        // A value begins with its deadline: see `docs/format/expiring.md`.
        if let (Some(clock), Some(deadline)) = (&self.expiry, value.first_chunk()) {
            let deadline = u64::from_le_bytes(*deadline).swap_bytes();
            if deadline != 0 && deadline <= clock() {
                return Verdict::Remove;
            }
        }
        self.own.as_ref().map_or(Verdict::Keep, |own| own.filter(key, value))
    }

    fn reads_blobs(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.reads_blobs())
    }
}
