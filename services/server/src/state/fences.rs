//! Fences: every few hundredth key of a database, for choosing a random key.
//!
//! Purpose: an ordered map finds its n-th key only by a walk. With fences the walk is short.
//! Invariants: fences are in order. They may no longer be keys: any number of keys may lie between
//! two of them, and RANDOMKEY takes that into account.
//! Thread safety: one lock, held for a lookup.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use adamant::Slice;
use parking_lot::Mutex;

/// Keys between two fences when they are set.
pub(crate) const APART: usize = 256;
/// Maximum keys between two fences: beyond it new ones are set.
pub(crate) const BETWEEN_MAX: usize = 2 * APART;

/// The fences of one database.
#[derive(Clone, Debug)]
struct Set {
    /// Each range but the first begins with one.
    keys: Arc<Vec<Slice>>,
    /// How many keys the database had.
    len: u64,
}

/// The fences of all databases in which a random key was requested.
#[derive(Debug, Default)]
pub(crate) struct Fences(Mutex<HashMap<usize, Set>>);

/// The keys from one fence up to the next.
pub(crate) type FenceRange = (Bound<Slice>, Bound<Slice>);

impl Fences {
    /// A random range of a database, each with the same probability; `None` if fences must be set,
    /// because there are none, or none for as many keys.
    pub(crate) fn any(&self, database: usize, len: u64) -> Option<FenceRange> {
        let set = self.0.lock().get(&database).cloned()?;
        if len < set.len / 2 || len > set.len.saturating_add(set.len / 4) {
            return None;
        }
        let number = fastrand::usize(..=set.keys.len());
        let low = match number.checked_sub(1) {
            Some(before) => Bound::Included(set.keys[before].clone()),
            None => Bound::Unbounded,
        };
        let high =
            set.keys.get(number).map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone()));
        Some((low, high))
    }

    /// Sets the fences of a database of `len` keys.
    pub(crate) fn set(&self, database: usize, keys: Vec<Slice>, len: u64) {
        self.0.lock().insert(database, Set { keys: Arc::new(keys), len });
    }

    /// Adds fences.
    pub(crate) fn add(&self, database: usize, more: Vec<Slice>) {
        if let Some(set) = self.0.lock().get_mut(&database) {
            let keys = Arc::make_mut(&mut set.keys);
            keys.extend(more);
            keys.sort_unstable();
            keys.dedup();
        }
    }
}
