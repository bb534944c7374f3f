//! One engine in one round, in a process of its own.
//!
//! Purpose: that memory, processor time and bytes written are the engine's and nobody else's, and
//! that what one engine left in the allocator is not in the way of the next.
//! The process prints JSON lines, which its parent collects.

use std::path::Path;

use adamant_bench::harness::asked::AskedRows;
use adamant_bench::harness::data::Data;
use adamant_bench::harness::engine::Durability;
use adamant_bench::harness::error::Result;
use adamant_bench::harness::report::Report;
use adamant_bench::workload::bulk::{Order, bulk_load, removals};
use adamant_bench::workload::durable::{RAW, durable_puts};
use adamant_bench::workload::kill::{self, open_after_kill};
use adamant_bench::workload::load::{load, put_in_batches};
use adamant_bench::workload::memory::{self, peak_of_load};
use adamant_bench::workload::read;
use adamant_bench::workload::session::Session;
use adamant_bench::workload::write::{delete, overwrite, singles};
use adamant_bench::workload::ycsb::{self, ycsb};
use serde_json::Value;

use crate::peer::Peer;
use crate::run::calls;
use crate::run::datasets::{BULK, CALLS, Dataset, MAIN, MEMORY, WATCH, YCSB};
use crate::run::roster::{Task, with_engine};
use crate::run::settings::Settings;
use crate::run::waits::{self, Waits};

/// First argument of a child process.
pub const CHILD_COMMAND: &str = "child";

/// Bytes of the values that are judged.
const VALUE_BYTES: usize = 100;

/// What a child does: a part of a round, with an engine.
pub struct Work<'a> {
    /// How much.
    pub settings: &'a Settings,
    /// Which round, from 0.
    pub round: u32,
    /// `MAIN`, `WATCH`, `CALLS`, `MEMORY`, `BULK`, `YCSB`, or the suffix of a dataset.
    pub part: &'a str,
    /// Where it may work; removed by the parent.
    pub directory: &'a Path,
}

impl Task for Work<'_> {
    type Output = Vec<Value>;

    fn run<P: Peer>(self) -> Result<Vec<Value>> {
        let mut report = Report::new("peers", P::NAME);
        let mut lines = Vec::new();
        match self.part {
            MAIN => lines = self.main::<P>(&mut report)?,
            WATCH => lines.push(self.watch::<P>()?),
            CALLS => self.calls::<P>()?,
            MEMORY => self.memory::<P>(&mut report)?,
            BULK => self.bulk::<P>(&mut report)?,
            YCSB => self.ycsb::<P>(&mut report)?,
            suffix => {
                let dataset = Dataset::find(suffix);
                let dataset = dataset.ok_or_else(|| format!("there is no part {suffix}"))?;
                self.dataset::<P>(dataset, &mut report)?;
            }
        }
        for line in report.json_lines(&AskedRows::of("peers")?).lines() {
            lines.push(serde_json::from_str(line)?);
        }
        Ok(lines)
    }
}

impl Work<'_> {
    fn begin<'d, P: Peer>(
        &self,
        data: &'d Data,
        entries: u64,
        suffix: &'static str,
    ) -> Result<Session<'d, P>> {
        self.begin_in("store", data, entries, suffix)
    }

    fn begin_in<'d, P: Peer>(
        &self,
        name: &str,
        data: &'d Data,
        entries: u64,
        suffix: &'static str,
    ) -> Result<Session<'d, P>> {
        let store = self.directory.join(name);
        let seed = self.settings.seed.wrapping_mul(1_000).wrapping_add(u64::from(self.round));
        Session::begin(&store, data, entries, self.settings.log_bytes_max, seed, suffix)
    }

    /// All workloads of `adamant-bench kv`.
    fn main<P: Peer>(&self, report: &mut Report) -> Result<Vec<Value>> {
        let settings = self.settings;
        let data = Data::new(settings.seed, VALUE_BYTES);
        let mut session = self.begin::<P>(&data, settings.entries, "")?;
        load(&mut session, report)?;
        self.reads(&session, report)?;
        let (waits, turns, time) = (Waits::new()?, settings.turns, settings.turn_time);
        let observe = |wait| waits.observe(wait);
        durable_puts(&mut session, report, self.directory, turns, time, &observe)?;
        if P::DURABILITIES.contains(&Durability::Sync) {
            // The disk's speed changes within a round: what it did beside the engine is the
            // measure.
            let raw = ("raw.prealloc.fdatasync.1t", RAW);
            report.add_ratio("put.sync.1t.vs_raw", "put.sync.1t", raw)?;
            report.add_ratio("put.sync.8t.vs_raw", "put.sync.8t", raw)?;
        }
        singles(&mut session, report, settings.puts, settings.row_time)?;
        open_after_kill(&mut session, report, settings.killed_puts)?;
        overwrite(&mut session, report)?;
        delete(&mut session, report)?;
        session.close()?.close()?;
        waits.lines(P::NAME)
    }

    fn reads<P: Peer>(&self, session: &Session<'_, P>, report: &mut Report) -> Result<()> {
        let draws = self.settings.gets.min(session.entries);
        let amount = read::Amount { draws, time: self.settings.row_time };
        read::gets(session, report, amount)?;
        read::scans(session, report, amount)
    }

    /// Those that depend most on sizes and contents of records.
    fn dataset<P: Peer>(&self, dataset: &'static Dataset, report: &mut Report) -> Result<()> {
        let settings = self.settings;
        let entries = settings.dataset_entries;
        let data = dataset.data(settings.seed, entries, settings.records.as_deref())?;
        let mut session = self.begin::<P>(&data, entries, dataset.suffix)?;
        load(&mut session, report)?;
        self.reads(&session, report)?;
        overwrite(&mut session, report)?;
        session.close()?.close()
    }

    fn bulk<P: Peer>(&self, report: &mut Report) -> Result<()> {
        let (data, entries) = (Data::new(self.settings.seed, VALUE_BYTES), self.settings.entries);
        let mut sorted = self.begin_in::<P>("sorted", &data, entries, "")?;
        bulk_load(&mut sorted, report, Order::Sorted)?;
        sorted.close()?.close()?;
        let mut session = self.begin::<P>(&data, entries, "")?;
        bulk_load(&mut session, report, Order::Random)?;
        removals(&mut session, report)?;
        session.close()?.close()
    }

    fn ycsb<P: Peer>(&self, report: &mut Report) -> Result<()> {
        let settings = self.settings;
        let data = Data::new(settings.seed, ycsb::VALUE_BYTES);
        let mut session = self.begin::<P>(&data, settings.ycsb_entries, "")?;
        let draws = settings.gets.min(settings.ycsb_entries);
        ycsb(&mut session, report, draws, settings.row_time)?;
        session.close()?.close()
    }

    fn watch<P: Peer>(&self) -> Result<Value> {
        let entries = self.settings.watch_entries;
        let data = Data::new(self.settings.seed, VALUE_BYTES);
        let mut session = self.begin::<P>(&data, entries, "")?;
        put_in_batches(&session, 0..entries, 0)?;
        session.set_next(entries);
        let line = waits::throughput(&mut session, self.settings.watch_time)?;
        session.close()?.close()?;
        Ok(line)
    }

    fn calls<P: Peer>(&self) -> Result<()> {
        let amount = self.settings.calls;
        let data = Data::new(self.settings.seed, VALUE_BYTES);
        let mut session = self.begin::<P>(&data, amount.entries, "")?;
        calls::workloads(&mut session, amount)?;
        session.close()?.close()
    }

    fn memory<P: Peer>(&self, report: &mut Report) -> Result<()> {
        let settings = self.settings;
        let data = Data::new(settings.seed, VALUE_BYTES);
        let store = self.directory.join("store");
        peak_of_load::<P>(report, &store, &data, settings.entries, settings.log_bytes_max)
    }
}

/// The child that is killed amid its puts.
struct KillChild<'a>(&'a [String]);

impl Task for KillChild<'_> {
    type Output = ();

    fn run<P: Peer>(self) -> Result<()> {
        kill::child::<P>(self.0)
    }
}

/// The child that loads, and says what memory that took.
struct MemoryChild<'a>(&'a [String]);

impl Task for MemoryChild<'_> {
    type Output = ();

    fn run<P: Peer>(self) -> Result<()> {
        memory::child::<P>(self.0)
    }
}

/// Does what the arguments of a child process say; `false` when they are not such.
///
/// # Errors
/// Those of the work.
pub fn run(arguments: &[String]) -> Result<bool> {
    match arguments {
        [command, engine, task @ ..] if command == kill::CHILD_COMMAND => {
            with_engine(engine, KillChild(task))?;
        }
        [command, engine, task @ ..] if command == memory::CHILD_COMMAND => {
            with_engine(engine, MemoryChild(task))?;
        }
        [command, engine, round, part, directory, rest @ ..] if command == CHILD_COMMAND => {
            let settings = Settings::parse(rest)?.ok_or("a child needs settings")?;
            let (round, directory) = (round.parse()?, Path::new(directory));
            let work = Work { settings: &settings, round, part, directory };
            for line in with_engine(engine, work)? {
                println!("{line}");
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}
