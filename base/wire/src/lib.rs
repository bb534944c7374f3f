//! Byte encodings of Adamant: little-endian integers, variable-length integers, CRC32C checksums,
//! and the frames of the log; and keys.
//!
//! Pure functions over byte slices: no state, no files, no clock. Bad input returns `None` or an
//! error, and never panics.

#![forbid(unsafe_code)]

// Needs assertions, too: a release build of a whole workspace has the features of its test
// programs.
#[cfg_attr(all(feature = "faults", debug_assertions), path = "planned.rs")]
pub mod faults;

pub mod checksum;
pub mod key;
pub mod le;
pub mod varint;

pub mod frame;
