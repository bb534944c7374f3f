//! Gets and scans.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::harness::data::{Data, Distribution, draw};
use crate::harness::engine::{Direction, Engine};
use crate::harness::error::{Result, ensure};
use crate::harness::key::Key;
use crate::harness::measure::{Measured, on_threads, up_to};
use crate::harness::report::Report;
use crate::workload::session::Session;

/// The keys of a get row.
#[derive(Clone, Copy)]
enum Asked {
    Present(Distribution),
    Missing,
}

/// The amount of reads of a row.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Distinct choices of a key, drawn before the clock starts; reused when used up.
    pub draws: u64,
    /// Time of a row, the same for a slow engine and a fast one.
    pub time: Duration,
}

/// Gets. Rows: `get.{uniform,zipfian,missing}.{1t,2t}` return owned values,
/// `get_with.uniform.{1t,2t}` read borrowed ones.
///
/// # Errors
/// The engine's, or a key that should (not) be there.
pub fn gets<E: Engine>(
    session: &Session<'_, E>,
    report: &mut Report,
    amount: Amount,
) -> Result<()> {
    let kinds = [
        ("uniform", Asked::Present(Distribution::Uniform)),
        ("zipfian", Asked::Present(Distribution::Zipfian)),
        ("missing", Asked::Missing),
    ];
    for (name, asked) in kinds {
        let distribution = match asked {
            Asked::Present(distribution) => distribution,
            Asked::Missing => Distribution::Uniform,
        };
        let indices = draw(distribution, session.entries, amount.draws, session.seed);
        let key_of: fn(&Data, u64) -> Key = match asked {
            Asked::Present(_) => Data::key,
            Asked::Missing => Data::missing_key,
        };
        let is_found = matches!(asked, Asked::Present(_));
        for threads in [1, 2] {
            let measured = split::<E>(&indices, threads, amount.time, is_found, |index| {
                let value = session.engine().get(&key_of(session.data, index))?;
                Ok(value.map(|value| look_at(value.as_ref())).is_some())
            })?;
            session.add_rate(report, &format!("get.{name}.{threads}t"), measured);
        }
        if name == "uniform" {
            for threads in [1, 2] {
                let measured = split::<E>(&indices, threads, amount.time, true, |index| {
                    session.engine().get_with(&session.data.key(index), &mut look_at)
                })?;
                session.add_rate(report, &format!("get_with.uniform.{threads}t"), measured);
            }
        }
    }
    Ok(())
}

/// Reads every byte, as a user would: an engine that returns a borrowed value must not leave it in
/// untouched memory.
pub(crate) fn look_at(bytes: &[u8]) {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0, |sum: u64, &word| sum.wrapping_add(u64::from_le_bytes(word)));
    black_box(rest.iter().fold(sum, |sum, &byte| sum.wrapping_add(u64::from(byte))));
}

/// Gives each thread its share of the indices and verifies that all are found, or none.
fn split<E: Engine>(
    indices: &[u64],
    threads: usize,
    time: Duration,
    is_found: bool,
    get: impl Fn(u64) -> Result<bool> + Sync,
) -> Result<Measured> {
    let shares: Vec<&[u64]> = indices.chunks(indices.len().div_ceil(threads)).collect();
    let wrong = AtomicU64::new(0);
    let measured = up_to(threads, u64::MAX, time, |thread, number| {
        let share = shares[thread % shares.len()];
        let index = share[number as usize % share.len()];
        if get(index)? != is_found {
            wrong.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })?;
    let wrong = wrong.into_inner();
    ensure(wrong == 0 || !E::KEEPS_CONTENTS, || {
        format!("{wrong} of {} keys: expected found = {is_found}", measured.operations)
    })?;
    Ok(measured)
}

/// Scans. Rows, in entries per second: `scan.full`, `scan.full.reverse`, and `scan.full.owned`,
/// whose entries the caller may keep; in scans per second: `scan.10`, `scan.100`, each from a
/// random key upwards.
///
/// # Errors
/// The engine's, or a scan that ended early.
pub fn scans<E: Engine>(
    session: &Session<'_, E>,
    report: &mut Report,
    amount: Amount,
) -> Result<()> {
    let engine = session.engine();
    let entries = engine.count()?;
    let visit = |key: &[u8], value: &[u8]| {
        look_at(key);
        look_at(value);
    };
    let directions =
        [("scan.full", Direction::Ascending), ("scan.full.reverse", Direction::Descending)];
    for (row, direction) in directions {
        let measured = full_scans::<E>(entries, amount.time, || {
            engine.scan(None, direction, u64::MAX, &mut visit.clone())
        })?;
        session.add_rate(report, row, measured);
    }
    let measured = full_scans::<E>(entries, amount.time, || engine.scan_owned(&mut visit.clone()))?;
    session.add_rate(report, "scan.full.owned", measured);
    let mut last_key = Vec::new();
    engine.scan(None, Direction::Descending, 1, &mut |key, _| last_key = key.to_vec())?;
    for limit in [10, 100] {
        let draws = amount.draws.div_ceil(limit);
        let starts = draw(Distribution::Uniform, session.entries, draws, session.seed ^ limit);
        let short = Mutex::new(Vec::new());
        let measured = up_to(1, u64::MAX, amount.time, |_, number| {
            let from = session.data.key(starts[number as usize % starts.len()]);
            let mut visit = visit;
            if engine.scan(Some(&from), Direction::Ascending, limit, &mut visit)? < limit {
                short.lock().unwrap_or_else(PoisonError::into_inner).push(from);
            }
            Ok(())
        })?;
        let short = short.into_inner().unwrap_or_else(PoisonError::into_inner);
        for from in short.into_iter().filter(|_| E::KEEPS_CONTENTS) {
            let mut end = Vec::new();
            let mut note = |key: &[u8], _: &[u8]| end = key.to_vec();
            engine.scan(Some(&from), Direction::Ascending, limit, &mut note)?;
            ensure(end == last_key, || format!("a scan of {limit} ended before the last key"))?;
        }
        session.add_rate(report, &format!("scan.{limit}"), measured);
    }
    Ok(())
}

/// Repeats full scans until the time is over; each must return all entries.
fn full_scans<E: Engine>(
    entries: u64,
    time: Duration,
    scan: impl Fn() -> Result<u64> + Sync,
) -> Result<Measured> {
    on_threads(1, |_| {
        let start = Instant::now();
        let mut visited = 0;
        loop {
            let count = scan()?;
            ensure(count == entries, || {
                format!("{}: a full scan gave {count} of {entries} entries", E::NAME)
            })?;
            visited += count;
            if start.elapsed() >= time {
                return Ok(visited);
            }
        }
    })
}
