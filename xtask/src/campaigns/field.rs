//! `cargo xtask power-cut`, `cargo xtask faults`: stores on real systems.
//!
//! Purpose: builds the program `adamant-field` and starts it. The program reports what the system
//! lacks; it is not built only if everything is missing.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::source::workspace::Workspace;
use crate::testing::together;

/// The program.
const PROGRAM: &str = "adamant-field";
/// Default number of cuts.
const CUTS: u64 = 20;
/// Cuts of a short run.
const CUTS_SMOKE: u64 = 2;
/// Default seconds for the cuts of both storage backends: half an hour.
const SECONDS: u64 = 1800;

/// The choices of `--medium`.
const MEDIA: [&str; 2] = ["disk", "memory"];

/// Runs power cuts with the options `--cuts N`, `--seconds N`, `--seed N`, `--smoke`, `--medium
/// disk|memory` and `--lying-disk`. True if nothing was lost.
pub(crate) fn power_cut(options: &[&str]) -> Result<bool, String> {
    let (mut cuts, mut seconds, mut seed) = (CUTS, SECONDS, clock());
    let (mut media, mut is_lying, mut profile) = (MEDIA.to_vec(), false, "proof");
    let mut options = options.iter().copied();
    while let Some(option) = options.next() {
        let mut value = || options.next().ok_or_else(|| format!("{option} takes a value"));
        match option {
            "--smoke" => (cuts, profile) = (CUTS_SMOKE, "dev"),
            "--cuts" => cuts = number(option, value()?)?,
            "--seconds" => seconds = number(option, value()?)?,
            "--seed" => seed = number(option, value()?)?,
            "--lying-disk" => is_lying = true,
            "--medium" => {
                let name = value()?;
                media.retain(|&medium| medium == name);
            }
            other => return Err(format!("there is no option {other} of power-cut")),
        }
    }
    if media.is_empty() {
        return Err("--medium takes disk or memory".to_owned());
    }
    if !crate::testing::tools::succeeds("qemu-system-x86_64", &["--version"]) {
        let packages = "apt-get install qemu-system-x86 linux-image-amd64 busybox-static e2fsprogs";
        println!("skipped: power cuts: qemu-system-x86_64 is not installed ({packages})");
        return Ok(true);
    }
    let seconds = seconds / media.len() as u64;
    let program = together::program(&Workspace::load()?.root, "TOGETHER", PROGRAM, profile)?;
    let mut is_whole = true;
    for medium in media {
        let mut command = Command::new(&program);
        command.args(["cuts", medium]);
        command.args([cuts, seconds, seed].map(|number| number.to_string()));
        command.args(is_lying.then_some("lying"));
        let status = command.status();
        is_whole &= status.map_err(|error| format!("could not run the cuts: {error}"))?.success();
    }
    Ok(is_whole)
}

/// Default seconds of failing calls, and those of a short run.
const FAULT_SECONDS: u64 = 600;
const FAULT_SECONDS_SMOKE: u64 = 20;

/// Makes system calls fail, with the options `--seconds N`, `--seed N` and `--smoke`. True if
/// nothing was lost.
pub(crate) fn faults(options: &[&str]) -> Result<bool, String> {
    let (mut seconds, mut seed, mut is_short) = (FAULT_SECONDS, clock(), false);
    let mut options = options.iter().copied();
    while let Some(option) = options.next() {
        let mut value = || options.next().ok_or_else(|| format!("{option} takes a value"));
        match option {
            "--smoke" => (seconds, is_short) = (FAULT_SECONDS_SMOKE, true),
            "--seconds" => seconds = number(option, value()?)?,
            "--seed" => seed = number(option, value()?)?,
            other => return Err(format!("there is no option {other} of faults")),
        }
    }
    let mut command =
        Command::new(together::program(&Workspace::load()?.root, "TOGETHER", PROGRAM, "dev")?);
    command.arg("faults").args([seconds, seed].map(|number| number.to_string()));
    command.args(is_short.then_some("short"));
    let status = command.status();
    Ok(status.map_err(|error| format!("could not run {PROGRAM}: {error}"))?.success())
}

fn number(option: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{option} takes a number, found {text:?}"))
}

/// Another seed each time.
fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
