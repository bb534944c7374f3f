//! Adamant's own benchmarks: engines behind one small trait, workloads over it, and reports that
//! are rated by target figures.
//!
//! The workloads know nothing of Adamant, so that a benchmark of other stores can share them.

#![forbid(unsafe_code)]

pub mod harness;
pub mod engines;
pub mod workload;
pub mod commands;
