//! Batches: many changes that become one commit.
//!
//! Purpose: collects operations on any keyspaces of a store, and brings them into the order in
//! which the trees take them.
//! Invariants: a batch holds only keys and values that can be stored, and only keyspaces of its
//! store; nothing of it is in the store before `commit`.
//! Thread safety: a batch belongs to one thread at a time; it holds no lock.
//!
//! ```text
//! arena       key value key value ...      one allocation for all small ones
//! operations  keyspace, first 8 bytes of the key, where key and value are
//! large       values of 64 KiB and more, each by itself: growing the arena never copies them
//! ```

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use adamant_heap::durability::Durability;

use crate::error::{Error, Result};
use crate::keyspace::Keyspace;
use crate::limits::{check_key, check_value};
use crate::shared::{KeyspaceState, Shared};

/// Values from this size on have an allocation of their own.
const LARGE_BYTES_MIN: usize = 64 << 10;

/// Changes to any number of keyspaces of one store, to be committed as one: after a crash all of
/// them are there or none.
///
/// Operations may come in any order. Of several on the same key the last one holds. A batch takes
/// memory for its keys and values until it is committed or dropped.
///
/// ```
/// let store = adamant::Store::in_memory()?;
/// let (accounts, log) = (store.keyspace("accounts")?, store.keyspace("log")?);
///
/// let mut batch = store.batch();
/// batch.insert(&accounts, "ada", "90")?;
/// batch.insert(&accounts, "bob", "110")?;
/// batch.insert(&log, "0001", "ada gave bob 10")?;
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
    pub(crate) durability: Durability,
}

/// The operations of a batch and their bytes.
#[derive(Default)]
pub(crate) struct Content {
    operations: Vec<Entry>,
    arena: Vec<u8>,
    large: Vec<Box<[u8]>>,
}

/// One operation.
struct Entry {
    /// The first 8 bytes of the key, so that most comparisons need not look at the arena.
    start: u64,
    /// Where the key begins in the arena; its value follows unless it is large.
    key_at: usize,
    key_bytes: u32,
    /// Which of the batch's keyspaces.
    keyspace: u32,
    value: Value,
}

enum Value {
    /// Removes the key.
    None,
    /// So many bytes after the key.
    Arena(u32),
    /// That one of the large values.
    Large(u32),
}

impl Batch {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let durability = shared.durability();
        Self { shared, keyspaces: Vec::new(), content: Content::default(), durability }
    }

    /// Will set the value of a key.
    ///
    /// # Errors
    /// The key or value has no length that is allowed, or the keyspace belongs to another store;
    /// the batch stays as it was.
    pub fn insert(
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

    /// Will remove a key, if it is there.
    ///
    /// # Errors
    /// As [`Batch::insert`].
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        let keyspace = self.index_of(keyspace)?;
        self.content.push(keyspace, key, None);
        Ok(())
    }

    /// Operations so far, all of those on the same key counted.
    pub fn len(&self) -> usize {
        self.content.operations.len()
    }

    /// Whether there is no operation yet.
    pub fn is_empty(&self) -> bool {
        self.content.operations.is_empty()
    }

    /// What the commit waits for. Default: that of the store.
    pub fn durability(&mut self, durability: Durability) -> &mut Self {
        self.durability = durability;
        self
    }

    fn index_of(&mut self, keyspace: &Keyspace) -> Result<u32> {
        if !Arc::ptr_eq(&self.shared, &keyspace.shared) {
            return Err(Error::OtherStore { name: keyspace.name().into() });
        }
        let state = &keyspace.state;
        // Few keyspaces, and mostly the same one as last time: from the end, one by one.
        let index = match self.keyspaces.iter().rposition(|known| Arc::ptr_eq(known, state)) {
            Some(index) => index,
            None => {
                self.keyspaces.push(Arc::clone(state));
                self.keyspaces.len() - 1
            }
        };
        Ok(u32::try_from(index).expect("fewer than 2^32 keyspaces fit into memory"))
    }
}

impl Content {
    fn push(&mut self, keyspace: u32, key: &[u8], value: Option<&[u8]>) {
        let key_at = self.arena.len();
        self.arena.extend_from_slice(key);
        let value = match value {
            None => Value::None,
            Some(value) if value.len() < LARGE_BYTES_MIN => {
                self.arena.extend_from_slice(value);
                Value::Arena(value.len() as u32)
            }
            Some(value) => {
                self.large.push(value.into());
                let index = self.large.len() - 1;
                Value::Large(u32::try_from(index).expect("2^32 values of 64 KiB fit nowhere"))
            }
        };
        let (start, key_bytes) = (start_of(key), key.len() as u32);
        self.operations.push(Entry { start, key_at, key_bytes, keyspace, value });
    }

    /// Sorts by keyspace and key, and keeps the last operation of those on the same key.
    pub(crate) fn sort(&mut self) {
        let Self { operations, arena, .. } = self;
        // The sort is stable, so that those on the same key stay in the order they came in.
        operations.sort_by(|one, other| compare(arena, one, other));
        // `dedup_by` hands over (later, earlier) and removes the later: swap to keep it.
        operations.dedup_by(|later, earlier| {
            let is_same = compare(arena, earlier, later) == Ordering::Equal;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
    }

    /// Runs of operations on the same keyspace, as the trees take them, after `sort`.
    pub(crate) fn groups(
        &self,
    ) -> impl Iterator<Item = (usize, impl Iterator<Item = adamant_trees::Operation<'_>>)> {
        self.operations.chunk_by(|one, other| one.keyspace == other.keyspace).map(|group| {
            let keyspace = group[0].keyspace as usize;
            (keyspace, group.iter().map(|entry| self.operation(entry)))
        })
    }

    fn operation(&self, entry: &Entry) -> adamant_trees::Operation<'_> {
        let value_at = entry.key_at + entry.key_bytes as usize;
        adamant_trees::Operation {
            key: &self.arena[entry.key_at..value_at],
            value: match entry.value {
                Value::None => None,
                Value::Arena(bytes) => Some(&self.arena[value_at..value_at + bytes as usize]),
                Value::Large(index) => Some(&self.large[index as usize]),
            },
        }
    }
}

/// The first 8 bytes of a key as a number that is ordered as they are; shorter keys are filled up
/// with zeros, and equal numbers decide nothing.
fn start_of(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_le_bytes(bytes).swap_bytes()
}

fn compare(arena: &[u8], one: &Entry, other: &Entry) -> Ordering {
    let key = |entry: &Entry| &arena[entry.key_at..entry.key_at + entry.key_bytes as usize];
    one.keyspace
        .cmp(&other.keyspace)
        .then(one.start.cmp(&other.start))
        .then_with(|| key(one).cmp(key(other)))
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("operations", &self.len())
            .field("keyspaces", &self.keyspaces.iter().map(|state| &state.name).collect::<Vec<_>>())
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(content: &mut Content) -> Vec<(usize, Vec<u8>, Option<Vec<u8>>)> {
        content.sort();
        let mut found = Vec::new();
        for (keyspace, operations) in content.groups() {
            for operation in operations {
                let value = operation.value.map(<[u8]>::to_vec);
                found.push((keyspace, operation.key.to_vec(), value));
            }
        }
        found
    }

    #[test]
    fn sorted_by_keyspace_and_key_and_the_last_operation_holds() {
        let mut content = Content::default();
        content.push(1, b"b", Some(b"1"));
        content.push(0, b"same start, c", Some(b"2"));
        content.push(0, b"same start, a", Some(b"3"));
        content.push(1, b"b", None);
        content.push(1, b"b\0", Some(b"4"));
        content.push(1, b"b", Some(b"5"));
        content.push(0, b"same start, c", None);
        let expected = vec![
            (0, b"same start, a".to_vec(), Some(b"3".to_vec())),
            (0, b"same start, c".to_vec(), None),
            (1, b"b".to_vec(), Some(b"5".to_vec())),
            (1, b"b\0".to_vec(), Some(b"4".to_vec())),
        ];
        assert_eq!(sorted(&mut content), expected);
    }

    #[test]
    fn large_values_and_random_keys_agree_with_a_map() {
        let seed = 7;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut content = Content::default();
        let mut model = std::collections::BTreeMap::new();
        for _ in 0..3_000 {
            let keyspace = random.u32(0..3);
            let key: Vec<u8> = (0..random.usize(1..11)).map(|_| random.u8(0..3)).collect();
            let value = match random.u8(0..10) {
                0 => None,
                1 => Some(vec![random.u8(..); LARGE_BYTES_MIN + random.usize(0..9)]),
                _ => Some(vec![random.u8(..); random.usize(0..20)]),
            };
            content.push(keyspace, &key, value.as_deref());
            model.insert((keyspace as usize, key), value);
        }
        let expected: Vec<_> = model.into_iter().map(|((k, key), v)| (k, key, v)).collect();
        assert!(sorted(&mut content) == expected, "seed {seed}");
    }
}
