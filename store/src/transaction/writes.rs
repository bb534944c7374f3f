//! The write buffer of a transaction for one keyspace.
//!
//! Purpose: writes that no read follows, as those of a bulk load, are appended to one allocation
//! and sorted together at the commit, as those of a batch. A read needs them by key: then those so
//! far are put into a map.
//! Invariants: what was appended is newer than what is in the map.

use std::cell::RefCell;
use std::collections::BTreeMap;

use adamant_slice::Slice;
use adamant_trees::Operation;

use crate::common::content::Content;
use crate::reserved::{ReservedValue, Written};

/// Writes by key.
pub(crate) type SortedWrites = BTreeMap<Slice, Written>;

/// Bytes of appended writes from which on those that later ones replaced are dropped, and again
/// when there are twice as many as were left: a key that is written over and over takes this much.
const APPENDED_BYTES_MAX: usize = 4 << 20;

/// The writes of a transaction to one keyspace.
#[derive(Default)]
pub(crate) struct Writes {
    sorted: SortedWrites,
    /// The newest.
    appended: Content,
    /// Bytes of them that were left when the replaced ones were dropped.
    left_bytes: usize,
}

impl Writes {
    /// Adds a write over those before; no value removes the key. O(key + value) amortised, and
    /// O(log m) in the m that are appended.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.appended.push(0, key, value);
        if self.appended.bytes() > APPENDED_BYTES_MAX.max(2 * self.left_bytes) {
            self.appended.drop_replaced();
            self.left_bytes = self.appended.bytes();
        }
    }

    /// All of them by key, to be read or changed. O(log w) in the w writes for each one that was
    /// pushed since the last call.
    #[inline]
    pub(crate) fn settle(&mut self) -> &mut SortedWrites {
        if self.appended.len() > 0 {
            self.merge();
        }
        &mut self.sorted
    }

    fn merge(&mut self) {
        let entries = self.appended.operations();
        self.sorted.extend(entries.map(|put| (Slice::from(put.key), Written::of(put.value))));
        self.appended.clear();
        self.left_bytes = 0;
    }

    /// Sorts them for the calls below. The map is left out if nothing was read.
    pub(crate) fn prepare(&mut self) {
        if self.sorted.is_empty() {
            self.appended.sort();
        } else {
            self.settle();
        }
    }

    /// How many there are, with those of the same key until `prepare` was called.
    pub(crate) fn len(&self) -> usize {
        self.sorted.len() + self.appended.len()
    }

    /// Bytes that their commit copies, and those of their keys.
    pub(crate) fn copied_bytes(&self) -> usize {
        let bytes = |(key, written): (&Slice, &Written)| key.len() + written.copied_bytes();
        self.appended.bytes() + self.sorted.iter().map(bytes).sum::<usize>()
    }

    /// Those that go to the trees together, by key, after `prepare`.
    pub(crate) fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let sorted = self.sorted.iter().filter_map(|(key, written)| match written {
            Written::Removed => Some(Operation { key, value: None }),
            Written::Value(value) => Some(Operation { key, value: Some(value) }),
            Written::Merged(_) | Written::Reserved(_) => None,
        });
        sorted.chain(self.appended.operations())
    }

    /// Values allocated in place.
    pub(crate) fn reserved(
        &self,
    ) -> impl Iterator<Item = (&Slice, &RefCell<Option<ReservedValue>>)> {
        self.sorted.iter().filter_map(|(key, written)| match written {
            Written::Reserved(value) => Some((key, value)),
            Written::Removed | Written::Value(_) | Written::Merged(_) => None,
        })
    }

    /// Operands, by key, after `prepare`.
    pub(crate) fn operands(&self) -> impl Iterator<Item = Operation<'_>> {
        self.sorted.iter().filter_map(|(key, written)| match written {
            Written::Merged(operand) => Some(Operation { key, value: Some(operand) }),
            Written::Removed | Written::Value(_) | Written::Reserved(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Model = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

    fn entries(writes: &Writes) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let operations = writes.operations();
        operations.map(|put| (put.key.to_vec(), put.value.map(<[u8]>::to_vec))).collect()
    }

    #[test]
    fn a_key_that_is_written_over_and_over_takes_no_more_memory() {
        let mut writes = Writes::default();
        for bytes in [1_000, 100_000] {
            for step in 0..20_000_000 / bytes {
                writes.push(&[(step % 3) as u8], Some(&vec![step as u8; bytes]));
                assert!(writes.appended.bytes() <= APPENDED_BYTES_MAX, "step {step}");
            }
        }
        writes.prepare();
        assert_eq!(entries(&writes)[199 % 3].1.as_ref().map(|value| value[0]), Some(199));
    }

    #[test]
    fn the_newest_write_of_a_key_counts_whatever_is_read_in_between() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut writes, mut model) = (Writes::default(), Model::new());
            let reads = random.u8(..2) == 0;
            for step in 0..random.u32(1..300) {
                let key = [random.u8(..40)];
                let value = (random.u8(..4) > 0).then(|| step.to_le_bytes());
                if random.u8(..30) == 0 {
                    writes.appended.drop_replaced();
                }
                writes.push(&key, value.as_ref().map(|value| &value[..]));
                model.insert(key.to_vec(), value.map(|value| value.to_vec()));
                if reads && random.u8(..20) == 0 {
                    let key = [random.u8(..40)];
                    let found = writes
                        .settle()
                        .get(&key[..])
                        .map(|own| own.value(|_| panic!("no operand")));
                    let found = found.map(|value| value.unwrap().map(|value| value.to_vec()));
                    assert_eq!(found.as_ref(), model.get(&key[..]), "seed {seed}");
                }
            }
            writes.prepare();
            assert_eq!(entries(&writes), model.into_iter().collect::<Vec<_>>(), "seed {seed}");
        }
    }
}
