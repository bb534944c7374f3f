//! `cargo xtask soundness`: the tools that look for undefined behaviour, on the crate that owes its
//! speed to unsafe code; the fuzzer also on tables made to do harm; and loom on what threads of the heap
//! meet in: the gate of the image, the order of entries.
//!
//! Purpose: one command that runs what can run on this machine, and says what it left out and why.
//! Loom needs nothing; Miri, the address sanitizer and the fuzzer need a nightly toolchain with the
//! components `miri` and `rust-src`; without one the tests run under valgrind, where there is that.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::workspace::Workspace;

const PACKAGE: &str = "adamant-slice";
/// Seconds that the fuzzer runs for.
const FUZZ_SECONDS: u32 = 30;
/// What the fuzzer needs to see which branches a program takes.
const FUZZ_FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                          -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                          -Cllvm-args=-sanitizer-coverage-pc-table \
                          -Cllvm-args=-sanitizer-coverage-trace-compares \
                          --cfg fuzzing -Zsanitizer=address";
const MIRI_FLAGS: &str = "-Zmiri-strict-provenance -Zmiri-symbolic-alignment-check";
/// Without the symbolic check of alignment: on a machine for which it has no vector instructions,
/// `memchr` (of `serde_json`, in the tests) aligns pointers by arithmetic, which that check cannot
/// follow.
const BIG_ENDIAN_FLAGS: &str = "-Zmiri-strict-provenance";
/// Tests that Miri can run in reasonable time: all but the long one against a model.
const MIRI_TESTS: &str = "--all-features --lib --test soundness --test owners --test features \
                          --test text --test operations";
/// A machine with the other order of bytes, for Miri.
const BIG_ENDIAN: &str = "s390x-unknown-linux-gnu";

/// A tool, how it is run, and what must be there for it.
struct Tool {
    name: &'static str,
    /// With which toolchain: the default one, or nightly.
    nightly: bool,
    arguments: String,
    variables: Vec<(&'static str, String)>,
    missing: Option<String>,
}

/// Runs all of them. True if nothing failed.
pub(crate) fn run() -> Result<bool, String> {
    let root = Workspace::load()?.root;
    let host = host()?;
    let has_nightly = succeeds("rustup", &["run", "nightly", "cargo", "--version"]);
    let nightly = (!has_nightly).then(|| "there is no nightly toolchain (rustup)".to_owned());
    let miri = nightly.clone().or_else(|| {
        let has_miri = succeeds("rustup", &["run", "nightly", "cargo", "miri", "--version"]);
        (!has_miri).then(|| "the component miri is not installed".to_owned())
    });
    let target = |name: &str| format!("target/soundness/{name}");
    let variables = |name: &str, key: &'static str, flags: &str| {
        vec![("CARGO_TARGET_DIR", target(name)), (key, flags.to_owned())]
    };
    let tools = [
        Tool {
            name: "loom",
            nightly: false,
            arguments: format!("test --quiet -p {PACKAGE} --test loom"),
            variables: variables("loom", "RUSTFLAGS", "--cfg loom"),
            missing: None,
        },
        Tool {
            name: "loom, heap",
            nightly: false,
            arguments: "test --quiet -p adamant-heap --lib every_order".to_owned(),
            variables: variables("loom", "RUSTFLAGS", "--cfg loom"),
            missing: None,
        },
        Tool {
            name: "Miri",
            nightly: true,
            arguments: format!("miri test --quiet -p {PACKAGE} {MIRI_TESTS}"),
            variables: variables("miri", "MIRIFLAGS", MIRI_FLAGS),
            missing: miri.clone(),
        },
        Tool {
            name: "Miri, big-endian",
            nightly: true,
            arguments: format!("miri test --quiet -p {PACKAGE} --target {BIG_ENDIAN} {MIRI_TESTS}"),
            variables: variables("miri", "MIRIFLAGS", BIG_ENDIAN_FLAGS),
            missing: miri,
        },
        Tool {
            name: "address sanitizer",
            nightly: true,
            arguments: format!("test --quiet -p {PACKAGE} --all-features --target {host} --tests"),
            variables: variables("asan", "RUSTFLAGS", "-Zsanitizer=address"),
            missing: nightly.clone(),
        },
        fuzzer("fuzzer, slices", "slice", &host, nightly.clone()),
        fuzzer("fuzzer, tables", "table", &host, nightly.clone()),
        valgrind(nightly.is_none(), &host),
    ];
    // All of them, also after one that failed.
    Ok(tools.iter().filter(|tool| !run_tool(tool, &root)).count() == 0)
}

/// One target of the fuzzer.
fn fuzzer(name: &'static str, target: &str, host: &str, missing: Option<String>) -> Tool {
    let arguments = format!(
        "run --quiet --release --manifest-path testing/fuzz/Cargo.toml --target {host} \
         --bin {target} -- -max_total_time={FUZZ_SECONDS} -max_len=4096 -verbosity=0 \
         -print_final_stats=1"
    );
    let directory = ("CARGO_TARGET_DIR", "target/soundness/fuzz".to_owned());
    let variables = vec![directory, ("RUSTFLAGS", FUZZ_FLAGS.to_owned())];
    Tool { name, nightly: true, arguments, variables, missing }
}

/// The tests under valgrind, where the sanitizer cannot run.
fn valgrind(has_nightly: bool, host: &str) -> Tool {
    let runner = "valgrind --quiet --error-exitcode=9 --leak-check=full".to_owned();
    let missing = if has_nightly {
        Some("not needed, the address sanitizer ran".to_owned())
    } else if succeeds("valgrind", &["--version"]) {
        None
    } else {
        Some("valgrind is not installed".to_owned())
    };
    Tool {
        name: "valgrind",
        nightly: false,
        arguments: format!(
            "test --quiet -p {PACKAGE} --target {host} --config target.{host}.runner='{runner}' \
             --test soundness --test owners"
        ),
        variables: vec![("CARGO_TARGET_DIR", "target/soundness/valgrind".to_owned())],
        missing,
    }
}

/// True unless it failed.
fn run_tool(tool: &Tool, root: &Path) -> bool {
    if let Some(why) = &tool.missing {
        println!("skipped: {}: {why}", tool.name);
        return true;
    }
    println!("== {}: cargo {}", tool.name, tool.arguments);
    let start = Instant::now();
    let mut command = if tool.nightly {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo"]);
        command
    } else {
        Command::new(env!("CARGO"))
    };
    let status = command
        .args(words(&tool.arguments))
        .envs(tool.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(root)
        .status();
    let passed = status.is_ok_and(|status| status.success());
    let outcome = if passed { "passed" } else { "FAILED" };
    println!("{outcome}: {} in {:.0} s", tool.name, start.elapsed().as_secs_f64());
    passed
}

/// Words of a line; what stands within apostrophes belongs to one.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for char in line.chars() {
        match char {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().into_iter().for_each(|word| word.push(char)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The name of the machine that the compiler compiles for.
fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|error| format!("could not run rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say its host".to_owned())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_words() {
        assert_eq!(words("a  b='c d' e"), ["a", "b=c d", "e"]);
    }
}
