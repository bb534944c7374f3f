//! Inspection of a whole heap: check, occupancy, type traces, and salvage of a damaged heap. Used
//! by the heap and `repair`.

pub(crate) mod check;
pub(crate) mod occupancy;
pub(crate) mod trace;
pub(crate) mod salvage;
