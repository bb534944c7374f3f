//! Adamant's own benchmarks: engines behind one small trait, workloads over it, and reports that
//! are rated by target figures.
//!
//! The workloads know nothing of Adamant, so that a benchmark of other stores can share them.

#![forbid(unsafe_code)]

pub mod error;

pub mod key;

pub mod data;
pub mod measure;

pub mod asked;

pub mod report;

pub mod engine;
pub mod raw;
mod place;

pub mod engines;
pub mod workload;

pub mod kv;

pub mod heap;

pub mod maps;

pub mod bplus;

pub mod splits;

pub mod slice;

pub mod transactions;

pub mod bounded;

pub mod lsm;
