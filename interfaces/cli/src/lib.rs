//! What the command `adamant` reads as import and writes as export: records as JSON Lines and as CSV.
//!
//! It is no interface for programs, which use the crate `adamant`, and may change with any release. It is a
//! library so that tests and the fuzzer come to it: it reads files that anybody may have made.

#![forbid(unsafe_code)]

pub mod record;
pub mod table;
pub mod reading;
