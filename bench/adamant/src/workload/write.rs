//! Overwrites, deletes, single puts that wait for no disk, and mixtures with gets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::harness::data::{Distribution, draw, shuffled};
use crate::harness::engine::{Durability, Engine};
use crate::harness::error::{Result, ensure};
use crate::harness::key::Key;
use crate::harness::measure::{once, up_to, written_bytes};
use crate::harness::report::{Report, Unit};
use crate::workload::load::{BATCH_ENTRIES, put_in_batches, settle};
use crate::workload::read::look_at;
use crate::workload::session::Session;

/// Single puts and mixtures, for writes that wait for no disk.
///
/// # Errors
/// The engine's, or contents that are not what was written.
pub fn singles<E: Engine>(
    session: &mut Session<'_, E>,
    report: &mut Report,
    count_max: u64,
    time: Duration,
) -> Result<()> {
    for durability in [Durability::Buffered, Durability::Deferred] {
        if E::DURABILITIES.contains(&durability) {
            session.reopen(durability)?;
            puts(session, report, durability, count_max, time)?;
            mixed(session, report, durability, count_max, time)?;
        }
    }
    session.verify("single puts and mixtures", false)
}

/// Single puts of new records: `count_max` of them, or as many as there is `time` for. Rows:
/// `put.<durability>.{1t,8t}` and, if the engine reports it, `log.put` (bytes of log per put).
fn puts<E: Engine>(
    session: &Session<'_, E>,
    report: &mut Report,
    durability: Durability,
    count_max: u64,
    time: Duration,
) -> Result<()> {
    for threads in [1, 8] {
        let log_before = session.engine().log_bytes_appended()?;
        let measured = up_to(threads, count_max / threads as u64, time, |_, _| {
            let index = session.take_index();
            session.engine().put(&session.data.key(index), session.data.value(index, 0))
        })?;
        session.add_rate(report, &format!("put.{}.{threads}t", durability.name()), measured);
        let log_after = session.engine().log_bytes_appended()?;
        if let (Some(before), Some(after), Durability::Buffered, 1) =
            (log_before, log_after, durability, threads)
        {
            let per_put = (after - before) as f64 / measured.operations as f64;
            session.add(report, "log.put", Unit::Bytes, per_put);
        }
    }
    Ok(())
}

/// Gets and overwrites of single random records on one thread, up to a number or as many as there
/// is `time` for. Rows: `mixed.{95_5,50_50}.<durability>`.
fn mixed<E: Engine>(
    session: &mut Session<'_, E>,
    report: &mut Report,
    durability: Durability,
    count_max: u64,
    time: Duration,
) -> Result<()> {
    for (name, put_percent) in [("95_5", 5), ("50_50", 50)] {
        let indices = draw(Distribution::Uniform, session.entries, count_max, session.seed ^ 1);
        let mut random = fastrand::Rng::with_seed(session.seed);
        let is_put: Vec<bool> = indices.iter().map(|_| random.u32(..100) < put_percent).collect();
        let version = session.newer_version();
        let missed = AtomicU64::new(0);
        let measured = up_to(1, count_max, time, |_, number| {
            let (index, is_put) = (indices[number as usize], is_put[number as usize]);
            let key = session.data.key(index);
            if is_put {
                return session.engine().put(&key, session.data.value(index, version));
            }
            match session.engine().get(&key)? {
                Some(value) => look_at(value.as_ref()),
                None => missed.store(1 + missed.load(Ordering::Relaxed), Ordering::Relaxed),
            }
            Ok(())
        })?;
        let missed = missed.into_inner();
        ensure(missed == 0 || !E::KEEPS_CONTENTS, || format!("a mixture missed {missed} keys"))?;
        session.set_versions(session.oldest_version()..=version);
        session.add_rate(report, &format!("mixed.{name}.{}", durability.name()), measured);
    }
    Ok(())
}

/// Overwrites all records in another order than they were loaded in. Rows:
/// `overwrite.batch1000.deferred`, `written.overwrite`, and those of `settle`.
///
/// # Errors
/// The engine's, or contents that are not what was written.
pub fn overwrite<E: Engine>(session: &mut Session<'_, E>, report: &mut Report) -> Result<()> {
    session.renew(Durability::Deferred)?;
    let written_before = written_bytes()?;
    let version = session.newer_version();
    let (operations, mut measured) =
        once(|| put_in_batches(session, shuffled(session.entries), version))?;
    measured.operations = operations;
    session.set_versions(version..=version);
    session.add_rate(report, "overwrite.batch1000.deferred", measured);
    session.verify("overwrite", true)?;
    settle(session, report, "overwrite", (written_before, operations))
}

/// Deletes the loaded records, in yet another order. Rows: `delete.batch1000.deferred`,
/// `written.delete`, and those of `settle`.
///
/// # Errors
/// The engine's, or contents that are not what was written.
pub fn delete<E: Engine>(session: &mut Session<'_, E>, report: &mut Report) -> Result<()> {
    session.reopen(Durability::Deferred)?;
    let written_before = written_bytes()?;
    let (operations, mut measured) = once(|| {
        let mut batch: Vec<Key> = Vec::with_capacity(BATCH_ENTRIES);
        // Backwards, so that it is neither the order of loading nor that of overwriting.
        for index in shuffled(session.entries) {
            batch.push(session.data.key(session.entries - 1 - index));
            if batch.len() == BATCH_ENTRIES {
                session.engine().remove_batch(&batch)?;
                batch.clear();
            }
        }
        if !batch.is_empty() {
            session.engine().remove_batch(&batch)?;
        }
        Ok(session.entries)
    })?;
    measured.operations = operations;
    session.set_removed(session.entries);
    session.add_rate(report, "delete.batch1000.deferred", measured);
    session.verify("delete", true)?;
    settle(session, report, "delete", (written_before, operations))
}
