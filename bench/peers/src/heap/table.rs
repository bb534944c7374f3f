//! The table: what is asked of the heap beside libpmemobj, and whether it is reached.
//!
//! Purpose: each line is a row of Adamant on memory. Times are judged by ratios: what is asked of
//! Adamant was set beside what libpmemobj 1.12 took on one machine, so another machine, or a busy
//! one, is fair to both. Counts and bytes are judged as they are.

use adamant_bench::harness::asked::{Asked, AskedRows, Better};
use adamant_bench::harness::error::Result;

use crate::heap::rounds::{LIBPMEMOBJ, judged};
use crate::results::figures::{Figures, Spread};

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// What is done, with its unit.
    pub about: &'static str,
    /// The row.
    pub row: &'static str,
    /// The figure of libpmemobj 1.12 beside which the figure asked for was set.
    pub given: Option<f64>,
}

const fn line(about: &'static str, row: &'static str, given: f64) -> Line {
    Line { about, row, given: Some(given) }
}

const fn alone(about: &'static str, row: &'static str) -> Line {
    Line { about, row, given: None }
}

/// All lines, in order.
pub const LINES: &[Line] = &[
    line("allocate 64 B, ns", "alloc.64", 527.0),
    line("free 64 B, ns", "free.64", 392.0),
    line("allocate and free 64 B, ns", "pair.64.1t", 1196.0),
    line("the same on 2 threads, M/s", "pair.64.2t", 1.16),
    line("64 B in a transaction of 1, ns each", "tx.objects.1", 576.0),
    line("in a transaction of 10", "tx.objects.10", 271.0),
    line("in a transaction of 100", "tx.objects.100", 313.0),
    line("in a transaction of 1,000", "tx.objects.1000", 339.0),
    line("reserve and publish 64 B alone, ns each", "publish.1", 443.0),
    line("in batches of 10", "publish.10", 217.0),
    line("in batches of 100", "publish.100", 231.0),
    line("reserve alone, 1 thread, ns of a processor", "reserve.1t", 170.0),
    line("on 2 threads", "reserve.2t", 170.0),
    line("on 4 threads", "reserve.4t", 170.0),
    line("on 8 threads", "reserve.8t", 170.0),
    line("fences of an allocation", "fences.alloc.64", 2.0),
    line("fences of a free", "fences.free.64", 2.0),
    line("fences of a publish of 100, each", "fences.publish.100", 0.20),
    line("fences of an empty transaction", "fences.empty", 2.0),
    line("fences of a transaction writing 8 B", "fences.write.8", 5.0),
    alone("the same in a block of 10 KiB", "fences.write.8.large"),
    line("writing 64 B", "fences.write.64", 5.0),
    line("writing 1 KiB", "fences.write.1024", 5.0),
    line("writing 10 ranges of 64 B declared at once", "fences.ranges.10", 23.0),
    line("a transaction writing 64 B, ns", "write.64", 700.0),
    line("writing 1 KiB, ns", "write.1024", 840.0),
    line("writing 4 KiB, ns", "write.4096", 1580.0),
    line("free 10,000 objects in one transaction, ns each", "tx.free.10000", 279.0),
    line("free 100,000", "tx.free.100000", 355.0),
    // Not by ratios: libpmemobj's figure grows with the number of objects.
    alone("free 10,000 that it wrote to first", "tx.free.10000.written"),
    alone("free 100,000 that it wrote to first", "tx.free.100000.written"),
    alone("inserts in one transaction, ns each", "inserts.together"),
    alone("inserts in a transaction each, ns each", "inserts.each"),
    alone("one transaction, times as fast", "inserts.speedup"),
    line("internal fragmentation, average, %", "fragmentation.average", 2.92),
    line("maximum, %", "fragmentation.maximum", 16.7),
    line("heap bytes of a 64-byte object", "heap.bytes.64", 128.0),
    line("of an 8-byte object", "heap.bytes.8", 128.0),
    line("create (libpmemobj: a large pool), ms", "create.large", 2100.0),
    alone("what that takes on the medium, MiB", "create.large.used"),
    line("open with many objects, ms", "open.objects", 2.0),
    alone("one transaction of many word sets, ns each", "tx.large.set"),
    alone("memory of each, bytes", "tx.large.set.memory"),
    alone("its last tenth by its first", "tx.large.set.last_by_first"),
    alone("one transaction of many allocations, ns each", "tx.large.alloc"),
    alone("memory of each, bytes", "tx.large.alloc.memory"),
    alone("its last tenth by its first", "tx.large.alloc.last_by_first"),
];

/// What came of a line.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// The line.
    pub line: Line,
    /// The judged figure, if it was measured.
    pub own: Option<Spread>,
    /// That of libpmemobj.
    pub other: Option<Spread>,
    /// The first by the second, round by round.
    pub ratio: Option<Spread>,
    /// What is asked.
    pub asked: Option<Asked>,
    /// The most that the ratio may be (of rates, the least), where the ratio is judged.
    pub ratio_asked: Option<f64>,
}

impl Judged {
    /// Whether what is asked is reached; `None` when nothing is asked, or nothing was measured.
    pub fn holds(&self) -> Option<bool> {
        let (asked, own) = (self.asked?, self.own?);
        let of_ratio = self.ratio_asked.zip(self.ratio).map(|(bound, ratio)| {
            let bound = Asked { figure: bound, ..asked };
            bound.holds(ratio.median)
        });
        Some(of_ratio.unwrap_or_else(|| asked.holds(own.median)))
    }
}

/// Rows whose figure is a time, or a rate: the names of all others begin so.
fn is_time(row: &str) -> bool {
    let others = ["fences.", "fragmentation.", "heap.", "create.", "inserts.speedup", "open."];
    !others.iter().any(|other| row.starts_with(other))
}

/// Judges all lines.
///
/// # Errors
/// When `asked.toml` is malformed.
pub fn judge(figures: &Figures) -> Result<Vec<Judged>> {
    let asked_rows = AskedRows::of("heap")?;
    let all = LINES.iter().map(|&line| {
        let asked = asked_rows.get(line.row);
        let ratio_asked = line.given.zip(asked).filter(|_| is_time(line.row));
        Judged {
            line,
            own: figures.spread(line.row, judged()),
            other: figures.spread(line.row, LIBPMEMOBJ),
            ratio: figures.ratio(line.row, judged(), LIBPMEMOBJ),
            asked,
            ratio_asked: ratio_asked.map(|(given, asked)| asked.figure / given),
        }
    });
    Ok(all.collect())
}

/// `at most` or `at least`, as a sign.
pub fn sign(better: Better) -> &'static str {
    match better {
        Better::Higher => ">=",
        Better::Lower => "<=",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_asked_has_a_line() {
        for row in AskedRows::of("heap").unwrap().names() {
            assert!(LINES.iter().any(|line| line.row == row), "{row}");
        }
    }

    #[test]
    fn times_are_judged_by_ratios_and_counts_by_themselves() {
        let row = |row: &str, engine: &str, median: f64| json!({"row": row, "engine": engine, "round": 0, "median": median});
        let lines = [
            json!({"run": "quick"}),
            row("alloc.64", judged(), 400.0),
            row("alloc.64", LIBPMEMOBJ, 1000.0),
            row("pair.64.2t", judged(), 2.0),
            row("pair.64.2t", LIBPMEMOBJ, 1.0),
            row("fences.free.64", judged(), 2.0),
            row("fences.free.64", LIBPMEMOBJ, 9.0),
            row("write.64", judged(), 390.0),
        ];
        let all = judge(&Figures::of(&lines).unwrap()).unwrap();
        let holds = |row: &str| all.iter().find(|judged| judged.line.row == row).unwrap().holds();
        assert_eq!(holds("alloc.64"), Some(true), "400 is above 250, but 0.40 is below 0.47");
        assert_eq!(holds("pair.64.2t"), Some(false), "2 times, and 3.02 times are asked");
        assert_eq!(holds("fences.free.64"), Some(false));
        assert_eq!(holds("write.64"), Some(true), "alone it is judged as it is");
        assert_eq!(holds("free.64"), None);
    }
}
