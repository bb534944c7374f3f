//! Waits and stalls, and the system calls behind them, in tables.

use serde_json::Value;

use crate::results::figures::{Figures, Spread};
use crate::results::text;
use crate::run::trace::KINDS;
use crate::run::waits::{PERCENTILES, STEP};

/// Names of raw writes in lines of latencies, and engines.
fn writers(run: &Figures) -> Vec<&str> {
    let mut writers = vec!["raw append", "raw prealloc"];
    writers.extend(run.engines());
    writers
}

/// Medians over rounds of what lines have at each percentile.
fn microseconds_of<'a>(lines: impl Iterator<Item = &'a Value> + Clone) -> Vec<f64> {
    let at = |place: usize| {
        let samples = lines.clone().filter_map(|line| line["microseconds"][place].as_f64());
        Some(Spread::of(samples.collect())?.median)
    };
    (0..PERCENTILES.len()).filter_map(at).collect()
}

/// Waits of durable puts on so many threads.
pub(super) fn waits(run: &Figures, threads: &str) -> String {
    let mut rows = Vec::new();
    for writer in writers(run) {
        let its = |line: &&Value| line["latency"] == threads && line["engine"] == writer;
        let waits = microseconds_of(run.others.iter().filter(its));
        if waits.is_empty() {
            continue;
        }
        let mark = if run.is_unsynced(writer) { " (does not sync)" } else { "" };
        let mut cells = vec![format!("{writer}{mark}")];
        cells.extend(waits.into_iter().map(text::figure));
        rows.push(cells);
    }
    let mut head = vec!["microseconds".to_owned()];
    head.extend(PERCENTILES.map(|percentile| format!("{percentile} %")));
    let count = threads.trim_end_matches('t');
    format!("Durable single puts on {count} thread(s):\n\n{}", text::table(&head, &rows))
}

/// What single buffered overwrites took while checkpoints or compactions ran.
pub(super) fn stalls(run: &Figures) -> String {
    let mut rows = Vec::new();
    for engine in run.engines() {
        let its = |line: &&Value| !line["throughput"].is_null() && line["engine"] == engine;
        let lines = run.others.iter().filter(its);
        let rates_of = |line: &Value| -> Option<Spread> {
            let counts = line["counts"].as_array()?.iter().filter_map(Value::as_f64);
            Spread::of(counts.map(|count| count / STEP.as_secs_f64() / 1e3).collect())
        };
        let rates: Vec<Spread> = lines.clone().filter_map(rates_of).collect();
        let median_of = |which: fn(&Spread) -> f64| {
            let spread = Spread::of(rates.iter().map(which).collect());
            spread.map(|spread| text::figure(spread.median)).unwrap_or_default()
        };
        let waits = microseconds_of(lines);
        let Some([.., last_but_one, last]) = waits.get(..) else { continue };
        rows.push(vec![
            engine.to_owned(),
            median_of(|rates| rates.median),
            median_of(|rates| rates.min),
            text::figure(*last_but_one),
            text::figure(last / 1e3),
        ]);
    }
    let head = [
        "buffered overwrites",
        "k/s, middle",
        "k/s, slowest 100 ms",
        "99.9 % of puts within us",
        "longest put, ms",
    ];
    format!(
        "What users of stores complain about is stalls. Overwrites of single random records on one \
         thread while checkpoints or compactions run:\n\n{}",
        text::table(&head.map(str::to_owned), &rows)
    )
}

/// System calls for an operation, by kind.
pub(super) fn calls(run: &Figures) -> String {
    let mut out = String::from("## System calls\n\n");
    if run.header["can_trace"] != true {
        return out + "There is no `strace` here to count them with.\n\n";
    }
    out += "Counted with `strace -f` in a run of its own, which is not timed; for one operation, of \
            all threads of the process: syncs (`fsync`, `fdatasync`, `msync`, writes to a file \
            opened with `O_DSYNC`), `sync_file_range`, writes (`write`, `pwrite64` ..), reads, \
            memory (`mmap`, `munmap`, `madvise` ..), waits (`futex`, sleeps), and all others. A \
            load is counted until the engine is closed.\n\n";
    let rows = ["put.sync.1t", "put.sync.8t", "put.buffered.1t", "put.deferred.1t"];
    for row in rows.into_iter().chain(["load.batch1000.deferred"]) {
        let mut lines = Vec::new();
        for engine in run.engines() {
            let calls: Vec<f64> =
                KINDS.iter().filter_map(|kind| run.calls(row, engine, kind)).collect();
            if !calls.is_empty() {
                let figures = calls.into_iter().map(text::figure);
                lines.push([engine.to_owned()].into_iter().chain(figures).collect());
            }
        }
        let mut head = vec![format!("`{row}`")];
        head.extend(KINDS.map(|kind| kind.replace('_', " ")));
        out += &text::table(&head, &lines);
    }
    out
}
