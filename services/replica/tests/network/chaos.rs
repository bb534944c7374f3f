//! Faults at random, one after the other and at once, while clients write and read.

use crate::fault::{Fault, KINDS, Kind};
use crate::run::{Run, rounds, seed};

const CLIENTS: usize = 5;
/// Rounds that one cluster goes through.
const ROUNDS_MAX: usize = 40;

/// Something that happens to the node that leads, to another one, or to some.
fn fault(run: &mut Run, kind: Kind) -> Fault {
    let all: Vec<u64> = run.cluster.all().collect();
    let any = all[run.random.usize(..all.len())];
    match run.random.u8(..3) {
        0 => Fault::new(kind, [run.cluster.leader().unwrap_or(any)]),
        1 => Fault::new(kind, [any]),
        _ => Fault::new(kind, all.into_iter().filter(|_| run.random.bool())),
    }
}

fn round(run: &mut Run) {
    let kind = run.random.choice(KINDS).unwrap();
    let mut faults = vec![fault(run, kind)];
    // Links have one state each, so what comes to it is a crash.
    if kind != Kind::Crash && run.random.bool() {
        faults.push(fault(run, Kind::Crash));
    }
    for fault in &faults {
        run.begin(fault);
        let millis = run.random.u64(50..1500);
        run.pass(millis);
    }
    run.random.shuffle(&mut faults);
    for fault in &faults {
        run.end(fault);
        // At once, so that the next one meets what this one has left.
        if run.random.bool() {
            let millis = run.random.u64(2..1000);
            run.pass(millis);
        }
    }
    if run.random.bool() {
        run.until_written(5);
    }
}

/// Some rounds on one cluster, then on another one.
fn chaos(nodes: u64, seed: u64, rounds: u64) {
    for (part, begun) in (0..rounds).step_by(ROUNDS_MAX).enumerate() {
        let mut run = Run::start(nodes, seed + part as u64);
        (0..CLIENTS).for_each(|_| run.client(None));
        run.until_written(10);
        for _ in begun..rounds.min(begun + ROUNDS_MAX as u64) {
            round(&mut run);
        }
        run.finish();
    }
}

#[test]
fn three_nodes_lose_nothing() {
    chaos(3, seed(1), rounds(24));
}

#[test]
fn five_nodes_lose_nothing() {
    chaos(5, seed(2), rounds(12));
}
