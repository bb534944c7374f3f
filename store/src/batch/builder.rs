//! The batch builder: many changes that become one commit.
//!
//! Purpose: collects operations on any keyspaces of a store.
//! Invariants: a batch holds only valid keys and values, and only keyspaces of its store. Nothing
//! of it is in the store before `commit`.
//! Thread safety: a batch belongs to one thread at a time; it holds no lock.

use std::fmt;
use std::sync::Arc;

use adamant_heap::durability::Durability;

use crate::common::content::{Content, MoveKind};
use crate::common::shared::Shared;
use crate::common::state::KeyspaceState;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::limits::{check_key, check_value};
use crate::merge_operators::check_operand;

/// Changes to any number of keyspaces of one store, committed atomically: after a crash all of them
/// are there or none.
///
/// Puts and deletes may come in any order; of several on the same key the last one wins. Moves
/// take effect in order: after the operations before them and before those after them. A batch
/// takes memory for its keys and values until it is committed or dropped.
///
/// ```
/// let store = adamant::Store::in_memory()?;
/// let (accounts, log) = (store.keyspace("accounts")?, store.keyspace("log")?);
///
/// let mut batch = store.batch();
/// batch.put(&accounts, "ada", "90")?;
/// batch.put(&accounts, "bob", "110")?;
/// batch.put(&log, "0001", "ada gave bob 10")?;
/// batch.commit()?;
///
/// assert_eq!(accounts.len()?, 2);
/// assert_eq!(log.len()?, 1);
/// # Ok::<(), adamant::Error>(())
/// ```
#[must_use = "a batch does nothing until it is committed"]
pub struct Batch {
    pub(crate) shared: Arc<Shared>,
    pub(crate) keyspaces: Vec<Arc<KeyspaceState>>,
    pub(crate) content: Content,
    /// `None`: the strongest that one of the keyspaces asks for.
    durability: Option<Durability>,
}

impl Batch {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let content = shared.take_spare_content();
        Self { shared, keyspaces: Vec::new(), content, durability: None }
    }

    /// Sets the value of a key at the commit, whether it has one then or not.
    ///
    /// O(key + value): a copy of both into the batch. The commit costs as [`Keyspace::put`] for
    /// each operation, with one flush for all; `lsm` reads no file.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// let mut batch = store.batch();
    /// batch.put(&towns, "Bern", "134,000")?;
    /// assert!(batch.put(&towns, vec![b'x'; 70_000], "too long a key").is_err());
    /// assert_eq!(batch.len(), 1, "what failed is not in it");
    /// batch.commit()?;
    /// assert_eq!(towns.get("Bern")?, Some("134,000".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The key or value is too long, or the keyspace belongs to another store; the batch is
    /// unchanged.
    pub fn put(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_key(key)?;
        check_value(value)?;
        let keyspace = self.index_of(keyspace)?;
        self.content.push(keyspace, key, Some(value));
        Ok(())
    }

    /// Merges an operand with the value of a key at the commit, by the merge operator of the
    /// keyspace. See [`Keyspace::merge`]. Operands take effect in the order in which they are
    /// given, after what the batch puts under their key before.
    ///
    /// O(key + operand): a copy of both into the batch. The commit costs as [`Keyspace::merge`] for
    /// each.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let options = adamant::KeyspaceOptions::new().merge_operator("append");
    /// let log = store.keyspace_with("log", options)?;
    /// let mut batch = store.batch();
    /// batch.put(&log, "today", "woke up")?;
    /// batch.merge(&log, "today", ", had breakfast")?;
    /// batch.merge(&log, "today", ", read")?;
    /// batch.commit()?;
    /// assert_eq!(log.get("today")?, Some("woke up, had breakfast, read".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`]. What the operator refuses, or that the keyspace has none, is an error of
    /// the commit.
    pub fn merge(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        check_key(key)?;
        check_operand(operand)?;
        let keyspace = self.index_of(keyspace)?;
        self.content.push_merge(keyspace, key, operand);
        Ok(())
    }

    /// Deletes a key at the commit, if it exists then.
    ///
    /// O(key): a copy of it into the batch. The commit costs as [`Keyspace::delete`]; `lsm` reads
    /// no file.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// let mut batch = store.batch();
    /// batch.delete(&towns, "Bern")?;
    /// batch.put(&towns, "Bienne", "56,000")?;
    /// batch.commit()?;
    /// assert_eq!(towns.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        let keyspace = self.index_of(keyspace)?;
        self.content.push(keyspace, key, None);
        Ok(())
    }

    /// Moves the value of a key to another key at the commit, replacing what is there; does nothing
    /// if the key does not exist then. See [`Keyspace::rename`].
    ///
    /// Moves and the operations around them take effect in the order in which they are given: a
    /// value put before the move moves along, one put after it stays.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let logs = store.keyspace("logs")?;
    /// logs.put("today", "...")?;
    ///
    /// let mut batch = store.batch();
    /// batch.rename(&logs, "today", "yesterday")?;
    /// batch.put(&logs, "today", "")?;
    /// batch.commit()?;
    ///
    /// assert_eq!(logs.get("yesterday")?, Some("...".into()));
    /// assert_eq!(logs.get("today")?, Some("".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn rename(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        new_key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.push_move(MoveKind::Move, (keyspace, key.as_ref()), (keyspace, new_key.as_ref()))
    }

    /// Moves the value of a key to a key of another keyspace at the commit, by the rules of
    /// [`Batch::rename`]. See [`Keyspace::move_to`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let (waiting, done) = (store.keyspace("waiting")?, store.keyspace("done")?);
    /// waiting.put("job 1", "sweep")?;
    /// let mut batch = store.batch();
    /// batch.move_to(&waiting, "job 1", &done, "job 1")?;
    /// batch.put(&done, "last", "job 1")?;
    /// batch.commit()?;
    /// assert!(waiting.is_empty()?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn move_to(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        target: &Keyspace,
        new_key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.push_move(MoveKind::Move, (keyspace, key.as_ref()), (target, new_key.as_ref()))
    }

    /// Swaps the values of two keys at the commit, if both exist then. See [`Keyspace::swap`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let slots = store.keyspace("slots")?;
    /// slots.extend([("live", "blue"), ("idle", "green")])?;
    /// let mut batch = store.batch();
    /// batch.swap(&slots, "live", &slots, "idle")?;
    /// batch.commit()?;
    /// assert_eq!(slots.get("live")?, Some("green".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn swap(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        other: &Keyspace,
        other_key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.push_move(MoveKind::Swap, (keyspace, key.as_ref()), (other, other_key.as_ref()))
    }

    fn push_move(
        &mut self,
        kind: MoveKind,
        (source, key): (&Keyspace, &[u8]),
        (target, new_key): (&Keyspace, &[u8]),
    ) -> Result<()> {
        check_key(key)?;
        check_key(new_key)?;
        let source = self.index_of(source)?;
        let target = self.index_of(target)?;
        self.content.push_move(kind, (source, key), (target, new_key));
        Ok(())
    }

    /// The number of operations so far; several on the same key all count.
    pub fn len(&self) -> usize {
        self.content.len()
    }

    /// Whether there is no operation yet.
    pub fn is_empty(&self) -> bool {
        self.content.len() == 0
    }

    /// The durability of the commit, whatever the keyspaces in it ask for. Default: the strongest
    /// of theirs ([`KeyspaceOptions::durability`](crate::KeyspaceOptions::durability)), where one
    /// without any asks for that of the store. What a handle was given by
    /// [`Keyspace::with_durability`] holds for the writes of that handle only.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// use adamant::Durability;
    ///
    /// let mut batch = store.batch();
    /// batch.durability(Durability::Buffered);
    /// batch.put(&store.keyspace("visits")?, "today", "1")?;
    /// batch.commit()?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn durability(&mut self, durability: Durability) -> &mut Self {
        self.durability = Some(durability);
        self
    }

    /// The durability of the commit.
    pub(crate) fn commit_durability(&self) -> Durability {
        let states = self.keyspaces.iter().map(AsRef::as_ref);
        self.durability.unwrap_or_else(|| self.shared.durability_over(states))
    }

    fn index_of(&mut self, keyspace: &Keyspace) -> Result<u32> {
        if !Arc::ptr_eq(&self.shared, &keyspace.shared) {
            return Err(Error::OtherStore { name: keyspace.name().into() });
        }
        keyspace.check_writes()?;
        let state = &keyspace.state;
        // A batch has few keyspaces, and mostly repeats the last one: a linear search from the end.
        let index = match self.keyspaces.iter().rposition(|known| known.id == state.id) {
            Some(index) => index,
            None => {
                self.keyspaces.push(Arc::clone(state));
                self.keyspaces.len() - 1
            }
        };
        Ok(u32::try_from(index).expect("fewer than 2^32 keyspaces fit into memory"))
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let mut content = std::mem::take(&mut self.content);
        content.clear();
        self.shared.keep_spare_content(content);
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("operations", &self.len())
            .field("keyspaces", &self.keyspaces.iter().map(|state| &state.name).collect::<Vec<_>>())
            .field("durability", &self.commit_durability())
            .finish_non_exhaustive()
    }
}
