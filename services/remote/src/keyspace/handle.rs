//! A keyspace: a named, ordered map of the store.

use std::fmt;
use std::sync::Arc;

use adamant::Durability;

use crate::error::{Error, Result};
use crate::shared::{KeyspaceState, Shared};

/// A handle to one keyspace of a store: cheap to clone, to be shared between threads.
///
/// When the keyspace is dropped its handles get
/// [`Error::KeyspaceDropped`](crate::Error::KeyspaceDropped), also after a new keyspace takes its
/// name.
///
/// ```
/// let store = adamant_remote::Store::in_memory()?;
/// let towns = store.keyspace("towns")?;
/// towns.put("Bern", "134,000")?;
/// assert_eq!(towns.get("Bern")?.as_deref(), Some(&b"134,000"[..]));
/// assert_eq!(towns.get("Rome")?, None);
/// # Ok::<(), adamant_remote::Error>(())
/// ```
#[derive(Clone)]
pub struct Keyspace {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: Arc<KeyspaceState>,
}

impl Keyspace {
    pub(crate) fn new(shared: &Arc<Shared>, state: Arc<KeyspaceState>) -> Self {
        Self { shared: Arc::clone(shared), state }
    }

    /// Notes that a batch or transaction of a store uses the keyspace, once.
    pub(crate) fn note_in(
        &self,
        shared: &Arc<Shared>,
        noted: &mut Vec<Arc<KeyspaceState>>,
    ) -> Result<()> {
        if !Arc::ptr_eq(&self.shared, shared) {
            return Err(Error::OtherStore { name: self.name().to_owned() });
        }
        if !noted.iter().any(|known| known.id == self.state.id) {
            noted.push(Arc::clone(&self.state));
        }
        Ok(())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The name of its engine in the store from which it was copied, empty if it was not.
    pub fn engine_copied(&self) -> &str {
        &self.state.engine
    }

    /// Returns the same keyspace: each commit of a store on objects is [`Durability::Sync`],
    /// whatever is requested. Exists so that a program for a store on a machine runs on this one.
    #[must_use]
    pub fn with_durability(&self, _durability: Durability) -> Self {
        self.clone()
    }
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyspace").field("name", &self.name()).finish_non_exhaustive()
    }
}
