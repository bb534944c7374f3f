//! Test programs: built once, then run test by test.
//!
//! Purpose: `cargo xtask mutants` runs them again and again, with another environment variable each
//! time.
//! Invariants: a test that does not end is killed. Thread safety: none needed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::campaigns::copy::Copy;
use crate::campaigns::planted::{self, Suite, Test};
use crate::source::workspace::Workspace;
use crate::testing::parts;

/// Far longer than any of the tests takes on a slow machine.
const TEST_TIME_MAX: Duration = Duration::from_secs(600);
/// Pause between two checks whether a test has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The store, and its features that the packages of all tests want together. Unit tests of some are
/// built with the same, so nothing below them is built twice.
const STORE: &str = "adamant";
const FEATURES: &str = "adamant/encryption,adamant/zstd";

/// The built programs, each with its working folder.
pub(crate) struct Programs(BTreeMap<(String, String), (PathBuf, PathBuf)>);

/// The outcome of a test.
pub(crate) struct Ran {
    /// Whether exactly one test ran, and passed.
    pub(crate) has_passed: bool,
    /// Whether it had to be killed.
    pub(crate) is_endless: bool,
    /// Its output.
    pub(crate) lines: Vec<String>,
    /// How long it took.
    pub(crate) time: Duration,
}

impl Programs {
    /// Builds the test programs in a copy of the tree in which faults can be planted; no others, as
    /// each takes longer than all of its tests.
    ///
    /// # Errors
    /// In words, when cargo fails.
    pub(crate) fn build(
        workspace: &Workspace,
        copy: &Copy,
        suites: &BTreeSet<Suite>,
    ) -> Result<Self, String> {
        let units = suites.iter().filter(|suite| suite.target.is_empty());
        let packages: BTreeSet<&str> = units.map(|suite| suite.package).collect();
        let targets: BTreeSet<&str> = suites.iter().map(|suite| suite.target).collect();
        let targets = targets.into_iter().filter(|target| !target.is_empty());
        let targets: Vec<&str> = targets.flat_map(|target| ["--test", target]).collect();
        let mut programs = Self(BTreeMap::new());
        if !packages.is_empty() {
            let packages = packages.into_iter().chain([STORE]).flat_map(|name| ["--package", name]);
            let packages: Vec<&str> = packages.collect();
            let built = cargo_test(copy, &[&["--lib", "--features", FEATURES], &packages[..]])?;
            programs.add(workspace, copy, &built);
        }
        if !targets.is_empty() {
            // Of all, whatever is asked for: others may want other features of those below.
            let packages = planted::packages().into_iter().flat_map(|name| ["--package", name]);
            let packages: Vec<&str> = packages.collect();
            let built = cargo_test(copy, &[&packages, &targets])?;
            programs.add(workspace, copy, &built);
        }
        Ok(programs)
    }

    /// Adds the programs that cargo has built.
    fn add(&mut self, workspace: &Workspace, copy: &Copy, messages: &str) {
        let packages = planted::packages();
        for line in messages.lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
            let (Some(program), Some(manifest)) =
                (message["executable"].as_str(), message["manifest_path"].as_str())
            else {
                continue;
            };
            let Some(folder) = PathBuf::from(manifest).parent().map(PathBuf::from) else {
                continue;
            };
            let is_its = |name: &&&str| {
                let its = workspace.package(name).map(|package| &package.folder);
                its.is_some_and(|its| copy.root.join(its) == folder)
            };
            let Some(package) = packages.iter().find(is_its) else { continue };
            let kinds = message["target"]["kind"].as_array();
            let is_test = kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "test"));
            let target =
                if is_test { message["target"]["name"].as_str().unwrap_or("") } else { "" };
            self.0.insert(((*package).into(), target.into()), (program.into(), folder));
        }
    }

    /// Runs a test, with a planted fault or none.
    ///
    /// # Errors
    /// In words, when there is no such program or it cannot be run.
    pub(crate) fn run(&self, test: &Test, mutant: Option<&str>) -> Result<Ran, String> {
        let Suite { package, target } = test.suite;
        let (program, folder) = self
            .0
            .get(&(package.to_owned(), target.to_owned()))
            .ok_or_else(|| format!("package {package} has no program of tests {target:?}"))?;
        let start = Instant::now();
        let mut command = Command::new(program);
        command.args([test.name, "--exact", "--nocapture", "--test-threads=1"]);
        command.current_dir(folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).env_remove("ADAMANT_MUTANT");
        if let Some(mutant) = mutant {
            command.env("ADAMANT_MUTANT", mutant);
        }
        let child = parts::without_stacks(&mut command)
            .spawn()
            .map_err(|error| format!("could not run {}: {error}", program.display()))?;
        let (has_succeeded, is_endless, lines) = watch(child)?;
        let is_one = lines.iter().any(|line| line.starts_with("test result: ok. 1 passed"));
        let time = start.elapsed();
        Ok(Ran { has_passed: has_succeeded && is_one, is_endless, lines, time })
    }
}

/// Has cargo build tests in a copy; returns its messages.
fn cargo_test(copy: &Copy, arguments: &[&[&str]]) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--no-run", "--message-format=json-render-diagnostics"])
        .args(arguments.concat())
        .current_dir(&copy.root)
        .env("CARGO_TARGET_DIR", &copy.target)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("could not run cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests could not be built".into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits for a program: whether it succeeded, whether it had to be killed, and its output.
fn watch(mut child: Child) -> Result<(bool, bool, Vec<String>), String> {
    let printed = child.stdout.take().map(|pipe| thread::spawn(|| all_of(pipe)));
    let said = child.stderr.take().map(|pipe| thread::spawn(|| all_of(pipe)));
    let start = Instant::now();
    let waiting = |error| format!("could not wait for a test: {error}");
    let mut is_endless = false;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(waiting)? {
            break status;
        }
        if !is_endless && start.elapsed() > TEST_TIME_MAX {
            is_endless = true;
            child.kill().map_err(waiting)?;
        }
        thread::sleep(LOOK_AGAIN);
    };
    let mut lines = Vec::new();
    for text in [said, printed].into_iter().flatten().filter_map(|thread| thread.join().ok()) {
        lines.extend(text.lines().map(str::to_owned));
    }
    Ok((status.success(), is_endless, lines))
}

fn all_of(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // The output up to a broken pipe is useful, too.
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
