//! `cargo xtask proof`: campaigns that try to lose data, each with its share of the time, and a
//! summary table.
//!
//! A campaign is a command that prints lines of `proof_lines.rs`. It gets its seconds and a seed;
//! each process of a campaign gets a seed of its own. A failed campaign counts as a loss, whatever
//! it printed; the ones after it run anyway.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::campaigns::proof_lines::Tries;
use crate::source::workspace::Workspace;
use crate::testing::parts;
use crate::testing::together;

/// Minutes of a full run, and seconds of one with `--smoke`.
const MINUTES: u64 = 30;
const SMOKE_SECONDS: u64 = 60;

/// The runner of a campaign.
#[derive(Clone, Copy)]
enum Runner {
    /// Cargo, with these words.
    Cargo,
    /// A program of the packages that are tested together.
    Program(&'static str),
    /// Another xtask command.
    Tasks,
}

/// A campaign.
struct Campaign {
    name: &'static str,
    runner: Runner,
    /// Percent of the time.
    share: u64,
    /// Number of parallel processes.
    processes: u64,
    /// Arguments; `SECONDS` and `SEED` stand for numbers. A short run may leave a campaign out.
    smoke: Option<&'static str>,
    full: &'static str,
    /// Environment variables, likewise.
    variables: &'static [(&'static str, &'static str)],
}

const CAMPAIGNS: [Campaign; 7] = [
    Campaign {
        name: "simulated",
        runner: Runner::Program("adamant-proof"),
        share: 46,
        processes: 2,
        smoke: Some("all --seconds SECONDS --seed SEED"),
        full: "all --seconds SECONDS --seed SEED",
        variables: &[],
    },
    Campaign {
        name: "histories",
        runner: Runner::Cargo,
        share: 3,
        processes: 1,
        smoke: Some("test TOGETHER --lib what_each_transaction -- --nocapture"),
        full: "test --profile proof -p adamant --lib what_each_transaction -- --nocapture",
        variables: &[("ADAMANT_HISTORIES_SECONDS", "SECONDS"), ("ADAMANT_HISTORIES_SEED", "SEED")],
    },
    Campaign {
        name: "kills",
        runner: Runner::Cargo,
        share: 4,
        processes: 1,
        smoke: Some("test TOGETHER --test lsm_kills -- --nocapture"),
        full: "test TOGETHER --test lsm_kills -- --nocapture",
        variables: &[("ADAMANT_STRESS_SECONDS", "SECONDS"), ("ADAMANT_STRESS_SEED", "SEED")],
    },
    Campaign {
        name: "power cuts",
        runner: Runner::Tasks,
        share: 13,
        processes: 1,
        smoke: Some("power-cut --smoke --medium disk --seed SEED"),
        full: "power-cut --seconds SECONDS --seed SEED",
        variables: &[],
    },
    Campaign {
        name: "system calls that fail",
        runner: Runner::Program("adamant-field"),
        share: 6,
        processes: 1,
        smoke: Some("faults SECONDS SEED short"),
        full: "faults SECONDS SEED",
        variables: &[],
    },
    Campaign {
        name: "fuzz targets",
        runner: Runner::Tasks,
        share: 6,
        processes: 1,
        // A test of adamant-scenarios is its short form: the compilers would take six minutes for
        // 35 s of programs.
        smoke: None,
        full: "fuzz --seconds SECONDS --seed SEED",
        variables: &[],
    },
    Campaign {
        name: "mutants",
        runner: Runner::Tasks,
        share: 22,
        processes: 1,
        smoke: Some("mutants --smoke"),
        full: "mutants",
        variables: &[],
    },
];

/// The parsed options.
struct Asked {
    smoke: bool,
    seconds: u64,
    seed: u64,
}

/// Runs all campaigns with the options `--smoke`, `--minutes N` and `--seed S`. True if nothing was
/// lost.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let asked = asked(options)?;
    let root = Workspace::load()?.root;
    println!("proof: {} s, seed {}", asked.seconds, asked.seed);
    let (start, mut tries, mut broken) = (Instant::now(), Tries::default(), Vec::new());
    for campaign in &CAMPAIGNS {
        broken.extend(try_campaign(campaign, &asked, &root, &mut tries));
    }
    println!();
    tries.table().iter().for_each(|line| println!("{line}"));
    broken.iter().for_each(|what| println!("failed: {what}"));
    let losses = tries.losses() + broken.len() as u64;
    println!("{:.0} s, seed {}, losses: {losses}", start.elapsed().as_secs_f64(), asked.seed);
    Ok(losses == 0)
}

fn asked(options: &[&str]) -> Result<Asked, String> {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut asked = Asked { smoke: false, seconds: MINUTES * 60, seed: clock.as_secs() };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut number = || -> Result<u64, String> {
            let word = options.next().ok_or_else(|| format!("{option} takes a number"))?;
            word.parse().map_err(|_| format!("{option} takes a number, found {word:?}"))
        };
        match *option {
            "--smoke" => (asked.smoke, asked.seconds) = (true, SMOKE_SECONDS),
            "--minutes" => asked.seconds = number()?.saturating_mul(60),
            "--seed" => asked.seed = number()?,
            other => {
                return Err(format!("expected --smoke, --minutes N or --seed S, found {other:?}"));
            }
        }
    }
    Ok(asked)
}

/// Runs the processes of a campaign; returns what failed, if anything did.
fn try_campaign(
    campaign: &Campaign,
    asked: &Asked,
    root: &Path,
    tries: &mut Tries,
) -> Option<String> {
    let start = Instant::now();
    let words = if asked.smoke { campaign.smoke? } else { campaign.full };
    let seconds = (asked.seconds * campaign.share / 100).max(1);
    println!("== {}: {seconds} s, {} at a time", campaign.name, campaign.processes);
    let tries = Mutex::new(tries);
    let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..campaign.processes)
            .map(|process| {
                let filled = |words: &str| {
                    let seed = asked.seed.wrapping_add(process.wrapping_mul(0x9e37_79b9));
                    words
                        .replace("SECONDS", &seconds.to_string())
                        .replace("SEED", &seed.to_string())
                };
                let command = command(campaign, asked.smoke, words, root, filled);
                let (name, tries) = (campaign.name, &tries);
                scope.spawn(move || listen(name, command?, tries))
            })
            .collect();
        let outcome = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err("its reader panicked".to_owned()))
        };
        started.into_iter().map(outcome).collect()
    });
    let wrong: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    let outcome = if wrong.is_empty() { "passed" } else { "FAILED" };
    println!("{outcome}: {} in {:.0} s", campaign.name, start.elapsed().as_secs_f64());
    (!wrong.is_empty()).then(|| format!("{}: {}", campaign.name, wrong.join("; ")))
}

fn command(
    campaign: &Campaign,
    smoke: bool,
    words: &str,
    root: &Path,
    filled: impl Fn(&str) -> String,
) -> Result<Command, String> {
    let mut command = match campaign.runner {
        Runner::Cargo => Command::new(env!("CARGO")),
        Runner::Program(name) => {
            let profile = if smoke { "dev" } else { "proof" };
            Command::new(together::program(root, "TOGETHER", name, profile)?)
        }
        // By the path of this process: the file may be rebuilt in half an hour, and be another
        // program.
        Runner::Tasks => Command::new(format!("/proc/{}/exe", std::process::id())),
    };
    command.args(together::words(&filled(words))).current_dir(root);
    command.stdout(Stdio::piped()).stdin(Stdio::null());
    command.envs(campaign.variables.iter().map(|(name, value)| (name, filled(value))));
    Ok(command)
}

/// Runs a process to its end, passes on its prose, and collects its lines.
fn listen(name: &str, mut command: Command, tries: &Mutex<&mut Tries>) -> Result<(), String> {
    let mut child = parts::without_stacks(&mut command)
        .spawn()
        .map_err(|error| format!("could not start: {error}"))?;
    let mut wrong = None;
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).split(b'\n')) {
        let line = line.map_err(|error| format!("could not read what it prints: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        let mut tries = tries.lock().map_err(|_| "another reader panicked".to_owned())?;
        match tries.take(name, &line) {
            Ok(true) => {}
            Ok(false) => println!("   {line}"),
            Err(what) => wrong = Some(what),
        }
    }
    let status = child.wait().map_err(|error| format!("could not wait for it: {error}"))?;
    match wrong {
        Some(what) => Err(what),
        None if status.success() => Ok(()),
        None => Err(format!("it ended with {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_one_whole() {
        assert!(CAMPAIGNS.iter().map(|campaign| campaign.share).sum::<u64>() <= 100);
    }

    #[test]
    fn options_are_read() {
        let read = asked(&["--minutes", "3", "--seed", "7"]).unwrap();
        assert_eq!((read.smoke, read.seconds, read.seed), (false, 180, 7));
        let read = asked(&["--smoke"]).unwrap();
        assert_eq!((read.smoke, read.seconds), (true, SMOKE_SECONDS));
        assert!(asked(&["--minutes"]).is_err() && asked(&["--hours", "3"]).is_err());
    }

    #[test]
    fn a_process_that_fails_is_told() {
        let mut tries = Tries::default();
        let mut command = Command::new(env!("CARGO"));
        command.arg("no-such-command").stdout(Stdio::piped()).stderr(Stdio::null());
        let outcome = listen("campaign", command, &Mutex::new(&mut tries));
        assert!(outcome.is_err(), "{outcome:?}");
    }
}
