//! Tests of the crate's internals.

mod power_cuts;
