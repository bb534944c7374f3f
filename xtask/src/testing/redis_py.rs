//! The part "redis-py" of `cargo xtask test`: the server, tested with the Redis client for Python.
//!
//! Purpose: like the part "Python", in a virtual environment below `target/python`; skipped with a
//! reason without a suitable Python, or a reachable index.

use crate::source::workspace::Workspace;
use crate::testing::parts::{Counts, Part};
use crate::testing::python::{self, Halt};
use crate::testing::together;

/// The tests, below the root.
const TESTS: &str = "interfaces/server/tests/python";

/// The programs under test: the variable that names it to them, the packages with which it was
/// built before, and its name.
const PROGRAMS: [(&str, &str, &str); 2] =
    [("ADAMANT_SERVER", "TOGETHER", "adamant-server"), ("ADAMANT", "USERS", "adamant")];

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
    for (variable, set, name) in PROGRAMS {
        let program = together::program(&workspace.root, set, name, "dev").map_err(Halt::Failed)?;
        tests.env(variable, program);
    }
    python::count(&mut tests)
}
