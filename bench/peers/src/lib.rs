//! Adamant beside its peers, in one run: adapters, rounds, and the report.
//!
//! The workloads are those of `adamant-bench`; what is here adds the peers, two workloads about
//! waiting (latencies of durable commits, throughput over time), and pictures.

pub mod peer;

pub mod engines;
pub mod roster;

pub mod datasets;
pub mod machine;
pub mod settings;
pub mod waits;

pub mod calls;
pub mod trace;

pub mod child;
pub mod rounds;

pub mod rows;

pub mod figures;
pub mod goals;
pub mod notes;
pub mod picture;
pub mod text;

pub mod plots;
pub mod report;

pub mod heap;

pub mod slice;

pub mod soak;

pub mod lsm;
