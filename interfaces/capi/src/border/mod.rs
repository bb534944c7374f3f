//! The FFI boundary: arguments, results, return codes, locks of handles. Used by all functions.

pub mod code;
pub mod failure;
pub mod pointers;
pub mod hold;
pub mod value;
pub mod range;
pub mod options;
pub mod keyspace_options;
pub mod change;
