//! Workloads, over any engine: each measures, records rows, and verifies the contents afterwards.

pub mod session;

pub mod durable;
pub mod kill;
pub mod load;
pub mod memory;
pub mod read;

pub mod bulk;
pub mod soak;
pub mod write;
pub mod ycsb;
