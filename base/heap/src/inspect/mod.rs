//! Inspection of a whole heap: check, occupancy, type traces, and salvage of a damaged heap. The
//! heap and `repair` use it.

pub(crate) mod check;
pub(crate) mod occupancy;
pub(crate) mod trace;
pub(crate) mod salvage;
