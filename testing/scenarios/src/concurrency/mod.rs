//! Views and transactions of several threads.

pub mod reentrance;
pub mod snapshots;
pub mod threads;
pub mod transactions;
pub mod validation;
