//! `cargo xtask services`: checks and tests of the server, replicas, and stores on objects.
//!
//! They are a workspace of their own, in `services`, with a build folder of its own, so that a
//! build of the store compiles no tokio, openraft or SlateDB. `moto` simulates S3, in a virtual
//! environment below `target/python`; without a suitable Python, or a reachable index, its tests
//! report that they were skipped.

use std::path::PathBuf;

use crate::source::workspace::Workspace;
use crate::testing::parts::{self, Part};
use crate::testing::python::{self, Halt};
use crate::testing::together;

/// The requirements of the tests with S3.
const REQUIREMENTS: &str = "services/remote/tests/requirements.txt";
/// The words that stand for the workspace in a line of arguments for cargo.
const BUILT: &str = "--manifest-path services/Cargo.toml --target-dir target/services --locked";

/// Formatting, clippy and all tests. `rounds`: how many processes take a store on objects over
/// from one another, if not the test's default.
pub(crate) fn run(rounds: Option<u32>) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let mut ran = lints(&workspace);
    ran.push(tests(&workspace, rounds));
    Ok(parts::summarise(&ran))
}

/// Formatting and clippy alone.
pub(crate) fn run_lints() -> Result<bool, String> {
    Ok(parts::summarise(&lints(&Workspace::load()?)))
}

/// Formatting and clippy.
pub(crate) fn lints(workspace: &Workspace) -> Vec<Part> {
    let format = "fmt --manifest-path services/Cargo.toml --all --check";
    let clippy = "clippy BUILT --workspace --all-targets -- -D warnings";
    vec![
        part(workspace, "format of services", format, &[]),
        part(workspace, "clippy of services", clippy, &[]),
    ]
}

/// Unit tests alone.
pub(crate) fn unit_tests(workspace: &Workspace) -> Part {
    let line = "test BUILT --workspace --lib --bins --no-fail-fast -- --show-output";
    part(workspace, "unit tests of services", line, &[])
}

/// All tests, as a part of `cargo xtask test`.
pub(crate) fn tests(workspace: &Workspace, rounds: Option<u32>) -> Part {
    let mut variables = Vec::new();
    let moto = workspace.root.join("target/python/moto");
    match python::environment(&moto, &workspace.root.join(REQUIREMENTS)) {
        Ok(python) => variables.push(("ADAMANT_MOTO", python.display().to_string())),
        Err(Halt::Skipped(why) | Halt::Failed(why)) => println!("no moto: {why}"),
    }
    if let Some(rounds) = rounds {
        variables.push(("ADAMANT_FAILOVER_ROUNDS", rounds.to_string()));
    }
    let line = "test BUILT --workspace --no-fail-fast -- --show-output";
    part(workspace, "services", line, &variables)
}

/// Builds `adamant-server` and returns its path; `profile` as in [`together::build`].
///
/// # Errors
/// In words, when cargo fails.
pub(crate) fn server(workspace: &Workspace, profile: &str) -> Result<PathBuf, String> {
    let line = BUILT.to_owned() + " --workspace";
    let target = workspace.root.join("target/services");
    together::build(&workspace.root, &target, &line, "adamant-server", profile)
}

fn part(workspace: &Workspace, name: &str, line: &str, variables: &[(&str, String)]) -> Part {
    parts::run_line(&workspace.root, name, &line.replace("BUILT", BUILT), variables)
}
