//! Commit latencies under a lasting load, against the raw disk's.

use std::path::Path;

use crate::commands::transactions::settings::Settings;
use crate::engines::adamant::AdamantEngine;
use crate::harness::engine::Durability;
use crate::harness::engine::Engine;
use crate::harness::error::Result;
use crate::harness::report::{Report, Unit};
use crate::workload::durable::RAW;
use crate::workload::session::Session;
use crate::workload::soak::{add_waits, raw_waits, soak};

/// Rows `put.buffered...` and `get.under_load...`, rates of both, and of the raw disk
/// `raw.write...`: writes of records beside a thread that syncs them, and `raw.fdatasync...`.
///
/// # Errors
/// The store's or the file system's, or contents that are not what was written.
pub(super) fn measure(
    session: &mut Session<'_, AdamantEngine>,
    settings: &Settings,
    directory: &Path,
    report: &mut Report,
) -> Result<()> {
    session.reopen(Durability::Buffered)?;
    let before = session.engine().store().stats()?.heap.journal.checkpoints;
    let soaked = soak(session, settings.load_time)?;
    let checkpoints = session.engine().store().stats()?.heap.journal.checkpoints - before;
    let entries = session.entries;
    session.add(report, "load.checkpoints", Unit::Count, checkpoints as f64);
    for (row, waits) in [("put.buffered", &soaked.commits), ("get.under_load", &soaked.gets)] {
        let rate = waits.len() as f64 / soaked.seconds / 1e3;
        session.add(report, &format!("{row}.rate"), Unit::ThousandPerSecond, rate);
        add_waits(report, row, AdamantEngine::NAME, entries, waits);
    }

    let raw = raw_waits(directory, settings.load_time / 4)?;
    for (row, waits) in ["raw.write", "raw.fdatasync"].into_iter().zip(&raw) {
        add_waits(report, row, RAW, entries, waits);
    }
    Ok(())
}
