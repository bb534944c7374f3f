//! How bytes are written anywhere in Adamant: little-endian integers, variable-length integers,
//! CRC32C checksums, and the frames of the log; and how keys are compared.
//!
//! Pure functions over byte slices: no state, no files, no clock. Bad input is an answer (`None` or
//! an error), never a panic.

#![forbid(unsafe_code)]

// Both need assertions, too: a release of a whole workspace has the features of its test programs.
#[cfg_attr(all(feature = "mutants", debug_assertions), path = "planted.rs")]
pub mod mutants;

#[cfg_attr(all(feature = "faults", debug_assertions), path = "planned.rs")]
pub mod faults;

pub mod checksum;
pub mod key;
pub mod le;
pub mod varint;

pub mod frame;
