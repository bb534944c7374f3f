//! Package sets that are built and tested together.
//!
//! Purpose: two sets of packages for all tests. Cargo compiles a library once for each set of
//! features that the chosen packages want of it, so testing single packages would compile
//! everything below them again: a minute each. `TOGETHER` is most of it. It includes the programs
//! of campaigns, and so the hook that refuses a block. `USERS` is without those, as users get them:
//! the command and the library for C.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The words that stand for packages, with the packages.
const SETS: [(&str, &str); 2] = [
    (
        "TOGETHER",
        "--workspace --exclude adamant-cli --exclude adamant-capi --exclude adamant-python",
    ),
    ("USERS", "-p adamant-cli -p adamant-capi"),
];

/// The words of a command, in which `TOGETHER` and `USERS` are replaced by packages.
pub(crate) fn words(line: &str) -> Vec<String> {
    let line =
        SETS.iter().fold(line.to_owned(), |line, (set, packages)| line.replace(set, packages));
    line.split(' ').map(str::to_owned).collect()
}

/// Builds a program of a set, in the profile `dev` or another one, and returns its path.
///
/// # Errors
/// In words, when cargo fails.
pub(crate) fn program(
    root: &Path,
    set: &str,
    name: &str,
    profile: &str,
) -> Result<PathBuf, String> {
    let status = Command::new(env!("CARGO"))
        .args(words(&format!("build --quiet {set} --profile {profile} --bin {name}")))
        .current_dir(root)
        .status()
        .map_err(|error| format!("could not run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("{name} could not be built"));
    }
    // This program is in target/debug, or the corresponding folder of another build.
    let own = std::env::current_exe().map_err(|error| format!("where is this program: {error}"))?;
    let target = own.parent().and_then(Path::parent).ok_or("this program lies in no folder")?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target.join(folder).join(name))
}
