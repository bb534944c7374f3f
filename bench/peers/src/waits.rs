//! Workloads about waiting: how long a durable commit takes, and whether writes ever stall.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use adamant_bench::engine::{Durability, Engine};
use adamant_bench::error::Result;
use adamant_bench::measure::for_a_while;
use adamant_bench::workload::session::Session;
use hdrhistogram::Histogram;

/// Longest wait that a histogram tells from longer ones, in nanoseconds.
const WAIT_NS_MAX: u64 = 100_000_000_000;
/// Significant digits of a wait.
const WAIT_DIGITS: u8 = 3;
/// What is told of a histogram.
pub const PERCENTILES: [f64; 9] = [0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0];
/// Time of a point of a throughput curve.
pub const STEP: Duration = Duration::from_millis(100);

/// Waits of durable single puts on so many threads: microseconds at each of `PERCENTILES`. `None`
/// for an engine without durable puts.
///
/// # Errors
/// The engine's.
pub fn durable_waits<E: Engine>(
    session: &mut Session<'_, E>,
    threads: usize,
    time: Duration,
) -> Result<Option<Vec<f64>>> {
    if !E::DURABILITIES.contains(&Durability::Sync) {
        return Ok(None);
    }
    session.reopen(Durability::Sync)?;
    let empty = Histogram::<u64>::new_with_bounds(1, WAIT_NS_MAX, WAIT_DIGITS)?;
    let histograms: Vec<_> = (0..threads).map(|_| Mutex::new(empty.clone())).collect();
    for_a_while(threads, time, |thread, _| {
        let index = session.take_index();
        let (key, value) = (session.data.key(index), session.data.value(index, 0));
        let start = Instant::now();
        session.engine().put(&key, value)?;
        let wait = u64::try_from(start.elapsed().as_nanos())?;
        // Each thread has its own: the lock is never waited for.
        let mut histogram = histograms[thread].lock().unwrap_or_else(PoisonError::into_inner);
        histogram.saturating_record(wait);
        Ok(())
    })?;
    let mut all = empty;
    for histogram in histograms {
        all.add(histogram.into_inner().unwrap_or_else(PoisonError::into_inner))?;
    }
    let waits = PERCENTILES.map(|percentile| all.value_at_percentile(percentile) as f64 / 1e3);
    Ok(Some(waits.to_vec()))
}

/// Overwrites single random records on one thread for `time`, with writes that survive the death of
/// the process where the engine has such, and counts them in every `STEP`.
///
/// # Errors
/// The engine's.
pub fn throughput<E: Engine>(session: &mut Session<'_, E>, time: Duration) -> Result<Vec<u64>> {
    session.reopen(watched_durability::<E>())?;
    let steps = time.as_millis().div_ceil(STEP.as_millis());
    let mut counts = vec![0_u64; usize::try_from(steps)?];
    let version = session.newer_version();
    let mut random = fastrand::Rng::with_seed(session.seed);
    let start = Instant::now();
    loop {
        let index = random.u64(..session.entries);
        session.engine().put(&session.data.key(index), session.data.value(index, version))?;
        let step = start.elapsed().as_millis() / STEP.as_millis();
        match counts.get_mut(usize::try_from(step)?) {
            Some(count) => *count += 1,
            None => break,
        }
    }
    session.set_versions(session.oldest_version()..=version);
    session.verify("watched overwrites", false)?;
    Ok(counts)
}

/// What the watched writes wait for.
pub fn watched_durability<E: Engine>() -> Durability {
    if E::DURABILITIES.contains(&Durability::Buffered) {
        Durability::Buffered
    } else {
        Durability::Deferred
    }
}
