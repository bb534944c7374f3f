//! Tests of the crate's internals.

mod going_back;
mod power_cuts;
