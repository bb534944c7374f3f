//! The results of `maps`, as a table and as JSON lines.

use std::fmt::Write;

use serde_json::json;

use crate::harness::asked::AskedRows;
use crate::harness::measure::median;
use crate::harness::place::ENGINE;
use crate::harness::report::{Report, Unit};

/// Figures of one structure, for one operation: nanoseconds, and storage costs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// Nanoseconds of an insert.
    pub insert: f64,
    /// Nanoseconds of a remove.
    pub remove: f64,
    /// Nanoseconds of a get.
    pub get: f64,
    /// Fences of an insert.
    pub insert_fences: f64,
    /// Fences of a remove.
    pub remove_fences: f64,
    /// Cache lines that an insert flushes.
    pub insert_lines: f64,
    /// Cache lines that a remove flushes.
    pub remove_lines: f64,
    /// Bytes of log of an insert.
    pub insert_log: f64,
    /// Bytes of log of a remove.
    pub remove_log: f64,
}

/// Structure, kind of value, operations of a transaction.
type Key = (&'static str, &'static str, String);

/// All figures, in the order in which they were first measured.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<(Key, Vec<Cell>)>,
}

impl Table {
    /// Adds a round of a row.
    pub(super) fn add(&mut self, key: Key, cell: Cell) {
        match self.rows.iter_mut().find(|(known, _)| *known == key) {
            Some((_, cells)) => cells.push(cell),
            None => self.rows.push((key, vec![cell])),
        }
    }

    /// Each row with the medians of its rounds.
    pub fn rows(&self) -> impl Iterator<Item = (&Key, Cell)> {
        self.rows.iter().map(|(key, cells)| {
            let of = |field: fn(&Cell) -> f64| median(cells.iter().map(field).collect());
            let cell = Cell {
                insert: of(|cell| cell.insert),
                remove: of(|cell| cell.remove),
                get: of(|cell| cell.get),
                insert_fences: of(|cell| cell.insert_fences),
                remove_fences: of(|cell| cell.remove_fences),
                insert_lines: of(|cell| cell.insert_lines),
                remove_lines: of(|cell| cell.remove_lines),
                insert_log: of(|cell| cell.insert_log),
                remove_log: of(|cell| cell.remove_log),
            };
            (key, cell)
        })
    }

    /// Adds the figures with targets to a report: as `insert.all.word.critbit`, and
    /// `insert.speedup.word.critbit` of one transaction for all against one for each.
    pub(super) fn judge(&self, asked: &AskedRows, pairs: u64, report: &mut Report) {
        let mut add = |row: String, unit: Unit, figure: f64| {
            if asked.get(&row).is_some() {
                report.add(&row, ENGINE, unit, pairs, figure);
            }
        };
        for ((structure, value, batch), cell) in self.rows() {
            for (work, unit, figure) in [
                ("insert", Unit::Nanoseconds, cell.insert),
                ("remove", Unit::Nanoseconds, cell.remove),
                ("get", Unit::Nanoseconds, cell.get),
                ("fences.insert", Unit::Fences, cell.insert_fences),
                ("fences.remove", Unit::Fences, cell.remove_fences),
            ] {
                add(format!("{work}.{batch}.{value}.{structure}"), unit, figure);
            }
            if batch != "1" {
                continue;
            }
            let all = (*structure, *value, "all".to_owned());
            if let Some((_, one)) = self.rows().find(|(key, _)| **key == all) {
                for (work, figure) in
                    [("insert", cell.insert / one.insert), ("remove", cell.remove / one.remove)]
                {
                    let row = format!("{work}.speedup.{value}.{structure}");
                    add(row, Unit::Speedup, figure);
                }
            }
        }
    }

    /// The table as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<9} {:<7} {:>5} {:>8} {:>8} {:>8}  {:>13}  {:>13}  {:>15}\n",
            "structure", "value", "batch", "insert", "remove", "get", "fences", "lines", "log B"
        );
        for ((structure, value, batch), cell) in self.rows() {
            let pair = |insert: f64, remove: f64| format!("{insert:.2} / {remove:.2}");
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{structure:<9} {value:<7} {batch:>5} {:>8.0} {:>8.0} {:>8.0}  \
                 {:>13}  {:>13}  {:>15}",
                cell.insert,
                cell.remove,
                cell.get,
                pair(cell.insert_fences, cell.remove_fences),
                pair(cell.insert_lines, cell.remove_lines),
                pair(cell.insert_log, cell.remove_log),
            );
        }
        text
    }

    /// One JSON object a row.
    pub fn json_lines(&self) -> String {
        let mut text = String::new();
        for ((structure, value, batch), cell) in self.rows() {
            let line = json!({
                "bench": "maps", "structure": structure, "value": value,
                "batch": batch, "insert_ns": cell.insert, "remove_ns": cell.remove,
                "get_ns": cell.get, "insert_fences": cell.insert_fences,
                "remove_fences": cell.remove_fences, "insert_lines": cell.insert_lines,
                "remove_lines": cell.remove_lines, "insert_log_bytes": cell.insert_log,
                "remove_log_bytes": cell.remove_log,
            });
            text.push_str(&line.to_string());
            text.push('\n');
        }
        text
    }
}
