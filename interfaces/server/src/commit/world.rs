//! What those who run commands share: the databases, who watches them, and how durable commits are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adamant::{Durability, Store};
use parking_lot::RwLock;

use crate::commit::health::Health;
use crate::commit::tallies::Tallies;
use crate::state::call::Surroundings;
use crate::state::data::Databases;
use crate::state::watch::Watchers;

/// How many bytes the store may use before commands that add to it are refused: `maxmemory`.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    /// 0: as many as there are.
    pub(crate) bytes_max: AtomicU64,
    /// As of the last look.
    pub(crate) used_bytes: AtomicU64,
}

impl Bound {
    /// Whether more is used than may be.
    pub(crate) fn is_over(&self) -> bool {
        let bytes_max = self.bytes_max.load(Ordering::Relaxed);
        bytes_max > 0 && self.used_bytes.load(Ordering::Relaxed) > bytes_max
    }

    /// Takes a look.
    pub(crate) fn look(&self, store: &Store) -> adamant::Result<()> {
        self.used_bytes.store(store.stats()?.heap.used_bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// What those who run commands share.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) databases: Arc<Databases>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) surroundings: Surroundings,
    pub(crate) health: Health,
    pub(crate) tallies: Tallies,
    pub(crate) bound: Bound,
    /// Whether what is changed goes through a cluster.
    pub(crate) is_replicated: bool,
    /// Shared by who writes; had alone by who empties databases, which takes two commits.
    pub(crate) emptying: RwLock<()>,
    is_sync: AtomicBool,
}

impl World {
    /// Of these databases, whose commits are that durable.
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

    /// What commits wait for from now on.
    pub(crate) fn set_sync(&self, is_sync: bool) {
        self.is_sync.store(is_sync, Ordering::Relaxed);
    }

    /// What commits wait for.
    pub(crate) fn durability(&self) -> Durability {
        if self.is_sync.load(Ordering::Relaxed) { Durability::Sync } else { Durability::Buffered }
    }
}
