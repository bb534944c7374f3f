//! The merge operators that come with the library.
//!
//! Purpose: what most users need: counters, extremes, lists, sets of bits.
//! Invariants: each is associative, for all bytes that it takes.
//! Thread safety: pure functions.

use std::sync::Arc;

use super::operator::{MergeError, MergeOperator};

/// A merge operator of the library. Each is registered under its name in every store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuiltIn {
    /// `add`: the sum of 64-bit little-endian integers, signed or not; it wraps around.
    Add,
    /// `max_u64`: the larger one of unsigned 64-bit little-endian integers.
    MaxU64,
    /// `min_u64`: the smaller one of them.
    MinU64,
    /// `max_i64`: the larger one of signed 64-bit little-endian integers.
    MaxI64,
    /// `min_i64`: the smaller one of them.
    MinI64,
    /// `append`: the newer bytes behind the older ones.
    Append,
    /// `or`: the bits that are set in either; a shorter one counts as filled up with zeros. The
    /// union of sets of small numbers.
    Or,
}

impl BuiltIn {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Add, Self::MaxU64, Self::MinU64, Self::MaxI64, Self::MinI64, Self::Append, Self::Or];

    /// Its name.
    ///
    /// ```
    /// use adamant_lsm::BuiltIn;
    ///
    /// assert_eq!(BuiltIn::Add.name(), "add");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::MaxU64 => "max_u64",
            Self::MinU64 => "min_u64",
            Self::MaxI64 => "max_i64",
            Self::MinI64 => "min_i64",
            Self::Append => "append",
            Self::Or => "or",
        }
    }
}

/// The operator of the library with that name.
pub fn built_in(name: &str) -> Option<Arc<dyn MergeOperator>> {
    let found = BuiltIn::ALL.into_iter().find(|operator| operator.name() == name)?;
    Some(Arc::new(found))
}

/// The 8 bytes of an integer.
fn word(bytes: &[u8]) -> Result<[u8; 8], MergeError> {
    bytes.try_into().map_err(|_| {
        MergeError::new(format!("expected an integer of 8 bytes, found {} bytes", bytes.len()))
    })
}

impl MergeOperator for BuiltIn {
    fn merge(
        &self,
        _key: &[u8],
        older: &[u8],
        newer: &[u8],
        merged: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        let unsigned = |make: fn(u64, u64) -> u64| {
            let words = (u64::from_le_bytes(word(older)?), u64::from_le_bytes(word(newer)?));
            Ok::<_, MergeError>(make(words.0, words.1).to_le_bytes())
        };
        let signed = |make: fn(i64, i64) -> i64| {
            let words = (i64::from_le_bytes(word(older)?), i64::from_le_bytes(word(newer)?));
            Ok::<_, MergeError>(make(words.0, words.1).to_le_bytes())
        };
        match self {
            Self::Add => merged.extend_from_slice(&unsigned(u64::wrapping_add)?),
            Self::MaxU64 => merged.extend_from_slice(&unsigned(u64::max)?),
            Self::MinU64 => merged.extend_from_slice(&unsigned(u64::min)?),
            Self::MaxI64 => merged.extend_from_slice(&signed(i64::max)?),
            Self::MinI64 => merged.extend_from_slice(&signed(i64::min)?),
            Self::Append => {
                merged.extend_from_slice(older);
                merged.extend_from_slice(newer);
            }
            Self::Or => {
                let is_older_longer = older.len() >= newer.len();
                let (long, short) = if is_older_longer { (older, newer) } else { (newer, older) };
                merged.extend_from_slice(long);
                merged.iter_mut().zip(short).for_each(|(bits, more)| *bits |= more);
            }
        }
        Ok(())
    }

    fn check(&self, _key: &[u8], operand: &[u8]) -> Result<(), MergeError> {
        match self {
            Self::Append | Self::Or => Ok(()),
            Self::Add | Self::MaxU64 | Self::MinU64 | Self::MaxI64 | Self::MinI64 => {
                word(operand).map(|_| ())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(operator: BuiltIn, older: &[u8], newer: &[u8]) -> Vec<u8> {
        let mut merged = Vec::new();
        operator.merge(b"", older, newer, &mut merged).unwrap();
        merged
    }

    #[test]
    fn each_is_associative_for_random_operands() {
        let mut random = fastrand::Rng::with_seed(5);
        for operator in BuiltIn::ALL {
            let is_any = operator.check(b"", b"").is_ok();
            for _ in 0..500 {
                let mut bytes = || {
                    let len = if is_any { random.usize(..12) } else { 8 };
                    (0..len).map(|_| random.u8(..)).collect::<Vec<u8>>()
                };
                let (a, b, c) = (bytes(), bytes(), bytes());
                let left = merge(operator, &merge(operator, &a, &b), &c);
                let right = merge(operator, &a, &merge(operator, &b, &c));
                assert_eq!(left, right, "{operator:?} of {a:?}, {b:?}, {c:?}");
            }
        }
    }

    #[test]
    fn integers_have_eight_bytes() {
        let (one, minus) = (1_u64.to_le_bytes(), (-3_i64).to_le_bytes());
        assert_eq!(merge(BuiltIn::Add, &one, &minus), (-2_i64).to_le_bytes());
        assert_eq!(merge(BuiltIn::MaxI64, &one, &minus), one);
        assert_eq!(merge(BuiltIn::MaxU64, &one, &minus), minus);
        assert_eq!(merge(BuiltIn::MinI64, &one, &minus), minus);
        assert_eq!(merge(BuiltIn::MinU64, &one, &minus), one);
        assert_eq!(merge(BuiltIn::Or, &[1, 2], &[2]), [3, 2]);
        assert_eq!(merge(BuiltIn::Append, b"ab", b"c"), b"abc");
        let refused = BuiltIn::Add.merge(b"", &[1], &one, &mut Vec::new()).unwrap_err();
        assert_eq!(refused.to_string(), "expected an integer of 8 bytes, found 1 bytes");
        assert!(BuiltIn::Add.check(b"", &[0; 9]).is_err() && BuiltIn::Or.check(b"", &[]).is_ok());
    }

    #[test]
    fn each_is_found_by_its_name() {
        for operator in BuiltIn::ALL {
            assert!(built_in(operator.name()).is_some(), "{operator:?}");
        }
        assert!(built_in("ADD").is_none());
    }
}
