//! `cargo xtask emulate`: tests on a machine with another processor, emulated.
//!
//! Purpose: what is written for one processor alone (flushes and fences, prefetches, what a crate below
//! chooses by processor) runs on aarch64, too, and files that were written here are read there and the other way
//! round. It needs Rust's standard library for that machine (`rustup target add`), a linker for it and QEMU's
//! emulation of programs (Debian: `gcc-aarch64-linux-gnu`, `qemu-user`); what is missing is named.
//! Thread safety: none needed.
//!
//! Not seen by it: orders of memory that a real aarch64 allows and this machine does not, for its threads are
//! threads here (loom and the thread sanitizer look for those); whether lines reach a persistent memory.

use crate::parts;
use crate::tools::{self, Tool};
use crate::workspace::Workspace;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
/// The emulator, and where the machine's libraries are.
const EMULATOR: &str = "qemu-aarch64";
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// From the bytes up to the store, with the golden files of format 1.
const TESTS: &str = "-p adamant-wire -p adamant-slice -p adamant-medium -p adamant-heap -p adamant-trees \
                     -p adamant-lsm -p adamant -p adamant-golden";
const TESTS_SMOKE: &str = "-p adamant-wire -p adamant-slice -p adamant-medium -p adamant-golden";

/// Runs the tests, with the option `--smoke` a few. True if nothing failed.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let tests = match options {
        [] => TESTS,
        ["--smoke"] => TESTS_SMOKE,
        other => return Err(format!("expected --smoke or nothing, found {other:?}")),
    };
    let variables = [
        ("CARGO_TARGET_DIR", "target/emulate".to_owned()),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER.to_owned()),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("{EMULATOR} -L {LIBRARIES}")),
    ];
    let tool = Tool {
        name: TARGET.to_owned(),
        nightly: false,
        arguments: format!(
            "test --target {TARGET} --no-fail-fast {tests} --lib --tests -- --show-output"
        ),
        variables: variables.into(),
        missing: missing(),
    };
    Ok(parts::summarise(&tools::run_all(&[tool], &Workspace::load()?.root)))
}

/// What it needs and this machine does not have.
fn missing() -> Option<String> {
    let program = |name: &str| {
        (!tools::succeeds(name, &["--version"])).then(|| format!("{name} is not installed"))
    };
    program(EMULATOR)
        .or_else(|| program(LINKER))
        .or_else(|| (!tools::has_target(TARGET)).then(|| format!("rustup target add {TARGET}")))
}
