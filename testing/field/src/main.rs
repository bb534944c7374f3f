//! Stores on real systems: virtual machines that lose their power, system calls that fail.
//!
//! Purpose: what a simulated medium assumes of a kernel, a file system and a disk is tried on those
//! themselves. `cargo xtask power-cut` and `cargo xtask faults` start it. The same program is who
//! writes to the stores, within a virtual machine or as a child: the agent.

#![forbid(unsafe_code)]

mod needs;
mod work;
mod agent;
mod archive;
mod disk;
mod nbd;
mod machine;
mod cuts;
mod faults;

use std::process::ExitCode;
use std::time::Duration;

use crate::agent::Orders;
use crate::cuts::Campaign;
use crate::machine::Parts;
use crate::work::Ground;

const USAGE: &str = "\
usage: adamant-field cuts disk|memory CUTS SECONDS SEED [lying]
       adamant-field faults SECONDS SEED [short]
       adamant-field agent PATH disk|memory|tmpfs SEED ROUND DURABLE COMMITS|-";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["agent", path, ground, seed, round, durable, commits] => {
            orders(path, [ground, seed, round, durable, commits]).map(|orders| agent::run(&orders))
        }
        ["cuts", ground, cuts, seconds, seed] => power_cuts(ground, [cuts, seconds, seed], false),
        ["cuts", ground, cuts, seconds, seed, "lying"] => {
            power_cuts(ground, [cuts, seconds, seed], true)
        }
        ["faults", seconds, seed] => failing_calls(seconds, seed, false),
        ["faults", seconds, seed, "short"] => failing_calls(seconds, seed, true),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a number, found {text:?}\n{USAGE}"))
}

fn ground(name: &str) -> Result<Ground, String> {
    let what = || format!("expected disk, memory or tmpfs, found {name:?}\n{USAGE}");
    Ground::named(name).ok_or_else(what)
}

fn orders(path: &str, words: [&str; 5]) -> Result<Orders, String> {
    let [name, seed, round, durable, commits] = words;
    let commits = if commits == "-" { None } else { Some(number(commits)?) };
    Ok(Orders {
        path: path.into(),
        ground: ground(name)?,
        seed: number(seed)?,
        round: number(round)?,
        durable: number(durable)?,
        commits,
    })
}

/// Runs the campaign, or says why it cannot be run here, which is no failure.
fn power_cuts(name: &str, numbers: [&str; 3], is_lying: bool) -> Result<bool, String> {
    let ground = ground(name)?;
    if ground == Ground::Tmpfs {
        return Err(format!("memory that is lost with the power needs no cut\n{USAGE}"));
    }
    let [cuts, seconds, seed] = numbers;
    let campaign = Campaign {
        ground,
        cuts: number(cuts)?,
        time: Duration::from_secs(number(seconds)?),
        seed: number(seed)?,
        is_lying,
    };
    match Parts::find() {
        Ok(parts) => cuts::run(parts, &campaign),
        Err(why) => {
            println!("skipped: power cuts, {name}: {why}");
            Ok(true)
        }
    }
}

/// Runs the campaign; what of it cannot be run here is said.
fn failing_calls(seconds: &str, seed: &str, is_short: bool) -> Result<bool, String> {
    let time = Duration::from_secs(number(seconds)?);
    faults::run(&faults::Campaign { time, seed: number(seed)?, is_short })
}
