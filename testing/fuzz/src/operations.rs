//! A user of a store, step by step, and power cuts; see `testing/scenarios/src/fuzz/operations.rs`.

#![no_main]

use adamant_scenarios::fuzz::operations;

libfuzzer_sys::fuzz_target!(|program: &[u8]| {
    operations::run(program);
});
