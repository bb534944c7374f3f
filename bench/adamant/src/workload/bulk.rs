//! Bulk operations: many changes that are one transaction.
//!
//! Purpose: loads, removals that a closure chooses, and pops, as sorted trees are used for them;
//! then the space of what is left, compacted. After the benchmark of redb, whose rows these are.

use crate::harness::engine::{Direction, Durability, Engine};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::{Stopwatch, once};
use crate::harness::report::{Report, Unit};
use crate::workload::read::look_at;
use crate::workload::session::Session;

/// The order of the keys of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A random one.
    Random,
    /// Ascending.
    Sorted,
}

/// Loads all records in one transaction, one by one, into an empty engine. Rows:
/// `bulk.{random,sorted}.deferred`, and the same `.synced`.
///
/// # Errors
/// The engine's, or contents that are not what was written.
pub fn bulk_load<E: Engine>(
    session: &mut Session<'_, E>,
    report: &mut Report,
    order: Order,
) -> Result<()> {
    let indices = match order {
        Order::Random => (0..session.entries).collect(),
        Order::Sorted => session.data.in_key_order(session.entries),
    };
    let watch = Stopwatch::start();
    session.engine().transaction(&mut |transaction| {
        indices.iter().try_for_each(|&index| {
            transaction.put(&session.data.key(index), session.data.value(index, 0))
        })
    })?;
    let loaded = watch.measured(session.entries);
    session.engine().sync()?;
    let synced = watch.measured(session.entries);
    session.set_next(session.entries);
    let name = if order == Order::Sorted { "bulk.sorted" } else { "bulk.random" };
    session.add_rate(report, &format!("{name}.deferred"), loaded);
    session.add_rate(report, &format!("{name}.deferred.synced"), synced);
    session.verify("a bulk load", true)
}

/// Removes from an engine with all records half of them, half of what is left, and a tenth of that
/// at each end, each in one transaction, and compacts what is left. Rates are of the entries looked
/// at, or popped. Rows: `retain.deferred`, `extract_if.deferred`, `pop.{first,last}.deferred`,
/// `compact` (milliseconds), `space.compacted` (data bytes per user byte).
///
/// # Errors
/// The engine's, or contents that are not what should be left.
pub fn removals<E: Engine>(session: &mut Session<'_, E>, report: &mut Report) -> Result<()> {
    let mut left = session.engine().count()?;
    for (row, is_handed_out, bit) in [("retain", false, 1), ("extract_if", true, 2)] {
        let takes = |key: &[u8]| key.last().is_some_and(|byte| byte & bit != 0);
        let (removed, mut measured) = once(|| {
            session.engine().extract(is_handed_out, &mut |key, value| {
                look_at(value);
                takes(key)
            })
        })?;
        measured.operations = left;
        session.add_rate(report, &format!("{row}.deferred"), measured);
        left -= removed;
        let mut wrong = 0;
        let count =
            session.engine().scan(None, Direction::Ascending, u64::MAX, &mut |key, _| {
                wrong += u64::from(takes(key));
            })?;
        ensure(count == left && wrong == 0, || {
            format!("{}: {row} left {wrong} wrong entries of {count}, not {left}", E::NAME)
        })?;
    }
    let popped = left.div_ceil(10);
    for (row, end) in [("pop.first", Direction::Ascending), ("pop.last", Direction::Descending)] {
        let watch = Stopwatch::start();
        session.engine().transaction(&mut |transaction| {
            (0..popped).try_for_each(|_| {
                let was_there = transaction.pop(end, &mut |_, value| look_at(value))?;
                ensure(was_there, || format!("{}: nothing was popped", E::NAME))
            })
        })?;
        session.add_rate(report, &format!("{row}.deferred"), watch.measured(popped));
        left = left.saturating_sub(popped);
    }
    let count = session.engine().count()?;
    ensure(count == left, || format!("{}: pops left {count} entries, not {left}", E::NAME))?;
    compacted(session, report, left)
}

/// Closes, compacts and opens an engine with this number of entries.
fn compacted<E: Engine>(
    session: &mut Session<'_, E>,
    report: &mut Report,
    entries: u64,
) -> Result<()> {
    let setup = session.setup(Durability::Deferred);
    session.close()?.close()?;
    let ((), measured) = once(|| E::compact(&session.directory, setup))?;
    let space = E::space(&session.directory)?.ok_or("a persistent engine takes space")?;
    let engine = E::open(&session.directory, setup)?;
    session.resume(engine, setup.durability);
    let count = session.engine().count()?;
    ensure(count == entries, || {
        format!("{}: compaction left {count} entries, not {entries}", E::NAME)
    })?;
    let user_bytes = (entries * session.data.record_bytes()) as f64;
    session.add(report, "compact", Unit::Milliseconds, measured.milliseconds());
    session.add(report, "space.compacted", Unit::Share, space.data_bytes as f64 / user_bytes);
    Ok(())
}
