//! What reads a whole heap: checks, figures, types, and what can be saved of a damaged one. Used by
//! the heap and `repair`.

pub(crate) mod check;
pub(crate) mod occupancy;
pub(crate) mod trace;
pub(crate) mod salvage;
