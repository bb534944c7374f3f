//! Gets and scans.

use std::hint::black_box;

use crate::data::{Data, Distribution, draw};
use crate::engine::{Direction, Engine};
use crate::error::{Result, ensure};
use crate::key::Key;
use crate::measure::{Measured, Stopwatch, on_threads};
use crate::report::Report;
use crate::workload::session::Session;

/// What is asked for in a get row.
#[derive(Clone, Copy)]
enum Asked {
    Present(Distribution),
    Missing,
}

/// Gets of `count` keys for each row. Rows: `get.{uniform,zipfian,missing}.{1t,2t}` return owned
/// values, `get_with.uniform.{1t,2t}` look at borrowed ones.
///
/// # Errors
/// The engine's, or a key that should (not) be there.
pub fn gets<E: Engine>(session: &Session<'_, E>, report: &mut Report, count: u64) -> Result<()> {
    let kinds = [
        ("uniform", Asked::Present(Distribution::Uniform)),
        ("zipfian", Asked::Present(Distribution::Zipfian)),
        ("missing", Asked::Missing),
    ];
    for (name, asked) in kinds {
        let indices = match asked {
            Asked::Present(distribution) => {
                draw(distribution, session.entries, count, session.seed)
            }
            Asked::Missing => draw(Distribution::Uniform, session.entries, count, session.seed),
        };
        let key_of: fn(&Data, u64) -> Key = match asked {
            Asked::Present(_) => Data::key,
            Asked::Missing => Data::missing_key,
        };
        let found = if matches!(asked, Asked::Missing) { 0 } else { count };
        for threads in [1, 2] {
            let measured = split::<E>(&indices, threads, found, |index| {
                let value = session.engine().get(&key_of(session.data, index))?;
                Ok(value.map(|value| touch(value.as_ref())).is_some())
            })?;
            session.add_rate(report, &format!("get.{name}.{threads}t"), measured);
        }
        if name == "uniform" {
            for threads in [1, 2] {
                let measured = split::<E>(&indices, threads, found, |index| {
                    session.engine().get_with(&session.data.key(index), &mut touch)
                })?;
                session.add_rate(report, &format!("get_with.uniform.{threads}t"), measured);
            }
        }
    }
    Ok(())
}

/// Looks at a value as a user would at least: its length and both ends.
fn touch(value: &[u8]) {
    black_box((value.len(), value.first(), value.last()));
}

/// Gives each thread its share of the indices and counts those found.
fn split<E: Engine>(
    indices: &[u64],
    threads: usize,
    found: u64,
    get: impl Fn(u64) -> Result<bool> + Sync,
) -> Result<Measured> {
    let share = indices.len().div_ceil(threads);
    let measured = on_threads(threads, |thread| {
        let mut found = 0;
        for &index in indices.chunks(share).nth(thread).unwrap_or_default() {
            found += u64::from(get(index)?);
        }
        Ok(found)
    })?;
    ensure(measured.operations == found || !E::KEEPS_CONTENTS, || {
        format!("found {} of {} keys, expected {found}", measured.operations, indices.len())
    })?;
    Ok(Measured { operations: indices.len() as u64, ..measured })
}

/// Scans. Rows, in entries per second: `scan.full`, `scan.full.reverse`; in scans per second:
/// `scan.10`, `scan.100`, each from a random key upwards.
///
/// # Errors
/// The engine's, or a scan that ended early.
pub fn scans<E: Engine>(session: &Session<'_, E>, report: &mut Report, count: u64) -> Result<()> {
    let engine = session.engine();
    let entries = engine.count()?;
    let mut visit = |key: &[u8], value: &[u8]| {
        black_box(key.last());
        touch(value);
    };
    let directions =
        [("scan.full", Direction::Ascending), ("scan.full.reverse", Direction::Descending)];
    for (row, direction) in directions {
        let measured =
            on_threads(1, |_| engine.scan(None, direction, u64::MAX, &mut visit.clone()))?;
        ensure(measured.operations == entries, || {
            format!("{row} gave {} of {entries} entries", measured.operations)
        })?;
        session.add_rate(report, row, measured);
    }
    let mut last_key = Vec::new();
    engine.scan(None, Direction::Descending, 1, &mut |key, _| last_key = key.to_vec())?;
    for limit in [10, 100] {
        let scans = count / limit;
        let starts = draw(Distribution::Uniform, session.entries, scans, session.seed ^ limit);
        let mut short = Vec::new();
        let watch = Stopwatch::start();
        for &index in &starts {
            let from = session.data.key(index);
            if engine.scan(Some(&from), Direction::Ascending, limit, &mut visit)? < limit {
                short.push(from);
            }
        }
        let measured = watch.measured(scans);
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
