//! The part "redis-py" of `cargo xtask test`: the server, tested with the Redis client for Python.
//!
//! Purpose: like the part "Python", in a virtual environment below `target/python`; skipped with a
//! reason without a suitable Python, or a reachable index.

use crate::source::workspace::Workspace;
use crate::testing::parts::{Counts, Part};
use crate::testing::python::{self, Halt};
use crate::testing::services;
use crate::testing::together;

/// The tests, below the root.
const TESTS: &str = "services/server/tests/python";

/// Builds the server and the command, and tests them.
pub(crate) fn run(workspace: &Workspace) -> Part {
    python::part("redis-py", "the server by redis-py and pytest, in target/python", || {
        build_and_test(workspace)
    })
}

fn build_and_test(workspace: &Workspace) -> Result<Counts, Halt> {
    let tests = workspace.root.join(TESTS);
    let venv = workspace.root.join("target/python/redis");
    let python = python::environment(&venv, &tests.join("requirements.txt"))?;
    let mut tests = python::tests(&python, &tests);
    let server = services::server(workspace, "dev").map_err(Halt::Failed)?;
    let command = together::program(&workspace.root, "USERS", "adamant", "dev");
    tests.env("ADAMANT_SERVER", server).env("ADAMANT", command.map_err(Halt::Failed)?);
    python::count(&mut tests)
}
