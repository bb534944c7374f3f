//! The wait of gets while a large batch commits.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::commands::transactions::settings::{Settings, VALUE_BYTES};
use crate::engines::adamant::AdamantEngine;
use crate::harness::data::{Distribution, KEY_BYTES, draw};
use crate::harness::engine::Engine;
use crate::harness::error::{Result, ensure};
use crate::harness::key::Key;
use crate::harness::measure::once;
use crate::harness::report::{Report, Unit};
use crate::workload::read::look_at;
use crate::workload::session::Session;
use crate::workload::soak::{add_waits, waits};

/// Gets of the rows without a batch.
const ALONE: u64 = 200_000;

/// Rows `get.alone...`, `get.beside_batch...` while new entries are added,
/// `get.beside_overwrites...` while the entries that are read are replaced; and the times of these
/// batches.
///
/// # Errors
/// The store's, or contents that are not what was written.
pub(super) fn measure(
    session: &mut Session<'_, AdamantEngine>,
    settings: &Settings,
    report: &mut Report,
) -> Result<()> {
    let indices = draw(Distribution::Uniform, session.entries, 1 << 16, session.seed);
    let alone = get_until(session, &indices, |done| done >= ALONE)?;
    let entries = session.entries;
    add_waits(report, "get.alone", AdamantEngine::NAME, entries, &alone);

    let count = settings.batch_bytes / (KEY_BYTES + VALUE_BYTES) as u64;
    let next = session.next();
    beside(session, "batch", &indices, (next..next + count).map(|index| (index, 0)), report)?;
    session.set_next(next + count);

    let version = session.newer_version();
    session.set_versions(session.oldest_version()..=version);
    let replaced = (0..count.min(entries)).map(|index| (index, version));
    beside(session, "overwrites", &indices, replaced, report)?;
    session.verify("large batches", true)
}

/// Gets while a batch of these records and versions commits.
fn beside(
    session: &Session<'_, AdamantEngine>,
    name: &str,
    indices: &[u64],
    records: impl Iterator<Item = (u64, u64)>,
    report: &mut Report,
) -> Result<()> {
    let records: Vec<(Key, &[u8])> = records
        .map(|(index, version)| (session.data.key(index), session.data.value(index, version)))
        .collect();
    let (ready, is_done) = (Barrier::new(2), AtomicBool::new(false));
    let (batch, waits) = thread::scope(|scope| {
        let reading = scope.spawn(|| {
            ready.wait();
            get_until(session, indices, |done| done > 0 && is_done.load(Ordering::Acquire))
        });
        ready.wait();
        let batch = once(|| session.engine().put_batch(&records));
        is_done.store(true, Ordering::Release);
        (batch, reading.join())
    });
    let ((), committed) = batch?;
    let waits = waits.map_err(|_| "a measuring thread panicked")??;
    session.add(report, &format!("commit.{name}"), Unit::Milliseconds, committed.milliseconds());
    let row = format!("get.beside_{name}");
    session.add(report, &format!("{row}.count"), Unit::Count, waits.len() as f64);
    add_waits(report, &row, AdamantEngine::NAME, session.entries, &waits);
    Ok(())
}

/// Times every get until told to stop.
fn get_until(
    session: &Session<'_, AdamantEngine>,
    indices: &[u64],
    is_enough: impl Fn(u64) -> bool,
) -> Result<Histogram<u64>> {
    let mut waits = waits()?;
    let (mut before, mut done) = (Instant::now(), 0);
    while !is_enough(done) {
        let index = indices[done as usize % indices.len()];
        let value = session.engine().get(&session.data.key(index))?;
        let is_there = value.map(|value| look_at(&value)).is_some();
        ensure(is_there, || format!("record {index} is not there"))?;
        let now = Instant::now();
        waits.saturating_record((now - before).as_nanos() as u64);
        (before, done) = (now, done + 1);
    }
    Ok(waits)
}
