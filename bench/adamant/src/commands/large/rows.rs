//! Rows of an engine whose data are larger than its memory.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::commands::large::settings::{Settings, VALUE_BYTES};
use crate::commands::large::subject::Subject;
use crate::harness::data::{Data, Distribution, draw};
use crate::harness::engine::{Direction, Engine};
use crate::harness::error::{Result, ensure};
use crate::harness::key::Key;
use crate::harness::measure::{
    Measured, Stopwatch, for_a_while, memory_anonymous_bytes, once, read_bytes, settle,
    written_bytes,
};
use crate::harness::report::{Report, Unit};
use crate::workload::load::MEBIBYTE;
use crate::workload::read::look_at;
use crate::workload::soak::waits;

/// Entries of a commit of the load.
const BATCH: u64 = 100;
/// Batches between two samples of the memory, which take a while.
const BATCHES_PER_LOOK: u64 = 64;
/// Records drawn before the clock starts; reused when used up.
const DRAWS: u64 = 1 << 20;
/// Entries of a scan.
const SCAN: u64 = 100;
/// Threads of the mixture.
const MIXED_THREADS: usize = 4;
/// What the values of the load are, and those of the mixture.
const LOADED: u64 = 0;
const MIXED: u64 = 1;

/// An engine, its content, and the report.
pub(super) struct Ground<'a, E> {
    settings: &'a Settings,
    subject: &'a Subject<E>,
    data: &'a Data,
    path: &'a Path,
    report: Report,
    entries: u64,
    /// The most anonymous memory that was seen.
    anonymous_bytes: u64,
}

/// All rows, in a new directory.
pub(super) fn measure<E: Engine>(
    subject: &Subject<E>,
    settings: &Settings,
    entries: u64,
    path: &Path,
) -> Result<Report> {
    let data = Data::half_compressible(settings.seed, VALUE_BYTES);
    let report = Report::new("large", subject.name);
    let mut ground =
        Ground { settings, subject, data: &data, path, report, entries, anonymous_bytes: 0 };
    ground.load()?;
    let (opened, time) = once(|| (subject.open)(path, settings.memory_bytes))?;
    ground.add("open", Unit::Milliseconds, time.milliseconds());
    ground.gets(&opened, "get.uniform", Distribution::Uniform)?;
    ground.gets(&opened, "get.zipfian", Distribution::Zipfian)?;
    ground.scans(&opened)?;
    ground.mixed(&opened)?;
    ground.look()?;
    opened.close()?;
    ground.space("mixed")?;
    let peak = ground.anonymous_bytes as f64 / MEBIBYTE;
    ground.add("memory.anonymous", Unit::Mebibytes, peak);
    Ok(ground.report)
}

impl<E: Engine> Ground<'_, E> {
    fn add(&mut self, row: &str, unit: Unit, sample: f64) {
        self.report.add(row, self.subject.name, unit, self.entries, sample);
    }

    fn look(&mut self) -> Result<()> {
        self.anonymous_bytes = self.anonymous_bytes.max(memory_anonymous_bytes()?);
        Ok(())
    }

    /// Bytes of data files by those of keys and values.
    fn space(&mut self, when: &str) -> Result<()> {
        let space = E::space(self.path)?.ok_or("a persistent engine takes space")?;
        let share = space.data_bytes as f64 / (self.entries * self.data.record_bytes()) as f64;
        self.add(&format!("space.{when}"), Unit::Share, share);
        Ok(())
    }

    fn longest(&mut self, row: &str, waits: &Histogram<u64>) {
        for (name, percent) in [("p99.9", 99.9), ("longest", 100.0)] {
            let milliseconds = waits.value_at_percentile(percent) as f64 / 1e6;
            self.add(&format!("{row}.{name}"), Unit::Milliseconds, milliseconds);
        }
    }

    /// Loads in random order, waits until the background is done, and closes. Rows: `load`,
    /// `load.settled`, `load.commit.{p99.9,longest}`, `load.loaded` (a share of all entries, below
    /// 1 where the time did not suffice), `write_amplification.load`, `close`, `space.load`.
    fn load(&mut self) -> Result<()> {
        let engine = (self.subject.open)(self.path, self.settings.memory_bytes)?;
        let (before, watch, start) = (written_bytes()?, Stopwatch::start(), Instant::now());
        let (mut commits, mut loaded) = (waits()?, 0);
        while loaded < self.entries && start.elapsed() < self.settings.load_time_max {
            let end = self.entries.min(loaded + BATCH);
            let entry = |index| (self.data.key(index), self.data.value(index, LOADED));
            let entries: Vec<(Key, &[u8])> = (loaded..end).map(entry).collect();
            let start = Instant::now();
            engine.put_batch(&entries)?;
            commits.saturating_record(start.elapsed().as_nanos() as u64);
            loaded = end;
            if (loaded / BATCH).is_multiple_of(BATCHES_PER_LOOK) {
                self.look()?;
            }
        }
        let written = watch.measured(loaded);
        let synced = once(|| engine.sync())?.1.seconds;
        let busy = settle().as_secs_f64();
        let share = loaded as f64 / self.entries as f64;
        self.entries = loaded;
        self.report.add_rate("load", self.subject.name, loaded, written);
        let settled = Measured { seconds: written.seconds + synced + busy, ..written };
        self.add("load.settled", Unit::ThousandPerSecond, settled.thousand_per_second());
        self.longest("load.commit", &commits);
        self.add("load.loaded", Unit::Speedup, share);
        let ((), closed) = once(|| engine.close())?;
        let user_bytes = (loaded * self.data.record_bytes()) as f64;
        let amplification = (written_bytes()? - before) as f64 / user_bytes;
        self.add("write_amplification.load", Unit::Share, amplification);
        self.add("close", Unit::Milliseconds, closed.milliseconds());
        self.space("load")
    }

    /// Runs `work` with indices of a distribution for the time of a row. Rows: `row`,
    /// `row.{p99.9,longest}`, and `row.read`, bytes read from the disk for each.
    fn row(
        &mut self,
        row: &str,
        threads: usize,
        indices: &[u64],
        work: &(dyn Fn(u64, u64) -> Result<()> + Sync),
    ) -> Result<()> {
        let (before, times) = (read_bytes()?, Mutex::new(waits()?));
        let observe = |_, time: Duration| {
            let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
            times.saturating_record(time.as_nanos() as u64);
        };
        let measured = for_a_while(threads, self.settings.row_time, &observe, |thread, number| {
            // Each thread begins at a place of its own.
            let at = number + thread as u64 * (DRAWS / threads as u64);
            work(at, indices[(at % DRAWS) as usize])
        })?;
        let read = (read_bytes()? - before) as f64 / measured.operations as f64;
        self.report.add_rate(row, self.subject.name, self.entries, measured);
        let times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.longest(row, &times);
        self.add(&format!("{row}.read"), Unit::Bytes, read);
        self.look()
    }

    fn gets(&mut self, engine: &E, row: &str, distribution: Distribution) -> Result<()> {
        let indices = draw(distribution, self.entries, DRAWS, self.settings.seed);
        let (wrong, data) = (AtomicU64::new(0), self.data);
        self.row(row, 1, &indices, &|_, index| {
            let value = engine.get(&data.key(index))?;
            let is_right = value.is_some_and(|value| value.as_ref() == data.value(index, LOADED));
            wrong.fetch_add(u64::from(!is_right), Ordering::Relaxed);
            Ok(())
        })?;
        none_wrong(self.subject.name, row, wrong)
    }

    fn scans(&mut self, engine: &E) -> Result<()> {
        let indices = draw(Distribution::Uniform, self.entries, DRAWS, self.settings.seed + 1);
        let data = self.data;
        self.row("scan.100", 1, &indices, &|_, index| {
            let look = &mut |_: &[u8], value: &[u8]| look_at(value);
            engine.scan(Some(&data.key(index)), Direction::Ascending, SCAN, look).map(drop)
        })
    }

    /// Gets and puts of one entry in turns, zipfian, from four threads.
    fn mixed(&mut self, engine: &E) -> Result<()> {
        let indices = draw(Distribution::Zipfian, self.entries, DRAWS, self.settings.seed + 2);
        let (wrong, data) = (AtomicU64::new(0), self.data);
        self.row("mixed.50_50.4t", MIXED_THREADS, &indices, &|number, index| {
            let (key, new) = (data.key(index), data.value(index, MIXED));
            if number % 2 == 0 {
                return engine.put(&key, new);
            }
            let is_right = engine
                .get(&key)?
                .is_some_and(|value| [new, data.value(index, LOADED)].contains(&value.as_ref()));
            wrong.fetch_add(u64::from(!is_right), Ordering::Relaxed);
            Ok(())
        })?;
        none_wrong(self.subject.name, "mixed", wrong)
    }
}

fn none_wrong(name: &str, row: &str, wrong: AtomicU64) -> Result<()> {
    let wrong = wrong.into_inner();
    ensure(wrong == 0, || format!("{name}, {row}: {wrong} gets are not what was written"))
}
