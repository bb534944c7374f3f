//! `cargo xtask remote`: checks and tests of stores on objects.
//!
//! They are a workspace of their own, in `remote`, with a build folder of its own, so that nothing
//! else of Adamant waits for SlateDB or builds it. `moto` simulates S3, in a virtual environment
//! below `target/python`; without a suitable Python, or a reachable index, its tests report that
//! they were skipped.

use crate::source::workspace::Workspace;
use crate::testing::parts::{self, Part};
use crate::testing::python::{self, Halt};

/// Its folder, below the root.
const FOLDER: &str = "remote";
/// The requirements of its tests with S3.
const REQUIREMENTS: &str = "remote/tests/requirements.txt";
const TARGET: &str = "--manifest-path remote/Cargo.toml --target-dir target/remote";

/// Formatting, clippy and all tests. `rounds`: how many processes take a store over from one
/// another, if not the test's default.
pub(crate) fn run(rounds: Option<u32>) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let ran = [
        part(
            &workspace,
            "formatting",
            &format!("fmt --manifest-path {FOLDER}/Cargo.toml --check"),
            &[],
        ),
        part(&workspace, "clippy", "clippy TARGET --locked --all-targets -- -D warnings", &[]),
        tests(&workspace, rounds),
    ];
    Ok(parts::summarise(&ran))
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
    let line = "test TARGET --locked --no-fail-fast -- --show-output";
    part(workspace, "stores on objects", line, &variables)
}

fn part(workspace: &Workspace, name: &str, line: &str, variables: &[(&str, String)]) -> Part {
    let line = line.replace("TARGET", TARGET);
    let words: Vec<&str> = line.split(' ').collect();
    parts::run(&workspace.root, name, &words, variables)
}
