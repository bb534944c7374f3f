//! Sequence numbers: which commit wrote an entry, and which ones readers see.
//!
//! Purpose: the one clock of all trees of a store, so that a number stands for one moment in all of
//! them; and which moments of the past somebody looks at.
//! Invariants: each change of a tree has a number that no other one has; what is visible is complete.
//! Numbers of transactions that were undone are not used again.
//! Thread safety: numbers are assigned by who has the turn to write, and become visible under the
//! heap's exclusive lock. Readers look at what is visible under its shared lock. What keeps
//! something for moments is held while it lets go.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};

/// What keeps something for moments of the past.
pub(crate) trait Keeper: Send + Sync {
    /// Lets go what nobody sees any more.
    fn let_go(&self, sequences: &Sequences);

    /// Bytes of memory that are kept for moments of the past, about.
    fn kept_bytes(&self) -> u64;
}

/// Moments that there is room for from the beginning: a commit allocates nothing to note as many.
const HELD_MANY: usize = 16;

/// The clock.
pub struct Sequences {
    assigned: AtomicU64,
    visible: AtomicU64,
    /// The moments of snapshots, ascending.
    held: RwLock<Vec<u64>>,
    keepers: Mutex<Vec<Weak<dyn Keeper>>>,
}

impl Default for Sequences {
    fn default() -> Self {
        Self {
            assigned: AtomicU64::new(0),
            visible: AtomicU64::new(0),
            held: RwLock::new(Vec::with_capacity(HELD_MANY)),
            keepers: Mutex::default(),
        }
    }
}

impl fmt::Debug for Sequences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { assigned, visible, held, .. } = self;
        let mut debug = f.debug_struct("Sequences");
        debug.field("assigned", assigned).field("visible", visible).field("held", &held.read());
        debug.finish_non_exhaustive()
    }
}

impl Sequences {
    /// The last change that readers see.
    #[inline]
    pub fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// The number of the next change.
    pub(crate) fn assign(&self) -> u64 {
        self.assigned.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of the last change, seen or not.
    pub(crate) fn assigned(&self) -> u64 {
        self.assigned.load(Ordering::Relaxed)
    }

    /// Makes a change visible, and those before it.
    pub(crate) fn show(&self, sequence: u64) {
        self.visible.fetch_max(sequence, Ordering::AcqRel);
    }

    /// Takes note of a number that was found when a tree was opened.
    pub(crate) fn note(&self, sequence: u64) {
        self.assigned.fetch_max(sequence, Ordering::AcqRel);
        self.show(sequence);
    }

    /// Says which moments of the past snapshots see, ascending: what none of them can tell apart is
    /// let go. Those that are opened later see what is visible then, or more. To be called by one
    /// at a time, while no snapshot is opened.
    pub fn hold(&self, moments: impl Iterator<Item = u64> + Clone) {
        if self.held.read().iter().copied().eq(moments.clone()) {
            return;
        }
        {
            let held = &mut *self.held.write();
            held.clear();
            held.extend(moments);
        }
        self.keepers.lock().retain(|keeper| match keeper.upgrade() {
            Some(keeper) => {
                keeper.let_go(self);
                keeper.kept_bytes() > 0
            }
            None => false,
        });
    }

    /// Bytes of memory that trees keep for snapshots beside what is in them, about.
    pub fn kept_bytes(&self) -> u64 {
        let keepers = self.keepers.lock();
        keepers.iter().filter_map(Weak::upgrade).map(|keeper| keeper.kept_bytes()).sum()
    }

    /// The moments that somebody looks at, ascending: those of snapshots, and the last one.
    pub(crate) fn seen(&self) -> Vec<u64> {
        let visible = self.visible();
        let mut seen = self.held.read().to_vec();
        seen.insert(seen.partition_point(|moment| *moment <= visible), visible);
        seen
    }

    /// Has somebody let go what snapshots see, when they are closed.
    pub(crate) fn keep<K: Keeper + 'static>(&self, keeper: &Arc<K>) {
        let keeper: Weak<dyn Keeper> = Arc::<K>::downgrade(keeper);
        let mut keepers = self.keepers.lock();
        if !keepers.iter().any(|known| known.ptr_eq(&keeper)) {
            keepers.push(keeper);
        }
    }
}
