//! The lines of the report, and what is asked of each: to be no slower than byteview, and nearly as
//! fast as the best of all types.

use adamant_bench::commands::slice::JUDGED;

use crate::results::figures::{Figures, Spread};
use crate::slice::types::BYTEVIEW;

/// The most that a figure may be of byteview's.
pub const BYTEVIEW_RATIO_MAX: f64 = 1.0;
/// The most that it may be of the best of all types.
pub const BEST_RATIO_MAX: f64 = 1.1;
/// The row that is also judged by itself, and its most, in nanoseconds.
pub const ABSOLUTE: (&str, f64) = ("clone.inline", 1.5);

/// A row, what it is, and what byteview 0.10 took when this was asked for, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Its name.
    pub row: &'static str,
    /// In words.
    pub about: &'static str,
    /// Byteview's figure then, where one was given.
    pub given: Option<f64>,
}

const fn line(about: &'static str, row: &'static str, given: f64) -> Line {
    Line { row, about, given: Some(given) }
}

const fn alone(about: &'static str, row: &'static str) -> Line {
    Line { row, about, given: None }
}

/// All lines.
pub const LINES: &[Line] = &[
    line("construct 8 B", "construct.8", 8.0),
    line("construct 20 B", "construct.20", 10.0),
    line("construct 24 B", "construct.24", 22.0),
    line("construct 64 B", "construct.64", 22.0),
    line("construct 1 KiB", "construct.1024", 30.0),
    line("read 8 B from a reader", "from_reader.8", 9.0),
    line("read 64 B", "from_reader.64", 21.0),
    line("read 1 KiB", "from_reader.1024", 40.0),
    line("clone and drop, 20 B", "clone.inline", 3.5),
    line("clone and drop, 64 B", "clone.heap", 3.5),
    line("part of 16 B", "part.inline", 16.0),
    line("part of 50 B", "part.heap", 12.0),
    line("equal, 64 B", "eq.64", 3.0),
    line("compare 64 B that differ in the last byte", "cmp.prefix.64", 5.7),
    line("compare 64 B that differ in the first byte", "cmp.first.64", 2.9),
    line("two threads clone and drop one string of 64 B", "clone.2t", 17.0),
    line("sort keys of 20 B, each", "sort.inline", 140.0),
    line("search among them", "search.inline", 1029.0),
    alone("sort keys of 24 B, each", "sort.heap"),
    alone("search among them", "search.heap"),
    alone("records of 8 to 20 B out of a block, each", "block.inline"),
    alone("records of 24 to 150 B out of a block, each", "block.longer"),
    alone("the same, from the reader's buffer", "block.longer.buffered"),
];

/// What came of a line.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The line.
    pub line: Line,
    /// Adamant's figure.
    pub own: Option<Spread>,
    /// By byteview's, round by round.
    pub by_byteview: Option<Spread>,
    /// The type with the least median, Adamant's among them.
    pub best: Option<String>,
    /// By that of the best, round by round.
    pub by_best: Option<Spread>,
}

impl Judged {
    /// Whether all that is asked of the line holds; `None` when it was not measured.
    pub fn holds(&self) -> Option<bool> {
        let (own, byteview, best) = (self.own?, self.by_byteview?, self.by_best?);
        let absolute = self.line.row != ABSOLUTE.0 || own.median <= ABSOLUTE.1;
        let ratios = byteview.median <= BYTEVIEW_RATIO_MAX && best.median <= BEST_RATIO_MAX;
        Some(absolute && ratios)
    }
}

/// Names of all types of a run.
pub fn engines(run: &Figures) -> Vec<&str> {
    let engines = run.header["engines"].as_array();
    engines.into_iter().flatten().filter_map(|engine| engine.as_str()).collect()
}

/// Judges all lines.
pub fn judge(run: &Figures) -> Vec<Judged> {
    let judged = LINES.iter().map(|&line| {
        let medians = engines(run)
            .into_iter()
            .filter_map(|engine| Some((engine, run.spread(line.row, engine)?.median)));
        let best = medians.min_by(|left, right| left.1.total_cmp(&right.1));
        let best = best.map(|(engine, _)| engine.to_owned());
        Judged {
            line,
            own: run.spread(line.row, JUDGED),
            by_byteview: run.ratio(line.row, JUDGED, BYTEVIEW),
            by_best: best.as_ref().and_then(|best| run.ratio(line.row, JUDGED, best)),
            best,
        }
    });
    judged.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_ratios_and_the_figure_itself_are_judged() {
        let row = |row: &str, engine: &str, median: f64| json!({"row": row, "engine": engine, "round": 0, "median": median});
        let lines = [
            json!({"run": "quick", "engines": [JUDGED, BYTEVIEW, "hipstr"]}),
            row("eq.64", JUDGED, 2.0),
            row("eq.64", BYTEVIEW, 2.0),
            row("eq.64", "hipstr", 1.9),
            row("construct.8", JUDGED, 2.0),
            row("construct.8", BYTEVIEW, 4.0),
            row("construct.8", "hipstr", 1.7),
            row("clone.inline", JUDGED, 1.6),
            row("clone.inline", BYTEVIEW, 3.0),
            row("cmp.first.64", JUDGED, 1.6),
            row("cmp.first.64", BYTEVIEW, 1.5),
        ];
        let judged = judge(&Figures::of(&lines).unwrap());
        let of = |row: &str| judged.iter().find(|judged| judged.line.row == row).unwrap();
        assert_eq!(of("eq.64").holds(), Some(true));
        assert_eq!(of("construct.8").holds(), Some(false), "1.18 of the best");
        assert_eq!(of("construct.8").best.as_deref(), Some("hipstr"));
        assert_eq!(of("clone.inline").holds(), Some(false), "more than 1.5 ns");
        assert_eq!(of("cmp.first.64").holds(), Some(false), "slower than byteview");
        assert_eq!(of("eq.64").own.unwrap().median, 2.0);
        assert_eq!(of("sort.heap").holds(), None);
    }
}
