//! Logs that are not what the store left; see `testing/scenarios/src/fuzz/log.rs`.

#![no_main]

use std::sync::LazyLock;

use adamant_scenarios::fuzz::log::Logs;

static LOGS: LazyLock<Logs> = LazyLock::new(Logs::new);

libfuzzer_sys::fuzz_target!(|program: &[u8]| {
    LOGS.run(program);
});
