//! `cargo xtask quick` and `cargo xtask check`: for use while editing, and before a commit.
//!
//! Purpose: an answer in about a minute while editing. `quick` lints the changed packages and their
//! users, and runs the unit tests of the changed ones. `check` lints everything and runs the tests
//! with one set of features; scenarios run on `bplus` and `lsm` alone. Of the workspace `services`
//! `quick` compiles nothing unless a file in it changed, and `check` nothing at all. `cargo xtask
//! test` runs everything.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::source::workspace::Workspace;
use crate::testing::parts::{self, Part};
use crate::testing::services;

/// Names of tests that `check` leaves to `test`: engines that exist for comparison, loops of kills,
/// small runs of the benchmark, and of the simulator what takes 500 of its 630 seconds of
/// processor: crashes on persistent memory and around shrinking, mutation tests of each sync.
const LEFT_OUT: [&str; 11] = [
    "by_other_trees",
    "on_tmpfs",
    "btree::",
    "critbit::",
    "redblack::",
    "kills",
    "failover::",
    "a_small_run",
    "heap_crashes::direct::",
    "shrink::crashes",
    "left_out::a_missing_sync",
];

/// Lints the packages that changed since the last commit and their users; runs unit tests of the
/// changed ones.
///
/// # Errors
/// In words, when the workspace or the changes cannot be read.
pub(crate) fn quick() -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let files = changed_files(&workspace)?;
    let mut ran = lints(&workspace.root);
    if files.iter().any(|file| file.starts_with("services/")) {
        ran.extend(services::lints(&workspace));
        ran.push(services::unit_tests(&workspace));
    }
    let changed: BTreeSet<_> = files.iter().filter_map(|file| owner(&workspace, file)).collect();
    if changed.is_empty() {
        println!("no package of the main workspace has changed since the last commit");
        return Ok(parts::summarise(&ran));
    }
    let users = users(&workspace, &changed);
    println!("changed: {}; they and what uses them: {}", list(&changed), list(&users));
    let clippy = format!("clippy {} --all-targets -- -D warnings", packages(&users));
    ran.push(parts::run_line(&workspace.root, "clippy", &clippy, &[]));
    let tests = format!("test {} --lib --bins --no-fail-fast -- --show-output", packages(&changed));
    ran.push(parts::run_line(&workspace.root, "unit tests", &tests, &[]));
    Ok(parts::summarise(&ran))
}

/// Lints everything; all tests of one set of features, with fewer engines.
///
/// # Errors
/// In words, when the workspace cannot be read.
pub(crate) fn check() -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let mut ran = lints(&workspace.root);
    let clippy = "clippy --workspace --all-targets -- -D warnings";
    ran.push(parts::run_line(&workspace.root, "clippy", clippy, &[]));
    let skips: String = LEFT_OUT.iter().map(|name| format!(" --skip {name}")).collect();
    let tests =
        format!("test TOGETHER --no-fail-fast --lib --bins --tests -- --show-output{skips}");
    ran.push(parts::run_line(&workspace.root, "tests", &tests, &[]));
    Ok(parts::summarise(&ran))
}

/// The checks that need no compiler.
fn lints(root: &Path) -> Vec<Part> {
    let parts =
        [("format", "fmt --all --check"), ("tidy", "xtask tidy"), ("layers", "xtask layers")];
    parts.into_iter().map(|(name, words)| parts::run_line(root, name, words, &[])).collect()
}

/// The files that differ from the last commit, or are not in it.
fn changed_files(workspace: &Workspace) -> Result<Vec<String>, String> {
    let status = Command::new("git")
        .args(["status", "--porcelain", "--untracked-files=all"])
        .current_dir(&workspace.root)
        .output()
        .map_err(|error| format!("could not run git status: {error}"))?;
    if !status.status.success() {
        return Err(format!("git status failed: {}", String::from_utf8_lossy(&status.stderr)));
    }
    let text = String::from_utf8_lossy(&status.stdout);
    // Two status letters and a space; the last name of a renamed file is the new one.
    let files = text.lines().filter_map(|line| line.get(3..)?.rsplit(" -> ").next());
    Ok(files.map(str::to_owned).collect())
}

/// The package whose folder contains a file.
fn owner(workspace: &Workspace, file: &str) -> Option<String> {
    let holds = |folder: &str| file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let holding = workspace.packages.iter().filter(|package| holds(&package.folder));
    holding.max_by_key(|package| package.folder.len()).map(|package| package.name.clone())
}

/// These packages and all that depend on one of them, also only for tests.
fn users(workspace: &Workspace, changed: &BTreeSet<String>) -> BTreeSet<String> {
    let mut users = changed.clone();
    loop {
        let uses = |name: &str| users.contains(name);
        let more: Vec<String> = workspace
            .packages
            .iter()
            .filter(|package| !users.contains(&package.name))
            .filter(|package| package.dependencies.iter().any(|used| uses(&used.name)))
            .map(|package| package.name.clone())
            .collect();
        if more.is_empty() {
            return users;
        }
        users.extend(more);
    }
}

fn packages(names: &BTreeSet<String>) -> String {
    names.iter().map(|name| format!("-p {name}")).collect::<Vec<_>>().join(" ")
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(|name| name.trim_start_matches("adamant-")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_uses_the_heap_is_nearly_everything_and_what_uses_a_command_is_nothing() {
        let workspace = Workspace::load().expect("this one");
        let of = |name: &str| users(&workspace, &BTreeSet::from([name.to_owned()]));
        let heap = of("adamant-heap");
        for name in ["adamant-heap", "adamant-trees", "adamant-lsm", "adamant", "adamant-sim"] {
            assert!(heap.contains(name), "{name} is not among {heap:?}");
        }
        assert!(!heap.contains("adamant-slice"), "{heap:?}");
        assert_eq!(of("adamant-examples").len(), 1);
        let file = "base/heap/src/lib.rs";
        assert_eq!(owner(&workspace, file).as_deref(), Some("adamant-heap"));
        assert_eq!(owner(&workspace, "README.md"), None);
    }
}
