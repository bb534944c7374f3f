//! `beside`: readers in other processes, and the feed of changes.
//!
//! Purpose: what a reader costs the process that writes, how long it takes to move on, and how soon
//! it finds a commit; what recording changes costs, and how fast they are read. A child process
//! writes, this one reads.

mod settings;
mod writer;

use std::path::Path;
use std::time::Duration;

use ::adamant::Store;

use crate::harness::data::Data;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::{median, once};
use crate::harness::report::{Report, Unit};

pub use crate::commands::beside::settings::Settings;
use crate::commands::beside::settings::{KEYSPACE, VALUE_BYTES, options};
pub use crate::commands::beside::writer::{CHILD_COMMAND, child};
use crate::commands::beside::writer::{Pace, Writer, now_nanos};

/// The engine of all rows.
const ENGINE: &str = "adamant";
/// A bound on each wait.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Measures everything; `tell` is called with each next step.
///
/// # Errors
/// The first of the store or the file system, and contents that are not what was written.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut report = Report::new("beside", ENGINE);
    for round in 0..settings.rounds {
        let prefix = "adamant-bench-";
        let directory = tempfile::Builder::new().prefix(prefix).tempdir_in(&settings.path)?;
        let path = directory.path().join("store");
        load(settings, &path)?;
        for kind in [Readers::None, Readers::Idle, Readers::Following] {
            tell(&format!("round {}: commits, readers: {}", round + 1, kind.name()));
            commits(settings, &path, kind, &mut report)?;
        }
        tell(&format!("round {}: moving on", round + 1));
        moving_on(settings, &path, &mut report)?;
        tell(&format!("round {}: noticing", round + 1));
        noticing(settings, &path, &mut report)?;
        tell(&format!("round {}: the feed", round + 1));
        feed(settings, &path, &mut report)?;
    }
    for row in ["commit.idle_reader", "commit.following_reader", "commit.recorded"] {
        report.add_ratio(&format!("{row}.vs_alone"), row, ("commit.alone", ENGINE))?;
    }
    Ok(report)
}

fn load(settings: &Settings, path: &Path) -> Result<()> {
    let store = Store::open_with(path, options(settings))?;
    let data = Data::new(settings.seed, VALUE_BYTES);
    let entries = (0..settings.entries).map(|index| (data.key(index), data.value(index, 0)));
    store.keyspace(KEYSPACE)?.extend(entries)?;
    Ok(store.close()?)
}

/// The readers beside a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    None,
    /// One that keeps its moment.
    Idle,
    /// One that moves on all the time.
    Following,
}

impl Readers {
    fn name(self) -> &'static str {
        match self {
            Self::None => "commit.alone",
            Self::Idle => "commit.idle_reader",
            Self::Following => "commit.following_reader",
        }
    }
}

/// Commits of a writer at full speed. Rows: `commit.*`.
fn commits(settings: &Settings, path: &Path, kind: Readers, report: &mut Report) -> Result<()> {
    let mut reader = (kind != Readers::None).then(|| Store::open_beside(path)).transpose()?;
    let writer = Writer::start(settings, path, Pace::Full)?;
    while kind == Readers::Following && !writer.is_over()? {
        if let Some(reader) = &mut reader {
            reader.wait_for_change(Duration::from_millis(20))?;
            reader.refresh()?;
        }
    }
    let commits = writer.finish()?;
    let rate = commits as f64 / settings.row_time.as_secs_f64() / 1e3;
    report.add(kind.name(), ENGINE, Unit::ThousandPerSecond, commits, rate);
    Ok(())
}

/// Time to show a later commit. Rows: `open_beside`, `refresh`.
fn moving_on(settings: &Settings, path: &Path, report: &mut Report) -> Result<()> {
    let store = Store::open_with(path, options(settings))?;
    let (keyspace, data) = (store.keyspace(KEYSPACE)?, Data::new(settings.seed, VALUE_BYTES));
    let mut reader = Store::open_beside(path)?;
    let (mut opened, mut refreshed) = (Vec::new(), Vec::new());
    for index in 0..settings.refreshes {
        keyspace.put(data.key(index % settings.entries), data.value(index, 1))?;
        let (is_later, measured) = once(|| Ok(reader.refresh()?))?;
        ensure(is_later, || "a refresh found nothing".into())?;
        refreshed.push(measured.seconds * 1e9);
        if index % settings.refreshes.div_ceil(20) == 0 {
            let (beside, measured) = once(|| Ok(Store::open_beside(path)?))?;
            drop(beside);
            opened.push(measured.milliseconds());
        }
    }
    report.add("open_beside", ENGINE, Unit::Milliseconds, opened.len() as u64, median(opened));
    report.add("refresh", ENGINE, Unit::Nanoseconds, settings.refreshes, median(refreshed));
    Ok(store.close()?)
}

/// Time from before a commit in another process until it was read here. Row: `notice`.
fn noticing(settings: &Settings, path: &Path, report: &mut Report) -> Result<()> {
    let mut reader = Store::open_beside(path)?;
    let writer = Writer::start(settings, path, Pace::Stamps)?;
    let mut noticed = Vec::new();
    let mut last = 0;
    while (noticed.len() as u64) < settings.stamps {
        ensure(reader.wait_for_change(WAIT_MAX)?, || "no commit was found".into())?;
        reader.refresh()?;
        let stamp = reader.open_keyspace(KEYSPACE)?.get("stamp")?;
        let Some(stamp) = stamp.and_then(|it| Some(u64::from_le_bytes(*it.first_chunk()?))) else {
            continue;
        };
        if stamp > last {
            noticed.push(now_nanos().saturating_sub(stamp) as f64);
            last = stamp;
        }
    }
    drop(writer);
    report.add("notice", ENGINE, Unit::Nanoseconds, settings.stamps, median(noticed));
    Ok(())
}

/// Commits that are recorded, and reading them. Rows: `commit.recorded`, `feed`.
fn feed(settings: &Settings, path: &Path, report: &mut Report) -> Result<()> {
    let store = Store::open_with(path, options(settings))?;
    store.record_changes(Some(u64::MAX))?;
    store.close()?;
    let commits = Writer::start(settings, path, Pace::Full)?.finish()?;
    let rate = commits as f64 / settings.row_time.as_secs_f64() / 1e3;
    report.add("commit.recorded", ENGINE, Unit::ThousandPerSecond, commits, rate);
    let store = Store::open_with(path, options(settings))?;
    let mut changes = store.changes(0)?;
    let (read, measured) = once(|| {
        let mut read = 0;
        while let Some(commit) = changes.try_next()? {
            read += commit.changes.len() as u64;
        }
        Ok(read)
    })?;
    ensure(read >= commits, || format!("{read} of {commits} commits were read"))?;
    let rate = read as f64 / measured.seconds / 1e3;
    report.add("feed", ENGINE, Unit::ThousandPerSecond, read, rate);
    drop(changes);
    store.record_changes(None)?;
    Ok(store.close()?)
}
