//! Commit metrics: counters and latency histograms.
//!
//! Purpose: the figures behind [`Stats`](crate::Stats): how many commits and conflicts, and how
//! long the commits took.
//! Invariants: every commit that waits for the device is timed, of the others one in
//! [`BUFFERED_TIMED_ONE_IN`]. Reading the clock twice takes some 90 ns, a tenth of such a commit;
//! sampling makes that 6 ns for each.
//! Thread safety: any thread. The histograms have a lock of their own, held for some 10 ns.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use adamant_heap::durability::Durability;
use adamant_heap::events;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tracing::{Level, enabled, trace};

/// Of the commits that don't wait for the device, one in so many is timed.
const BUFFERED_TIMED_ONE_IN: u64 = 16;
/// The longest latency that is told apart, a minute: longer ones count as this.
const LATENCY_NS_MAX: u64 = 60_000_000_000;
/// Latencies are kept to one part in 128; a histogram takes some 28 KiB.
const SIGNIFICANT_DIGITS: u8 = 2;

/// A histogram of latencies, whose values are right within one part in 100 ("HDR", G. Tene).
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// store.keyspace("towns")?.put("Bern", "134,000")?;
/// let synced = store.stats()?.commits.synced;
/// assert!(synced.count() > 0);
/// assert!(synced.mean() <= synced.max());
/// println!("half of them took at most {:?}", synced.percentile(50.0));
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone)]
pub struct Latencies {
    nanoseconds: Histogram<u64>,
}

impl Latencies {
    fn new() -> Self {
        let nanoseconds = Histogram::new_with_max(LATENCY_NS_MAX, SIGNIFICANT_DIGITS);
        Self { nanoseconds: nanoseconds.expect("constants that are within the bounds") }
    }

    /// The number of latencies recorded.
    pub fn count(&self) -> u64 {
        self.nanoseconds.len()
    }

    /// The mean; zero if there is none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.mean() as u64)
    }

    /// The longest; zero if there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.max())
    }

    /// The percentile, such as `99.9`: so many percent of all took at most this long. Zero if there
    /// is none.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.nanoseconds.value_at_percentile(percent))
    }

    /// How many took at most this long.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// store.keyspace("towns")?.put("Bern", "134,000")?;
    /// let synced = store.stats()?.commits.synced;
    /// assert_eq!(synced.count_within(synced.max()), synced.count());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn count_within(&self, longest: Duration) -> u64 {
        let nanoseconds = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.count_between(0, nanoseconds)
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latencies")
            .field("count", &self.count())
            .field("mean", &self.mean())
            .field("p99", &self.percentile(99.0))
            .field("max", &self.max())
            .finish()
    }
}

/// Figures of the commits of a store since it was opened.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// let towns = store.keyspace("towns")?;
/// let before = store.stats()?.commits.commits;
/// towns.put("Bern", "134,000")?;
/// let commits = store.stats()?.commits;
/// assert_eq!((commits.commits, commits.conflicts), (before + 1, 0));
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommitStats {
    /// Commits that succeeded, of all kinds: single changes, batches, transactions, keyspaces.
    pub commits: u64,
    /// Transactions that failed because another commit had changed what they had read.
    pub conflicts: u64,
    /// Snapshots opened, including those that transactions read from.
    pub snapshots: u64,
    /// Keys of old versions that range reads visited: scans of snapshots and transactions, and the
    /// validation of a transaction's reads at its commit.
    pub versions_walked: u64,
    /// Latencies of the commits that waited for the device ([`Durability::Sync`]), every one of
    /// them, and of each [`SyncPoint`](crate::SyncPoint).
    pub synced: Latencies,
    /// Latencies of the other commits, one in 16 of them.
    pub unsynced: Latencies,
}

/// A commit in progress.
pub(crate) struct Begun {
    durability: Durability,
    is_timed: bool,
    /// `None` if the commit is neither timed nor traced.
    start: Option<Instant>,
}

/// The counters and histograms of a store.
pub(crate) struct Metrics {
    commits: AtomicU64,
    conflicts: AtomicU64,
    synced: Mutex<Latencies>,
    unsynced: Mutex<Latencies>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            commits: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            synced: Mutex::new(Latencies::new()),
            unsynced: Mutex::new(Latencies::new()),
        }
    }

    /// A commit begins: decides whether it is timed.
    #[inline]
    pub(crate) fn begin(&self, durability: Durability) -> Begun {
        let is_timed = durability == Durability::Sync
            || self.commits.load(Ordering::Relaxed).is_multiple_of(BUFFERED_TIMED_ONE_IN);
        let is_heard = enabled!(target: events::COMMIT, Level::TRACE);
        Begun { durability, is_timed, start: (is_timed || is_heard).then(Instant::now) }
    }

    /// Counts a commit that succeeded.
    #[inline]
    pub(crate) fn commit(&self, begun: &Begun) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        if let Some(start) = begun.start {
            self.note(begun, start.elapsed());
        }
    }

    #[cold]
    fn note(&self, begun: &Begun, took: Duration) {
        let durability = begun.durability;
        if begun.is_timed {
            self.record(durability == Durability::Sync, took);
        }
        trace!(target: events::COMMIT, ?durability, micros = took.as_micros() as u64, "commit");
    }

    /// Records a wait for the device that is not part of a commit.
    pub(crate) fn waited(&self, took: Duration) {
        self.record(true, took);
    }

    /// Counts a transaction that failed with a conflict.
    pub(crate) fn conflict(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }

    /// The figures now. The counts of snapshots and versions come from where they are kept.
    pub(crate) fn stats(&self, (snapshots, versions_walked): (u64, u64)) -> CommitStats {
        CommitStats {
            commits: self.commits.load(Ordering::Relaxed),
            conflicts: self.conflicts.load(Ordering::Relaxed),
            snapshots,
            versions_walked,
            synced: self.synced.lock().clone(),
            unsynced: self.unsynced.lock().clone(),
        }
    }

    fn record(&self, is_sync: bool, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let latencies = if is_sync { &self.synced } else { &self.unsynced };
        latencies.lock().nanoseconds.saturating_record(nanoseconds);
    }
}
