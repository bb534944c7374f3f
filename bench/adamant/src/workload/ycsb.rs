//! The core workloads of the Yahoo! Cloud Serving Benchmark: B. F. Cooper et al., "Benchmarking
//! Cloud Serving Systems with YCSB" (2010).
//!
//! Purpose: mixtures of reads, overwrites, inserts and short scans of records that are popular by
//! Zipf's law, from one thread and from four, each change a commit of its own; B also on a machine
//! whose processors all have other work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::harness::data::{Distribution, draw};
use crate::harness::engine::{Direction, Durability, Engine};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::{Stopwatch, beside_computation, up_to};
use crate::harness::report::Report;
use crate::workload::load::put_in_batches;
use crate::workload::read::look_at;
use crate::workload::session::Session;

/// Bytes of a value: ten fields of 100 bytes.
pub const VALUE_BYTES: usize = 1_000;
/// Most entries of a scan of workload E; the lengths are equally frequent.
const SCAN_ENTRIES_MAX: u64 = 100;

/// What a workload does in the rest of its operations, which are reads but for workload E.
#[derive(Clone, Copy)]
enum Change {
    Overwrite,
    Insert,
    /// Reads a record and writes it again.
    Modify,
}

/// A workload.
struct Mixture {
    name: &'static str,
    change_percent: u32,
    change: Change,
    distribution: Distribution,
    scans: bool,
}

const MIXTURES: [Mixture; 6] = [
    mixture("a", 50, Change::Overwrite, Distribution::Zipfian, false),
    mixture("b", 5, Change::Overwrite, Distribution::Zipfian, false),
    mixture("c", 0, Change::Overwrite, Distribution::Zipfian, false),
    mixture("d", 5, Change::Insert, Distribution::Ranks, false),
    mixture("e", 5, Change::Insert, Distribution::Zipfian, true),
    mixture("f", 50, Change::Modify, Distribution::Zipfian, false),
];

const fn mixture(
    name: &'static str,
    change_percent: u32,
    change: Change,
    distribution: Distribution,
    scans: bool,
) -> Mixture {
    Mixture { name, change_percent, change, distribution, scans }
}

/// Loads all records in batches, then runs each workload for some time, by one thread and by four,
/// with buffered commits. Rows, in operations: `ycsb.load.deferred`,
/// `ycsb.{a..f}.buffered.{1t,4t}`; `ycsb.a.opened.4t` before these, where most pages are touched
/// for the first time since the engine was opened; `ycsb.b.busy.4t`, beside two threads that only
/// compute.
///
/// # Errors
/// The engine's, or contents that are not what was written.
pub fn ycsb<E: Engine>(
    session: &mut Session<'_, E>,
    report: &mut Report,
    draws: u64,
    time: Duration,
) -> Result<()> {
    let watch = Stopwatch::start();
    let operations = put_in_batches(session, 0..session.entries, 0)?;
    session.add_rate(report, "ycsb.load.deferred", watch.measured(operations));
    session.set_next(session.entries);
    session.reopen(Durability::Buffered)?;
    run(session, report, "ycsb.a.opened.4t", &MIXTURES[0], (4, draws, time))?;
    for mixture in &MIXTURES {
        for threads in [1, 4] {
            let row = format!("ycsb.{}.buffered.{threads}t", mixture.name);
            run(session, report, &row, mixture, (threads, draws, time))?;
        }
    }
    beside_computation(2, || {
        run(session, report, "ycsb.b.busy.4t", &MIXTURES[1], (4, draws, time))
    })?;
    session.verify("YCSB", false)
}

fn run<E: Engine>(
    session: &mut Session<'_, E>,
    report: &mut Report,
    row: &str,
    mixture: &Mixture,
    (threads, draws, time): (usize, u64, Duration),
) -> Result<()> {
    let drawn = draw(mixture.distribution, session.entries, draws, session.seed ^ 2);
    let mut random = fastrand::Rng::with_seed(session.seed ^ 3);
    let changes: Vec<bool> =
        drawn.iter().map(|_| random.u32(..100) < mixture.change_percent).collect();
    let version = session.newer_version();
    let missed = AtomicU64::new(0);
    let engine = session.engine();
    let measured = up_to(threads, u64::MAX, time, |thread, number| {
        // Each thread begins at a place of its own.
        let at = (number + thread as u64 * (draws / threads as u64)) % draws;
        let (drawn, is_change) = (drawn[at as usize], changes[at as usize]);
        let index = match mixture.distribution {
            Distribution::Ranks => session.next().saturating_sub(1 + drawn),
            Distribution::Uniform | Distribution::Zipfian => drawn,
        };
        let key = session.data.key(index);
        let read = || -> Result<()> {
            let is_there = engine.get(&key)?.map(|value| look_at(value.as_ref())).is_some();
            // The newest may not be written yet.
            if !is_there && index < session.entries {
                missed.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        match mixture.change {
            Change::Overwrite if is_change => engine.put(&key, session.data.value(index, version)),
            Change::Modify if is_change => {
                read()?;
                engine.put(&key, session.data.value(index, version))
            }
            Change::Insert if is_change => {
                let index = session.take_index();
                engine.put(&session.data.key(index), session.data.value(index, 0))
            }
            _ if mixture.scans => {
                let limit = 1 + at % SCAN_ENTRIES_MAX;
                let look = &mut |_: &[u8], value: &[u8]| look_at(value);
                engine.scan(Some(&key), Direction::Ascending, limit, look).map(|_| ())
            }
            _ => read(),
        }
    })?;
    let missed = missed.into_inner();
    ensure(missed == 0 || !E::KEEPS_CONTENTS, || {
        format!("{}: workload {} missed {missed} keys", E::NAME, mixture.name)
    })?;
    session.set_versions(session.oldest_version()..=version);
    session.add_rate(report, row, measured);
    Ok(())
}
