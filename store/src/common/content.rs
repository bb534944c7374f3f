//! The operations of a batch and their bytes.
//!
//! Purpose: takes operations in any order and sorts them for the trees.
//! Invariants: the lengths of keys and values were checked.
//!
//! ```text
//! arena       key value key value ...      one allocation for all small ones
//! operations  keyspace, 8 bytes of the key, where key and value are
//! large       values of 64 KiB and more, each by itself: growing the arena never copies them
//! moves       from where to where, and how many operations come before
//! ```
//!
//! Operations are sorted, since of several on the same key only the last one counts. A move is not:
//! it moves what all operations before it left. So operations are sorted between moves.

use std::cmp::Ordering;
use std::ops::Range;

use adamant_trees::{Operation, Pair};
use adamant_wire::key::{common_len, head_of};

/// Values from this size on have an allocation of their own.
const LARGE_BYTES_MIN: usize = 64 << 10;
/// Capacity for keys and values that is kept for the next batch.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Capacity for operations that is kept for the next batch.
const KEPT_OPERATIONS_MAX: usize = 16 << 10;

/// The operations of a batch and their bytes.
#[derive(Default)]
pub(crate) struct Content {
    operations: Vec<Entry>,
    arena: Vec<u8>,
    large: Vec<Box<[u8]>>,
    large_bytes: usize,
    moves: Vec<MoveEntry>,
}

/// One move.
struct MoveEntry {
    /// The number of operations before it.
    after: usize,
    kind: MoveKind,
    source: Key,
    target: Key,
}

/// A key in the arena.
#[derive(Clone, Copy)]
struct Key {
    keyspace: u32,
    key_at: usize,
    key_bytes: u32,
}

/// The kind of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MoveKind {
    /// Moves a value to another key.
    Move,
    /// Swaps the values of two keys.
    Swap,
}

/// The next step of a commit.
pub(crate) enum Step<'c> {
    /// Operations on one of the batch's keyspaces.
    Apply { keyspace: usize, operations: Range<usize> },
    /// Operands for keys of one of them, after all else that was said of these keys; keys repeat.
    Merge { keyspace: usize, operations: Range<usize> },
    /// A move, from a keyspace and key to another.
    Move { kind: MoveKind, source: (usize, &'c [u8]), target: (usize, &'c [u8]) },
}

/// One operation.
struct Entry {
    /// Of the key, the 8 bytes behind what all keys that are sorted together begin with, so that
    /// most comparisons need not read the arena. Set when they are sorted.
    head: u64,
    /// Where the key begins in the arena; its value follows unless it is large.
    key_at: usize,
    key_bytes: u32,
    /// The index of the batch's keyspace.
    keyspace: u32,
    value: Value,
    /// Whether the value is an operand.
    is_merge: bool,
}

enum Value {
    /// Removes the key.
    None,
    /// This many bytes after the key.
    Arena(u32),
    /// The large value at this index.
    Large(u32),
}

impl Entry {
    fn key<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.key_at..self.key_at + self.key_bytes as usize]
    }
}

impl Content {
    /// The number of operations; several on the same key all count.
    pub(crate) fn len(&self) -> usize {
        self.operations.len() + self.moves.len()
    }

    /// Clears all operations. Their capacity is kept for the next batch, unless it is large: a
    /// series of batches then allocates nothing for keys and values.
    pub(crate) fn clear(&mut self) {
        self.operations.clear();
        self.operations.shrink_to(KEPT_OPERATIONS_MAX);
        self.arena.clear();
        self.arena.shrink_to(KEPT_BYTES_MAX);
        self.large = Vec::new();
        self.large_bytes = 0;
        self.moves = Vec::new();
    }

    /// Adds an operation on the keyspace at this index; no value removes the key.
    pub(crate) fn push(&mut self, keyspace: u32, key: &[u8], value: Option<&[u8]>) {
        self.push_entry((keyspace, false), key, value);
    }

    /// Adds an operand for a key of the keyspace at this index.
    pub(crate) fn push_merge(&mut self, keyspace: u32, key: &[u8], operand: &[u8]) {
        self.push_entry((keyspace, true), key, Some(operand));
    }

    fn push_entry(&mut self, (keyspace, is_merge): (u32, bool), key: &[u8], value: Option<&[u8]>) {
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
                self.large_bytes += value.len();
                let index = self.large.len() - 1;
                Value::Large(u32::try_from(index).expect("2^32 values of 64 KiB fit nowhere"))
            }
        };
        let key_bytes = key.len() as u32;
        self.operations.push(Entry { head: 0, key_at, key_bytes, keyspace, value, is_merge });
    }

    /// Bytes of all keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.len() + self.large_bytes
    }

    /// The operations, in their current order: between moves, by key after `sort`.
    pub(crate) fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        self.operations.iter().map(|entry| self.operation(entry))
    }

    /// Drops operations that later ones replaced; there must be no moves. Sorts, which takes
    /// some passes over what is sorted already, and gives back memory if half of it or more is not
    /// needed.
    pub(crate) fn drop_replaced(&mut self) {
        self.sort();
        let needed = self.operations().map(|it| it.key.len() + it.value.map_or(0, <[u8]>::len));
        if 2 * needed.sum::<usize>() > self.bytes() {
            return;
        }
        let mut left = Self::default();
        for entry in &self.operations {
            let Operation { key, value } = self.operation(entry);
            left.push_entry((entry.keyspace, entry.is_merge), key, value);
        }
        *self = left;
    }

    /// The inserted entries, in their current order.
    pub(crate) fn pairs(&self) -> Vec<Pair<'_>> {
        let pair = |entry| {
            let Operation { key, value } = self.operation(entry);
            Some((key, value?))
        };
        self.operations.iter().filter_map(pair).collect()
    }

    /// Adds a move from a keyspace and key to another.
    pub(crate) fn push_move(&mut self, kind: MoveKind, source: (u32, &[u8]), target: (u32, &[u8])) {
        let mut key = |(keyspace, key): (u32, &[u8])| {
            let key_at = self.arena.len();
            self.arena.extend_from_slice(key);
            Key { keyspace, key_at, key_bytes: key.len() as u32 }
        };
        let (source, target) = (key(source), key(target));
        self.moves.push(MoveEntry { after: self.operations.len(), kind, source, target });
    }

    /// Sorts by keyspace and key between moves, and keeps the last of several operations on the
    /// same key.
    pub(crate) fn sort(&mut self) {
        let Self { operations, arena, moves, .. } = self;
        if moves.is_empty() {
            return sort_and_thin(arena, operations);
        }
        let mut first = std::mem::take(operations);
        let parts: Vec<_> = moves.iter().rev().map(|entry| first.split_off(entry.after)).collect();
        sort_and_thin(arena, &mut first);
        operations.append(&mut first);
        for (entry, mut part) in moves.iter_mut().zip(parts.into_iter().rev()) {
            entry.after = operations.len();
            sort_and_thin(arena, &mut part);
            operations.append(&mut part);
        }
    }

    /// The steps of a commit, in order, after `sort`. The operations are appended to `operations`,
    /// to which the steps refer.
    pub(crate) fn steps<'c>(&'c self, operations: &mut Vec<Operation<'c>>) -> Vec<Step<'c>> {
        let mut steps = Vec::new();
        let mut rest = &self.operations[..];
        let mut taken = 0;
        for entry in self.moves.iter().map(Some).chain([None]) {
            let end = entry.map_or(self.operations.len(), |entry| entry.after);
            let (part, behind) = rest.split_at(end - taken);
            (rest, taken) = (behind, end);
            let of = |entry: &Entry| (entry.keyspace, entry.is_merge);
            for group in part.chunk_by(|one, other| of(one) == of(other)) {
                let start = operations.len();
                operations.extend(group.iter().map(|entry| self.operation(entry)));
                let (keyspace, operations) = (group[0].keyspace as usize, start..operations.len());
                steps.push(match group[0].is_merge {
                    true => Step::Merge { keyspace, operations },
                    false => Step::Apply { keyspace, operations },
                });
            }
            if let Some(MoveEntry { kind, source, target, .. }) = entry {
                let (source, target) = (self.key(source), self.key(target));
                steps.push(Step::Move { kind: *kind, source, target });
            }
        }
        steps
    }

    fn key(&self, key: &Key) -> (usize, &[u8]) {
        let end = key.key_at + key.key_bytes as usize;
        (key.keyspace as usize, &self.arena[key.key_at..end])
    }

    fn operation(&self, entry: &Entry) -> Operation<'_> {
        let value_at = entry.key_at + entry.key_bytes as usize;
        Operation {
            key: entry.key(&self.arena),
            value: match entry.value {
                Value::None => None,
                Value::Arena(bytes) => Some(&self.arena[value_at..value_at + bytes as usize]),
                Value::Large(index) => Some(&self.large[index as usize]),
            },
        }
    }
}

/// Sorts by keyspace and key, and keeps the last of several operations on the same key, with the
/// operands behind it. Those of a keyspace come after its other operations.
fn sort_and_thin(arena: &[u8], operations: &mut Vec<Entry>) {
    let Some(first) = operations.first() else { return };
    let first = first.key(arena);
    let shared = operations.iter().map(|entry| common_len(first, entry.key(arena)));
    let shared = shared.min().unwrap_or(0);
    for entry in &mut *operations {
        entry.head = head_of(entry.key(arena), shared);
    }
    // The sort is stable, so operations on the same key stay in their order.
    operations.sort_by(|one, other| compare(arena, one, other));
    if operations.iter().any(|entry| entry.is_merge) {
        let mut kept: Vec<Entry> = Vec::with_capacity(operations.len());
        for entry in operations.drain(..) {
            let is_replaced = |last: &mut Entry| compare(arena, last, &entry).is_eq();
            while !entry.is_merge && kept.pop_if(is_replaced).is_some() {}
            kept.push(entry);
        }
        kept.sort_by_key(|entry| (entry.keyspace, entry.is_merge));
        *operations = kept;
        return;
    }
    operations.dedup_by(|later, earlier| {
        let is_same = compare(arena, earlier, later) == Ordering::Equal;
        if is_same {
            std::mem::swap(later, earlier);
        }
        is_same
    });
}

fn compare(arena: &[u8], one: &Entry, other: &Entry) -> Ordering {
    one.keyspace
        .cmp(&other.keyspace)
        .then(one.head.cmp(&other.head))
        .then_with(|| one.key(arena).cmp(other.key(arena)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(content: &mut Content) -> Vec<(usize, Vec<u8>, Option<Vec<u8>>)> {
        content.sort();
        let mut operations = Vec::new();
        let mut found = Vec::new();
        for step in content.steps(&mut operations) {
            let Step::Apply { keyspace, operations: range } = step else { panic!("no moves") };
            for operation in &operations[range] {
                let value = operation.value.map(<[u8]>::to_vec);
                found.push((keyspace, operation.key.to_vec(), value));
            }
        }
        found
    }

    #[test]
    fn operations_stay_on_their_side_of_a_move() {
        let mut content = Content::default();
        content.push_move(MoveKind::Swap, (0, b"first"), (1, b"of all"));
        content.push(0, b"b", Some(b"gone"));
        content.push(0, b"b", Some(b"1"));
        content.push(0, b"a", Some(b"2"));
        content.push_move(MoveKind::Move, (0, b"b"), (1, b"c"));
        content.push_move(MoveKind::Move, (1, b"c"), (1, b"d"));
        content.push(1, b"c", None);
        content.push(0, b"b", Some(b"3"));
        assert_eq!(content.len(), 8);
        content.sort();
        let mut operations = Vec::new();
        let steps = content.steps(&mut operations);
        let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
        let shown: Vec<String> = steps
            .into_iter()
            .map(|step| match step {
                Step::Apply { keyspace, operations: range } => {
                    let each = operations[range].iter();
                    let each = each.map(|it| (text(it.key), it.value.map(text)));
                    format!("{keyspace} {:?}", each.collect::<Vec<_>>())
                }
                Step::Merge { .. } => panic!("no operands"),
                Step::Move { kind, source, target } => {
                    let (from, to) = (text(source.1), text(target.1));
                    format!("{kind:?} {} {from} {} {to}", source.0, target.0)
                }
            })
            .collect();
        let expected = [
            r#"Swap 0 first 1 of all"#,
            r#"0 [("a", Some("2")), ("b", Some("1"))]"#,
            r#"Move 0 b 1 c"#,
            r#"Move 1 c 1 d"#,
            r#"0 [("b", Some("3"))]"#,
            r#"1 [("c", None)]"#,
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn operands_stay_behind_the_last_other_operation_on_their_key() {
        let mut content = Content::default();
        content.push_merge(0, b"b", b"gone");
        content.push(0, b"b", Some(b"1"));
        content.push_merge(0, b"b", b"2");
        content.push_merge(1, b"a", b"3");
        content.push_merge(0, b"a", b"gone, too");
        content.push_merge(0, b"b", b"4");
        content.push(0, b"c", None);
        content.push(0, b"a", None);
        content.sort();
        let mut operations = Vec::new();
        let steps = content.steps(&mut operations);
        let shown: Vec<String> = steps
            .into_iter()
            .map(|step| {
                let (what, keyspace, range) = match step {
                    Step::Apply { keyspace, operations } => ("apply", keyspace, operations),
                    Step::Merge { keyspace, operations } => ("merge", keyspace, operations),
                    Step::Move { .. } => panic!("no moves"),
                };
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let each = operations[range].iter();
                let each = each.map(|it| (text(it.key), it.value.map_or("-".into(), text)));
                let each: Vec<_> = each.map(|(key, value)| format!("{key}={value}")).collect();
                format!("{what} {keyspace}: {}", each.join(" "))
            })
            .collect();
        assert_eq!(shown, ["apply 0: a=- b=1 c=-", "merge 0: b=2 b=4", "merge 1: a=3"]);
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
        for (seed, prefixes) in [&[""][..], &["keys begin alike"], &["", "some begin alike", "so"]]
            .into_iter()
            .enumerate()
        {
            agrees_with_a_map(seed as u64, prefixes);
        }
    }

    fn agrees_with_a_map(seed: u64, prefixes: &[&str]) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut content = Content::default();
        let mut model = std::collections::BTreeMap::new();
        for _ in 0..3_000 {
            let keyspace = random.u32(0..3);
            let mut key = prefixes[random.usize(..prefixes.len())].as_bytes().to_vec();
            key.extend((0..random.usize(1..11)).map(|_| random.u8(0..3)));
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
