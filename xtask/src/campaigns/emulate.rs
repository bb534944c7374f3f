//! `cargo xtask emulate`: tests on an emulated aarch64 machine.
//!
//! Purpose: runs the code that is specific to a processor (flushes and fences, prefetches, whatever
//! a crate below selects by processor) on aarch64, too, and reads stores there that were written
//! here. It needs Rust's standard library for that machine (`rustup target add`), a linker for it
//! and QEMU's emulation of programs (Debian 13, or the backports of 12: `gcc-aarch64-linux-gnu`,
//! `qemu-user`, and `qemu-user-binfmt` for the tests that start programs); it names what is not
//! there.
//! Thread safety: none needed.
//!
//! Not covered: memory orders that a real aarch64 allows and this machine does not, because the
//! emulated threads are threads here (loom and the thread sanitizer look for those); whether lines
//! reach a persistent memory.

use std::path::Path;

use crate::source::workspace::Workspace;
use crate::testing::parts;
use crate::testing::tools::{self, Tool};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
/// The emulator, and its first version that supports DC CVAP in programs and does not allocate
/// reserved address space: an earlier one took 24 GB for a terabyte of it.
const EMULATOR: &str = "qemu-aarch64";
const VERSION_MIN: (u32, u32) = (8, 1);
/// The machine's libraries.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
/// The system's registration of the emulator, for programs that tests start.
const REGISTERED: &str = "/proc/sys/fs/binfmt_misc/qemu-aarch64";
/// Tests of what the emulator does otherwise than a machine: the first limits the memory of its
/// process, and so the emulator's; the others give advice, which the emulator takes and does not
/// pass on to the system.
const LEFT_OUT: [&str; 3] = [
    "a_region_takes_what_the_limits_allow",
    "pages_in_no_order_are_read_alone",
    "advice_that_is_refused_is_called_that",
];

/// From the bytes up to the store, with the golden files of format 1.
pub(super) const TESTS: &str = "-p adamant-wire -p adamant-slice -p adamant-medium -p adamant-heap -p adamant-trees \
                     -p adamant-lsm -p adamant -p adamant-golden";
const TESTS_SMOKE: &str = "-p adamant-wire -p adamant-slice -p adamant-medium -p adamant-golden";

/// Runs the tests, with the option `--smoke` a few. True if nothing failed.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let tests = match options {
        [] => TESTS,
        ["--smoke"] => TESTS_SMOKE,
        other => return Err(format!("expected --smoke or nothing, found {other:?}")),
    };
    Ok(parts::summarise(&tools::run_all(&[tool(tests)], &Workspace::load()?.root)))
}

/// The tests of some packages.
pub(crate) fn tool(tests: &str) -> Tool {
    let variables = [
        ("CARGO_TARGET_DIR", "target/emulate".to_owned()),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER.to_owned()),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", EMULATOR.to_owned()),
        // For those that tests start, too.
        ("QEMU_LD_PREFIX", LIBRARIES.to_owned()),
    ];
    let left_out = LEFT_OUT.map(|test| format!(" --skip {test}")).concat();
    Tool {
        name: TARGET.to_owned(),
        nightly: false,
        arguments: format!(
            "test --target {TARGET} --no-fail-fast {tests} --lib --tests -- --show-output{left_out}"
        ),
        variables: variables.into(),
        missing: missing(),
    }
}

/// The requirements that this machine lacks.
fn missing() -> Option<String> {
    let words = tools::output(EMULATOR, &["--version"]);
    if version(&words).is_none_or(|version| version < VERSION_MIN) {
        let ((major, minor), found) = (VERSION_MIN, words.lines().next().unwrap_or("none"));
        return Some(format!("expected {EMULATOR} {major}.{minor} or later, found {found}"));
    }
    tools::missing_program(LINKER)
        .or_else(|| (!tools::has_target(TARGET)).then(|| format!("rustup target add {TARGET}")))
        .or_else(|| {
            let is_there = Path::new(REGISTERED).exists();
            (!is_there).then(|| format!("the system does not run programs for it: no {REGISTERED}"))
        })
}

/// The numbers in a line such as `qemu-aarch64 version 8.2.1 (package)`.
fn version(words: &str) -> Option<(u32, u32)> {
    let mut numbers = words.split("version ").nth(1)?.split(['.', ' ']);
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let read = version("qemu-aarch64 version 10.0.2 (a package)\nCopyright");
        assert_eq!(read, Some((10, 0)));
        assert!(read > Some(VERSION_MIN) && version("version 7.2.22") < Some(VERSION_MIN));
        assert_eq!(version("no version"), None);
    }
}
