//! Files of records made to do harm; see `interfaces/cli/tests/hostile/mod.rs`, whose short form
//! runs with every test of the command.

#![no_main]

#[path = "../../../interfaces/cli/tests/hostile/mod.rs"]
mod program;

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    program::run(file);
});
