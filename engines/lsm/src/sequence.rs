//! Sequence numbers: which commit wrote an entry, and which commits readers see.
//!
//! Purpose: the one clock of all trees of a store, so that a number means the same point in time in
//! all of them; and the past sequence numbers that snapshots read at.
//! Invariants: each change of a tree has a unique number; what is visible is complete. Numbers of
//! transactions that were undone are not reused.
//! Thread safety: the holder of the write permit assigns numbers; they become visible under the
//! heap's exclusive lock. Readers load the visible number under its shared lock. The lock of
//! `keepers` is held while they drop state.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, RwLock};

/// Holds state for past sequence numbers.
pub(crate) trait Keeper: Send + Sync {
    /// Drops what no reader sees any more.
    fn let_go(&self, sequences: &Sequences);

    /// Approximate bytes of memory that are held for past sequence numbers.
    fn kept_bytes(&self) -> u64;
}

/// Initial capacity for snapshot numbers: up to as many need no allocation at a commit.
const HELD_MANY: usize = 16;

/// The clock.
pub struct Sequences {
    assigned: AtomicU64,
    visible: AtomicU64,
    /// The sequence numbers of snapshots, ascending.
    held: RwLock<Vec<u64>>,
    /// The newest moment that a snapshot sees; `None` if none is open.
    newest_held: OnceLock<Box<dyn Fn() -> Option<u64> + Send + Sync>>,
    keepers: Mutex<Vec<Weak<dyn Keeper>>>,
}

impl Default for Sequences {
    fn default() -> Self {
        Self {
            assigned: AtomicU64::new(0),
            visible: AtomicU64::new(0),
            held: RwLock::new(Vec::with_capacity(HELD_MANY)),
            newest_held: OnceLock::new(),
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

    /// The number of the last change, visible or not.
    pub(crate) fn assigned(&self) -> u64 {
        self.assigned.load(Ordering::Relaxed)
    }

    /// Makes a change visible, and those before it.
    pub(crate) fn show(&self, sequence: u64) {
        self.visible.fetch_max(sequence, Ordering::AcqRel);
    }

    /// Notes a number that was found when a tree was opened.
    pub(crate) fn note(&self, sequence: u64) {
        self.assigned.fetch_max(sequence, Ordering::AcqRel);
        self.show(sequence);
    }

    /// Sets the sequence numbers that snapshots read at, ascending; state that none of them can
    /// tell apart is dropped. Snapshots that are opened later see what is visible then, or more. To
    /// be called by one thread at a time, while no snapshot is opened.
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

    /// Sets how the newest moment is found that a snapshot sees, `None` if none is open. What it
    /// returns must be exact where the heap's exclusive lock is held. Without it, the moments of
    /// [`Sequences::hold`] are all that there are.
    pub fn set_newest_held(&self, newest: impl Fn() -> Option<u64> + Send + Sync + 'static) {
        // Set once, when the store is opened.
        let _ = self.newest_held.set(Box::new(newest));
    }

    /// The newest moment that a snapshot sees; `None` if none is open.
    pub(crate) fn newest_held(&self) -> Option<u64> {
        match self.newest_held.get() {
            Some(newest) => newest(),
            None => self.held.read().last().copied(),
        }
    }

    /// Approximate bytes of memory that trees hold for snapshots beside their content.
    pub fn kept_bytes(&self) -> u64 {
        let keepers = self.keepers.lock();
        keepers.iter().filter_map(Weak::upgrade).map(|keeper| keeper.kept_bytes()).sum()
    }

    /// The sequence numbers that readers look at, ascending: those of snapshots, and the last one.
    pub(crate) fn seen(&self) -> Vec<u64> {
        let visible = self.visible();
        let mut seen = self.held.read().to_vec();
        seen.insert(seen.partition_point(|moment| *moment <= visible), visible);
        seen
    }

    /// Registers a keeper, which is told to drop state when snapshots are closed.
    pub(crate) fn keep<K: Keeper + 'static>(&self, keeper: &Arc<K>) {
        let keeper: Weak<dyn Keeper> = Arc::<K>::downgrade(keeper);
        let mut keepers = self.keepers.lock();
        if !keepers.iter().any(|known| known.ptr_eq(&keeper)) {
            keepers.push(keeper);
        }
    }
}
