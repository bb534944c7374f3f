//! The operations of a batch and their bytes.
//!
//! Purpose: takes operations in any order, and brings them into the order in which the trees want
//! them.
//! Invariants: keys and values have lengths that were checked.
//!
//! ```text
//! arena       key value key value ...      one allocation for all small ones
//! operations  keyspace, first 8 bytes of the key, where key and value are
//! large       values of 64 KiB and more, each by itself: growing the arena never copies them
//! ```

use std::cmp::Ordering;

use adamant_trees::Operation;

/// Values from this size on have an allocation of their own.
const LARGE_BYTES_MIN: usize = 64 << 10;
/// Room for keys and values that is kept for the next batch.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Room for operations that is kept for the next batch.
const KEPT_OPERATIONS_MAX: usize = 16 << 10;

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

impl Content {
    /// Operations, all of those on the same key counted.
    pub(crate) fn len(&self) -> usize {
        self.operations.len()
    }

    /// Forgets all operations. The room that they took is kept for the next batch, unless it is a
    /// lot: a load of batches then allocates nothing for keys and values.
    pub(crate) fn clear(&mut self) {
        self.operations.clear();
        self.operations.shrink_to(KEPT_OPERATIONS_MAX);
        self.arena.clear();
        self.arena.shrink_to(KEPT_BYTES_MAX);
        self.large = Vec::new();
    }

    /// Adds an operation on that one of the batch's keyspaces; no value removes the key.
    pub(crate) fn push(&mut self, keyspace: u32, key: &[u8], value: Option<&[u8]>) {
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
    ) -> impl Iterator<Item = (usize, impl Iterator<Item = Operation<'_>>)> {
        self.operations.chunk_by(|one, other| one.keyspace == other.keyspace).map(|group| {
            let keyspace = group[0].keyspace as usize;
            (keyspace, group.iter().map(|entry| self.operation(entry)))
        })
    }

    fn operation(&self, entry: &Entry) -> Operation<'_> {
        let value_at = entry.key_at + entry.key_bytes as usize;
        Operation {
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
