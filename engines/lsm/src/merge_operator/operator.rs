//! The trait of merge operators, and the operator of one tree.
//!
//! Purpose: what a user implements, and how a tree calls it.
//! Invariants: a panic of an operator is an error of the merge.
//! Thread safety: shared freely.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use adamant_slice::Slice;
use arc_swap::ArcSwapOption;

use crate::error::{Error, Result};

/// Maximum bytes of an operand: 1 MiB. Operands lie in tables, not in blob files, and a read of
/// their key reads all of them.
pub const OPERAND_BYTES_MAX: usize = 1 << 20;
/// Maximum bytes of operands that were folded to one; longer ones stay apart until a value is below
/// them.
pub(crate) const OPERAND_FOLDED_BYTES_MAX: usize = 16 << 20;

/// A merge operator: combines what lies in a key with an operand.
///
/// Values and operands are of one type. Merging two operands gives an operand, merging a value with
/// an operand gives a value, and an operand on nothing is the value. Whoever implements it promises
///
/// - that it is **associative**: `merge(merge(a, b), c)` is `merge(a, merge(b, c))` for all `a`,
///   `b`, `c`. In which order neighbours are combined, and how often, depends on flushes and
///   compactions. It need not be commutative: operands keep the order of their commits;
/// - that it depends on nothing but its arguments, now and whenever the store is opened;
/// - that it does not use the store: it may run under its lock.
///
/// It may fail, or panic: then the read fails, and the operands stay as they are.
///
/// ```
/// use adamant_lsm::{MergeError, MergeOperator};
///
/// /// The longer one of two texts.
/// struct Longest;
///
/// impl MergeOperator for Longest {
///     fn merge(
///         &self,
///         _key: &[u8],
///         older: &[u8],
///         newer: &[u8],
///         merged: &mut Vec<u8>,
///     ) -> Result<(), MergeError> {
///         merged.extend_from_slice(if newer.len() > older.len() { newer } else { older });
///         Ok(())
///     }
/// }
/// ```
pub trait MergeOperator: Send + Sync {
    /// Merges what is older with what is newer, of one key, into an empty buffer.
    ///
    /// # Errors
    /// What is wrong with the arguments, as the operator says.
    fn merge(
        &self,
        key: &[u8],
        older: &[u8],
        newer: &[u8],
        merged: &mut Vec<u8>,
    ) -> std::result::Result<(), MergeError>;

    /// Verifies an operand before it is written. One that every later merge would refuse made its
    /// key unreadable. Default: any is right.
    ///
    /// # Errors
    /// What is wrong with the operand: then nothing is written.
    fn check(&self, key: &[u8], operand: &[u8]) -> std::result::Result<(), MergeError> {
        let _ = (key, operand);
        Ok(())
    }
}

/// Why an operator did not merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeError(String);

impl MergeError {
    /// A failure, in words for the user of the store: what was expected, and what was found.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MergeError {}

/// A merge operator under the name that a keyspace records.
#[derive(Clone)]
pub struct NamedOperator {
    name: Arc<str>,
    operator: Option<Arc<dyn MergeOperator>>,
}

impl NamedOperator {
    /// The operator of this name; `None` if none is registered under it.
    pub fn new(name: &str, operator: Option<Arc<dyn MergeOperator>>) -> Self {
        Self { name: name.into(), operator }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether there is an operator of that name.
    pub fn is_registered(&self) -> bool {
        self.operator.is_some()
    }

    fn operator(&self) -> Result<&dyn MergeOperator> {
        let missing = || Error::NoOperator { operator: Some((&*self.name).into()) };
        self.operator.as_deref().ok_or_else(missing)
    }

    /// Calls the operator; a panic of it is a failure.
    fn call(
        &self,
        work: impl FnOnce(&dyn MergeOperator) -> std::result::Result<(), MergeError>,
    ) -> Result<()> {
        let operator = self.operator()?;
        // An operator that depends on its arguments alone leaves nothing half done behind.
        let reason = match catch_unwind(AssertUnwindSafe(|| work(operator))) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it panicked".into(),
        };
        Err(Error::MergeFailed { operator: (&*self.name).into(), reason })
    }

    /// Verifies an operand before it is written.
    ///
    /// # Errors
    /// `ValueTooLong`; `NoOperator`; `MergeFailed` with what the operator says.
    pub fn check(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        if operand.len() > OPERAND_BYTES_MAX {
            let (bytes, bytes_max) = (operand.len() as u64, OPERAND_BYTES_MAX as u64);
            return Err(Error::ValueTooLong { bytes, bytes_max });
        }
        self.call(|operator| operator.check(key, operand))
    }

    /// Merges two operands, or a value and an operand.
    ///
    /// # Errors
    /// `NoOperator`; `MergeFailed`.
    pub fn merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Result<Vec<u8>> {
        let mut merged = Vec::with_capacity(older.len().max(newer.len()));
        self.call(|operator| operator.merge(key, older, newer, &mut merged))?;
        Ok(merged)
    }

    /// Folds operands, the newest of which comes first, onto a value, if there is one. Neighbours
    /// are merged first: an operator whose results are as long as both arguments together copies
    /// each byte O(log n) times.
    ///
    /// # Errors
    /// As [`NamedOperator::merge`].
    pub(crate) fn fold(
        &self,
        key: &[u8],
        operands: &[Slice],
        base: Option<&[u8]>,
    ) -> Result<Slice> {
        let mut row: Vec<Slice> = operands.to_vec();
        while row.len() > 1 {
            let pair = |pair: &[Slice]| match pair {
                [newer, older] => self.merge(key, older, newer).map(Slice::from),
                alone => Ok(alone.first().cloned().unwrap_or_default()),
            };
            row = row.chunks(2).map(pair).collect::<Result<_>>()?;
        }
        let operand = row.pop().unwrap_or_default();
        match base {
            Some(base) => Ok(self.merge(key, base, &operand)?.into()),
            None => Ok(operand),
        }
    }
}

impl fmt::Debug for NamedOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("NamedOperator");
        debug.field("name", &self.name).field("is_registered", &self.is_registered()).finish()
    }
}

/// The operator of a tree, which all its versions share; empty while its keyspace records none.
#[derive(Debug, Default)]
pub(crate) struct OperatorSlot(ArcSwapOption<NamedOperator>);

impl OperatorSlot {
    pub(crate) fn set(&self, operator: NamedOperator) {
        self.0.store(Some(Arc::new(operator)));
    }

    /// The operator.
    ///
    /// # Errors
    /// `NoOperator` if the tree has none.
    pub(crate) fn get(&self) -> Result<Arc<NamedOperator>> {
        self.0.load_full().ok_or(Error::NoOperator { operator: None })
    }
}
