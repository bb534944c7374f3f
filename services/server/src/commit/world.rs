//! The state that all running commands share: the databases, their watchers, and the durability of
//! commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adamant::{Durability, Store};
use parking_lot::RwLock;

use crate::commit::health::Health;
use crate::commit::tallies::Tallies;
use crate::state::call::Surroundings;
use crate::state::data::Databases;
use crate::state::watch::Watchers;

/// The maximum bytes of the store before commands that add to it are refused: `maxmemory`.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    /// 0: unbounded.
    pub(crate) bytes_max: AtomicU64,
    /// As of the last measurement.
    pub(crate) used_bytes: AtomicU64,
}

impl Bound {
    /// Whether more is used than allowed.
    pub(crate) fn is_over(&self) -> bool {
        let bytes_max = self.bytes_max.load(Ordering::Relaxed);
        bytes_max > 0 && self.used_bytes.load(Ordering::Relaxed) > bytes_max
    }

    /// Measures the used bytes.
    pub(crate) fn look(&self, store: &Store) -> adamant::Result<()> {
        self.used_bytes.store(store.stats()?.heap.used_bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// The state that all running commands share.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) databases: Arc<Databases>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) surroundings: Surroundings,
    pub(crate) health: Health,
    pub(crate) tallies: Tallies,
    pub(crate) bound: Bound,
    /// Whether changes go through a cluster.
    pub(crate) is_replicated: bool,
    /// Shared by writers; exclusive while databases are emptied, which takes two commits.
    pub(crate) emptying: RwLock<()>,
    is_sync: AtomicBool,
}

impl World {
    /// Of these databases, with this durability of commits.
    pub(crate) fn new(
        databases: Arc<Databases>,
        surroundings: Surroundings,
        durability: Durability,
        is_replicated: bool,
    ) -> Self {
        Self {
            databases,
            watchers: Arc::default(),
            surroundings,
            health: Health::default(),
            tallies: Tallies::default(),
            bound: Bound::default(),
            is_replicated,
            emptying: RwLock::new(()),
            is_sync: AtomicBool::new(durability == Durability::Sync),
        }
    }

    /// Sets what commits wait for.
    pub(crate) fn set_sync(&self, is_sync: bool) {
        self.is_sync.store(is_sync, Ordering::Relaxed);
    }

    /// The durability that commits wait for.
    pub(crate) fn durability(&self) -> Durability {
        if self.is_sync.load(Ordering::Relaxed) { Durability::Sync } else { Durability::Buffered }
    }
}
