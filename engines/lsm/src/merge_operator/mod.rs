//! Merge operators: changes of a value that do not read it.
//!
//! Purpose: a write appends an operand to a key; reads, flushes and compactions fold the operands
//! of a key onto the value below them, by a function that the user gives.
//! Invariants: an operator is a pure function of its arguments, and associative. What it fails to
//! merge stays as it is: a failure or a panic never drops an operand.
//! Thread safety: shared freely. Operators run on any thread, also under the heap's lock.

mod operand;
mod operator;
mod built_in;
mod chain;

pub use built_in::{BuiltIn, built_in};
pub(crate) use chain::Chain;
pub(crate) use operand::{NOT_OPERAND, decode, encode};
pub use operator::{MergeError, MergeOperator, NamedOperator, OPERAND_BYTES_MAX};
pub(crate) use operator::{OPERAND_FOLDED_BYTES_MAX, OperatorSlot};
