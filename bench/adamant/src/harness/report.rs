//! Reports: measured rows over rounds, with their targets.
//!
//! Purpose: a table for people and JSON lines for programs, from the same rows.
//! Invariants: a row is named by (row, engine); its samples are in the order of the rounds, so that
//! a ratio compares the two figures of each round.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::harness::asked::{Asked, AskedRows, Better};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::{Measured, Processors};

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Thousands of operations in a second.
    ThousandPerSecond,
    /// Millions of operations in a second.
    MillionPerSecond,
    /// Nanoseconds for an operation.
    Nanoseconds,
    /// Milliseconds.
    Milliseconds,
    /// Bytes, or bytes per operation.
    Bytes,
    /// Mebibytes.
    Mebibytes,
    /// The ratio of two figures, of which more is better.
    Speedup,
    /// The ratio of two figures, of which less is better.
    Share,
    /// Hundredths, of which less is better.
    Percent,
    /// Fences for an operation.
    Fences,
    /// Cache lines flushed for an operation.
    Lines,
    /// The number of occurrences.
    Count,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::ThousandPerSecond => "k/s",
            Self::MillionPerSecond => "M/s",
            Self::Nanoseconds => "ns",
            Self::Milliseconds => "ms",
            Self::Bytes => "B",
            Self::Mebibytes => "MiB",
            Self::Speedup | Self::Share => "ratio",
            Self::Percent => "%",
            Self::Fences => "fences",
            Self::Lines => "lines",
            Self::Count => "times",
        }
    }

    fn better(self) -> Better {
        match self {
            Self::ThousandPerSecond | Self::MillionPerSecond | Self::Speedup => Better::Higher,
            Self::Nanoseconds
            | Self::Milliseconds
            | Self::Bytes
            | Self::Mebibytes
            | Self::Share
            | Self::Percent
            | Self::Fences
            | Self::Lines
            | Self::Count => Better::Lower,
        }
    }
}

/// All samples of one row and engine.
#[derive(Debug)]
struct Series {
    row: String,
    engine: &'static str,
    unit: Unit,
    n: u64,
    samples: Vec<f64>,
    /// For rows with a rate: operations of all samples, and their processor time. Together, because
    /// a single sample may be shorter than a step of that clock.
    operations: u64,
    processors: Processors,
}

impl Series {
    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// Processor nanoseconds for an operation, in user and in kernel mode.
    fn nanoseconds(&self) -> Option<(f64, f64)> {
        let of = |seconds: f64| seconds * 1e9 / self.operations as f64;
        let Processors { user_seconds, system_seconds } = self.processors;
        (self.operations > 0).then(|| (of(user_seconds), of(system_seconds)))
    }
}

/// The middle one of sorted samples, or the mean of the two middle ones.
fn median_of(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        return sorted[middle];
    }
    (sorted[middle - 1] + sorted[middle]) / 2.0
}

/// The results of a bench so far.
#[derive(Debug)]
pub struct Report {
    bench: &'static str,
    judged_engine: &'static str,
    series: Vec<Series>,
}

impl Report {
    /// An empty report; rows of `judged_engine` are rated by the targets of `bench`.
    pub fn new(bench: &'static str, judged_engine: &'static str) -> Self {
        Self { bench, judged_engine, series: Vec::new() }
    }

    /// Adds the sample of a round; `n` is the number of entries (for the raw disk: writes).
    pub fn add(&mut self, row: &str, engine: &'static str, unit: Unit, n: u64, sample: f64) {
        match self.series.iter_mut().find(|known| known.row == row && known.engine == engine) {
            Some(known) => {
                known.samples.push(sample);
                known.n = known.n.min(n);
            }
            None => {
                let row = row.to_owned();
                let (samples, processors) = (vec![sample], Processors::default());
                let series = Series { row, engine, unit, n, samples, operations: 0, processors };
                self.series.push(series);
            }
        }
    }

    /// Adds a rate of a round, with its processor time.
    pub fn add_rate(&mut self, row: &str, engine: &'static str, n: u64, measured: Measured) {
        self.add(row, engine, Unit::ThousandPerSecond, n, measured.thousand_per_second());
        let series =
            self.series.iter_mut().find(|series| series.row == row && series.engine == engine);
        if let Some(series) = series {
            series.operations += measured.operations;
            series.processors = series.processors.plus(measured.processors);
        }
    }

    fn find(&self, row: &str, engine: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.row == row && series.engine == engine)
    }

    /// The median of a row.
    ///
    /// # Errors
    /// When it was not measured.
    pub fn median(&self, row: &str, engine: &str) -> Result<f64> {
        let series = self.find(row, engine);
        let series = series.ok_or_else(|| format!("{engine} has no row {row}"))?;
        Ok(median_of(&series.sorted()))
    }

    /// Adds a row of the rated engine: its `above` divided by another engine's `below`, round by
    /// round.
    ///
    /// # Errors
    /// When either was not measured, or not in the same rounds.
    pub fn add_ratio(&mut self, row: &str, above: &str, below: (&str, &str)) -> Result<()> {
        let (Some(upper), Some(lower)) =
            (self.find(above, self.judged_engine), self.find(below.0, below.1))
        else {
            return Err(format!("{row} compares rows that were not measured").into());
        };
        ensure(upper.samples.len() == lower.samples.len(), || {
            format!("{row} compares rows of {} rounds", upper.samples.len())
        })?;
        let n = upper.n;
        let ratios: Vec<f64> =
            upper.samples.iter().zip(&lower.samples).map(|(upper, lower)| upper / lower).collect();
        for ratio in ratios {
            self.add(row, self.judged_engine, Unit::Speedup, n, ratio);
        }
        Ok(())
    }

    fn asked_of(&self, series: &Series, asked: &AskedRows) -> Option<Asked> {
        if series.engine == self.judged_engine { asked.get(&series.row) } else { None }
    }

    /// Checks that every row with a target was measured.
    ///
    /// # Errors
    /// Names the first that was not.
    pub fn check_complete(&self, asked: &AskedRows) -> Result<()> {
        for row in asked.names() {
            ensure(self.find(row, self.judged_engine).is_some(), || {
                format!("{row} is asked for in asked.toml and was not measured")
            })?;
        }
        Ok(())
    }

    /// One JSON object a line.
    pub fn json_lines(&self, asked: &AskedRows) -> String {
        let mut lines = String::new();
        for series in &self.series {
            let sorted = series.sorted();
            let median = median_of(&sorted);
            let asked = self.asked_of(series, asked);
            let nanoseconds = series.nanoseconds();
            let row = json!({
                "bench": self.bench,
                "row": series.row,
                "engine": series.engine,
                "unit": series.unit.name(),
                "n": series.n,
                "median": median,
                "min": sorted[0],
                "max": sorted[sorted.len() - 1],
                "rounds": sorted.len(),
                "user_ns_per_operation": nanoseconds.map(|(user, _)| user),
                "system_ns_per_operation": nanoseconds.map(|(_, system)| system),
                "asked": asked.map(|asked| asked.figure),
                "better": series.unit.better().name(),
                "holds": asked.map_or(Value::Null, |asked| asked.holds(median).into()),
            });
            lines.push_str(&row.to_string());
            lines.push('\n');
        }
        lines
    }

    /// A table, and how many of the targets are reached.
    pub fn table(&self, asked: &AskedRows) -> String {
        let row_width = self.series.iter().map(|series| series.row.len()).max().unwrap_or(0).max(3);
        let mut table = format!(
            "{:row_width$}  {:8}  {:>5}  {:>9}  {:>10}  {:>10}  {:>10}  {:>6}  {:>7}  holds\n",
            "row", "engine", "unit", "n", "median", "min", "max", "rounds", "asked"
        );
        let (mut holding, mut judged) = (0, 0);
        for series in &self.series {
            let sorted = series.sorted();
            let median = median_of(&sorted);
            let (figure, holds) = match self.asked_of(series, asked) {
                Some(asked) => {
                    judged += 1;
                    holding += u32::from(asked.holds(median));
                    let word = if asked.holds(median) { "yes" } else { "NO" };
                    (figure_text(asked.figure), word)
                }
                None => (String::new(), ""),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "{:row_width$}  {:8}  {:>5}  {:>9}  {:>10}  {:>10}  {:>10}  {:>6}  {:>7}  {}",
                series.row,
                series.engine,
                series.unit.name(),
                series.n,
                figure_text(median),
                figure_text(sorted[0]),
                figure_text(sorted[sorted.len() - 1]),
                sorted.len(),
                figure,
                holds
            );
        }
        let _ = writeln!(table, "{holding} of {judged} figures asked for hold");
        table
    }
}

/// Enough digits for a comparison, and no more.
pub(crate) fn figure_text(figure: f64) -> String {
    let digits = match figure.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{figure:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_ratios_and_judgement() {
        let asked = AskedRows::of("kv").unwrap();
        let mut report = Report::new("kv", "ours");
        for (ours, raw) in [(9.0, 10.0), (2.0, 1.0), (8.0, 10.0)] {
            report.add("put.sync.1t", "ours", Unit::ThousandPerSecond, 100, ours);
            report.add("raw.prealloc.fdatasync.1t", "raw", Unit::ThousandPerSecond, 90, raw);
        }
        let below = ("raw.prealloc.fdatasync.1t", "raw");
        report.add_ratio("put.sync.1t.vs_raw", "put.sync.1t", below).unwrap();
        report.add("open.clean", "ours", Unit::Milliseconds, 1, 1.5);
        report.add("open.clean", "other", Unit::Milliseconds, 1, 7.0);
        let lines = report.json_lines(&asked);
        let rows: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows[0]["median"], 8.0);
        assert_eq!(rows[0]["asked"], Value::Null);
        assert_eq!(rows[0]["holds"], Value::Null);
        assert_eq!(rows[2]["row"], "put.sync.1t.vs_raw");
        assert_eq!(rows[2]["median"], 0.9);
        assert_eq!(rows[2]["min"], 0.8);
        assert_eq!(rows[2]["n"], 100);
        assert_eq!(rows[2]["rounds"], 3);
        assert_eq!(rows[2]["holds"], true);
        assert_eq!(rows[3]["holds"], false);
        assert_eq!(rows[3]["better"], "lower");
        assert_eq!(rows[4]["holds"], Value::Null, "other engines are not judged");
        assert!(report.table(&asked).ends_with("1 of 2 figures asked for hold\n"));
        assert!(report.check_complete(&asked).is_err());
        assert!(report.add_ratio("x", "put.sync.1t", ("no such row", "raw")).is_err());
    }
}
