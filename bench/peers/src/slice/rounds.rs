//! Rounds in one process: all types take turns in every group of rows.

use std::time::Instant;

use adamant_bench::commands::slice::{self, JUDGED};
use adamant_bench::harness::asked::AskedRows;
use adamant_bench::harness::error::Result;
use adamant_bench::harness::report::Report;
use serde_json::{Value, json};

use crate::run::machine::{self, Ticks};
use crate::slice::memory;
use crate::slice::settings::Settings;
use crate::slice::types::contenders;

/// Measures everything; `tell` is called with what comes next. Returns the lines, the first of
/// which describes the run.
///
/// # Errors
/// Those of the measurement.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Vec<Value>> {
    let start = Instant::now();
    let before = Ticks::now()?;
    let contenders = contenders();
    let mut lines = memory::lines(settings.memory_strings)?;
    for round in 0..settings.work.rounds {
        let mut report = Report::new("slice", JUDGED);
        slice::round(&settings.work, &contenders, round, &mut report, tell)?;
        // What is asked depends on the other types, and is judged by the table.
        for line in report.json_lines(&AskedRows::default()).lines() {
            let mut line: Value = serde_json::from_str(line)?;
            line["round"] = round.into();
            lines.push(line);
        }
    }
    let (others, stolen) = Ticks::now()?.others_since(&before);
    let engines: Vec<&str> = contenders.iter().map(slice::Contender::name).collect();
    let header = json!({
        "run": settings.form,
        "seconds": start.elapsed().as_secs_f64(),
        "rounds": settings.work.rounds,
        "operations": settings.work.operations,
        "strings": settings.work.strings,
        "records": settings.work.records,
        "engines": engines,
        "others_percent": others,
        "stolen_percent": stolen,
        "machine": machine::describe(&settings.output)?,
    });
    lines.insert(0, header);
    Ok(lines)
}
