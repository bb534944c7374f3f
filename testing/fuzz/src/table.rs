//! Tables made to do harm, with right checksums; see `engines/lsm/tests/hostile/mod.rs`, whose
//! short form runs with every test of the tables.

#![no_main]

#[path = "../../../engines/lsm/tests/hostile/mod.rs"]
mod program;

libfuzzer_sys::fuzz_target!(|changes: &[u8]| {
    program::run(changes);
});
