//! Merge operators: the names that keyspaces record, and what is registered under them.
//!
//! Purpose: a keyspace records the name of its operator, since functions are not stored; whoever
//! opens the store registers the functions.
//! Invariants: the library's own names cannot be registered again.
//! Thread safety: values, shared freely.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use adamant_lsm::{
    Error as LsmError, MergeError, MergeOperator, NamedOperator, OPERAND_BYTES_MAX, built_in,
};
use adamant_slice::Slice;

use crate::error::{Error, Result};
use crate::guard::{ANY_STORE, Guard};
use crate::limits::check_value;

/// Bytes that the name of a merge operator may have.
pub const MERGE_OPERATOR_NAME_BYTES_MAX: usize = 32;

/// The name of a merge operator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OperatorName {
    bytes: [u8; MERGE_OPERATOR_NAME_BYTES_MAX],
    /// Longer than can be: such a name was refused.
    len: usize,
}

impl OperatorName {
    /// A name, which `check` may refuse.
    pub(crate) fn new(name: &str) -> Self {
        let (mut bytes, len) = ([0; MERGE_OPERATOR_NAME_BYTES_MAX], name.len());
        if let Some(start) = bytes.get_mut(..len) {
            start.copy_from_slice(name.as_bytes());
        }
        Self { bytes, len }
    }

    /// The recorded name; `None` for bytes that are no name.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let name = Self::new(str::from_utf8(bytes).ok()?);
        name.check("").is_ok().then_some(name)
    }

    /// Fails unless it is the name of an operator of the keyspace with that name.
    pub(crate) fn check(&self, keyspace: &str) -> Result<()> {
        if (1..=MERGE_OPERATOR_NAME_BYTES_MAX).contains(&self.len) {
            return Ok(());
        }
        Err(Error::of_lsm(keyspace)(wrong_name(self.len)))
    }

    pub(crate) fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Debug for OperatorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

fn wrong_name(bytes: usize) -> LsmError {
    LsmError::InvalidOption {
        option: "merge_operator",
        expected: format!("a name of 1 to {MERGE_OPERATOR_NAME_BYTES_MAX} bytes"),
        found: format!("one of {bytes} bytes"),
    }
}

/// The operator of a keyspace, with errors that name both.
pub(crate) struct KeyspaceOperator {
    operator: Arc<NamedOperator>,
    keyspace: Box<str>,
}

impl KeyspaceOperator {
    /// That of the keyspace with this name.
    pub(crate) fn new(
        operator: adamant_lsm::Result<Arc<NamedOperator>>,
        keyspace: &str,
    ) -> Result<Self> {
        let operator = operator.map_err(Error::of_lsm(keyspace))?;
        Ok(Self { operator, keyspace: keyspace.into() })
    }

    /// Fails unless this is an operand of the key.
    pub(crate) fn check(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.operator.check(key, operand).map_err(Error::of_lsm(&self.keyspace))
    }

    /// Merges what a key has, if anything, with an operand.
    pub(crate) fn merge(&self, key: &[u8], older: Option<&[u8]>, newer: &[u8]) -> Result<Slice> {
        let Some(older) = older else { return Ok(newer.into()) };
        let merged = self.operator.merge(key, older, newer);
        let merged = merged.map_err(Error::of_lsm(&self.keyspace))?;
        check_value(&merged)?;
        Ok(merged.into())
    }
}

/// Fails unless this may be an operand, of any operator.
pub(crate) fn check_operand(operand: &[u8]) -> Result<()> {
    if operand.len() > OPERAND_BYTES_MAX {
        let (bytes, bytes_max) = (operand.len() as u64, OPERAND_BYTES_MAX as u64);
        return Err(Error::ValueTooLong { bytes, bytes_max });
    }
    Ok(())
}

/// The operators that a store is opened with.
#[derive(Clone, Default)]
pub(crate) struct MergeOperators(BTreeMap<Arc<str>, Arc<dyn MergeOperator>>);

impl MergeOperators {
    pub(crate) fn register(&mut self, name: &str, operator: Arc<dyn MergeOperator>) {
        self.0.insert(name.into(), Arc::new(Guarded(operator)));
    }

    /// Fails if one has an impossible name, or one of the library's.
    pub(crate) fn check(&self) -> Result<()> {
        for name in self.0.keys() {
            OperatorName::new(name).check("")?;
            if built_in(name).is_some() {
                return Err(Error::of_lsm("")(LsmError::InvalidOption {
                    option: "merge_operator",
                    expected: "a name that no operator of the library has".into(),
                    found: format!("{name:?}"),
                }));
            }
        }
        Ok(())
    }

    /// The operator of a name, whether it is registered or not.
    pub(crate) fn named(&self, name: &OperatorName) -> NamedOperator {
        let name = name.as_str();
        let found = self.0.get(name).map(Arc::clone).or_else(|| built_in(name));
        NamedOperator::new(name, found)
    }
}

impl fmt::Debug for MergeOperators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// An operator that gets an error where it uses a store, which may wait for it.
struct Guarded(Arc<dyn MergeOperator>);

impl MergeOperator for Guarded {
    fn merge(
        &self,
        key: &[u8],
        older: &[u8],
        newer: &[u8],
        merged: &mut Vec<u8>,
    ) -> std::result::Result<(), MergeError> {
        let _guard = Guard::new(ANY_STORE);
        self.0.merge(key, older, newer, merged)
    }

    fn check(&self, key: &[u8], operand: &[u8]) -> std::result::Result<(), MergeError> {
        let _guard = Guard::new(ANY_STORE);
        self.0.check(key, operand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_others_are_refused() {
        for name in ["a", "add", "\u{e9}t\u{e9}", &"x".repeat(32)] {
            let kept = OperatorName::new(name);
            assert_eq!((kept.as_str(), kept.check("").is_ok()), (name, true));
            assert_eq!(OperatorName::from_bytes(name.as_bytes()), Some(kept));
        }
        for name in ["", &"x".repeat(33)] {
            let refused = OperatorName::new(name).check("counts").unwrap_err().to_string();
            assert!(refused.contains("a name of 1 to 32 bytes"), "{refused}");
            assert_eq!(OperatorName::from_bytes(name.as_bytes()), None);
        }
        assert_eq!(OperatorName::from_bytes(&[0xFF]), None);
    }
}
