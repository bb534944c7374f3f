//! The command `adamant-bench`.
//!
//! Data goes to standard output, progress to standard error.
#![forbid(unsafe_code)]

mod args;

use std::fs::{self, File};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::thread;

use adamant_bench::commands::{
    beside, bounded, bplus, heap, kv, large, lsm, maps, slice, splits, transactions, values,
};
use adamant_bench::engines::adamant::{AdamantEngine, EncryptedEngine, FilledEngine};
use adamant_bench::engines::btree_map::BTreeMapEngine;
use adamant_bench::harness::asked::AskedRows;
use adamant_bench::harness::engine::Engine;
use adamant_bench::harness::error::Result;
use adamant_bench::harness::report::Report;
use adamant_bench::workload::{kill, memory};
use clap::Parser;

use crate::args::{
    Arguments, Beside, Bplus, Command, Common, Heap, Kv, Large, Lsm, Maps, Memory, Slice, Splits,
    Transactions, Values,
};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match run_child(&words) {
        Some(result) => result,
        None => run(Arguments::parse().command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("adamant-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The work of a child process of a benchmark, if this is one.
fn run_child(words: &[String]) -> Option<Result<()>> {
    let (command, rest) = words.split_first()?;
    let engine = rest.first().map_or("", String::as_str);
    let task = rest.get(1..).unwrap_or_default();
    match command.as_str() {
        kill::CHILD_COMMAND => Some(run_kill_child(engine, task)),
        memory::CHILD_COMMAND => Some(run_memory_child(engine, task)),
        lsm::CHILD_COMMAND => Some(run_lsm_child(engine, task)),
        bplus::CHILD_COMMAND => Some(bplus::child(rest)),
        beside::CHILD_COMMAND => Some(beside::child(rest)),
        large::CHILD_COMMAND => Some(run_large_child(engine, task)),
        _ => None,
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Kv(arguments) => run_kv(&arguments),
        Command::Heap(arguments) => run_heap(&arguments),
        Command::Maps(arguments) => run_maps(&arguments),
        Command::Bplus(arguments) => run_bplus(&arguments),
        Command::Splits(arguments) => run_splits(&arguments),
        Command::Slice(arguments) => run_slice(&arguments),
        Command::Transactions(arguments) => run_transactions(&arguments),
        Command::Memory(arguments) => run_memory(&arguments),
        Command::Lsm(arguments) if arguments.sources => run_lsm_sources(&arguments),
        Command::Lsm(arguments) => run_lsm(&arguments),
        Command::Large(arguments) => run_large(&arguments),
        Command::Beside(arguments) => run_beside(&arguments),
        Command::Values(arguments) => run_values(&arguments),
    }
}

/// One run of a benchmark: its targets, and the file for its rows, opened before anything is
/// measured, so that an unwritable path does not lose the rows.
struct Run {
    asked: AskedRows,
    json: Option<File>,
}

impl Run {
    fn of(name: &'static str, common: &Common) -> Result<Self> {
        let json = common.json.as_ref().map(File::create).transpose()?;
        Ok(Self { asked: AskedRows::of(name)?, json })
    }

    /// Writes the rows as JSON lines, if they are wanted, and prints them as a table, below a line
    /// that says how much was measured and on which machine.
    fn print(&mut self, amount: &str, report: &Report) -> Result<()> {
        if let Some(file) = &mut self.json {
            file.write_all(report.json_lines(&self.asked).as_bytes())?;
        }
        println!("{amount}, {}", machine()?);
        print!("{}", report.table(&self.asked));
        Ok(())
    }

    /// The same, and fails if a row with a target was not measured.
    fn print_complete(&mut self, amount: &str, report: &Report) -> Result<()> {
        self.print(amount, report)?;
        report.check_complete(&self.asked)
    }
}

fn run_kv(arguments: &Kv) -> Result<()> {
    let mut run = Run::of("kv", &arguments.common)?;
    let settings = arguments.settings();
    let report = with_progress(|tell| kv::run(&settings, tell))?;
    let kv::Settings { entries, large_entries, rounds, seed, .. } = settings;
    let amount = format!(
        "{entries} entries of 20 + 100 B, {large_entries} of 20 + 800 B, {rounds} rounds, seed {seed}"
    );
    run.print_complete(&amount, &report)
}

fn run_heap(arguments: &Heap) -> Result<()> {
    let mut run = Run::of("heap", &arguments.common)?;
    let settings = arguments.settings();
    let heap::Outcome { report, curves, notes } = with_progress(|tell| heap::run(&settings, tell))?;
    let heap::Settings { operations, inserts, rounds, .. } = settings;
    run.print(&format!("{operations} operations, {inserts} inserts, {rounds} rounds"), &report)?;
    if let Some(file) = &mut run.json {
        for curve in curves {
            writeln!(file, "{curve}")?;
        }
    }
    for note in notes {
        println!("{note}");
    }
    Ok(())
}

fn run_maps(arguments: &Maps) -> Result<()> {
    let mut run = Run::of("maps", &arguments.common)?;
    let settings = arguments.settings();
    let (table, report) = with_progress(|tell| maps::run(&settings, &run.asked, tell))?;
    if let Some(file) = &mut run.json {
        file.write_all(table.json_lines().as_bytes())?;
    }
    println!(
        "nanoseconds of an operation; fences, flushed lines and bytes of log: insert / remove"
    );
    println!("{}", table.text());
    run.print(&format!("{} pairs, {} rounds", settings.pairs, settings.rounds), &report)?;
    if settings.structure.is_none() { report.check_complete(&run.asked) } else { Ok(()) }
}

fn run_bplus(arguments: &Bplus) -> Result<()> {
    let mut run = Run::of("bplus", &arguments.common)?;
    let settings = arguments.settings();
    let report = with_progress(|tell| bplus::run(&settings, tell))?;
    run.print_complete(&format!("{} pairs, {} rounds", settings.pairs, settings.rounds), &report)
}

/// Also writes a page, if it is wanted.
fn run_splits(arguments: &Splits) -> Result<()> {
    let mut run = Run::of("splits", &arguments.common)?;
    let settings = arguments.settings();
    let report = with_progress(|tell| splits::run(&settings, tell))?;
    if let Some(page) = &arguments.markdown {
        fs::write(page, splits::markdown(&settings, &report)?)?;
    }
    run.print(&format!("{} pairs, {} rounds", settings.pairs, settings.rounds), &report)
}

fn run_slice(arguments: &Slice) -> Result<()> {
    let mut run = Run::of("slice", &arguments.common)?;
    let settings = arguments.settings();
    let report = with_progress(|tell| slice::run(&settings, tell))?;
    let slice::Settings { operations, strings, rounds, .. } = settings;
    let amount = format!("{operations} operations a batch, {strings} strings, {rounds} rounds");
    run.print_complete(&amount, &report)
}

fn run_transactions(arguments: &Transactions) -> Result<()> {
    let mut run = Run::of("transactions", &arguments.common)?;
    let settings = arguments.settings();
    let report = with_progress(|tell| transactions::run(&settings, tell))?;
    let transactions::Settings { entries, batch_bytes, rounds, seed, .. } = settings;
    let amount = format!(
        "{entries} entries of 20 + 100 B, batches of {batch_bytes} B, {rounds} rounds, seed {seed}"
    );
    run.print_complete(&amount, &report)
}

fn run_memory(arguments: &Memory) -> Result<()> {
    let mut run = Run::of("memory", &arguments.common)?;
    let settings = arguments.settings();
    let report = with_progress(|tell| bounded::run(&settings, tell))?;
    let bounded::Settings { entries, memory_bytes_max, rounds, seed, .. } = settings;
    let amount = format!(
        "{entries} entries of 20 + 800 B, a bound of {memory_bytes_max} B, {rounds} rounds, seed {seed}"
    );
    run.print_complete(&amount, &report)
}

fn run_beside(arguments: &Beside) -> Result<()> {
    let mut run = Run::of("beside", &arguments.common)?;
    let settings = arguments.settings();
    let report = with_progress(|tell| beside::run(&settings, tell))?;
    let beside::Settings { entries, log_bytes_max, rounds, seed, .. } = settings;
    let amount = format!(
        "{entries} entries of 20 + 100 B, {log_bytes_max} B of log, {rounds} rounds, seed {seed}"
    );
    run.print_complete(&amount, &report)
}

fn run_values(arguments: &Values) -> Result<()> {
    let mut run = Run::of("values", &arguments.common)?;
    let settings = arguments.settings();
    let report = with_progress(|tell| values::run(&settings, tell))?;
    let values::Settings { entries, rounds, seed, .. } = settings;
    run.print_complete(&format!("{entries} records, {rounds} rounds, seed {seed}"), &report)
}

fn run_lsm(arguments: &Lsm) -> Result<()> {
    let mut run = Run::of("lsm", &arguments.common)?;
    let settings = arguments.settings();
    let report = with_progress(|tell| lsm::run::<AdamantEngine>(&settings, tell))?;
    for set in &settings.sets {
        println!("{} entries of 20 + {} B", set.entries, set.value_bytes);
    }
    run.print_complete(&format!("{} rounds, seed {}", settings.rounds, settings.seed), &report)
}

/// Parts of the engine: these rows have no targets.
fn run_lsm_sources(arguments: &Lsm) -> Result<()> {
    let mut run = Run::of("lsm", &arguments.common)?;
    let settings = arguments.sources_settings();
    let report = with_progress(|tell| lsm::run_sources(&settings, tell))?;
    let lsm::SourcesSettings { pairs, reads, rounds, seed, .. } = settings;
    run.print(
        &format!("{pairs} pairs a table, {reads} reads, {rounds} rounds, seed {seed}"),
        &report,
    )
}

/// The child of the workload of opening after SIGKILL.
fn run_lsm_child(engine: &str, task: &[String]) -> Result<()> {
    if engine != AdamantEngine::NAME {
        return Err(format!("there is no engine {engine} to be killed").into());
    }
    lsm::child::<AdamantEngine>(task)
}

/// Data larger than memory: these rows have no targets.
fn run_large(arguments: &Large) -> Result<()> {
    let names = [large::BPLUS, large::LSM];
    let outcome = with_progress(|tell| large::run(&arguments.settings(), &names, tell))?;
    print!("{}", outcome.page(&names));
    match &outcome.failures[..] {
        [] => Ok(()),
        failures => Err(failures.join("; ").into()),
    }
}

fn run_large_child(engine: &str, task: &[String]) -> Result<()> {
    match large::own_child(engine, task)? {
        true => Ok(()),
        false => Err(format!("there is no engine {engine} to be measured").into()),
    }
}

/// Runs `work` and shows its progress in one line, if standard error is a terminal.
fn with_progress<T>(work: impl FnOnce(&mut dyn FnMut(&str)) -> Result<T>) -> Result<T> {
    let shows_progress = std::io::stderr().is_terminal();
    let mut width = 0;
    let result = work(&mut |message| {
        if shows_progress {
            eprint!("\r{message:width$}");
            width = message.len();
        }
    });
    if shows_progress {
        eprint!("\r{:width$}\r", "");
    }
    result
}

/// The machine's processors and load.
fn machine() -> Result<String> {
    let cores = thread::available_parallelism()?;
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(format!("{cores} cores, load {}", load.trim()))
}

/// The child of the SIGKILL workload.
fn run_kill_child(engine: &str, task: &[String]) -> Result<()> {
    match engine {
        AdamantEngine::NAME => kill::child::<AdamantEngine>(task),
        FilledEngine::NAME => kill::child::<FilledEngine>(task),
        EncryptedEngine::NAME => kill::child::<EncryptedEngine>(task),
        _ => Err(format!("there is no engine {engine} to be killed").into()),
    }
}

/// Prints the peak memory of a load.
fn run_memory_child(engine: &str, task: &[String]) -> Result<()> {
    match engine {
        AdamantEngine::NAME => memory::child::<AdamantEngine>(task),
        FilledEngine::NAME => memory::child::<FilledEngine>(task),
        EncryptedEngine::NAME => memory::child::<EncryptedEngine>(task),
        BTreeMapEngine::NAME => memory::child::<BTreeMapEngine>(task),
        _ => Err(format!("there is no engine {engine} to be loaded").into()),
    }
}
