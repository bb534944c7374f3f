//! The costs of a snapshot: to open, to close, and to read from.

use crate::commands::transactions::settings::Settings;
use crate::engines::adamant::AdamantEngine;
use crate::harness::data::{Distribution, draw};
use crate::harness::engine::Engine;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::{Measured, once, up_to};
use crate::harness::report::{Report, Unit};
use crate::workload::read::look_at;
use crate::workload::session::Session;

/// Number of concurrent snapshots.
const SNAPSHOTS: u64 = 10_000;
/// Turns of gets with and without a snapshot: neighbours are compared.
const TURNS: u32 = 5;

/// Rows `snapshot.{open,close}`, `get.{plain,snapshot,snapshot.changed}` and their ratios.
///
/// # Errors
/// The store's, or an entry that is not there.
pub(super) fn measure(
    session: &Session<'_, AdamantEngine>,
    settings: &Settings,
    report: &mut Report,
) -> Result<()> {
    let (store, keyspace) = (session.engine().store(), session.engine().keyspace());
    let nanoseconds = |all: Measured| all.seconds * 1e9 / SNAPSHOTS as f64;
    let mut open = Vec::with_capacity(SNAPSHOTS as usize);
    let (_, opened) = once(|| {
        for _ in 0..SNAPSHOTS {
            open.push(store.snapshot()?);
        }
        Ok(())
    })?;
    let (_, closed) = once(|| {
        open.clear();
        Ok(())
    })?;
    for (row, measured) in [("snapshot.open", opened), ("snapshot.close", closed)] {
        session.add(report, row, Unit::Nanoseconds, nanoseconds(measured));
    }

    let indices = draw(Distribution::Uniform, session.entries, session.entries, session.seed);
    let time = settings.row_time / TURNS;
    let rate = |get: &(dyn Fn(&[u8]) -> Result<Option<adamant::Slice>> + Sync)| {
        up_to(1, u64::MAX, time, |_, number| {
            let index = indices[number as usize % indices.len()];
            let value = get(&session.data.key(index))?;
            ensure(value.map(|value| look_at(&value)).is_some(), || {
                format!("record {index} is not there")
            })
        })
    };
    let plain = |key: &[u8]| Ok(keyspace.get(key)?);
    for turn in 0..TURNS {
        let snapshot = store.snapshot()?;
        let through = |key: &[u8]| Ok(snapshot.get(keyspace, key)?);
        // The order alternates: the machine may become slower meanwhile.
        let (alone, seen) = if turn % 2 == 0 {
            (rate(&plain)?, rate(&through)?)
        } else {
            let seen = rate(&through)?;
            (rate(&plain)?, seen)
        };
        session.add_rate(report, "get.plain", alone);
        session.add_rate(report, "get.snapshot", seen);
        // One entry is rewritten with the same value: from now on reads look for old values.
        let (key, value) = (session.data.key(0), session.data.value(0, session.oldest_version()));
        session.engine().put(&key, value)?;
        session.add_rate(report, "get.snapshot.changed", rate(&through)?);
    }
    let plain = ("get.plain", AdamantEngine::NAME);
    report.add_ratio("get.snapshot.vs_plain", "get.snapshot", plain)?;
    report.add_ratio("get.snapshot.changed.vs_plain", "get.snapshot.changed", plain)
}
