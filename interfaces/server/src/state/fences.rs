//! Fences: keys of a database, some hundreds of others apart, by which one of all is chosen at
//! random.
//!
//! Purpose: an ordered map knows its n-th key only by walking there. With fences a walk is short.
//! Invariants: fences are in order. They need not be keys any more: between two of them lie as many
//! keys as happen to, and who chooses looks.
//! Thread safety: one lock, held for a look.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use adamant::Slice;
use parking_lot::Mutex;

/// Keys between two fences when they are set.
pub(crate) const APART: usize = 256;
/// Keys between two fences at most: from there on new ones are set.
pub(crate) const BETWEEN_MAX: usize = 2 * APART;

/// The fences of one database.
#[derive(Clone, Debug)]
struct Set {
    /// Each but the first stretch begins with one.
    keys: Arc<Vec<Slice>>,
    /// How many keys the database had.
    len: u64,
}

/// Those of all databases for which somebody asked.
#[derive(Debug, Default)]
pub(crate) struct Fences(Mutex<HashMap<usize, Set>>);

/// The keys from one fence up to the next.
pub(crate) type Stretch = (Bound<Slice>, Bound<Slice>);

impl Fences {
    /// One of the stretches of a database, each as likely; `None` where fences are to be set, as
    /// there are none, or none for so many keys.
    pub(crate) fn any(&self, database: usize, len: u64) -> Option<Stretch> {
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

    /// Sets the fences of a database that has so many keys.
    pub(crate) fn set(&self, database: usize, keys: Vec<Slice>, len: u64) {
        self.0.lock().insert(database, Set { keys: Arc::new(keys), len });
    }

    /// Sets more of them.
    pub(crate) fn add(&self, database: usize, more: Vec<Slice>) {
        if let Some(set) = self.0.lock().get_mut(&database) {
            let keys = Arc::make_mut(&mut set.keys);
            keys.extend(more);
            keys.sort_unstable();
            keys.dedup();
        }
    }
}
