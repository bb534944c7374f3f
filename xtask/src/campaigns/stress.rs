//! `cargo xtask stress lsm`, `cargo xtask stress cluster`: kills at random moments for a chosen
//! time.
//!
//! Tests do the work; their short form is part of every test run. A longer run has another seed
//! each time, and prints it first, so that a failure can be repeated.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::campaigns::numbers::numbers;
use crate::source::workspace::Workspace;

/// Half an hour.
const SECONDS: u64 = 1800;
/// Kills of a leader, and a tenth of the rounds of a simulation; some minutes.
const ROUNDS: u64 = 50;

/// Kills a store of the engine `lsm`, with the options `--seconds N` and `--seed N`. True if
/// nothing was lost.
pub(crate) fn lsm(options: &[&str]) -> Result<bool, String> {
    let [seconds, seed] = numbers(["--seconds", "--seed"], [SECONDS, clock()], options)?;
    println!("kills for {seconds} s; seed {seed}");
    let test = ["test", "-p", "adamant-scenarios", "--test", "lsm_kills", "--", "--nocapture"];
    run(&test, [("ADAMANT_STRESS_SECONDS", seconds), ("ADAMANT_STRESS_SEED", seed)])
}

/// Kills, restarts and disconnects nodes of a cluster, and tests nodes on a simulated network, with
/// the options `--rounds N` and `--seed N`. True if nothing was lost, and all that clients saw is
/// linearizable.
pub(crate) fn cluster(options: &[&str]) -> Result<bool, String> {
    let [rounds, seed] = numbers(["--rounds", "--seed"], [ROUNDS, clock()], options)?;
    println!("{rounds} rounds; seed {seed}");
    let network = ["-p", "adamant-replica", "--test", "network", "chaos::"];
    let processes = ["-p", "adamant-server", "--test", "server", "failover::"];
    // Simulated rounds take some tenths of a second each.
    let parts = [
        (network, ("ADAMANT_CLUSTER_ROUNDS", rounds * 10), ("ADAMANT_REPLICA_SEED", seed)),
        (processes, ("ADAMANT_CLUSTER_ROUNDS", rounds), ("ADAMANT_SERVER_SEED", seed)),
    ];
    for (test, rounds, seed) in parts {
        let output = ["--", "--nocapture", "--test-threads", "1"];
        if !run(
            &[&["test", "--manifest-path", "services/Cargo.toml"], &test[..], &output].concat(),
            [rounds, seed],
        )? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn run(arguments: &[&str], variables: [(&str, u64); 2]) -> Result<bool, String> {
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        .envs(variables.map(|(name, value)| (name, value.to_string())))
        .current_dir(Workspace::load()?.root)
        .status()
        .map_err(|error| format!("could not run cargo: {error}"))?;
    Ok(status.success())
}
