//! `cargo xtask peers`: Adamant beside its peers.
//!
//! The peers are a workspace of their own, in `bench/peers`, with a folder of its own to build in,
//! so that nothing else of Adamant waits for them or builds them.

use std::process::Command;

use crate::workspace::Workspace;

/// Runs it at the root. `--features A,B` goes to cargo, all other options to the program.
pub(crate) fn run(options: &[String]) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let mut features = Vec::new();
    let mut passed = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if option == "--features" {
            let names = options.next().ok_or("--features needs names of features after it")?;
            features.extend(["--features", names]);
        } else {
            passed.push(option);
        }
    }
    let status = Command::new(env!("CARGO"))
        .args(["run", "--release", "--manifest-path", "bench/peers/Cargo.toml"])
        .args(["--target-dir", "bench/peers/target"])
        .args(features)
        .arg("--")
        .args(passed)
        .current_dir(&workspace.root)
        .status()
        .map_err(|error| format!("could not run cargo: {error}"))?;
    Ok(status.success())
}
