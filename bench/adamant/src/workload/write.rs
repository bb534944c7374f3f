//! Overwrites, deletes, single puts that wait for no disk, and mixtures with gets.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::data::{Distribution, draw, shuffled};
use crate::engine::{Durability, Engine};
use crate::error::{Result, ensure};
use crate::key::Key;
use crate::measure::{on_threads, once, written_bytes};
use crate::report::{Report, Unit};
use crate::workload::load::{BATCH_ENTRIES, put_in_batches, settle};
use crate::workload::session::Session;

/// Single puts of new records. Rows: `put.<durability>.{1t,8t}` and, where the engine says,
/// `log.put` (bytes of log per put).
///
/// # Errors
/// The engine's, or contents that are not what was written.
pub fn puts<E: Engine>(
    session: &mut Session<'_, E>,
    report: &mut Report,
    count: u64,
) -> Result<()> {
    for durability in [Durability::Buffered, Durability::Deferred] {
        if !E::DURABILITIES.contains(&durability) {
            continue;
        }
        session.reopen(durability)?;
        for threads in [1, 8] {
            let log_before = session.engine().log_bytes_appended()?;
            let measured = on_threads(threads, |_| {
                for _ in 0..count / threads as u64 {
                    let index = session.take_index();
                    session.engine().put(&session.data.key(index), session.data.value(index, 0))?;
                }
                Ok(count / threads as u64)
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
    }
    session.verify("single puts", false)
}

/// Gets and overwrites of single random records on one thread. Rows:
/// `mixed.{95_5,50_50}.{buffered,deferred}`.
///
/// # Errors
/// The engine's, or a record that is not there.
pub fn mixed<E: Engine>(
    session: &mut Session<'_, E>,
    report: &mut Report,
    count: u64,
) -> Result<()> {
    for durability in [Durability::Buffered, Durability::Deferred] {
        if !E::DURABILITIES.contains(&durability) {
            continue;
        }
        session.reopen(durability)?;
        for (name, put_percent) in [("95_5", 5), ("50_50", 50)] {
            let indices = draw(Distribution::Uniform, session.entries, count, session.seed ^ 1);
            let mut random = fastrand::Rng::with_seed(session.seed);
            let is_put: Vec<bool> =
                indices.iter().map(|_| random.u32(..100) < put_percent).collect();
            let version = session.newer_version();
            let found = AtomicU64::new(0);
            let measured = on_threads(1, |_| {
                let mut gets_found = 0;
                for (&index, &is_put) in indices.iter().zip(&is_put) {
                    let key = session.data.key(index);
                    if is_put {
                        session.engine().put(&key, session.data.value(index, version))?;
                    } else if let Some(value) = session.engine().get(&key)? {
                        black_box(value.as_ref().first());
                        gets_found += 1;
                    }
                }
                found.store(gets_found, Ordering::Relaxed);
                Ok(count)
            })?;
            let gets = is_put.iter().filter(|&&is_put| !is_put).count() as u64;
            let found = found.into_inner();
            ensure(found == gets || !E::KEEPS_CONTENTS, || {
                format!("a mixture found {found} of {gets} keys")
            })?;
            session.set_versions(session.oldest_version()..=version);
            session.add_rate(report, &format!("mixed.{name}.{}", durability.name()), measured);
        }
    }
    session.verify("mixtures", false)
}

/// Overwrites all records in another order than they were loaded in. Rows:
/// `overwrite.batch1000.deferred`, `written.overwrite`, and those of `settle`.
///
/// # Errors
/// The engine's, or contents that are not what was written.
pub fn overwrite<E: Engine>(session: &mut Session<'_, E>, report: &mut Report) -> Result<()> {
    session.reopen(Durability::Deferred)?;
    let written_before = written_bytes()?;
    let version = session.newer_version();
    let (operations, mut measured) =
        once(|| put_in_batches(session, shuffled(session.entries), version))?;
    measured.operations = operations;
    session.set_versions(version..=version);
    session.add_rate(report, "overwrite.batch1000.deferred", measured);
    session.verify("overwrite", true)?;
    if E::IS_PERSISTENT {
        settle(session, report, "overwrite")?;
        let written = written_bytes()?.saturating_sub(written_before) as f64;
        session.add(report, "written.overwrite", Unit::Bytes, written / operations as f64);
    }
    Ok(())
}

/// Deletes the records that were loaded, in yet another order. Rows: `delete.batch1000.deferred`,
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
    if E::IS_PERSISTENT {
        settle(session, report, "delete")?;
        let written = written_bytes()?.saturating_sub(written_before) as f64;
        session.add(report, "written.delete", Unit::Bytes, written / operations as f64);
    }
    Ok(())
}
