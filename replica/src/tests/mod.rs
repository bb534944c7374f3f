//! Tests of the whole crate by its own parts.

mod power_cuts;
