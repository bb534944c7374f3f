//! The wait of puts while the log fills again and again.

use std::path::Path;
use std::time::Instant;

use crate::commands::transactions::settings::Settings;
use crate::engines::adamant::AdamantEngine;
use crate::harness::data::Data;
use crate::harness::engine::{Durability, Engine, Setup};
use crate::harness::error::Result;
use crate::harness::report::{Report, Unit};
use crate::workload::soak::waits;

/// Bytes of a value: with its key 1 KiB.
const VALUE_BYTES: usize = 1004;
/// Number of logs that are written.
const LOGS: u64 = 2;

/// Rows `put.full_log.{p50,p99.99,longest}`: buffered puts of 1 KiB, one by one, until the log has
/// been written twice; each is timed. There are no pauses, so checkpoints have none either.
/// `put.full_log.rate`, and of the second log alone `put.full_log.second.longest`.
///
/// # Errors
/// The store's.
pub(super) fn measure(settings: &Settings, directory: &Path, report: &mut Report) -> Result<()> {
    let data = Data::new(settings.seed, VALUE_BYTES);
    let log_bytes_max = settings.full_log_bytes;
    let setup = Setup { durability: Durability::Buffered, log_bytes_max };
    let engine = AdamantEngine::open(&directory.join("full-log"), setup)?;
    let appended = || -> Result<u64> { Ok(engine.log_bytes_appended()?.unwrap_or(u64::MAX)) };
    let (mut all, mut second) = (waits()?, waits()?);
    let (first, mut log, mut number) = (appended()?, 0, 0);
    let start = Instant::now();
    let mut before = start;
    while log < LOGS * log_bytes_max {
        engine.put(&data.key(number), data.value(number, 0))?;
        let now = Instant::now();
        let wait = (now - before).as_nanos() as u64;
        all.saturating_record(wait);
        if log >= log_bytes_max {
            second.saturating_record(wait);
        }
        (before, number) = (now, number + 1);
        if number % 64 == 0 {
            log = appended()? - first;
            before = Instant::now();
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    engine.close()?;
    let mut add = |row: &str, unit, value| {
        report.add(&format!("put.full_log.{row}"), AdamantEngine::NAME, unit, number, value);
    };
    add("rate", Unit::ThousandPerSecond, number as f64 / seconds / 1e3);
    for (row, percent) in [("p50", 50.0), ("p99.99", 99.99), ("longest", 100.0)] {
        add(row, Unit::Milliseconds, all.value_at_percentile(percent) as f64 / 1e6);
    }
    add("second.longest", Unit::Milliseconds, second.max() as f64 / 1e6);
    Ok(())
}
