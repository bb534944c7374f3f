//! Stored operands: which changes of a key an operand stands for.
//!
//! Purpose: the value of an entry of kind `Merge`: see `docs/format/lsm.md`.
//! Invariants: an operand of commit `s` stands for the changes of its key from commit `f` on, up to
//! `s`. Of two operands of a key these ranges are nested or disjoint, so a reader that has seen one
//! goes on below `f`.
//! Thread safety: pure functions.

use adamant_wire::varint;

/// Says what bytes are not, where an operand was expected.
pub(crate) const NOT_OPERAND: &str =
    "expected an operand that begins with how many commits it goes back";

/// Encodes an operand that stands for the changes from commit `first` to `sequence`.
pub(crate) fn encode(sequence: u64, first: u64, operand: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(operand.len() + 2);
    varint::put(&mut stored, sequence - first);
    stored.extend_from_slice(operand);
    stored
}

/// The first commit that a stored operand of commit `sequence` stands for, and where its bytes
/// begin; `None` if it was not stored as one.
#[inline]
pub(crate) fn decode(sequence: u64, stored: &[u8]) -> Option<(u64, usize)> {
    let mut rest = stored;
    let back = varint::take(&mut rest)?;
    let first = sequence.checked_sub(back).filter(|first| *first > 0)?;
    Some((first, stored.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_round_trip_and_other_bytes_are_refused() {
        for (sequence, first) in [(1, 1), (9, 1), (500, 500), (500, 3), (1 << 61, 1)] {
            let stored = encode(sequence, first, b"operand");
            let (found, at) = decode(sequence, &stored).unwrap();
            assert_eq!((found, &stored[at..]), (first, &b"operand"[..]));
            assert_eq!(decode(sequence - first, &stored), None, "from before the first commit");
        }
        assert_eq!(decode(7, &[]), None);
        assert_eq!(decode(7, &[0x80]), None, "truncated");
        assert_eq!(decode(7, &[0xFF; 12]), None);
        assert_eq!(decode(7, &[0]), Some((7, 1)), "an empty operand is one");
    }
}
