//! The pairs of `bplus`, and the order in which operations visit them.
//!
//! Purpose: everything follows from an index, so that no list of pairs is held, whose memory would
//! count as the tree's.
//! Invariants: keys of different indices differ, and no missing key is one of them.

use crate::harness::data::{Data, KEY_BYTES};

/// The order in which operations visit the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// In key order: keys are decimal numbers.
    Sequential,
    /// In an unrelated order, another for each operation; keys are random bytes.
    Random,
}

impl Order {
    pub(crate) const ALL: [Self; 2] = [Self::Sequential, Self::Random];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }

    /// The order with that name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }
}

/// The pairs of a tree.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) order: Order,
    data: Data,
}

impl Records {
    pub(crate) fn new(order: Order, value_bytes: usize, seed: u64) -> Self {
        Self { order, data: Data::new(seed, value_bytes) }
    }

    /// The suffix of row names.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.order.name(), self.data.value_bytes())
    }

    pub(crate) fn seed(&self) -> u64 {
        self.data.seed()
    }

    pub(crate) fn value_bytes(&self) -> usize {
        self.data.value_bytes()
    }

    /// Bytes of a key and a value.
    pub(crate) fn record_bytes(&self) -> u64 {
        self.data.record_bytes()
    }

    pub(crate) fn key(&self, index: u64) -> [u8; KEY_BYTES] {
        match self.order {
            Order::Sequential => decimal(10 * index),
            Order::Random => bytes_of(&self.data.key(index)),
        }
    }

    /// An absent key, among those that are present.
    pub(crate) fn missing_key(&self, index: u64) -> [u8; KEY_BYTES] {
        match self.order {
            Order::Sequential => decimal(10 * index + 5),
            Order::Random => bytes_of(&self.data.missing_key(index)),
        }
    }

    /// The value of a pair after `version` overwrites.
    pub(crate) fn value(&self, index: u64, version: u64) -> &[u8] {
        self.data.value(index, version)
    }

    /// Each index below `pairs` once, in the order of the operation with this number.
    pub(crate) fn visits(&self, pairs: u64, operation: u64) -> Vec<u32> {
        assert!(pairs <= u64::from(u32::MAX), "indices are 32 bits");
        let mut visits: Vec<u32> = (0..pairs as u32).collect();
        if self.order == Order::Random {
            fastrand::Rng::with_seed(self.seed() << 8 | operation).shuffle(&mut visits);
        }
        visits
    }
}

fn bytes_of(key: &[u8]) -> [u8; KEY_BYTES] {
    key.first_chunk().copied().unwrap_or([0; KEY_BYTES])
}

/// A number of 20 decimal digits.
fn decimal(mut number: u64) -> [u8; KEY_BYTES] {
    let mut digits = [b'0'; KEY_BYTES];
    for digit in digits.iter_mut().rev() {
        if number == 0 {
            break;
        }
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    digits
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_are_in_the_order_that_their_name_says_and_others_are_missing() {
        for order in Order::ALL {
            let records = Records::new(order, 15, 3);
            let keys: Vec<_> = (0..1_000).map(|index| records.key(index)).collect();
            assert_eq!(keys.is_sorted(), order == Order::Sequential);
            let mut all: BTreeSet<_> = keys.into_iter().collect();
            all.extend((0..1_000).map(|index| records.missing_key(index)));
            assert_eq!(all.len(), 2_000);
            let visits = records.visits(1_000, 1);
            assert_eq!(visits.iter().collect::<BTreeSet<_>>().len(), 1_000);
            assert_eq!(visits.is_sorted(), order == Order::Sequential);
            assert_eq!(Order::of(order.name()), Some(order));
        }
        assert_eq!(&decimal(u64::MAX), b"18446744073709551615");
    }
}
