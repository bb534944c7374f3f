//! The command `adamant-peers`.

use std::fs;
use std::process::ExitCode;

use adamant_bench::harness::error::Result;
use adamant_peers::results::figures::Figures;
use adamant_peers::results::notes::Notes;
use adamant_peers::run::settings::{Settings, USAGE};
use adamant_peers::{
    heap, large, lsm, results::goals, results::plots, results::report, results::rows, run::child,
    run::rounds, slice, soak, values,
};

/// Folder of the pictures and rows, beside the report.
const FOLDER: &str = "benchmarks";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("adamant-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let is_child = child::run(arguments)? || heap::rounds::run_child(arguments)?;
    if is_child || lsm::run_child(arguments)? || large::run_child(arguments)? {
        return Ok(());
    }
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "heap") {
        return heap::run(rest);
    }
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "slice") {
        return slice::run(rest);
    }
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "soak") {
        return soak::run(rest);
    }
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "lsm") {
        return lsm::run(rest);
    }
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "large") {
        return large::run(rest);
    }
    if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "values") {
        return values::run(rest);
    }
    let Some(settings) = Settings::parse(arguments)? else {
        println!("{USAGE}");
        return Ok(());
    };
    let folder = settings.output.join(FOLDER);
    // Before the measurement, so that it is not lost for a path that cannot be written.
    fs::create_dir_all(&folder)?;
    let rows = rows::read_or_measure(settings.from.as_deref(), &settings.json_path(), || {
        rounds::run(&settings, arguments, &mut |message| eprintln!("{message}"))
    })?;
    let figures = Figures::of(&rows)?;
    let judged = goals::judge(&figures, goals::read()?);
    let plots = plots::draw(&figures, &judged, &folder)?;
    let text = report::build(&figures, &judged, &Notes::read()?, &plots, FOLDER)?;
    let path = settings.output.join("benchmarks.md");
    fs::write(&path, text)?;
    let holding = judged.iter().filter(|judged| judged.holds()).count();
    println!("{holding} of {} goals are reached; see {}", judged.len(), path.display());
    Ok(())
}
