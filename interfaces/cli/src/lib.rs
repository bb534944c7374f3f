//! The import and export formats of the `adamant` command: records as JSON Lines and as CSV.
//!
//! This is no interface for programs, which use the crate `adamant`, and may change with any
//! release. It is a library for tests and the fuzzer, since it reads untrusted files.

#![forbid(unsafe_code)]

pub mod record;
pub mod table;
pub mod reading;
