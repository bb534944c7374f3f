//! Stores that somebody tampered with; see `testing/scenarios/src/fuzz/store.rs`.

#![no_main]

use std::sync::LazyLock;

use adamant_scenarios::fuzz::store::Stores;

static STORES: LazyLock<Stores> = LazyLock::new(Stores::new);

libfuzzer_sys::fuzz_target!(|program: &[u8]| {
    STORES.run(program);
});
