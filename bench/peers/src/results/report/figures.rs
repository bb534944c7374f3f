//! All figures, in tables with a column for each engine.

use crate::results::figures::Figures;
use crate::results::goals::best_peer;
use crate::results::text;
use crate::run::datasets::DATASETS;
use crate::run::roster::JUDGED;

/// What names of rows begin with that count operations in a second, in the order of the report.
const RATES: [&str; 16] = [
    "load.",
    "overwrite.",
    "delete.",
    "put.sync.",
    "put.buffered.",
    "put.deferred.",
    "mixed.",
    "get.",
    "get_with.",
    "scan.full",
    "scan.",
    "bulk.",
    "retain.",
    "extract_if.",
    "pop.",
    "ycsb.",
];

/// A row of what less is better of.
pub(super) struct Cost {
    /// The row.
    pub(super) row: &'static str,
    /// For people.
    about: &'static str,
    /// What the figure is divided by.
    divisor: f64,
}

/// Bytes of a key and a value of the judged dataset.
const RECORD_BYTES: f64 = 120.0;

const fn cost(row: &'static str, about: &'static str, divisor: f64) -> Cost {
    Cost { row, about, divisor }
}

/// What is compared beside speed.
pub(super) const COSTS: [Cost; 18] = [
    cost("written.load", "bytes written per user byte, load", RECORD_BYTES),
    cost("written.overwrite", "bytes written per user byte, overwrite", RECORD_BYTES),
    cost("written.delete", "bytes written per user byte, delete", RECORD_BYTES),
    cost("space.after_load", "data bytes by user bytes after load", 1.0),
    cost("space.after_overwrite", "data bytes by user bytes after overwrite", 1.0),
    cost("space.after_delete", "data bytes by user bytes after delete", 1.0),
    cost("space.compacted", "data bytes by user bytes after removals and compaction", 1.0),
    cost("log.after_load", "log after load, MiB", 1.0),
    cost("log.after_overwrite", "log after overwrite, MiB", 1.0),
    cost("log.after_delete", "log after delete, MiB", 1.0),
    cost("open.clean", "clean open, ms", 1.0),
    cost("open.after_kill", "open after SIGKILL, ms", 1.0),
    cost("close.after_load", "close after load, ms", 1.0),
    cost("close.after_overwrite", "close after overwrite, ms", 1.0),
    cost("close.after_delete", "close after delete, ms", 1.0),
    cost("memory.peak", "peak memory of a load, MiB", 1.0),
    cost("memory.anonymous", "anonymous memory after a load, MiB", 1.0),
    cost("log.put", "bytes of log for a put", 1.0),
];

/// Whether a row counts operations in a second.
pub(super) fn is_rate(row: &str) -> bool {
    RATES.iter().any(|start| row.starts_with(start))
}

/// The suffix of a row's dataset; empty for the judged one.
fn dataset_of(row: &str) -> &'static str {
    let mut datasets = DATASETS.iter().map(|dataset| dataset.suffix);
    datasets.find(|suffix| row.ends_with(suffix)).unwrap_or_default()
}

/// Rows of rates of a dataset, in the order of the report.
fn rate_rows<'a>(run: &'a Figures, suffix: &str) -> Vec<&'a str> {
    let mut rows: Vec<(usize, &str)> = run
        .rows()
        .into_iter()
        .filter(|row| dataset_of(row) == suffix)
        .filter_map(|row| Some((RATES.iter().position(|start| row.starts_with(start))?, row)))
        .collect();
    rows.sort_by_key(|&(place, _)| place);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn head(first: &str, run: &Figures, last: &[&str]) -> Vec<String> {
    let engines = run.engines();
    [first].iter().chain(&engines).chain(last).map(|&word| word.to_owned()).collect()
}

fn rate_table(run: &Figures, suffix: &str) -> String {
    let rows: Vec<Vec<String>> = rate_rows(run, suffix)
        .into_iter()
        .map(|row| {
            let mut cells = vec![format!("`{}`", row.strip_suffix(suffix).unwrap_or(row))];
            for engine in run.engines() {
                let own = run.spread(row, engine).filter(|own| own.max > 0.0);
                cells.push(own.map(text::spread).unwrap_or_default());
            }
            let ratio = best_peer(run, row, false)
                .and_then(|(name, _)| Some((run.ratio(row, JUDGED, &name)?, name)));
            cells.push(match ratio {
                Some((ratio, name)) if ratio.median < 1.0 => {
                    format!("**{} behind {name}**", text::figure(ratio.median))
                }
                Some((ratio, name)) => format!("{} ({name})", text::figure(ratio.median)),
                None => String::new(),
            });
            cells
        })
        .collect();
    text::table(&head("row", run, &["by the best peer"]), &rows)
}

/// Rates of the judged dataset, and the processor time behind them.
pub(super) fn rates(run: &Figures) -> String {
    let rows: Vec<Vec<String>> = rate_rows(run, "")
        .into_iter()
        .filter(|row| !row.ends_with(".vs_raw"))
        .map(|row| {
            let mut cells = vec![format!("`{row}`")];
            for engine in run.engines() {
                let own = run.nanoseconds(row, engine).filter(|(user, _)| *user > 0.0);
                let microseconds = |nanoseconds: f64| text::figure(nanoseconds / 1e3);
                cells.push(
                    own.map(|(user, system)| {
                        format!("{} + {}", microseconds(user), microseconds(system))
                    })
                    .unwrap_or_default(),
                );
            }
            cells
        })
        .collect();
    format!(
        "## Rates\n\nThousands of operations in a second; of full scans, of entries; in rows `.vs_raw`, by \
         the rate of a raw overwrite and fdatasync on one thread in the same seconds. `btreemap` \
         and `null` (no store: the harness's own cost) are references. Gets of missing keys end \
         at a filter in an LSM.\n\n{}### Processor time\n\nMicroseconds of processors for an \
         operation, outside the kernel + in it, of all threads of the process. The system counts \
         in steps of 10 ms.\n\n{}",
        rate_table(run, ""),
        text::table(&head("row", run, &[]), &rows)
    )
}

/// Rates of the other datasets.
pub(super) fn datasets(run: &Figures) -> String {
    let mut out = String::from("## Other datasets\n\n");
    let measured = DATASETS.iter().filter(|dataset| !rate_rows(run, dataset.suffix).is_empty());
    for dataset in measured {
        let table = rate_table(run, dataset.suffix);
        out += &format!("`{}`: {}.\n\n{table}", dataset.suffix, dataset.about);
    }
    out
}

/// What it costs beside time.
pub(super) fn costs(run: &Figures) -> String {
    let rows: Vec<Vec<String>> = COSTS
        .iter()
        .map(|cost| {
            let mut cells = vec![cost.about.to_owned()];
            for engine in run.engines() {
                let own = run.spread(cost.row, engine);
                let cell = own.map(|own| text::figure(own.median / cost.divisor));
                cells.push(cell.unwrap_or_default());
            }
            cells
        })
        .collect();
    format!(
        "## Costs\n\nLess is better. Bytes written are those that the system counts for the \
         process, until the engine is closed; data bytes do not contain log files, which of an \
         LSM hold the newest entries.\n\n{}",
        text::table(&head("what", run, &[]), &rows)
    )
}
