//! `memory`: a store with a memory bound, against one without.
//!
//! Purpose: shows that a pool three times as large as its bound is loaded, changed and read, that
//! the process's own memory stays within the bound, and the cost of a read of the hot part. Memory
//! is the process's private memory as reported by the system, beyond what it had before the store
//! was opened; it is sampled after every few batches.

mod settings;

use std::path::Path;
use std::thread;
use std::time::Duration;

use ::adamant::{Durability, Keyspace, Options, Store};

use crate::harness::data::{Data, Distribution, draw};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::{Stopwatch, memory_private_bytes};
use crate::harness::report::{Report, Unit};

pub use crate::commands::bounded::settings::Settings;
use crate::commands::bounded::settings::VALUE_BYTES;

/// The engine of all rows.
const ENGINE: &str = "adamant";
/// Entries of a batch.
const BATCH: u64 = 500;
/// Batches between two memory samples, which take a while.
const BATCHES_PER_LOOK: u64 = 16;
/// Maximum number of polls for promotion to huge pages, polls without progress that end it, and the
/// pause.
const LOOKS_MAX: u32 = 40;
const LOOKS_STILL: u32 = 6;
const LOOK_AGAIN: Duration = Duration::from_millis(500);
const MEBIBYTE: f64 = (1 << 20) as f64;

/// Measures everything; `tell` is called with each next step.
///
/// # Errors
/// The first of the store or the file system, and contents that are not what was written.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut report = Report::new("memory", ENGINE);
    let data = Data::new(settings.seed, VALUE_BYTES);
    for round in 0..settings.rounds {
        let seed = settings.seed.wrapping_mul(1_000).wrapping_add(u64::from(round));
        for (name, bound) in [("unbounded", u64::MAX), ("bounded", settings.memory_bytes_max)] {
            tell(&format!("round {}: {name}", round + 1));
            let prefix = "adamant-bench-";
            let directory = tempfile::Builder::new().prefix(prefix).tempdir_in(&settings.path)?;
            let path = directory.path().join("store");
            Run { settings, data: &data, name, bound, seed }.measure(&path, &mut report)?;
        }
    }
    for row in ["load", "overwrite", "get.hot", "get.uniform"] {
        let (above, below) = (format!("{row}.bounded"), format!("{row}.unbounded"));
        report.add_ratio(&format!("{above}.vs_unbounded"), &above, (&below, ENGINE))?;
    }
    report.add_ratio("get.huge_pages.vs_small", "get.huge_pages", ("get.small_pages", ENGINE))?;
    Ok(report)
}

/// A store, from its creation to its end.
#[derive(Clone, Copy)]
struct Run<'s> {
    settings: &'s Settings,
    data: &'s Data,
    name: &'s str,
    bound: u64,
    seed: u64,
}

impl Run<'_> {
    fn measure(&self, path: &Path, report: &mut Report) -> Result<()> {
        let idle = memory_private_bytes()?;
        let options = Options::new()
            .durability(Durability::Buffered)
            .log_bytes_max(self.settings.log_bytes_max)
            .memory_bytes_max(self.bound);
        let store = Store::open_with(path, options)?;
        let keyspace = store.keyspace("bench")?;
        let entries = self.settings.entries;
        let all: Vec<u64> = (0..entries).collect();
        let loaded = self.put(&store, &keyspace, &all, 0, "load", report)?;
        let order = draw(Distribution::Uniform, entries, entries / 2, self.seed);
        let changed = self.put(&store, &keyspace, &order, 1, "overwrite", report)?;
        let peak = loaded.max(changed).saturating_sub(idle);
        self.add(report, "private", Unit::Mebibytes, peak as f64 / MEBIBYTE);
        let stats = store.stats()?.heap;
        if self.bound < u64::MAX {
            let share = peak as f64 / self.bound as f64;
            self.add(report, "private.vs_bound", Unit::Share, share);
            let pool = stats.used_bytes as f64 / self.bound as f64;
            self.add(report, "pool.vs_bound", Unit::Speedup, pool);
            let dropped = stats.memory.dropped_bytes as f64 / MEBIBYTE;
            self.add(report, "dropped", Unit::Mebibytes, dropped);
            self.add(report, "waits", Unit::Count, stats.memory.waits as f64);
        }
        let hot = entries / 10;
        let first = fastrand::Rng::with_seed(self.seed).u64(..entries - hot);
        let indices = draw(Distribution::Uniform, hot, self.settings.gets, self.seed);
        let hot: Vec<u64> = indices.into_iter().map(|index| first + index).collect();
        self.get(&keyspace, &hot, "get.hot", report)?;
        let uniform = draw(Distribution::Uniform, entries, self.settings.gets, self.seed + 1);
        self.get(&keyspace, &uniform, "get.uniform", report)?;
        let mut changed = order;
        changed.sort_unstable();
        self.verify(&keyspace, &changed)?;
        drop(keyspace);
        store.close()?;
        if self.bound == u64::MAX { self.measure_huge(path, report) } else { Ok(()) }
    }

    /// Gets from a reopened store, before and after its pages are on huge pages.
    fn measure_huge(&self, path: &Path, report: &mut Report) -> Result<()> {
        let order =
            draw(Distribution::Uniform, self.settings.entries, self.settings.gets, self.seed);
        for (name, huge_bytes_max) in [("small_pages", 0), ("huge_pages", u64::MAX / 4)] {
            let store = Store::open_with(path, Options::new().huge_bytes_max(huge_bytes_max))?;
            let keyspace = store.keyspace("bench")?;
            let run = Run { name, ..*self };
            run.get(&keyspace, &order, "get.touched", report)?;
            if huge_bytes_max > 0 {
                self.wait_for_huge(&store, report)?;
            }
            run.get(&keyspace, &order, "get", report)?;
            drop(keyspace);
            store.close()?;
        }
        Ok(())
    }

    /// Waits until no more pages are promoted to huge pages.
    fn wait_for_huge(&self, store: &Store, report: &mut Report) -> Result<()> {
        let (mut promoted, mut still) = (0, 0);
        for _ in 0..LOOKS_MAX {
            thread::sleep(LOOK_AGAIN);
            let now = store.stats()?.heap.memory.promoted_bytes;
            still = if now == promoted { still + 1 } else { 0 };
            promoted = now;
            if still == LOOKS_STILL {
                break;
            }
        }
        let mebibytes = promoted as f64 / MEBIBYTE;
        report.add("promoted", ENGINE, Unit::Mebibytes, self.settings.entries, mebibytes);
        Ok(())
    }

    fn add(&self, report: &mut Report, row: &str, unit: Unit, sample: f64) {
        let row = format!("{row}.{}", self.name);
        report.add(&row, ENGINE, unit, self.settings.entries, sample);
    }

    /// Puts entries in batches; returns the maximum private memory.
    fn put(
        &self,
        store: &Store,
        keyspace: &Keyspace,
        indices: &[u64],
        version: u64,
        row: &str,
        report: &mut Report,
    ) -> Result<u64> {
        let (count, watch) = (indices.len() as u64, Stopwatch::start());
        let (mut batch, mut peak, mut looks) = (store.batch(), 0, 0);
        for (number, &index) in (1..).zip(indices) {
            batch.put(keyspace, self.data.key(index), self.data.value(index, version))?;
            if number % BATCH == 0 || number == count {
                std::mem::replace(&mut batch, store.batch()).commit()?;
                looks += 1;
                if looks % BATCHES_PER_LOOK == 0 || number == count {
                    peak = memory_private_bytes()?.max(peak);
                }
            }
        }
        let row = format!("{row}.{}", self.name);
        report.add_rate(&row, ENGINE, self.settings.entries, watch.measured(count));
        Ok(peak)
    }

    /// Gets entries, after an unmeasured pass so that both stores are warm.
    fn get(
        &self,
        keyspace: &Keyspace,
        indices: &[u64],
        row: &str,
        report: &mut Report,
    ) -> Result<()> {
        let mut found = 0;
        for is_measured in [false, true] {
            let watch = Stopwatch::start();
            for &index in indices {
                let is_there = keyspace.get(self.data.key(index))?.is_some();
                found += u64::from(is_there);
            }
            if is_measured {
                let row = format!("{row}.{}", self.name);
                let measured = watch.measured(indices.len() as u64);
                report.add_rate(&row, ENGINE, self.settings.entries, measured);
            }
        }
        ensure(found == 2 * indices.len() as u64, || format!("{row}: entries are missing"))
    }

    /// Verifies every entry; `changed` are those that were overwritten, in order.
    fn verify(&self, keyspace: &Keyspace, changed: &[u64]) -> Result<()> {
        for index in 0..self.settings.entries {
            let version = u64::from(changed.binary_search(&index).is_ok());
            let value = keyspace.get(self.data.key(index))?;
            let is_right = value.is_some_and(|value| value == *self.data.value(index, version));
            ensure(is_right, || format!("{}: entry {index} is not what was put", self.name))?;
        }
        Ok(())
    }
}
