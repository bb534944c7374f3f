//! Batches: many changes, one commit.

use std::fmt;
use std::sync::Arc;

use adamant::Durability;
use slatedb::WriteBatch;

use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::layout::entry_key;
use crate::limits::{check_key, check_value};
use crate::shared::{KeyspaceState, Shared};

/// Changes of any keyspaces of one store that become one commit: all of them, or none.
///
/// ```
/// let store = adamant_remote::Store::in_memory()?;
/// let (users, by_mail) = (store.keyspace("users")?, store.keyspace("users by mail")?);
/// let mut batch = store.batch();
/// batch.put(&users, "7", "Ada Lovelace")?;
/// batch.put(&by_mail, "ada@example.org", "7")?;
/// batch.commit()?;
/// # Ok::<(), adamant_remote::Error>(())
/// ```
#[must_use = "a batch does nothing until it is committed"]
pub struct Batch {
    shared: Arc<Shared>,
    changes: WriteBatch,
    keyspaces: Vec<Arc<KeyspaceState>>,
    len: usize,
}

impl Batch {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let (shared, changes) = (Arc::clone(shared), WriteBatch::new());
        Self { shared, changes, keyspaces: Vec::new(), len: 0 }
    }

    /// Sets the value of a key at the commit, without reading it. The last change of a key wins.
    ///
    /// # Errors
    /// A key or value of invalid length, or a keyspace of another store: the batch stays as it was.
    pub fn put(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        check_value(value.as_ref())?;
        let key = self.key(keyspace, key.as_ref())?;
        self.changes.put(key, value);
        Ok(())
    }

    /// Deletes a key at the commit, whether it exists or not, without reading it.
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        let key = self.key(keyspace, key.as_ref())?;
        self.changes.delete(key);
        Ok(())
    }

    fn key(&mut self, keyspace: &Keyspace, key: &[u8]) -> Result<Vec<u8>> {
        check_key(key)?;
        keyspace.note_in(&self.shared, &mut self.keyspaces)?;
        self.len += 1;
        Ok(entry_key(keyspace.state.id, key))
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Does nothing: see [`Keyspace::with_durability`].
    pub fn durability(&mut self, _durability: Durability) -> &mut Self {
        self
    }

    /// Commits, and waits until the commit is in the object store.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn commit(self) -> Result<()> {
        if self.is_empty() {
            return self.shared.writer("a commit").map(|_| ());
        }
        self.shared.write(self.changes, self.keyspaces.iter())
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.len).finish_non_exhaustive()
    }
}
