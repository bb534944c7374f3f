//! `transactions`: snapshots, transactions, and the waits of threads for each other.
//!
//! Purpose: the mutual cost of readers and writers: threads side by side, gets while a large batch
//! commits, commits under a lasting load, snapshots and serializable transactions.

mod settings;

mod batch;
mod full_log;
mod load;
mod serial;
mod snapshot;

use crate::engines::adamant::AdamantEngine;
use crate::harness::data::Data;
use crate::harness::engine::{Durability, Engine};
use crate::harness::error::Result;
use crate::harness::report::Report;
use crate::workload::durable::{RAW, durable_puts};
use crate::workload::load::put_in_batches;
use crate::workload::read::{Amount, gets};
use crate::workload::session::Session;

use crate::commands::transactions::settings::VALUE_BYTES;

pub use crate::commands::transactions::settings::Settings;

/// Measures everything; `tell` is called with each next step.
///
/// # Errors
/// The first of the store or the file system, and contents that are not what was written.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut report = Report::new("transactions", AdamantEngine::NAME);
    let data = Data::new(settings.seed, VALUE_BYTES);
    for round in 0..settings.rounds {
        let mut tell = |what: &str| tell(&format!("round {}: {what}", round + 1));
        measure(settings, &data, u64::from(round), &mut report, &mut tell)?;
    }
    let raw = ("raw.prealloc.fdatasync.1t", RAW);
    report.add_ratio("put.sync.1t.vs_raw", "put.sync.1t", raw)?;
    let single = ("put.sync.1t", AdamantEngine::NAME);
    report.add_ratio("put.sync.8t.vs_1t", "put.sync.8t", single)?;
    let single = ("get.uniform.1t", AdamantEngine::NAME);
    report.add_ratio("get.uniform.2t.vs_1t", "get.uniform.2t", single)?;
    Ok(report)
}

/// One round, in a directory of its own.
fn measure(
    settings: &Settings,
    data: &Data,
    round: u64,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<()> {
    let directory = tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(&settings.path)?;
    let store = directory.path().join("store");
    let seed = settings.seed.wrapping_mul(1_000).wrapping_add(round);
    let mut session: Session<'_, AdamantEngine> =
        Session::begin(&store, data, settings.entries, settings.log_bytes_max, seed, "")?;
    tell("loading");
    put_in_batches(&session, 0..settings.entries, 0)?;
    session.set_next(settings.entries);
    tell("gets");
    let amount = Amount { draws: settings.entries, time: settings.row_time };
    gets(&session, report, amount)?;
    tell("snapshots");
    snapshot::measure(&session, settings, report)?;
    tell("transactions");
    serial::measure(&mut session, settings, report)?;
    tell("gets while a large batch commits");
    session.reopen(Durability::Buffered)?;
    batch::measure(&mut session, settings, report)?;
    tell("commits under a load that lasts");
    load::measure(&mut session, settings, directory.path(), report)?;
    tell("puts where the log is full");
    full_log::measure(settings, directory.path(), report)?;
    tell("durable puts");
    let (turns, time) = (settings.turns, settings.turn_time);
    durable_puts(&mut session, report, directory.path(), turns, time, &|_| {})?;
    session.close()?.close()
}
