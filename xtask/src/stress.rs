//! `cargo xtask stress lsm`: kills at random moments for as long as is asked for.
//!
//! The work is done by the test whose short form is part of every run of the tests; the seed of a longer
//! one is another each time, and printed first, so that what fails can be run again.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::workspace::Workspace;

/// Half an hour.
const SECONDS: u64 = 1800;

/// Runs it with the options `--seconds N` and `--seed N`. True if nothing was lost.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (mut seconds, mut seed) = (SECONDS, clock.as_secs());
    for option in options.chunks(2) {
        let target = match option {
            ["--seconds", _] => &mut seconds,
            ["--seed", _] => &mut seed,
            other => return Err(format!("expected --seconds N or --seed N, found {other:?}")),
        };
        let number = option[1].parse();
        *target =
            number.map_err(|_| format!("{} takes a number, found {:?}", option[0], option[1]))?;
    }
    println!("kills for {seconds} s; seed {seed}");
    let status = Command::new(env!("CARGO"))
        .args(["test", "-p", "adamant-scenarios", "--test", "lsm_kills", "--", "--nocapture"])
        .env("ADAMANT_STRESS_SECONDS", seconds.to_string())
        .env("ADAMANT_STRESS_SEED", seed.to_string())
        .current_dir(Workspace::load()?.root)
        .status()
        .map_err(|error| format!("could not run cargo: {error}"))?;
    Ok(status.success())
}
