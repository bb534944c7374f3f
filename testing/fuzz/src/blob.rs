//! Blob files made to do harm; see `testing/scenarios/src/fuzz/blob.rs`.

#![no_main]

use adamant_scenarios::fuzz::blob;

libfuzzer_sys::fuzz_target!(|program: &[u8]| {
    blob::run(program);
});
