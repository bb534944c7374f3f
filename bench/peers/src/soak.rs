//! `adamant-peers soak`: a mixed load for minutes, and how long every commit and get took.
//!
//! Engines take turns in pieces of the time, each in a directory that it keeps, so that a slow minute of
//! the machine is nobody's alone. The load is that of `adamant_bench::workload::soak`.

mod settings;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use adamant_bench::data::Data;
use adamant_bench::engine::Durability;
use adamant_bench::error::Result;
use adamant_bench::raw::RawDisk;
use adamant_bench::workload::load::put_in_batches;
use adamant_bench::workload::session::Session;
use adamant_bench::workload::soak::{Soaked, soak, waits};
use hdrhistogram::Histogram;
use serde_json::Value;

use crate::machine::{self, Ticks};
use crate::peer::{Peer, Survives};
use crate::roster::{Task, with_engine};
use crate::soak::settings::{Settings, USAGE};
use crate::text;

/// Bytes of values.
const VALUE_BYTES: usize = 100;
/// A commit or get that takes longer is a stall.
const STALL: Duration = Duration::from_millis(10);

/// What became of one engine.
struct Outcome {
    name: &'static str,
    version: String,
    survives: &'static str,
    how: &'static str,
    seconds: f64,
    commits: Histogram<u64>,
    gets: Histogram<u64>,
}

/// Runs it with the arguments after `soak`, and writes `soak.md`.
///
/// # Errors
/// An argument that is not understood; those of an engine or the file system.
pub fn run(arguments: &[String]) -> Result<()> {
    let Some(settings) = Settings::parse(arguments)? else {
        println!("{USAGE}");
        return Ok(());
    };
    fs::create_dir_all(&settings.output)?;
    let before = Ticks::now()?;
    let start = Instant::now();
    let directory = tempfile::Builder::new().prefix("adamant-peers-").tempdir_in(&settings.path)?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for piece in 0..settings.pieces {
        for name in &settings.engines {
            eprintln!("piece {} of {}: {name}", piece + 1, settings.pieces);
            let task =
                Piece { settings: &settings, piece, directory: &directory.path().join(name) };
            let outcome = with_engine(name, task)?;
            match outcomes.iter_mut().find(|known| known.name == outcome.name) {
                None => outcomes.push(outcome),
                Some(known) => {
                    known.seconds += outcome.seconds;
                    known.commits.add(outcome.commits)?;
                    known.gets.add(outcome.gets)?;
                }
            }
        }
    }
    let raw = raw(&settings, directory.path())?;
    let (others, _) = Ticks::now()?.others_since(&before);
    let machine = machine::describe(&settings.path)?;
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    let page = page(&settings, &outcomes, &raw, &Run { minutes, others, machine: &machine });
    let path = settings.output.join("soak.md");
    fs::write(&path, &page)?;
    print!("{page}");
    println!("see {}", path.display());
    Ok(())
}

/// A piece of the time of one engine.
struct Piece<'a> {
    settings: &'a Settings,
    piece: u32,
    directory: &'a Path,
}

impl Task for Piece<'_> {
    type Output = Outcome;

    fn run<P: Peer>(self) -> Result<Outcome> {
        let modes = [Durability::Buffered, Durability::Deferred];
        let durability = modes.into_iter().find(|mode| P::DURABILITIES.contains(mode));
        let durability =
            durability.ok_or_else(|| format!("{} only has durable writes", P::NAME))?;
        let survives = P::FACTS.survives(durability).unwrap_or(Survives::Nothing(""));
        let Settings { entries, log_bytes_max, seconds, pieces, .. } = *self.settings;
        let data = Data::new(1, VALUE_BYTES);
        let seed = u64::from(self.piece) + 1;
        let mut session: Session<'_, P> =
            Session::begin(self.directory, &data, entries, log_bytes_max, seed, "")?;
        // Later pieces find what the first one left: the same versions are written in each.
        if self.piece == 0 {
            put_in_batches(&session, 0..entries, 0)?;
        }
        session.set_next(entries);
        session.renew(durability)?;
        let Soaked { commits, gets, seconds } =
            soak(&mut session, Duration::from_secs_f64(seconds as f64 / f64::from(pieces)))?;
        session.close()?.close()?;
        let facts = &P::FACTS;
        let (version, how) = (facts.version(), survives.how());
        let (name, survives) = (P::NAME, survives.name());
        Ok(Outcome { name, version, survives, how, seconds, commits, gets })
    }
}

/// Writes of records of a log beside a thread that syncs them, and those syncs.
fn raw(settings: &Settings, directory: &Path) -> Result<[Histogram<u64>; 2]> {
    let folder = directory.join("raw");
    fs::create_dir(&folder)?;
    let disk = RawDisk::create(&folder)?;
    let all = [waits()?, waits()?].map(std::sync::Mutex::new);
    let time = Duration::from_secs((settings.seconds / 4).clamp(1, 60));
    disk.write_beside_syncs(time, &|thread, time| {
        if let Some(Ok(mut waits)) = all.get(thread).map(std::sync::Mutex::lock) {
            waits.saturating_record(time.as_nanos() as u64);
        }
    })?;
    let [written, synced] = all.map(|waits| waits.into_inner().map_err(|_| "a thread panicked"));
    Ok([written?, synced?])
}

/// Where and how it ran.
struct Run<'a> {
    minutes: f64,
    others: f64,
    machine: &'a Value,
}

fn page(
    settings: &Settings,
    outcomes: &[Outcome],
    raw: &[Histogram<u64>; 2],
    run: &Run<'_>,
) -> String {
    let mut out = format!(
        "# Under a load that lasts\n\n\
         Generated by `cargo xtask peers soak --seconds {}` in {:.1} minutes; not written by hand.\n\n\
         {} entries of 20 + {VALUE_BYTES} B. One thread overwrites entries picked at random, one in each \
         commit, and after every 999 of them 100 in one commit; another thread gets entries, and scans \
         100 after every 999. Each engine has {} seconds, in {} pieces between which the others have \
         theirs. Milliseconds; every commit and get is timed, the load is as high as the engine takes. \
         All that is there is compared with what was written after every piece.\n\n",
        settings.seconds, run.minutes, settings.entries, settings.seconds, settings.pieces,
    );
    let head = |name: &str| {
        let columns = [name, "k/s", "p50", "p99", "p99.9", "p99.99", "longest", "over 10 ms"];
        columns.map(str::to_owned)
    };
    let line = |name: &str, seconds: Option<f64>, waits: &Histogram<u64>| {
        let mut line = vec![name.to_owned()];
        line.push(
            seconds.map_or_else(String::new, |seconds| {
                text::figure(waits.len() as f64 / seconds / 1e3)
            }),
        );
        let percents = [50.0, 99.0, 99.9, 99.99, 100.0];
        line.extend(
            percents.map(|percent| text::figure(waits.value_at_percentile(percent) as f64 / 1e6)),
        );
        let stall = STALL.as_nanos() as u64;
        line.push(waits.count_between(stall, u64::MAX).to_string());
        line
    };
    let commits = |of: &Outcome| line(of.name, Some(of.seconds), &of.commits);
    let mut rows: Vec<_> = outcomes.iter().map(commits).collect();
    rows.push(line("raw disk: write", None, &raw[0]));
    rows.push(line("raw disk: fdatasync", None, &raw[1]));
    out += &format!("## Commits\n\n{}", text::table(&head("engine"), &rows));
    let gets = |of: &Outcome| line(of.name, Some(of.seconds), &of.gets);
    let rows: Vec<_> = outcomes.iter().map(gets).collect();
    out += &format!("## Gets\n\n{}", text::table(&head("engine"), &rows));
    let head = ["engine", "version", "a commit survives", "by"].map(str::to_owned);
    let rows: Vec<_> = outcomes
        .iter()
        .map(|of| vec![of.name.into(), of.version.clone(), of.survives.into(), of.how.into()])
        .collect();
    out += &format!("## Engines\n\n{}", text::table(&head, &rows));
    let word = |name: &str| run.machine[name].as_str().unwrap_or("unknown").to_owned();
    out += &format!(
        "## Machine\n\n{}, {} cores, Linux {}, {}. Other processes had {:.0} % of the processors. The raw \
         disk was measured alone: records of 160 B are written over a file while another thread syncs it.\n",
        word("cpu"),
        run.machine["cores"],
        word("kernel"),
        word("disk"),
        run.others,
    );
    out
}
