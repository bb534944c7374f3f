//! Encrypted files made to do harm; see `testing/scenarios/src/fuzz/encrypted.rs`.

#![no_main]

use adamant_scenarios::fuzz::encrypted;

libfuzzer_sys::fuzz_target!(|program: &[u8]| {
    encrypted::run(program);
});
