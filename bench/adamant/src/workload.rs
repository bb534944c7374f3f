//! Workloads, over any engine: each measures, records rows, and checks what is there afterwards.

pub mod session;

pub mod durable;
pub mod kill;
pub mod load;
pub mod memory;
pub mod read;
pub mod soak;
pub mod write;
