//! Chains: the operands of a key that lie on top of its value.
//!
//! Purpose: a read gathers the visible operands of a key, the newest first, until it finds a value
//! or nothing below them, and folds them.
//! Invariants: what an operand already stands for is not gathered once more.
//! Thread safety: plain data.

use adamant_slice::Slice;

use super::operand::{NOT_OPERAND, decode};
use super::operator::OperatorSlot;
use crate::error::{Error, Result};
use crate::key::Version;

/// Operands of a key, the newest first.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    operands: Vec<Slice>,
}

impl Chain {
    /// Adds the next older operand. Returns the largest sequence number of a version that is below
    /// it.
    ///
    /// # Errors
    /// `NotOperand`.
    pub(crate) fn push(&mut self, version: &Version) -> Result<u64> {
        let Version { sequence, value, .. } = version;
        let decoded = decode(*sequence, value);
        let (first, at) = decoded.ok_or(Error::NotOperand { what: NOT_OPERAND })?;
        self.operands.push(value.slice(at..));
        Ok(first - 1)
    }

    /// The value that the operands make, with the one below them, if there is one.
    ///
    /// # Errors
    /// `NoOperator`; `MergeFailed`.
    #[cold]
    pub(crate) fn fold(
        &self,
        operator: &OperatorSlot,
        key: &[u8],
        base: Option<&[u8]>,
    ) -> Result<Slice> {
        match (&self.operands[..], base) {
            ([alone], None) => Ok(alone.clone()),
            (operands, base) => operator.get()?.fold(key, operands, base),
        }
    }
}
