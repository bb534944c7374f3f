//! The part "Python" of `cargo xtask test`: the Python package, built, installed and tested.
//!
//! Purpose: everything happens in `target/python`: a virtual environment, with the tests'
//! requirements from the package index, and a wheel by maturin in it, as a user would install it.
//! Without a suitable Python, or a reachable index, the part is skipped and says why. So are suites
//! of tests of other projects (`tests/foreign`) whose packages cannot be had.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::testing::parts::{self, Clock, Counts, Part};

const NAME: &str = "Python";
/// Its folder, below the root.
const PACKAGE: &str = "interfaces/python";
/// What the lines begin with that count the tests of a suite of another project.
const FOREIGN: &str = "suite of others: ";
/// Prints nothing if the interpreter is suitable, else why not.
const SUITS: &str = "import sys, venv, ensurepip\n\
                     if sys.version_info < (3, 11): print('Python', sys.version, 'is older than 3.11')";

/// Why the tests did not run to their end.
pub(crate) enum Halt {
    /// A requirement that this machine lacks.
    Skipped(String),
    /// A failure of ours.
    Failed(String),
}

/// Builds, installs and tests.
pub(crate) fn run(root: &Path) -> Part {
    part(NAME, "a wheel by maturin, and pytest, in target/python", || install_and_test(root))
}

/// A part of tests in Python.
pub(crate) fn part(name: &str, what: &str, work: impl FnOnce() -> Result<Counts, Halt>) -> Part {
    let clock = Clock::start();
    println!("== {name}: {what}");
    let (mut counts, mut skipped, mut failed) = (Counts::default(), Vec::new(), Vec::new());
    match work() {
        Ok(found) => {
            counts = found;
            if counts.failed > 0 {
                failed.push(format!("{} tests, as pytest says above", counts.failed));
            }
            if counts.skipped > 0 {
                skipped.push(format!("{} tests, for reasons that pytest gives", counts.skipped));
            }
        }
        Err(Halt::Skipped(why)) => {
            println!("   skipped: {why}");
            counts.skipped = 1;
            skipped.push(why);
        }
        Err(Halt::Failed(words)) => {
            println!("{words}");
            counts.failed = 1;
            failed = parts::last(&words.lines().map(str::to_owned).collect::<Vec<_>>());
        }
    }
    Part { name: name.to_owned(), took: clock.took(), counts, is_command: false, skipped, failed }
}

fn install_and_test(root: &Path) -> Result<Counts, Halt> {
    let (package, home) = (root.join(PACKAGE), root.join("target/python"));
    let (venv, wheels) = (home.join("venv"), home.join("wheels"));
    let python = environment(&venv, &package.join("tests/requirements.txt"))?;

    let _ = fs::remove_dir_all(&wheels);
    let mut maturin = Command::new(venv.join("bin/maturin"));
    maturin.args(["build", "--quiet", "--locked", "--profile", "dev"]);
    maturin.arg("--manifest-path").arg(package.join("Cargo.toml"));
    maturin.arg("--interpreter").arg(&python).arg("--out").arg(&wheels);
    succeeds(&mut maturin, |said| Halt::Failed(format!("maturin built no wheel: {said}")))?;
    let wheel = only_file(&wheels)?;
    let mut install = pip(&python, "install");
    install.args(["--force-reinstall", "--no-deps"]).arg(&wheel);
    succeeds(&mut install, |said| Halt::Failed(format!("pip did not install the wheel: {said}")))?;

    let sources = home.join("foreign");
    fetch_foreign(&python, &package.join("tests/foreign"), &sources);
    let mut tests = tests(&python, &package.join("tests"));
    tests.env("HYPOTHESIS_STORAGE_DIRECTORY", home.join("hypothesis"));
    tests.env("ADAMANT_FOREIGN_SOURCES", sources);
    count(&mut tests)
}

/// Fetches what the suites of other projects need: packages, and source distributions of those
/// that install no tests. Without it their tests are skipped.
fn fetch_foreign(python: &Path, folder: &Path, sources: &Path) {
    let (packages, archives) = (folder.join("requirements.txt"), folder.join("sources.txt"));
    let mut steps = vec![pip(python, "install")];
    steps[0].arg("--requirement").arg(packages);
    let pinned = fs::read_to_string(&archives).unwrap_or_default();
    let archive = |line: &str| sources.join(line.trim().replace("==", "-") + ".tar.gz");
    if !pinned.lines().all(|line| archive(line).is_file()) {
        let mut download = pip(python, "download");
        download.args(["--no-deps", "--no-binary", ":all:"]).arg("--dest").arg(sources);
        download.arg("--requirement").arg(archives);
        steps.push(download);
    }
    for step in &mut steps {
        if let Err(why) = succeeds(step, |said| said.lines().last().unwrap_or_default().to_owned())
        {
            println!("   skipped: suites of other projects: {why}");
        }
    }
}

/// The file that a tool has left in a folder of its own.
pub(crate) fn only_file(folder: &Path) -> Result<PathBuf, Halt> {
    let file = fs::read_dir(folder).ok().and_then(|mut files| files.next()?.ok());
    let none = || Halt::Failed(format!("{}: expected a file, found none", folder.display()));
    Ok(file.ok_or_else(none)?.path())
}

/// A virtual environment with the packages of a requirements file; returns its interpreter.
pub(crate) fn environment(venv: &Path, requirements: &Path) -> Result<PathBuf, Halt> {
    let python = venv.join("bin/python");
    if !python.exists() {
        make_environment(venv)?;
    }
    succeeds(pip(&python, "install").arg("--requirement").arg(requirements), |said| {
        Halt::Skipped(format!(
            "could not install what the tests need from the package index: {said}"
        ))
    })?;
    Ok(python)
}

fn pip(python: &Path, verb: &str) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", verb, "--quiet", "--disable-pip-version-check"]);
    pip
}

/// Runs the tests of a folder, in its parent folder.
pub(crate) fn tests(python: &Path, folder: &Path) -> Command {
    let mut tests = Command::new(python);
    tests.args(["-m", "pytest", "--quiet", "-rs", "-p", "no:cacheprovider"]);
    tests.args(folder.file_name()).current_dir(folder.parent().unwrap_or(folder));
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    tests
}

/// Runs tests and counts them.
pub(crate) fn count(tests: &mut Command) -> Result<Counts, Halt> {
    let (lines, succeeded) = parts::output(tests).map_err(Halt::Failed)?;
    let mut counts = lines.last().and_then(|line| summary(line)).unwrap_or_default();
    let is_told = |line: &&String| line.starts_with("SKIPPED") || line.starts_with(FOREIGN);
    lines.iter().filter(is_told).for_each(|line| println!("   {line}"));
    if !succeeded {
        println!("{}", lines.join("\n"));
        counts.failed = counts.failed.max(1);
    }
    Ok(counts)
}

/// Creates a virtual environment with the first suitable interpreter of the path.
fn make_environment(venv: &Path) -> Result<(), Halt> {
    let mut reason = "there is no python3".to_owned();
    for name in ["python3", "python3.15", "python3.14", "python3.13", "python3.12", "python3.11"] {
        let Ok(found) = Command::new(name).args(["-c", SUITS]).output() else { continue };
        let said =
            String::from_utf8_lossy(&[found.stdout, found.stderr].concat()).trim().to_owned();
        if !found.status.success() || !said.is_empty() {
            reason = said.lines().last().unwrap_or("it does not start").to_owned();
            continue;
        }
        return succeeds(Command::new(name).args(["-m", "venv"]).arg(venv), |said| {
            Halt::Skipped(format!("could not make a virtual environment: {said}"))
        });
    }
    Err(Halt::Skipped(format!("a Python of 3.11 or later with venv is needed: {reason}")))
}

/// Runs a command; if it fails, converts its output to a reason.
pub(crate) fn succeeds<H>(command: &mut Command, halt: impl Fn(String) -> H) -> Result<(), H> {
    match command.output() {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => {
            let said = [done.stdout, done.stderr].concat();
            Err(halt(String::from_utf8_lossy(&said).trim().to_owned()))
        }
        Err(error) => Err(halt(error.to_string())),
    }
}

/// The counts of pytest's last line, such as `1 failed, 203 passed, 2 skipped in 54.12s`.
fn summary(line: &str) -> Option<Counts> {
    let (fields, _) = line.rsplit_once(" in ")?;
    let mut counts = Counts::default();
    for field in fields.trim_start_matches("= ").split(", ") {
        let (number, word) = field.split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match word {
            "passed" | "xfailed" => counts.passed += number,
            "failed" | "error" | "errors" | "xpassed" => counts.failed += number,
            "skipped" => counts.skipped += number,
            _ => {}
        }
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_last_line() {
        let counts = |passed, failed, skipped| Some(Counts { passed, failed, skipped });
        assert_eq!(summary("203 passed in 54.12s"), counts(203, 0, 0));
        let line = "1 failed, 203 passed, 2 skipped, 1 warning, 3 errors in 61.00s (0:01:01)";
        assert_eq!(summary(line), counts(203, 4, 2));
        assert_eq!(summary("no tests ran"), None);
    }
}
