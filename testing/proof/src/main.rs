//! Campaigns that try to lose data, on the simulated medium, for as long as is asked for.
//!
//! `adamant-proof CAMPAIGN --seconds N --seed S`; `cargo xtask proof` runs them all and sums what
//! they say. The same seed does the same until the time is over. What is lost is told with all that
//! it takes to do it again, and counts; the program fails if anything was.
#![forbid(unsafe_code)]

mod budget;
mod report;
mod attempt;
mod walk;
mod shrink;
mod crash_states;
mod faults;
mod files;
mod damage;

use std::process::ExitCode;

use crate::budget::Budget;
use crate::report::Report;

/// Seconds of a run, unless it is told.
const SECONDS: u64 = 60;

type Run = fn(&Budget, u64, &mut Report);

/// The campaigns: name, percent of the time when all run, and what runs.
const CAMPAIGNS: [(&str, u64, Run); 3] = [
    ("crash-states", 80, crash_states::run),
    ("faults", 12, faults::run),
    ("damage", 8, damage::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mut seconds, mut seed) = (SECONDS, 0);
    for option in words.get(1..).unwrap_or_default().chunks(2) {
        let target = match option {
            ["--seconds", _] => &mut seconds,
            ["--seed", _] => &mut seed,
            _ => return usage(),
        };
        match option[1].parse() {
            Ok(number) => *target = number,
            Err(_) => return usage(),
        }
    }
    let Some(&asked) = words.first() else { return usage() };
    let mut report = Report::default();
    let mut is_known = false;
    for (name, share, run) in CAMPAIGNS {
        let percent = if asked == "all" { share } else { 100 };
        if asked == "all" || asked == name {
            is_known = true;
            run(&Budget::new((seconds * percent / 100).max(1)), seed, &mut report);
        }
    }
    if !is_known {
        return usage();
    }
    report.print();
    if report.losses() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage() -> ExitCode {
    let names = CAMPAIGNS.map(|(name, ..)| name).join(", ");
    eprintln!("usage: adamant-proof CAMPAIGN [--seconds N] [--seed S]");
    eprintln!("campaigns: all, {names}");
    ExitCode::from(2)
}
