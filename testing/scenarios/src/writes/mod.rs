//! Changes of more than a single entry.

pub mod batch;
pub mod chosen;
pub mod load;
pub mod moves;
pub mod removals;
pub mod reserved;
