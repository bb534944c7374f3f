//! What is tested together, and programs of it.
//!
//! Purpose: one set of packages for most tests. Cargo compiles a library once for each set of features that the
//! chosen packages want of it, so that tests of one package alone would have everything below it compiled
//! again: a minute each. Programs of campaigns belong to it, and with them the hooks for mistakes and faults that
//! are planted; the command, the examples, C and Python are tested without those, as users get them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Words that choose the packages.
pub(crate) const PACKAGES: &str =
    "--workspace --exclude adamant-cli --exclude adamant-capi --exclude adamant-python";

/// The words of a command, in which `TOGETHER` stands for the packages.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.replace("TOGETHER", PACKAGES).split(' ').map(str::to_owned).collect()
}

/// Builds a program of these packages, in the profile `dev` or another one, and returns where it is.
///
/// # Errors
/// In words, when cargo fails.
pub(crate) fn program(root: &Path, name: &str, profile: &str) -> Result<PathBuf, String> {
    let status = Command::new(env!("CARGO"))
        .args(words("build --quiet TOGETHER"))
        .args(["--profile", profile, "--bin", name])
        .current_dir(root)
        .status()
        .map_err(|error| format!("could not run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("{name} could not be built"));
    }
    // This program is in target/debug, or wherever else builds are put.
    let own = std::env::current_exe().map_err(|error| format!("where is this program: {error}"))?;
    let target = own.parent().and_then(Path::parent).ok_or("this program lies in no folder")?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target.join(folder).join(name))
}
