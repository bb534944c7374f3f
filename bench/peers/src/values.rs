//! `adamant-peers values`: records as people store them, by Adamant in all its ways and by LSM
//! trees that compress.
//!
//! Engines take turns in one process; LSM trees of others are compacted after the load. The rows
//! are those of `adamant_bench::commands::values`.

use std::path::PathBuf;

use adamant_bench::commands::values::{self, Settings, settings_in};
use adamant_bench::engines::adamant::AdamantEngine;
use adamant_bench::harness::asked::AskedRows;
use adamant_bench::harness::engine::{Engine as _, LsmEngine};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::report::Report;
use adamant_bench::harness::rows::Rows;

use crate::engines::fjall3::Fjall3Engine;
#[cfg(feature = "rocksdb")]
use crate::engines::rocksdb::RocksDbEngine;
use crate::results::text;

const USAGE: &str = "usage: adamant-peers values [--quick] [--path FOLDER] [--records FILE]";

/// Measures with the arguments after `values`, and prints a table.
///
/// # Errors
/// An argument that is not understood; those of an engine or the file system.
pub fn run(arguments: &[String]) -> Result<()> {
    let settings = parse(arguments)?;
    let data = values::data(&settings)?;
    let mut report = Report::new("values", AdamantEngine::NAME);
    for round in 0..settings.rounds {
        eprintln!("round {} of {}", round + 1, settings.rounds);
        values::own(&settings, &data, &mut report)?;
        values::measure_settled(
            &settings,
            &data,
            &mut report,
            <Fjall3Engine as LsmEngine>::compact,
        )?;
        #[cfg(feature = "rocksdb")]
        values::measure_settled(
            &settings,
            &data,
            &mut report,
            <RocksDbEngine as LsmEngine>::compact,
        )?;
    }
    let mut rows = Rows::default();
    rows.add(&report.json_lines(&AskedRows::default()), None)?;
    println!("{} records, {} rounds, medians\n", settings.entries, settings.rounds);
    print!("{}", table(&rows));
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Settings> {
    let (mut path, mut records, mut is_quick) = (PathBuf::from("."), None, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{argument} needs a value; {USAGE}"));
        match argument.as_str() {
            "--quick" => is_quick = true,
            "--path" => path = value()?.into(),
            "--records" => records = Some(value()?.into()),
            other => return Err(format!("{other} is unknown; {USAGE}").into()),
        }
    }
    Ok(Settings { records, ..settings_in(&path, is_quick) })
}

fn table(rows: &Rows) -> String {
    let names = [
        "adamant",
        "lz4",
        "zstd",
        "zstd, dictionary",
        "encrypted",
        "lz4, encrypted",
        "zstd, encrypted",
        "fjall",
        "rocksdb",
    ];
    let mut head = vec!["row".to_owned(), "unit".to_owned()];
    head.extend(names.iter().map(|name| (*name).to_owned()));
    let line = |(row, unit): (&str, &str)| {
        let cell = |name: &&str| rows.median(row, name).map_or_else(String::new, text::figure);
        let mut line = vec![format!("`{row}`"), unit.to_owned()];
        line.extend(names.iter().map(cell));
        line
    };
    text::table(&head, &rows.rows().map(line).collect::<Vec<_>>())
}
