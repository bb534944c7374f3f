//! `adamant-peers lsm`: log-structured merge trees beside each other, row by row.
//!
//! Each engine has a process of its own in every round for each size of values, in turns, so that
//! what the system says of its memory and of the bytes that it wrote is the engine's alone, and of
//! what it does there. All have the same cache, the same sizes of memtables and tables, LZ4, and
//! commits that survive the death of the process. The rows are those of
//! `adamant_bench::commands::lsm`.

mod settings;

mod sources;

use std::env;
use std::fs::{self, OpenOptions};
use std::process::{Command, Stdio};

use adamant_bench::commands::lsm;
use adamant_bench::engines::adamant::AdamantEngine;
use adamant_bench::harness::asked::AskedRows;
use adamant_bench::harness::engine::{Engine, LsmEngine};
use adamant_bench::harness::error::{Result, ensure};
use adamant_bench::harness::rows::Rows;
use serde_json::Value;

use crate::engines::fjall3::Fjall3Engine;
#[cfg(feature = "rocksdb")]
use crate::engines::rocksdb::RocksDbEngine;
use crate::lsm::settings::{Settings, USAGE};
use crate::lsm::sources::SOURCES_COMMAND;
use crate::peer::Peer;
use crate::results::text;
use crate::run::machine::{self, Ticks};

/// First argument of a process that measures one engine.
const ENGINE_COMMAND: &str = "lsm-engine";

/// Tells the version of an engine that was built.
type VersionOf = fn() -> String;

/// The peers, and which version they are of.
const PEERS: &[(&str, VersionOf)] = &[
    (Fjall3Engine::NAME, || Fjall3Engine::FACTS.version()),
    #[cfg(feature = "rocksdb")]
    (RocksDbEngine::NAME, || RocksDbEngine::FACTS.version()),
];

/// How many times better than the better peer is asked for.
const ASKED: f64 = 1.5;
/// The same of bytes.
const ASKED_BYTES: f64 = 2.0;

/// Runs it with the arguments after `lsm`, and prints a page.
///
/// # Errors
/// An argument that is not understood; those of an engine or the file system.
pub fn run(arguments: &[String]) -> Result<()> {
    let Some(settings) = Settings::parse(arguments)? else {
        println!("{USAGE}");
        return Ok(());
    };
    if settings.is_sources {
        return sources::run(&settings, arguments);
    }
    // Before minutes are spent on what it could not take.
    let output = settings.output.as_ref().map(|path| {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.map_err(|error| format!("--output takes a file, found {}: {error}", path.display()))
    });
    output.transpose()?;
    let before = Ticks::now()?;
    let mut rows = Rows::default();
    let sets: Vec<&str> = settings.lsm.sets.iter().map(|set| set.name).collect();
    for round in 0..settings.rounds {
        for (set, name) in sets.iter().flat_map(|set| engines().map(move |name| (*set, name))) {
            eprintln!("round {} of {}: {name}, {set} B", round + 1, settings.rounds);
            let output = Command::new(env::current_exe()?)
                .args([ENGINE_COMMAND, name, &(u64::from(round) + 1).to_string()])
                .args(arguments)
                .args(["--set", set])
                .stderr(Stdio::inherit())
                .output()?;
            ensure(output.status.success(), || format!("{name} could not be measured"))?;
            rows.add(&String::from_utf8(output.stdout)?, None)?;
        }
    }
    let (others, _) = Ticks::now()?.others_since(&before);
    let machine = machine::describe(&settings.lsm.path)?;
    let page = page(&settings, &rows, others, &machine)?;
    print!("{page}");
    if let Some(path) = &settings.output {
        fs::write(path, &page)?;
    }
    Ok(())
}

/// Who takes part, in the order of their columns.
fn engines() -> impl Iterator<Item = &'static str> {
    std::iter::once(AdamantEngine::NAME).chain(PEERS.iter().map(|(name, _)| *name))
}

/// Does what a child process is for; whether this is one.
///
/// # Errors
/// Those of an engine, and arguments that are no task.
pub fn run_child(arguments: &[String]) -> Result<bool> {
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == SOURCES_COMMAND)
    {
        sources::measure(rest)?;
        return Ok(true);
    }
    let [command, name, rest @ ..] = arguments else { return Ok(false) };
    match (command.as_str(), name.as_str()) {
        (lsm::CHILD_COMMAND, AdamantEngine::NAME) => lsm::child::<AdamantEngine>(rest)?,
        (lsm::CHILD_COMMAND, Fjall3Engine::NAME) => lsm::child::<Fjall3Engine>(rest)?,
        #[cfg(feature = "rocksdb")]
        (lsm::CHILD_COMMAND, RocksDbEngine::NAME) => lsm::child::<RocksDbEngine>(rest)?,
        #[cfg(feature = "rocksdb")]
        (ENGINE_COMMAND, RocksDbEngine::NAME) => measure::<RocksDbEngine>(rest)?,
        (ENGINE_COMMAND, AdamantEngine::NAME) => measure::<AdamantEngine>(rest)?,
        (ENGINE_COMMAND, Fjall3Engine::NAME) => measure::<Fjall3Engine>(rest)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Measures one engine once, and prints its rows.
fn measure<E: LsmEngine>(arguments: &[String]) -> Result<()> {
    let [seed, options @ ..] = arguments else { return Err("a seed is needed".into()) };
    let settings = Settings::parse(options)?.ok_or("options are needed")?;
    let settings = lsm::Settings { seed: seed.parse()?, rounds: 1, ..settings.lsm };
    let report = lsm::run::<E>(&settings, &mut |message| eprintln!("  {message}"))?;
    print!("{}", report.json_lines(&AskedRows::default()));
    Ok(())
}

/// How many times better Adamant's figure is than that of the better peer.
fn ratio(rows: &Rows, row: &str) -> Option<f64> {
    let ours = rows.median(row, AdamantEngine::NAME)?;
    let theirs = PEERS.iter().filter_map(|(name, _)| rows.median(row, name));
    if rows.is_higher_better(row) {
        theirs.reduce(f64::max).map(|theirs| ours / theirs)
    } else {
        theirs.reduce(f64::min).map(|theirs| theirs / ours)
    }
}

fn page(settings: &Settings, rows: &Rows, others: f64, machine: &Value) -> Result<String> {
    let sets = settings.lsm.sets.iter().map(|set| {
        format!("{} entries of 20 + {} B (rows `.{}`)", set.entries, set.value_bytes, set.name)
    });
    let peers = PEERS.iter().map(|(name, version)| format!("{name} {}", version()));
    let mut page = format!(
        "# Log-structured merge trees beside each other\n\n\
         Generated by `cargo xtask peers lsm`; not written by hand. {}; {} rounds, {}. About half of a \
         value can be compressed; caches hold a tenth of the data, memtables and tables {} KiB; commits \
         survive the death of the process. `better` says how many times, beside the better peer: 1.5 is asked for, 2 of bytes.\n\n",
        sets.collect::<Vec<_>>().join(", "),
        settings.rounds,
        peers.collect::<Vec<_>>().join(", "),
        settings.lsm.memtable_bytes >> 10,
    );
    let mut table = Vec::new();
    for (name, unit) in rows.rows() {
        let cell = |figure: Option<f64>| figure.map_or_else(String::new, text::figure);
        let ratio = ratio(rows, name).filter(|ratio| ratio.is_finite());
        let asked = if unit == "ratio" || unit == "MiB" { ASKED_BYTES } else { ASKED };
        let holds = ratio.map_or("", |ratio| if ratio >= asked { "yes" } else { "no" });
        let mut line = vec![format!("`{name}`"), unit.to_owned()];
        line.extend(engines().chain(["raw"]).map(|engine| cell(rows.median(name, engine))));
        line.extend([cell(ratio), holds.to_owned()]);
        table.push(line);
    }
    let names = engines().chain(["raw disk", "better", "as asked"]);
    let head: Vec<String> = ["row", "unit"].into_iter().chain(names).map(str::to_owned).collect();
    page += &text::table(&head, &table);
    let word = |name: &str| machine[name].as_str().unwrap_or("unknown").to_owned();
    page += &format!(
        "{}, {} cores, Linux {}, {}. Other processes had {others:.0} % of the processors.\n",
        word("cpu"),
        machine["cores"],
        word("kernel"),
        word("disk"),
    );
    Ok(page)
}
