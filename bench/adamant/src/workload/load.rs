//! Loading, closing and opening, and space on the disk.

use std::time::Duration;

use crate::harness::engine::{Durability, Engine};
use crate::harness::error::{Result, ensure};
use crate::harness::key::Key;
use crate::harness::measure::{Stopwatch, once, wait_until_quiet, written_bytes};
use crate::harness::report::{Report, Unit};
use crate::workload::session::Session;

/// Entries of a batch.
pub const BATCH_ENTRIES: usize = 1_000;
/// Number of openings of a closed engine in a round.
const OPENS: u32 = 3;
/// Maximum time for the background to become idle after a load.
const QUIET_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of a mebibyte.
pub(crate) const MEBIBYTE: f64 = 1_048_576.0;

/// Writes records `indices` at `version` in batches.
///
/// # Errors
/// The engine's.
pub fn put_in_batches<E: Engine>(
    session: &Session<'_, E>,
    indices: impl Iterator<Item = u64>,
    version: u64,
) -> Result<u64> {
    let mut batch: Vec<(Key, &[u8])> = Vec::with_capacity(BATCH_ENTRIES);
    let mut count = 0;
    for index in indices {
        batch.push((session.data.key(index), session.data.value(index, version)));
        count += 1;
        if batch.len() == BATCH_ENTRIES {
            session.engine().put_batch(&batch)?;
            batch.clear();
        }
    }
    if !batch.is_empty() {
        session.engine().put_batch(&batch)?;
    }
    Ok(count)
}

/// Loads all records in random order of keys, makes them durable, closes and opens the engine,
/// reads everything once, and waits until the background is idle. Rows: `load.batch1000.deferred`,
/// the same `.synced`, `written.load` (bytes per entry, including those of the close),
/// `open.clean`, and those of `settle`.
///
/// # Errors
/// The engine's, or contents that are not what was written.
pub fn load<E: Engine>(session: &mut Session<'_, E>, report: &mut Report) -> Result<()> {
    let written_before = written_bytes()?;
    let watch = Stopwatch::start();
    let operations = put_in_batches(session, 0..session.entries, 0)?;
    let loaded = watch.measured(operations);
    session.engine().sync()?;
    let synced = watch.measured(operations);
    session.set_next(session.entries);
    session.add_rate(report, "load.batch1000.deferred", loaded);
    if E::IS_PERSISTENT {
        session.add_rate(report, "load.batch1000.deferred.synced", synced);
    }
    session.verify("load", true)?;
    settle(session, report, "load", (written_before, operations))?;
    if E::IS_PERSISTENT {
        open_again(session, report)?;
        // Reads find everything in memory that an engine keeps there, and no compaction beside
        // them.
        session.verify("open", true)?;
        wait_until_quiet(QUIET_TIME_MAX);
    }
    Ok(())
}

/// Closes a persistent engine, measures its space on the disk, and opens it again. Rows, with the
/// name of the work `after` which it is called: `close.after_..`, `space.after_..` (data bytes per
/// user byte), `log.after_..` (bytes of log files), `log.after_...vs_option`, and `written...`
/// (what the process wrote for each of `operations` since it had written `written_before`).
///
/// # Errors
/// The engine's.
pub(crate) fn settle<E: Engine>(
    session: &mut Session<'_, E>,
    report: &mut Report,
    after: &str,
    (written_before, operations): (u64, u64),
) -> Result<()> {
    if !E::IS_PERSISTENT {
        return Ok(());
    }
    let engine = session.close()?;
    let ((), closed) = once(|| engine.close())?;
    let setup = session.setup(Durability::Deferred);
    let space = E::space(&session.directory)?.ok_or("a persistent engine takes space")?;
    let engine = E::open(&session.directory, setup)?;
    session.resume(engine, setup.durability);
    let row = |what: &str| format!("{what}.after_{after}");
    session.add(report, &row("close"), Unit::Milliseconds, closed.milliseconds());
    // The space after deletes is compared with the maximum before.
    let user_bytes = session.next() * session.data.record_bytes();
    let share = space.data_bytes as f64 / user_bytes as f64;
    session.add(report, &row("space"), Unit::Share, share);
    let log = space.log_bytes as f64;
    session.add(report, &row("log"), Unit::Mebibytes, log / MEBIBYTE);
    let of_option = log / setup.log_bytes_max as f64;
    session.add(report, &format!("{}.vs_option", row("log")), Unit::Share, of_option);
    let written = written_bytes()?.saturating_sub(written_before) as f64;
    session.add(report, &format!("written.{after}"), Unit::Bytes, written / operations as f64);
    Ok(())
}

/// Opens an engine that was closed cleanly, several times. Row: `open.clean`, the median of them.
fn open_again<E: Engine>(session: &mut Session<'_, E>, report: &mut Report) -> Result<()> {
    let setup = session.setup(Durability::Deferred);
    let entries = session.engine().count()?;
    let mut times = Vec::new();
    for _ in 0..OPENS {
        session.close()?.close()?;
        let (engine, opened) = once(|| E::open(&session.directory, setup))?;
        ensure(engine.count()? == entries, || format!("{}: entries lost at close", E::NAME))?;
        session.resume(engine, setup.durability);
        times.push(opened.milliseconds());
    }
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    session.add(report, "open.clean", Unit::Milliseconds, median);
    Ok(())
}
