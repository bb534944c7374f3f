//! `adamant-peers heap`: the persistent heap beside libpmemobj, which is measured by the program in
//! `pmdk`.

pub mod settings;

pub mod rounds;

pub mod table;

pub mod plots;

pub mod report;

use std::fs;

use adamant_bench::harness::error::Result;

use crate::heap::settings::{Settings, USAGE};
use crate::results::figures::Figures;
use crate::results::rows;

/// Folder of the pictures and rows, beside the report.
const FOLDER: &str = "heap";

/// Does what the arguments after `heap` say: measures, prints the table, writes the report.
///
/// # Errors
/// Those of the measurement and of the file system.
pub fn run(arguments: &[String]) -> Result<()> {
    let Some(settings) = Settings::parse(arguments)? else {
        println!("{USAGE}");
        return Ok(());
    };
    let folder = settings.output.join(FOLDER);
    // Before the measurement, so that it is not lost for a path that cannot be written.
    fs::create_dir_all(&folder)?;
    let rows = rows::read_or_measure(settings.from.as_deref(), &folder.join("rows.jsonl"), || {
        rounds::run(&settings, &mut |message| eprintln!("{message}"))
    })?;
    let figures = Figures::of(&rows)?;
    let judged = table::judge(&figures)?;
    let pictures = plots::draw(&figures, &folder)?;
    let path = settings.output.join("heap.md");
    fs::write(&path, report::build(&figures, &judged, &pictures, FOLDER)?)?;
    print!("{}", report::lines(&figures, &judged));
    println!("see {}", path.display());
    Ok(())
}
