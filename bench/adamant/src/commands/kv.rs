//! `kv`: a keyspace of byte strings, against the raw disk and a `BTreeMap`.
//!
//! Purpose: the order of the workloads, the rounds, and the rated ratios. Engines take turns in
//! rounds, in changing order, so that a slow minute of the machine affects all of them; figures are
//! medians over rounds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engines::adamant::{AdamantEngine, EncryptedEngine, FilledEngine};
use crate::engines::btree_map::BTreeMapEngine;
use crate::harness::data::{Data, KEY_BYTES};
use crate::harness::engine::Engine;
use crate::harness::error::Result;
use crate::harness::report::Report;
use crate::workload::durable::{RAW, durable_puts};
use crate::workload::kill::open_after_kill;
use crate::workload::load::load;
use crate::workload::memory::peak_of_load;
use crate::workload::read::{Amount, gets, scans};
use crate::workload::session::Session;
use crate::workload::write::{delete, overwrite, singles};

/// Bytes of the rated values.
const VALUE_BYTES: usize = 100;
/// Bytes of the large values.
const LARGE_VALUE_BYTES: usize = 800;
/// The row suffix of the large values.
const LARGE_SUFFIX: &str = ".v800";

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Entries with values of 100 bytes.
    pub entries: u64,
    /// Entries with values of 800 bytes.
    pub large_entries: u64,
    /// Rounds of every engine.
    pub rounds: u32,
    /// Distinct keys drawn for the gets of a row.
    pub gets: u64,
    /// Maximum single puts of a row that wait for no disk; operations of a mixture.
    pub puts: u64,
    /// Time of a row of gets, scans or single puts that wait for no disk.
    pub row_time: Duration,
    /// Turns of the disk and the engine in a round.
    pub turns: u32,
    /// Time of a row in a turn.
    pub turn_time: Duration,
    /// Puts that a child reports before it is killed.
    pub killed_puts: u64,
    /// Maximum bytes of a store's log.
    pub log_bytes_max: u64,
    /// Whether a store with a filled image takes part, too.
    pub is_filled_beside: bool,
    /// Whether an encrypted store does.
    pub is_encrypted_beside: bool,
    /// Seed of all randomness.
    pub seed: u64,
    /// A working directory, whose content is removed at the end.
    pub path: PathBuf,
}

impl Settings {
    /// Everything once, in some minutes.
    pub fn full(path: PathBuf) -> Self {
        Self {
            entries: 1_000_000,
            large_entries: 300_000,
            rounds: 5,
            gets: 1_000_000,
            puts: 200_000,
            row_time: Duration::from_millis(800),
            turns: 5,
            turn_time: Duration::from_millis(300),
            killed_puts: 50_000,
            log_bytes_max: 128 << 20,
            is_filled_beside: false,
            is_encrypted_beside: false,
            seed: 1,
            path,
        }
    }

    /// Everything in less than 40 seconds.
    pub fn quick(path: PathBuf) -> Self {
        Self {
            entries: 300_000,
            large_entries: 50_000,
            rounds: 3,
            gets: 100_000,
            puts: 40_000,
            row_time: Duration::from_millis(100),
            turns: 3,
            turn_time: Duration::from_millis(120),
            killed_puts: 20_000,
            ..Self::full(path)
        }
    }
}

/// Measures everything; `tell` is called with each next step.
///
/// # Errors
/// The first of an engine or the file system, and contents that are not what was written.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut report = Report::new("kv", AdamantEngine::NAME);
    let data = Data::new(settings.seed, VALUE_BYTES);
    let large_data = Data::new(settings.seed, LARGE_VALUE_BYTES);
    for round in 0..settings.rounds {
        let mut run = Round { settings, report: &mut report, tell, number: round };
        if round == 0 {
            run.memory::<AdamantEngine>(&data)?;
            run.memory::<BTreeMapEngine>(&data)?;
            if settings.is_filled_beside {
                run.memory::<FilledEngine>(&data)?;
            }
            if settings.is_encrypted_beside {
                run.memory::<EncryptedEngine>(&data)?;
            }
        }
        if settings.is_filled_beside {
            run.all::<FilledEngine>(&data)?;
            run.large::<FilledEngine>(&large_data)?;
        }
        if settings.is_encrypted_beside {
            run.all::<EncryptedEngine>(&data)?;
            run.large::<EncryptedEngine>(&large_data)?;
        }
        if round % 2 == 0 {
            run.all::<AdamantEngine>(&data)?;
            run.all::<BTreeMapEngine>(&data)?;
            run.large::<BTreeMapEngine>(&large_data)?;
            run.large::<AdamantEngine>(&large_data)?;
        } else {
            run.large::<AdamantEngine>(&large_data)?;
            run.large::<BTreeMapEngine>(&large_data)?;
            run.all::<BTreeMapEngine>(&data)?;
            run.all::<AdamantEngine>(&data)?;
        }
    }
    add_ratios(&mut report)?;
    Ok(report)
}

/// Rated and compared ratios to a reference of the same run.
fn add_ratios(report: &mut Report) -> Result<()> {
    let raw = ("raw.prealloc.fdatasync.1t", RAW);
    report.add_ratio("put.sync.1t.vs_raw", "put.sync.1t", raw)?;
    report.add_ratio("put.sync.8t.vs_raw", "put.sync.8t", raw)?;
    let single = ("put.sync.1t", AdamantEngine::NAME);
    report.add_ratio("put.sync.8t.vs_1t", "put.sync.8t", single)?;
    let rows = [
        "load.batch1000.deferred",
        "get.uniform.1t",
        "get_with.uniform.1t",
        "get.zipfian.1t",
        "get.missing.1t",
        "get.uniform.2t",
        "scan.full",
        "scan.100",
        "put.deferred.1t",
        "mixed.95_5.deferred",
        "mixed.50_50.deferred",
        "overwrite.batch1000.deferred",
        "delete.batch1000.deferred",
    ];
    for row in rows {
        let ratio = format!("{row}.vs_btreemap");
        report.add_ratio(&ratio, row, (row, BTreeMapEngine::NAME))?;
    }
    Ok(())
}

/// One round.
struct Round<'a> {
    settings: &'a Settings,
    report: &'a mut Report,
    tell: &'a mut dyn FnMut(&str),
    number: u32,
}

impl Round<'_> {
    fn say(&mut self, engine: &str, what: &str) {
        let message = format!("round {}: {engine}: {what}", self.number + 1);
        (self.tell)(&message);
    }

    fn seed(&self) -> u64 {
        self.settings.seed.wrapping_mul(1_000).wrapping_add(u64::from(self.number))
    }

    /// An empty directory for an engine, removed with the value.
    fn directory(&self) -> Result<tempfile::TempDir> {
        std::fs::create_dir_all(&self.settings.path)?;
        Ok(tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(&self.settings.path)?)
    }

    fn begin<'d, E: Engine>(
        &self,
        directory: &Path,
        data: &'d Data,
        entries: u64,
        suffix: &'static str,
    ) -> Result<Session<'d, E>> {
        let store = directory.join("store");
        Session::begin(&store, data, entries, self.settings.log_bytes_max, self.seed(), suffix)
    }

    /// All workloads.
    fn all<E: Engine>(&mut self, data: &Data) -> Result<()> {
        let settings = self.settings;
        let directory = self.directory()?;
        let mut session = self.begin::<E>(directory.path(), data, settings.entries, "")?;
        self.say(E::NAME, "load");
        load(&mut session, self.report)?;
        self.say(E::NAME, "gets and scans");
        let amount = Amount { draws: settings.gets, time: settings.row_time };
        gets(&session, self.report, amount)?;
        scans(&session, self.report, amount)?;
        self.say(E::NAME, "single puts and mixtures");
        let (turns, time) = (settings.turns, settings.turn_time);
        // They take turns with the raw disk, whose rows are one series, and hardly ask the image.
        if ![FilledEngine::NAME, EncryptedEngine::NAME].contains(&E::NAME) {
            durable_puts(&mut session, self.report, directory.path(), turns, time, &|_| ())?;
        }
        singles(&mut session, self.report, settings.puts, settings.row_time)?;
        self.say(E::NAME, "SIGKILL, overwrite, delete");
        open_after_kill(&mut session, self.report, settings.killed_puts)?;
        overwrite(&mut session, self.report)?;
        delete(&mut session, self.report)?;
        session.close()?.close()
    }

    /// Peak memory: the same in every round, so measured in one only.
    fn memory<E: Engine>(&mut self, data: &Data) -> Result<()> {
        self.say(E::NAME, "memory");
        let directory = self.directory()?;
        let store = directory.path().join("store");
        let settings = self.settings;
        peak_of_load::<E>(self.report, &store, data, settings.entries, settings.log_bytes_max)
    }

    /// The workloads that depend most on the size of values.
    fn large<E: Engine>(&mut self, data: &Data) -> Result<()> {
        let settings = self.settings;
        let directory = self.directory()?;
        let entries = settings.large_entries;
        let mut session = self.begin::<E>(directory.path(), data, entries, LARGE_SUFFIX)?;
        let bytes = KEY_BYTES + data.value_bytes();
        self.say(E::NAME, &format!("records of {bytes} bytes"));
        load(&mut session, self.report)?;
        let amount = Amount { draws: settings.gets.min(entries), time: settings.row_time };
        gets(&session, self.report, amount)?;
        scans(&session, self.report, amount)?;
        overwrite(&mut session, self.report)?;
        session.close()?.close()
    }
}
