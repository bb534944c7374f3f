//! The part "redis-py" of `cargo xtask test`: the server by the client of Redis for Python.
//!
//! Purpose: as the part "Python", in a virtual environment below `target/python`, and skipped with a reason
//! where there is no Python that would do, or no index to be reached.

use crate::source::workspace::Workspace;
use crate::testing::parts::{Counts, Part};
use crate::testing::python::{self, Halt};
use crate::testing::together;

/// Where its tests are, below the root.
const TESTS: &str = "interfaces/server/tests/python";

/// What they run: a variable that names it to them, the packages that it was built with before, and its name.
const PROGRAMS: [(&str, &str, &str); 2] =
    [("ADAMANT_SERVER", "TOGETHER", "adamant-server"), ("ADAMANT", "USERS", "adamant")];

/// Builds the server and the command, and tests the one beside the other.
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
