//! Figures for INFO, Prometheus and the status page.

use std::time::Duration;

use adamant::{Engine, Latencies, LsmStats, Result, Store};

use crate::serving::shared::Shared;

/// Bucket bounds of commit latencies in microseconds: 1, 2, 5 in each power of ten, from a commit
/// in memory to longer than any client waits.
pub(crate) const LATENCY_BOUNDS_US: [u64; 18] = [
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000,
    500_000, 1_000_000, 2_000_000, 5_000_000,
];

/// Cumulative counts of latencies, for each of the bounds.
pub(crate) fn within_bounds(latencies: &Latencies) -> impl Iterator<Item = (u64, u64)> {
    LATENCY_BOUNDS_US
        .iter()
        .map(|&bound| (bound, latencies.count_within(Duration::from_micros(bound))))
}

/// A database that has keys.
pub(crate) struct DatabaseFigures {
    pub(crate) number: usize,
    pub(crate) keys: u64,
    /// Keys with a deadline.
    pub(crate) expires: u64,
    pub(crate) engine: Engine,
}

/// The databases that have keys.
pub(crate) fn databases(shared: &Shared) -> Vec<DatabaseFigures> {
    let look = |number| {
        let database = shared.world.databases.get(number);
        let (entries, deadlines) = database.keyspaces();
        let snapshot = shared.world.databases.store().snapshot().ok()?;
        let keys = database.at(&snapshot).len().ok()?;
        // Expired entries that were not removed yet have deadlines and are no keys.
        let over = snapshot.len(entries).ok()?.saturating_sub(keys);
        let expires = snapshot.len(deadlines).ok()?.saturating_sub(over);
        (keys > 0).then(|| DatabaseFigures { number, keys, expires, engine: entries.engine() })
    };
    (0..shared.world.databases.len()).filter_map(look).collect()
}

/// Seconds of processor time of this process, in user and in system mode, and the same of its
/// children that have ended. Linux says it in this way, no other system.
#[cfg(target_os = "linux")]
pub(crate) fn processor_seconds() -> Option<[f64; 4]> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in brackets, may hold blanks; the times are eleven fields after it.
    let fields = text.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
    let second = rustix::param::clock_ticks_per_second() as f64;
    let times: Option<Vec<f64>> =
        fields.map(|ticks| Some(ticks.parse::<u64>().ok()? as f64 / second)).collect();
    times?.try_into().ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn processor_seconds() -> Option<[f64; 4]> {
    None
}

/// The log-structured keyspaces of a store, by name.
pub(crate) fn lsm(store: &Store) -> Result<Vec<(String, LsmStats)>> {
    let mut found = Vec::new();
    for info in store.keyspaces()?.into_iter().filter(|info| info.engine == Engine::Lsm) {
        // It may have been dropped meanwhile.
        let Ok(keyspace) = store.open_stored(&info.name) else { continue };
        found.push((info.name, keyspace.lsm()?.stats()?));
    }
    Ok(found)
}
