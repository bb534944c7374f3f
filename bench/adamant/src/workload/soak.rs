//! A mixture of reads and writes for any length of time, every one of them timed.
//!
//! Purpose: worst-case commit and get latencies, while logs fill, checkpoints run and tables are
//! merged, which a mean hides.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::harness::data::{Distribution, draw};
use crate::harness::engine::{Direction, Engine};
use crate::harness::error::{Result, ensure};
use crate::harness::key::Key;
use crate::harness::measure::on_threads;
use crate::harness::raw::RawDisk;
use crate::harness::report::{Report, Unit};
use crate::workload::read::look_at;
use crate::workload::session::Session;

/// Single-record commits for each large one, gets for each scan.
const SINGLES: u64 = 1_000;
/// Records of the large commit, and of the scan.
const MANY: u64 = 100;
/// Number of versions that values cycle through.
const VERSIONS: u64 = 3;
/// Records drawn before the clock starts; reused when used up.
const DRAWS: u64 = 1 << 18;

/// The results.
#[derive(Debug)]
pub struct Soaked {
    /// Commits, nanoseconds.
    pub commits: Histogram<u64>,
    /// Gets, nanoseconds.
    pub gets: Histogram<u64>,
    /// Seconds of the whole run.
    pub seconds: f64,
}

/// A histogram of nanoseconds.
///
/// # Errors
/// Never, for these constants.
pub fn waits() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_max(60_000_000_000, 3)?)
}

/// Adds rows of a histogram of nanoseconds: `.p50`, `.p99`, `.p99.9`, `.longest`, in ms.
pub fn add_waits(
    report: &mut Report,
    row: &str,
    engine: &'static str,
    n: u64,
    waits: &Histogram<u64>,
) {
    for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9), ("longest", 100.0)] {
        let milliseconds = waits.value_at_percentile(percent) as f64 / 1e6;
        report.add(&format!("{row}.{name}"), engine, Unit::Milliseconds, n, milliseconds);
    }
}

/// Times of writes of records over a file beside a thread that syncs it, and of these syncs, in
/// nanoseconds. Works in a new folder of `directory`, which is removed.
///
/// # Errors
/// Those of the file system.
pub fn raw_waits(directory: &Path, time: Duration) -> Result<[Histogram<u64>; 2]> {
    let folder = directory.join("raw");
    fs::create_dir(&folder)?;
    let disk = RawDisk::create(&folder)?;
    let all = [waits()?, waits()?].map(Mutex::new);
    disk.write_beside_syncs(time, &|thread, time| {
        if let Some(Ok(mut waits)) = all.get(thread).map(Mutex::lock) {
            waits.saturating_record(time.as_nanos() as u64);
        }
    })?;
    fs::remove_dir_all(&folder)?;
    let [written, synced] = all.map(|waits| waits.into_inner().map_err(|_| "a thread panicked"));
    Ok([written?, synced?])
}

/// One thread overwrites records, one by one and now and then many in one commit, with the
/// durability of the session; another one gets them, and scans now and then.
///
/// # Errors
/// The engine's, or contents that are not what was written.
pub fn soak<E: Engine>(session: &mut Session<'_, E>, time: Duration) -> Result<Soaked> {
    let first = session.newer_version();
    session.set_versions(session.oldest_version()..=first + VERSIONS - 1);
    let histograms = [waits()?, waits()?].map(Mutex::new);
    let shared = &*session;
    let measured = on_threads(2, |thread| {
        let seed = shared.seed ^ (thread as u64 + 1) << 32;
        let indices = draw(Distribution::Uniform, shared.entries, DRAWS, seed);
        let mut waits = waits()?;
        let (start, mut number) = (Instant::now(), 0);
        let mut before = start;
        while before - start < time {
            let index = indices[number as usize % indices.len()];
            if thread == 0 {
                write(shared, index, number, first)?;
            } else {
                read(shared, index, number)?;
            }
            let now = Instant::now();
            waits.saturating_record((now - before).as_nanos() as u64);
            (before, number) = (now, number + 1);
        }
        let mut whole = histograms[thread].lock().map_err(|_| "a measuring thread panicked")?;
        *whole = waits;
        Ok(number)
    })?;
    session.verify("the soak", true)?;
    let [commits, gets] = histograms.map(|waits| waits.into_inner().map_err(|_| "panicked"));
    Ok(Soaked { commits: commits?, gets: gets?, seconds: measured.seconds })
}

fn write<E: Engine>(session: &Session<'_, E>, index: u64, number: u64, first: u64) -> Result<()> {
    let version = first + number % VERSIONS;
    if number % SINGLES != SINGLES - 1 {
        return session.engine().put(&session.data.key(index), session.data.value(index, version));
    }
    let many = (0..MANY.min(session.entries)).map(|step| (index + step * 7919) % session.entries);
    let records = many.map(|index| (session.data.key(index), session.data.value(index, version)));
    session.engine().put_batch(&records.collect::<Vec<(Key, &[u8])>>())
}

fn read<E: Engine>(session: &Session<'_, E>, index: u64, number: u64) -> Result<()> {
    let key = session.data.key(index);
    if number % SINGLES != SINGLES - 1 {
        let value = session.engine().get(&key)?;
        let is_there = value.map(|value| look_at(value.as_ref())).is_some();
        return ensure(is_there || !E::KEEPS_CONTENTS, || format!("record {index} is not there"));
    }
    session.engine().scan(Some(&key), Direction::Ascending, MANY, &mut |key, value| {
        look_at(key);
        look_at(value);
    })?;
    Ok(())
}
