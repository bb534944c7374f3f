//! `cargo xtask docs`: the documentation of the published crates.
//!
//! Purpose: builds it without warnings: everything public is documented, and no link is broken.

use crate::source::workspace::Workspace;
use crate::testing::parts;

/// The options of rustdoc, in the variable that cargo reads.
pub(crate) const FLAGS: (&str, &str) = ("RUSTDOCFLAGS", "-D warnings");

/// Cargo's arguments: all published libraries with all of their features. The command's library is
/// no interface, and the command's name is that of the store's crate.
pub(crate) fn arguments(workspace: &Workspace) -> Vec<&str> {
    let mut arguments =
        vec!["doc", "--quiet", "--no-deps", "--all-features", "--lib", "--keep-going"];
    for package in workspace.published().filter(|package| package.programs.is_empty()) {
        arguments.extend(["-p", &package.name]);
    }
    arguments
}

/// Builds it, and opens a browser if requested. True if there was no warning.
pub(crate) fn run(opens: bool) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let mut arguments = arguments(&workspace);
    if opens {
        arguments.push("--open");
    }
    let (name, flags) = FLAGS;
    let part = parts::run(&workspace.root, "documentation", &arguments, &[(name, flags.into())]);
    println!("docs: {} in {:.0} s", outcome(part.counts.failed == 0), part.took.seconds);
    Ok(part.counts.failed == 0)
}

fn outcome(succeeded: bool) -> &'static str {
    if succeeded { "no warning" } else { "FAILED" }
}
