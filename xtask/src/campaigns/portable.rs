//! `cargo xtask portable`: the other systems that users have.
//!
//! Purpose: the libraries, the command and the library for C are compiled and looked at by clippy
//! for each of them, which needs no linker; tests run where a linker and a way to run programs are:
//! on musl, under Wine, and on aarch64 by an emulator (`emulate.rs`). What is missing is named:
//! Rust's standard library of a target (`rustup target add`), `gcc-mingw-w64-x86-64` and `wine64`
//! of Debian. The server, whose dependencies have C in them, is compiled by `zig.rs`.
//! Thread safety: none needed.
//!
//! Not covered: what docs/reliability.md calls untested on real systems.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::campaigns::emulate;
use crate::campaigns::zig::Tools;
use crate::source::workspace::Workspace;
use crate::testing::parts::{self, Part};
use crate::testing::python::Halt;
use crate::testing::tools::{self, Tool};

/// Targets that are compiled; a short run compiles the first ones.
const COMPILED: [&str; 10] = [
    "x86_64-pc-windows-gnu",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-unknown-freebsd",
    "aarch64-linux-android",
    "x86_64-linux-android",
    "aarch64-pc-windows-gnullvm",
    "x86_64-pc-windows-gnullvm",
    "aarch64-unknown-linux-musl",
    MUSL,
];
const COMPILED_SMOKE: usize = 2;
const MUSL: &str = "x86_64-unknown-linux-musl";
const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// Without zstd, whose C would need each system's headers.
const PROGRAMS: &str = "-p adamant-wire -p adamant-slice -p adamant-medium -p adamant-heap \
                        -p adamant-trees -p adamant-lsm -p adamant -p adamant-cli -p adamant-capi \
                        --no-default-features";
const PROGRAMS_SMOKE: &str = "-p adamant-medium -p adamant-heap -p adamant";
/// Where the server is compiled; Android has no servers.
const SERVER_TARGETS: [&str; 6] = [
    WINDOWS,
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-unknown-freebsd",
    "aarch64-unknown-linux-musl",
    MUSL,
];
const TESTS_SMOKE: &str = "-p adamant-wire -p adamant-slice -p adamant-medium";

const WINE: &str = "wine";
const WINDOWS_COMPILER: &str = "x86_64-w64-mingw32-gcc";
/// A library that Wine 8 lacks.
const LIBRARY: &str = "bcryptprimitives.dll";
/// A folder of the build, below the workspace.
const FOLDER: &str = "target/portable";

/// Compiles and runs everything, with the option `--smoke` a little. True if nothing failed.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let root = Workspace::load()?.root;
    let (compiled, programs, tests) = match options {
        [] => (COMPILED.len(), PROGRAMS, emulate::TESTS),
        ["--smoke"] => (COMPILED_SMOKE, PROGRAMS_SMOKE, TESTS_SMOKE),
        other => return Err(format!("expected --smoke or nothing, found {other:?}")),
    };
    let mut ran: Vec<Part> =
        COMPILED[..compiled].iter().map(|target| compile(&root, target, programs)).collect();
    ran.extend(tools::run_all(&[on_musl(tests)], &root));
    if options.is_empty() {
        ran.extend(compile_server(&root));
        ran.extend(tools::run_all(&[under_wine(&root, tests), emulate::tool(tests)], &root));
    }
    Ok(parts::summarise(&ran))
}

fn missing_target(target: &str) -> Option<String> {
    (!tools::has_target(target)).then(|| format!("rustup target add {target}"))
}

/// Clippy for a target.
fn compile(root: &Path, target: &str, programs: &str) -> Part {
    let name = format!("{target}, compiled");
    if let Some(why) = missing_target(target) {
        return tools::left_out(&name, &why);
    }
    let line = format!("clippy --quiet --target {target} {programs} -- -D warnings");
    parts::run_line(root, &name, &line, &[("CARGO_TARGET_DIR", FOLDER.to_owned())])
}

/// Clippy of the server for each of its targets.
fn compile_server(root: &Path) -> Vec<Part> {
    let tools = match Tools::install(root) {
        Ok(tools) => tools,
        Err(Halt::Skipped(why) | Halt::Failed(why)) => {
            return vec![tools::left_out("server", &why)];
        }
    };
    let compile = |target: &str| {
        let name = format!("server, {target}, compiled");
        if let Some(why) = missing_target(target) {
            return tools::left_out(&name, &why);
        }
        let mut clippy = tools.command("cargo-zigbuild");
        clippy.args(["clippy", "--quiet", "--manifest-path", "services/Cargo.toml"]);
        clippy.args(["-p", "adamant-server", "--target", target, "--", "-D", "warnings"]);
        parts::of(&name, clippy.env("CARGO_TARGET_DIR", root.join(FOLDER)))
    };
    SERVER_TARGETS.into_iter().map(compile).collect()
}

/// The tests on musl, on this machine.
fn on_musl(tests: &str) -> Tool {
    Tool {
        name: format!("{MUSL}, tests"),
        nightly: false,
        arguments: format!("test --target {MUSL} --no-fail-fast {tests} --lib --tests"),
        variables: vec![("CARGO_TARGET_DIR", FOLDER.to_owned())],
        missing: missing_target(MUSL),
    }
}

/// The tests of Windows under Wine.
fn under_wine(root: &Path, tests: &str) -> Tool {
    let folder = root.join(FOLDER).join("wine");
    let variables = [
        ("CARGO_TARGET_DIR", FOLDER.to_owned()),
        ("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", WINE.to_owned()),
        ("WINEPREFIX", folder.join("prefix").display().to_string()),
        // Where it looks for libraries: the drive Z is the root of this system.
        ("WINEPATH", format!("Z:{}", folder.display()).replace('/', "\\")),
        ("WINEDEBUG", "-all".to_owned()),
        ("ADAMANT_WINE", "1".to_owned()),
    ];
    Tool {
        name: format!("{WINDOWS}, tests under Wine"),
        nightly: false,
        arguments: format!("test --target {WINDOWS} --no-fail-fast {tests} --lib --tests"),
        variables: variables.into(),
        missing: missing_target(WINDOWS)
            .or_else(|| tools::missing_program(WINDOWS_COMPILER))
            .or_else(|| tools::missing_program(WINE))
            .or_else(|| make_library(root, &folder).err()),
    }
}

/// Makes the library that Wine lacks.
fn make_library(root: &Path, folder: &Path) -> Result<(), String> {
    let prefix: PathBuf = folder.join("prefix");
    std::fs::create_dir_all(&prefix).map_err(|error| format!("{}: {error}", prefix.display()))?;
    let status = Command::new(WINDOWS_COMPILER)
        .args(["-shared", "-o"])
        .arg(folder.join(LIBRARY))
        .arg(root.join("xtask/wine/process_prng.c"))
        .arg("-ladvapi32")
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("{WINDOWS_COMPILER} made no {LIBRARY}: {other:?}")),
    }
}
