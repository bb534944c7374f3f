//! `adamant-peers slice`: the slice beside other strings of bytes, all in one process.

pub mod types;

pub mod settings;

pub mod memory;

pub mod rounds;

pub mod table;

pub mod plots;

pub mod report;

use std::fs;

use adamant_bench::harness::error::Result;

use crate::results::figures::Figures;
use crate::results::rows;
use crate::slice::settings::{Settings, USAGE};

/// Folder of the pictures and rows, beside the report.
const FOLDER: &str = "slice";

/// Does what the arguments after `slice` say: measures, prints the table, writes the report.
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
    let judged = table::judge(&figures);
    let pictures = plots::draw(&figures, &judged, &folder)?;
    let path = settings.output.join("slice.md");
    fs::write(&path, report::build(&figures, &judged, &pictures, FOLDER)?)?;
    print!("{}", report::lines(&figures, &judged));
    println!("see {}", path.display());
    Ok(())
}
