//! `adamant-peers lsm`: log-structured merge trees beside each other, row by row.
//!
//! Each engine has a process of its own in every round, in turns, so that what the system says of its
//! memory and of the bytes that it wrote is the engine's alone. All have the same cache, the same sizes of
//! memtables and tables, LZ4, and commits that survive the death of the process. The rows are those of
//! `adamant_bench::lsm`.

mod settings;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::process::{Command, Stdio};

use adamant_bench::asked::AskedRows;
use adamant_bench::engine::{Engine, LsmEngine};
use adamant_bench::engines::adamant::AdamantEngine;
use adamant_bench::error::{Result, ensure};
use adamant_bench::lsm;
use serde_json::Value;

use crate::engines::fjall3::Fjall3Engine;
use crate::lsm::settings::{Settings, USAGE};
use crate::machine::{self, Ticks};
use crate::peer::Peer;
use crate::text;

/// First argument of a process that measures one engine.
const ENGINE_COMMAND: &str = "lsm-engine";

/// How many times better than the peer is asked for.
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
    let before = Ticks::now()?;
    let mut rows = Rows::default();
    for round in 0..settings.rounds {
        for name in [AdamantEngine::NAME, Fjall3Engine::NAME] {
            eprintln!("round {} of {}: {name}", round + 1, settings.rounds);
            let output = Command::new(env::current_exe()?)
                .args([ENGINE_COMMAND, name, &(u64::from(round) + 1).to_string()])
                .args(arguments)
                .stderr(Stdio::inherit())
                .output()?;
            ensure(output.status.success(), || format!("{name} could not be measured"))?;
            rows.add(&String::from_utf8(output.stdout)?)?;
        }
    }
    let (others, _) = Ticks::now()?.others_since(&before);
    let machine = machine::describe(&settings.lsm.path)?;
    let page = page(&settings, &rows, others, &machine)?;
    if let Some(path) = &settings.output {
        fs::write(path, &page)?;
    }
    print!("{page}");
    Ok(())
}

/// Does what a child process is for; whether this is one.
///
/// # Errors
/// Those of an engine, and arguments that are no task.
pub fn run_child(arguments: &[String]) -> Result<bool> {
    let [command, name, rest @ ..] = arguments else { return Ok(false) };
    match (command.as_str(), name.as_str()) {
        (lsm::CHILD_COMMAND, AdamantEngine::NAME) => lsm::child::<AdamantEngine>(rest)?,
        (lsm::CHILD_COMMAND, Fjall3Engine::NAME) => lsm::child::<Fjall3Engine>(rest)?,
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

/// What was measured, in the order in which rows came first.
#[derive(Debug, Default)]
struct Rows {
    names: Vec<String>,
    units: BTreeMap<String, (String, bool)>,
    samples: BTreeMap<(String, String), Vec<f64>>,
}

impl Rows {
    fn add(&mut self, lines: &str) -> Result<()> {
        for line in lines.lines() {
            let row: Value = serde_json::from_str(line)?;
            let word = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let name = word("row");
            if !self.units.contains_key(&name) {
                self.names.push(name.clone());
                self.units.insert(name.clone(), (word("unit"), word("better") == "higher"));
            }
            let sample = row["median"].as_f64().ok_or_else(|| format!("no figure: {line}"))?;
            self.samples.entry((name, word("engine"))).or_default().push(sample);
        }
        Ok(())
    }

    fn median(&self, row: &str, engine: &str) -> Option<f64> {
        let samples = self.samples.get(&(row.to_owned(), engine.to_owned()))?;
        Some(adamant_bench::measure::median(samples.clone()))
    }

    /// How many times better Adamant's figure is than the peer's.
    fn ratio(&self, row: &str, is_higher_better: bool) -> Option<f64> {
        let ours = self.median(row, AdamantEngine::NAME)?;
        let theirs = self.median(row, Fjall3Engine::NAME)?;
        Some(if is_higher_better { ours / theirs } else { theirs / ours })
    }
}

fn page(settings: &Settings, rows: &Rows, others: f64, machine: &Value) -> Result<String> {
    let sets = settings.lsm.sets.iter().map(|set| {
        format!("{} entries of 20 + {} B (rows `.{}`)", set.entries, set.value_bytes, set.name)
    });
    let mut page = format!(
        "# Log-structured merge trees beside each other\n\n\
         Generated by `cargo xtask peers lsm`; not written by hand. {}; {} rounds, fjall {}. About half of a \
         value can be compressed; caches hold a tenth of the data, memtables and tables {} KiB; commits \
         survive the death of the process. `better` says how many times: 1.5 is asked for, 2 of bytes.\n\n",
        sets.collect::<Vec<_>>().join(", "),
        settings.rounds,
        Fjall3Engine::FACTS.version(),
        settings.lsm.memtable_bytes >> 10,
    );
    let mut table = Vec::new();
    for name in &rows.names {
        let (unit, is_higher_better) = rows.units.get(name).ok_or("a row has no unit")?;
        let cell = |figure: Option<f64>| figure.map_or_else(String::new, text::figure);
        let ratio = rows.ratio(name, *is_higher_better).filter(|ratio| ratio.is_finite());
        let asked = if unit == "ratio" || unit == "MiB" { ASKED_BYTES } else { ASKED };
        let holds = ratio.map_or("", |ratio| if ratio >= asked { "yes" } else { "no" });
        let engines = [AdamantEngine::NAME, Fjall3Engine::NAME, "raw"];
        let mut line = vec![format!("`{name}`"), unit.clone()];
        line.extend(engines.map(|engine| cell(rows.median(name, engine))));
        line.extend([cell(ratio), holds.to_owned()]);
        table.push(line);
    }
    let head = ["row", "unit", "adamant", "fjall", "raw disk", "better", "as asked"];
    page += &text::table(&head.map(str::to_owned), &table);
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
