//! Waits: how long a durable commit takes, and whether writes ever stall.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use adamant_bench::harness::engine::{Durability, Engine};
use adamant_bench::harness::error::Result;
use adamant_bench::workload::durable::{Wait, Writer};
use adamant_bench::workload::session::Session;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Longest wait that a histogram tells from longer ones, in nanoseconds.
const WAIT_NS_MAX: u64 = 100_000_000_000;
/// Significant digits of a wait.
const WAIT_DIGITS: u8 = 3;
/// What is told of a histogram.
pub const PERCENTILES: [f64; 9] = [0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0];
/// Time of a point of a throughput curve.
pub const STEP: Duration = Duration::from_millis(100);
/// Threads that wait at once.
const THREADS: [usize; 2] = [1, 8];
/// Who waits, and how it is called in lines; the engine by its own name.
const WRITERS: [(Writer, &str); 3] =
    [(Writer::Append, "raw append"), (Writer::Prealloc, "raw prealloc"), (Writer::Engine, "")];

/// A histogram of a writer and a number of threads.
struct Series {
    of: Writer,
    name: &'static str,
    /// One for each thread.
    histograms: Vec<Mutex<Histogram<u32>>>,
}

/// Histograms of durable writes, the engine's and the raw disk's beside it.
pub struct Waits(Vec<Series>);

fn empty() -> Result<Histogram<u32>> {
    Ok(Histogram::new_with_bounds(1, WAIT_NS_MAX, WAIT_DIGITS)?)
}

/// Microseconds at each of `PERCENTILES`.
fn microseconds_of(histogram: &Histogram<u32>) -> Vec<f64> {
    let at = |percentile| histogram.value_at_percentile(percentile) as f64 / 1e3;
    PERCENTILES.iter().copied().map(at).collect()
}

impl Waits {
    /// Empty ones.
    ///
    /// # Errors
    /// When a histogram cannot be made.
    pub fn new() -> Result<Self> {
        let mut all = Vec::new();
        for (of, name) in WRITERS {
            for threads in THREADS {
                let histograms: Result<_> =
                    (0..threads).map(|_| Ok(Mutex::new(empty()?))).collect();
                all.push(Series { of, name, histograms: histograms? });
            }
        }
        Ok(Self(all))
    }

    /// Records one.
    pub fn observe(&self, wait: Wait) {
        let is_its =
            |series: &&Series| series.of == wait.of && series.histograms.len() == wait.threads;
        let series = self.0.iter().find(is_its);
        if let Some(histogram) = series.and_then(|series| series.histograms.get(wait.thread)) {
            // Each thread has its own: the lock is never waited for.
            let mut histogram = histogram.lock().unwrap_or_else(PoisonError::into_inner);
            let nanoseconds = u64::try_from(wait.time.as_nanos()).unwrap_or(u64::MAX);
            histogram.saturating_record(nanoseconds);
        }
    }

    /// A line for each histogram that has any.
    ///
    /// # Errors
    /// When histograms cannot be added.
    pub fn lines(self, engine: &str) -> Result<Vec<Value>> {
        let mut lines = Vec::new();
        for series in self.0 {
            let threads = series.histograms.len();
            let mut all = empty()?;
            for histogram in series.histograms {
                all.add(histogram.into_inner().unwrap_or_else(PoisonError::into_inner))?;
            }
            let name = if series.of == Writer::Engine { engine } else { series.name };
            if !all.is_empty() {
                lines.push(json!({"latency": format!("{threads}t"), "engine": name,
                                  "writes": all.len(), "microseconds": microseconds_of(&all)}));
            }
        }
        Ok(lines)
    }
}

/// Overwrites single random records on one thread for `time`, with writes that survive the death of
/// the process where the engine has such. The line has their number in every `STEP`, and what
/// single ones took.
///
/// # Errors
/// The engine's.
pub fn throughput<E: Engine>(session: &mut Session<'_, E>, time: Duration) -> Result<Value> {
    let durability = watched_durability::<E>();
    session.reopen(durability)?;
    let steps = time.as_millis().div_ceil(STEP.as_millis());
    let mut counts = vec![0_u64; usize::try_from(steps)?];
    let mut histogram = empty()?;
    let version = session.newer_version();
    let mut random = fastrand::Rng::with_seed(session.seed);
    let start = Instant::now();
    let mut last = Duration::ZERO;
    loop {
        let index = random.u64(..session.entries);
        session.engine().put(&session.data.key(index), session.data.value(index, version))?;
        let now = start.elapsed();
        histogram.saturating_record(u64::try_from((now - last).as_nanos())?);
        // A put that took several steps stands in the last of them: the others stay at nothing.
        match counts.get_mut(usize::try_from(now.as_millis() / STEP.as_millis())?) {
            Some(count) => *count += 1,
            None => break,
        }
        last = now;
    }
    session.set_versions(session.oldest_version()..=version);
    session.verify("watched overwrites", false)?;
    Ok(json!({"throughput": durability.name(), "engine": E::NAME, "counts": counts,
              "microseconds": microseconds_of(&histogram)}))
}

/// What the watched writes wait for.
fn watched_durability<E: Engine>() -> Durability {
    if E::DURABILITIES.contains(&Durability::Buffered) {
        Durability::Buffered
    } else {
        Durability::Deferred
    }
}
