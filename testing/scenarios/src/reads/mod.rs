//! Reads of ranges.

pub mod lazy;
pub mod lend;
pub mod order;
