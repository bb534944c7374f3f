//! Many keys and values at once, as arrays of numpy and Arrow: no Python object for each of them.
//!
//! Purpose: columns come from buffers and from Arrow's C data interface, and go to both.
//! Invariants: what Python lends is copied before the interpreter is let go, unless it cannot
//! change: the arrays of Arrow, `bytes`.

pub(crate) mod rows;
pub(crate) mod abi;
pub(crate) mod border;
pub(crate) mod source;
pub(crate) mod target;
pub(crate) mod column;
pub(crate) mod scan;
