//! The part "redis-py" of `cargo xtask test`: the server by the client of Redis for Python.
//!
//! Purpose: as the part "Python", in a virtual environment below `target/python`, and skipped with a reason
//! where there is no Python that would do, or no index to be reached.

use std::process::Command;

use crate::parts::{Counts, Part};
use crate::python::{self, Halt};
use crate::workspace::Workspace;

/// Where its tests are, below the root.
const TESTS: &str = "interfaces/server/tests/python";

/// What they run: a variable that names it to them, its package and its name.
const PROGRAMS: [(&str, &str, &str); 2] =
    [("ADAMANT_SERVER", "adamant-server", "adamant-server"), ("ADAMANT", "adamant-cli", "adamant")];

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
    for (variable, package, program) in PROGRAMS {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "-p", package]).current_dir(&workspace.root);
        python::succeeds(&mut build, |said| {
            Halt::Failed(format!("{program} was not built: {said}"))
        })?;
        tests.env(variable, workspace.target.join("debug").join(program));
    }
    python::count(&mut tests)
}
