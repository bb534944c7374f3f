//! The command `adamant-bench`.
//!
//! Data goes to standard output, progress to standard error.
#![forbid(unsafe_code)]

mod args;

use std::fs::{self, File};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::thread;

use adamant_bench::commands::bounded;
use adamant_bench::commands::bplus;
use adamant_bench::commands::heap;
use adamant_bench::commands::kv;
use adamant_bench::commands::lsm;
use adamant_bench::commands::maps;
use adamant_bench::commands::slice;
use adamant_bench::commands::splits;
use adamant_bench::commands::transactions;
use adamant_bench::engines::adamant::AdamantEngine;
use adamant_bench::engines::btree_map::BTreeMapEngine;
use adamant_bench::harness::asked::AskedRows;
use adamant_bench::harness::engine::Engine;
use adamant_bench::harness::error::Result;
use adamant_bench::workload::{kill, memory};

use crate::args::{
    BoundedArguments, BplusArguments, Command, HeapArguments, KvArguments, LsmArguments,
    LsmSourcesArguments, MapsArguments, SliceArguments, SplitsArguments, TransactionsArguments,
    USAGE,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = match args::parse(&arguments) {
        Ok(command) => command,
        Err(message) => {
            eprintln!("adamant-bench: {message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let result = match command {
        Command::Help => {
            println!("{USAGE}");
            Ok(())
        }
        Command::Kv(arguments) => run_kv(arguments),
        Command::Heap(arguments) => run_heap(arguments),
        Command::Maps(arguments) => run_maps(arguments),
        Command::Bplus(arguments) => run_bplus(arguments),
        Command::Splits(arguments) => run_splits(arguments),
        Command::Slice(arguments) => run_slice(arguments),
        Command::Transactions(arguments) => run_transactions(arguments),
        Command::Bounded(arguments) => run_bounded(arguments),
        Command::Lsm(arguments) => run_lsm(arguments),
        Command::LsmSources(arguments) => run_lsm_sources(arguments),
        Command::LsmChild { engine, task } => run_lsm_child(&engine, &task),
        Command::KillChild { engine, task } => run_kill_child(&engine, &task),
        Command::BplusMemoryChild { task } => bplus::child(&task),
        Command::MemoryChild { engine, task } => run_memory_child(&engine, &task),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("adamant-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures, prints the table, writes the JSON lines.
fn run_kv(arguments: KvArguments) -> Result<()> {
    let asked = AskedRows::of("kv")?;
    // Before the measurement, so that an unwritable path does not lose it.
    let json = arguments.json.map(File::create).transpose()?;
    let settings = arguments.settings;
    let report = with_progress(|tell| kv::run(&settings, tell))?;
    if let Some(mut file) = json {
        file.write_all(report.json_lines(&asked).as_bytes())?;
    }
    println!(
        "{} entries of 20 + 100 B, {} of 20 + 800 B, {} rounds, seed {}, {}",
        settings.entries,
        settings.large_entries,
        settings.rounds,
        settings.seed,
        machine()?
    );
    print!("{}", report.table(&asked));
    report.check_complete(&asked)
}

/// Measures the heap, prints the table, writes the JSON lines.
fn run_heap(arguments: HeapArguments) -> Result<()> {
    let asked = AskedRows::of("heap")?;
    let json = arguments.json.map(File::create).transpose()?;
    let settings = arguments.settings;
    let heap::Outcome { report, curves, notes } = with_progress(|tell| heap::run(&settings, tell))?;
    if let Some(mut file) = json {
        file.write_all(report.json_lines(&asked).as_bytes())?;
        for curve in curves {
            writeln!(file, "{curve}")?;
        }
    }
    println!(
        "{} operations, {} inserts, {} rounds, {}",
        settings.operations,
        settings.inserts,
        settings.rounds,
        machine()?
    );
    print!("{}", report.table(&asked));
    for note in notes {
        println!("{note}");
    }
    Ok(())
}

/// Measures the maps, prints the table, writes the JSON lines.
fn run_maps(arguments: MapsArguments) -> Result<()> {
    let asked = AskedRows::of("maps")?;
    let json = arguments.json.map(File::create).transpose()?;
    let settings = arguments.settings;
    let (table, report) = with_progress(|tell| maps::run(&settings, &asked, tell))?;
    if let Some(mut file) = json {
        file.write_all(table.json_lines().as_bytes())?;
        file.write_all(report.json_lines(&asked).as_bytes())?;
    }
    println!("{} pairs, {} rounds, {}", settings.pairs, settings.rounds, machine()?);
    println!(
        "nanoseconds of an operation; fences, flushed lines and bytes of log: insert / remove"
    );
    print!("{}\n{}", table.text(), report.table(&asked));
    if settings.structure.is_none() { report.check_complete(&asked) } else { Ok(()) }
}

/// Measures the B+ tree, prints the table, writes the JSON lines.
fn run_bplus(arguments: BplusArguments) -> Result<()> {
    let asked = AskedRows::of("bplus")?;
    let json = arguments.json.map(File::create).transpose()?;
    let settings = arguments.settings;
    let report = with_progress(|tell| bplus::run(&settings, tell))?;
    if let Some(mut file) = json {
        file.write_all(report.json_lines(&asked).as_bytes())?;
    }
    println!("{} pairs, {} rounds, {}", settings.pairs, settings.rounds, machine()?);
    print!("{}", report.table(&asked));
    report.check_complete(&asked)
}

/// Measures three ways of splitting leaves, prints the table, writes JSON lines and a page.
fn run_splits(arguments: SplitsArguments) -> Result<()> {
    let asked = AskedRows::of("splits")?;
    let json = arguments.json.map(File::create).transpose()?;
    let settings = arguments.settings;
    let report = with_progress(|tell| splits::run(&settings, tell))?;
    if let Some(mut file) = json {
        file.write_all(report.json_lines(&asked).as_bytes())?;
    }
    if let Some(page) = arguments.markdown {
        fs::write(page, splits::markdown(&settings, &report)?)?;
    }
    println!("{} pairs, {} rounds, {}", settings.pairs, settings.rounds, machine()?);
    print!("{}", report.table(&asked));
    Ok(())
}

/// Measures the slice, prints the table, writes the JSON lines.
fn run_slice(arguments: SliceArguments) -> Result<()> {
    let asked = AskedRows::of("slice")?;
    let json = arguments.json.map(File::create).transpose()?;
    let settings = arguments.settings;
    let report = with_progress(|tell| slice::run(&settings, tell))?;
    if let Some(mut file) = json {
        file.write_all(report.json_lines(&asked).as_bytes())?;
    }
    println!(
        "{} operations a batch, {} strings, {} rounds, {}",
        settings.operations,
        settings.strings,
        settings.rounds,
        machine()?
    );
    print!("{}", report.table(&asked));
    report.check_complete(&asked)
}

/// Measures readers beside writers, prints the table, writes the JSON lines.
fn run_transactions(arguments: TransactionsArguments) -> Result<()> {
    let asked = AskedRows::of("transactions")?;
    let json = arguments.json.map(File::create).transpose()?;
    let settings = arguments.settings;
    let report = with_progress(|tell| transactions::run(&settings, tell))?;
    if let Some(mut file) = json {
        file.write_all(report.json_lines(&asked).as_bytes())?;
    }
    println!(
        "{} entries of 20 + 100 B, batches of {} B, {} rounds, seed {}, {}",
        settings.entries,
        settings.batch_bytes,
        settings.rounds,
        settings.seed,
        machine()?
    );
    print!("{}", report.table(&asked));
    report.check_complete(&asked)
}

/// Measures a store whose memory is bounded, prints the table, writes the JSON lines.
fn run_bounded(arguments: BoundedArguments) -> Result<()> {
    let asked = AskedRows::of("memory")?;
    let json = arguments.json.map(File::create).transpose()?;
    let settings = arguments.settings;
    let report = with_progress(|tell| bounded::run(&settings, tell))?;
    if let Some(mut file) = json {
        file.write_all(report.json_lines(&asked).as_bytes())?;
    }
    println!(
        "{} entries of 20 + 800 B, a bound of {} B, {} rounds, seed {}, {}",
        settings.entries,
        settings.memory_bytes_max,
        settings.rounds,
        settings.seed,
        machine()?
    );
    print!("{}", report.table(&asked));
    report.check_complete(&asked)
}

/// Measures the log-structured merge tree, prints the table, writes the JSON lines.
fn run_lsm(arguments: LsmArguments) -> Result<()> {
    let asked = AskedRows::of("lsm")?;
    let json = arguments.json.map(File::create).transpose()?;
    let settings = arguments.settings;
    let report = with_progress(|tell| lsm::run::<AdamantEngine>(&settings, tell))?;
    if let Some(mut file) = json {
        file.write_all(report.json_lines(&asked).as_bytes())?;
    }
    for set in &settings.sets {
        println!("{} entries of 20 + {} B", set.entries, set.value_bytes);
    }
    println!("{} rounds, seed {}, {}", settings.rounds, settings.seed, machine()?);
    print!("{}", report.table(&asked));
    report.check_complete(&asked)
}

/// Measures parts of the engine, prints the table, writes the JSON lines. These rows have no
/// targets.
fn run_lsm_sources(arguments: LsmSourcesArguments) -> Result<()> {
    let asked = AskedRows::of("lsm")?;
    let json = arguments.json.map(File::create).transpose()?;
    let settings = arguments.settings;
    let report = with_progress(|tell| lsm::run_sources(&settings, tell))?;
    if let Some(mut file) = json {
        file.write_all(report.json_lines(&asked).as_bytes())?;
    }
    let lsm::SourcesSettings { pairs, reads, rounds, seed, .. } = settings;
    println!("{pairs} pairs a table, {reads} reads, {rounds} rounds, seed {seed}, {}", machine()?);
    print!("{}", report.table(&asked));
    Ok(())
}

/// The child of the workload of opening after SIGKILL.
fn run_lsm_child(engine: &str, task: &[String]) -> Result<()> {
    if engine != AdamantEngine::NAME {
        return Err(format!("there is no engine {engine} to be killed").into());
    }
    lsm::child::<AdamantEngine>(task)
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
    if engine != AdamantEngine::NAME {
        return Err(format!("there is no engine {engine} to be killed").into());
    }
    kill::child::<AdamantEngine>(task)
}

/// Prints the peak memory of a load.
fn run_memory_child(engine: &str, task: &[String]) -> Result<()> {
    match engine {
        AdamantEngine::NAME => memory::child::<AdamantEngine>(task),
        BTreeMapEngine::NAME => memory::child::<BTreeMapEngine>(task),
        _ => Err(format!("there is no engine {engine} to be loaded").into()),
    }
}
