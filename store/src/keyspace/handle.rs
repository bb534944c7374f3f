//! The keyspace handle: a named, ordered map of the store.

use std::fmt;
use std::sync::Arc;

use adamant_heap::durability::Durability;

use crate::common::shared::Shared;
use crate::common::state::KeyspaceState;
use crate::engine::map::Map;
use crate::engine::tree::Engine;
use crate::error::Result;
use crate::kind::KeyspaceKind;
use crate::limits::check_plain;

/// A handle to one keyspace of a store: cheap to clone, and shared between threads.
///
/// Any number of threads may read beside one writer. When the keyspace is dropped its handles
/// return [`Error::KeyspaceDropped`](crate::Error::KeyspaceDropped), even if another keyspace takes
/// its name.
///
/// ```
/// let store = adamant::Store::in_memory()?;
/// let towns = store.keyspace("towns")?;
/// towns.put("Bern", "134,000")?;
/// assert_eq!(towns.get("Bern")?.as_deref(), Some(&b"134,000"[..]));
/// assert_eq!(towns.get("Rome")?, None);
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone)]
pub struct Keyspace {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: Arc<KeyspaceState>,
    /// That of its commits, if it was given to this handle.
    own_durability: Option<Durability>,
    /// Whether it only shows stored bytes, and is refused to write unless the entries are plain.
    is_lent: bool,
}

impl Keyspace {
    pub(crate) fn new(shared: &Arc<Shared>, state: Arc<KeyspaceState>) -> Self {
        Self { shared: Arc::clone(shared), state, own_durability: None, is_lent: false }
    }

    /// A handle to read stored bytes: it may not write, unless the entries are plain.
    pub(crate) fn lent(shared: &Arc<Shared>, state: Arc<KeyspaceState>) -> Self {
        Self { is_lent: true, ..Self::new(shared, state) }
    }

    /// This handle, to read stored bytes: see [`Keyspace::lent`].
    pub(crate) fn to_lent(&self) -> Self {
        Self { is_lent: true, ..self.clone() }
    }

    /// Fails unless this handle may write.
    pub(crate) fn check_writes(&self) -> Result<()> {
        if self.is_lent {
            return check_plain(self.name(), self.state.kind);
        }
        Ok(())
    }

    /// The kind of its entries.
    pub fn kind(&self) -> KeyspaceKind {
        self.state.kind
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The engine when this handle was opened.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// assert_eq!((towns.name(), towns.engine()), ("towns", adamant::Engine::Bplus));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn engine(&self) -> Engine {
        self.state.engine()
    }

    /// The map that holds the entries now.
    pub(crate) fn map(&self) -> Result<Map> {
        let view = self.shared.view()?;
        Ok(self.state.map(&view, self.shared.catalogue())?.into_owned())
    }

    /// The durability of writes through this handle: the one that
    /// [`Keyspace::with_durability`] gave it; else the one recorded with the keyspace
    /// ([`KeyspaceOptions::durability`](crate::KeyspaceOptions::durability)); else that of the
    /// store. O(1).
    ///
    /// ```
    /// use adamant::{Durability, KeyspaceOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let options = KeyspaceOptions::new().durability(Durability::Deferred);
    /// let visits = store.keyspace_with("visits", options)?;
    /// assert_eq!(visits.durability(), Durability::Deferred);
    /// assert_eq!(store.keyspace("orders")?.durability(), Durability::Sync);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    #[inline]
    pub fn durability(&self) -> Durability {
        self.own_durability.unwrap_or_else(|| self.shared.durability_of(&self.state))
    }

    /// The durability of a commit through this handle that also changes another keyspace: its own,
    /// or the stronger one of those of the two.
    pub(crate) fn durability_with(&self, other: &Self) -> Durability {
        let both = [&self.state, &other.state].map(AsRef::as_ref);
        self.own_durability.unwrap_or_else(|| self.shared.durability_over(both))
    }

    /// A handle to the same keyspace whose writes have this durability, whatever is recorded with
    /// it. Batches and transactions have their own.
    ///
    /// ```
    /// use adamant::{Durability, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let quick = store.keyspace("visits")?.with_durability(Durability::Deferred);
    /// quick.put("today", "1")?;
    /// store.sync()?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    #[must_use]
    pub fn with_durability(&self, durability: Durability) -> Self {
        Self { own_durability: Some(durability), ..self.clone() }
    }
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace")
            .field("name", &self.name())
            .field("engine", &self.engine())
            .field("durability", &self.durability())
            .finish_non_exhaustive()
    }
}
