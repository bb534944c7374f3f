//! Figures of a store, and of a keyspace, as a dict of dicts.

use adamant::{HeapStats, KeyspaceStats, Latencies, Stats};
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn dict<'py>(py: Python<'py>, figures: &[(&str, u64)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    figures.iter().try_for_each(|(name, figure)| dict.set_item(name, figure))?;
    Ok(dict)
}

fn latencies<'py>(py: Python<'py>, latencies: &Latencies) -> PyResult<Bound<'py, PyDict>> {
    let dict = dict(py, &[("count", latencies.count())])?;
    let seconds = [
        ("mean_seconds", latencies.mean()),
        ("p50_seconds", latencies.percentile(50.0)),
        ("p99_seconds", latencies.percentile(99.0)),
        ("max_seconds", latencies.max()),
    ];
    for (name, duration) in seconds {
        dict.set_item(name, duration.as_secs_f64())?;
    }
    Ok(dict)
}

fn heap<'py>(py: Python<'py>, heap: &HeapStats) -> PyResult<Bound<'py, PyDict>> {
    let (journal, memory) = (&heap.journal, &heap.memory);
    let of_heap = dict(
        py,
        &[
            ("pool_bytes", heap.pool_bytes),
            ("used_bytes", heap.used_bytes),
            ("address_bytes", heap.address_bytes),
            ("quarantined", heap.quarantined),
            ("pins", heap.pins),
            ("dirty_bytes", memory.dirty_bytes),
        ],
    )?;
    let of_journal = dict(
        py,
        &[
            ("last_sequence", journal.last_sequence),
            ("durable_sequence", journal.durable_sequence),
            ("applied_sequence", journal.applied_sequence),
            ("log_used_bytes", journal.log_used_bytes),
            ("log_allocated_bytes", journal.log_allocated_bytes),
            ("records", journal.records),
            ("syncs", journal.syncs),
            ("checkpoints", journal.checkpoints),
        ],
    )?;
    of_heap.set_item("journal", of_journal)?;
    Ok(of_heap)
}

/// The figures.
pub(crate) fn to_dict<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let all = dict(py, &[("keyspaces", stats.keyspaces), ("entries", stats.entries)])?;
    let snapshots = dict(
        py,
        &[
            ("open", stats.snapshots.open),
            ("versions", stats.snapshots.versions),
            ("bytes", stats.snapshots.bytes),
            ("expired", stats.snapshots.expired),
        ],
    )?;
    snapshots.set_item("oldest_seconds", stats.snapshots.oldest.as_secs_f64())?;
    all.set_item("snapshots", snapshots)?;
    let commits = dict(
        py,
        &[
            ("commits", stats.commits.commits),
            ("conflicts", stats.commits.conflicts),
            ("versions_walked", stats.commits.versions_walked),
        ],
    )?;
    commits.set_item("synced", latencies(py, &stats.commits.synced)?)?;
    commits.set_item("unsynced", latencies(py, &stats.commits.unsynced)?)?;
    all.set_item("commits", commits)?;
    all.set_item("heap", heap(py, &stats.heap)?)?;
    Ok(all)
}

/// The figures of a keyspace.
pub(crate) fn keyspace_to_dict<'py>(
    py: Python<'py>,
    stats: &KeyspaceStats,
) -> PyResult<Bound<'py, PyDict>> {
    let all = dict(
        py,
        &[
            ("entries", stats.entries),
            ("heap_bytes", stats.heap_bytes),
            ("table_bytes", stats.table_bytes),
            ("blob_bytes", stats.blob_bytes),
            ("lookups", stats.lookups),
            ("scanned", stats.scanned),
            ("writes", stats.writes),
        ],
    )?;
    if let Some(lsm) = &stats.lsm {
        all.set_item("cache_hits", lsm.cache_hits)?;
        all.set_item("cache_misses", lsm.cache_misses)?;
        let levels = lsm.levels.iter().map(|level| {
            let figures =
                [("tables", level.tables), ("bytes", level.bytes), ("entries", level.entries)];
            dict(py, &figures)
        });
        all.set_item("levels", levels.collect::<PyResult<Vec<_>>>()?)?;
    }
    Ok(all)
}
