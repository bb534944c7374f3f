//! Single puts that survive power loss, against the raw disk.
//!
//! The speed of a disk changes from second to second, so the raw disk and the engine take turns,
//! and a ratio compares neighbours.

use std::path::Path;
use std::time::Duration;

use crate::harness::engine::{Durability, Engine};
use crate::harness::error::Result;
use crate::harness::measure::for_a_while;
use crate::harness::raw::RawDisk;
use crate::harness::report::{Report, Unit};
use crate::workload::session::Session;

/// Name of the raw disk in the column of engines.
pub const RAW: &str = "raw";

/// One write that waited for the disk.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The kind of writer.
    pub of: Writer,
    /// Number of concurrent threads.
    pub threads: usize,
    /// The writing thread.
    pub thread: usize,
    /// The duration.
    pub time: Duration,
}

/// The kind of writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writer {
    /// The raw disk, appending.
    Append,
    /// The raw disk, overwriting.
    Prealloc,
    /// The engine.
    Engine,
}

/// Takes turns of `time` for each row, and passes every wait to `observe`. Rows:
/// `put.sync.{1t,8t}`, `raw.{append,prealloc}.fdatasync.{1t,8t}`, `log.put.sync` (bytes of log per
/// put).
///
/// # Errors
/// The engine's, or contents that are not what was written.
pub fn durable_puts<E: Engine>(
    session: &mut Session<'_, E>,
    report: &mut Report,
    raw_directory: &Path,
    turns: u32,
    time: Duration,
    observe: &(dyn Fn(Wait) + Sync),
) -> Result<()> {
    if !E::DURABILITIES.contains(&Durability::Sync) {
        return Ok(());
    }
    session.reopen(Durability::Sync)?;
    let raw = RawDisk::create(raw_directory)?;
    let log_before = session.engine().log_bytes_appended()?;
    let first = session.next();
    for _ in 0..turns {
        for threads in [1, 8] {
            let waits_of = |of| move |thread, time| observe(Wait { of, threads, thread, time });
            let appended = raw.append(threads, time, &waits_of(Writer::Append))?;
            let overwritten = raw.overwrite(threads, time, &waits_of(Writer::Prealloc))?;
            let put = for_a_while(threads, time, &waits_of(Writer::Engine), |_, _| {
                let index = session.take_index();
                session.engine().put(&session.data.key(index), session.data.value(index, 0))
            })?;
            let rows = [("append", appended), ("prealloc", overwritten)];
            for (name, measured) in rows {
                let row = format!("raw.{name}.fdatasync.{threads}t");
                let rate = measured.thousand_per_second();
                report.add(&row, RAW, Unit::ThousandPerSecond, measured.operations, rate);
            }
            session.add_rate(report, &format!("put.sync.{threads}t"), put);
        }
    }
    if let (Some(before), Some(after)) = (log_before, session.engine().log_bytes_appended()?) {
        let puts = session.next() - first;
        let per_put = (after - before) as f64 / puts as f64;
        session.add(report, "log.put.sync", Unit::Bytes, per_put);
    }
    session.verify("durable puts", false)
}
