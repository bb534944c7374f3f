//! Adamant beside its peers, in one run: adapters, rounds, and the report.
//!
//! The workloads are those of `adamant-bench`; what is here adds the peers, two workloads about
//! waiting (latencies of durable commits, throughput over time), and pictures.

pub mod peer;
pub mod engines;
pub mod run;
pub mod results;
pub mod heap;
pub mod slice;
pub mod soak;
pub mod lsm;
pub mod large;
pub mod values;
