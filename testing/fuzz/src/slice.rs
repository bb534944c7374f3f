//! Programs of operations on slices beside the same on vectors; see
//! `base/slice/tests/operations/mod.rs`, whose short form runs with every test of the slice.

#![no_main]

#[path = "../../../base/slice/tests/operations/mod.rs"]
mod operations;

libfuzzer_sys::fuzz_target!(|program: &[u8]| operations::run(program));
