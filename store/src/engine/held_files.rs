//! The files of LSM trees that savepoints need.
//!
//! Purpose: a savepoint's list is attached to it on the heap's side: numbers of 8 bytes.
//! Thread safety: pure functions.

use std::collections::HashSet;

use adamant_lsm::HeldFiles;
use adamant_wire::le;

/// Bytes of the number of a file.
const NUMBER_BYTES: usize = 8;

/// A list of files as it is attached to a savepoint.
pub(crate) fn encode(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The numbers of an attached list.
pub(crate) fn decode(attached: &[u8]) -> HashSet<u64> {
    let starts = (0..attached.len()).step_by(NUMBER_BYTES);
    starts.filter_map(|at| le::u64_at(attached, at)).collect()
}

/// The files of all lists; `None` stands for one that cannot be read.
pub(crate) fn held_by(lists: impl IntoIterator<Item = Option<Vec<u8>>>) -> HeldFiles {
    let mut held = HeldFiles::default();
    for list in lists {
        match list {
            Some(attached) => held.numbers.extend(decode(&attached)),
            None => held.are_all = true,
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_round_trip() {
        let numbers = [1, 7, 1 << 40];
        assert_eq!(decode(&encode(&numbers)), HashSet::from(numbers));
        let held = held_by([Some(encode(&[1, 2])), Some(encode(&[2, 3]))]);
        assert!(held.has(1) && held.has(3) && !held.has(4));
        assert!(held_by([Some(encode(&[1])), None]).has(4), "of one nobody knows what it needs");
    }
}
