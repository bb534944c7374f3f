//! Target figures: `asked.toml`.
//!
//! Purpose: rates a row by its target. The file uses a subset of TOML: tables, quoted keys,
//! numbers, comments. Anything else is an error that names its line.

use std::collections::BTreeMap;

use crate::harness::error::Result;

/// The direction in which a figure improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

impl Better {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
        }
    }
}

/// The target of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// The figure.
    pub figure: f64,
    /// Whether it is a minimum or a maximum.
    pub better: Better,
    /// How far a median may be on the wrong side: 0, except for whole fences, whose target is for a
    /// typical operation, not for one in hundreds that creates a run or continues in another log
    /// file.
    pub slack: f64,
}

/// Share of operations with additional fences: one in hundreds.
const FENCES_SLACK: f64 = 0.05;

impl Asked {
    /// Whether a median reaches it.
    pub fn holds(&self, median: f64) -> bool {
        match self.better {
            Better::Higher => median >= self.figure - self.slack,
            Better::Lower => median <= self.figure + self.slack,
        }
    }
}

/// All targets of one bench, by row.
#[derive(Debug, Default)]
pub struct AskedRows {
    rows: BTreeMap<String, Asked>,
}

impl AskedRows {
    /// The targets of `asked.toml` for `bench`.
    ///
    /// # Errors
    /// When the file is malformed.
    pub fn of(bench: &str) -> Result<Self> {
        Self::parse(include_str!("../../asked.toml"), bench)
    }

    fn parse(text: &str, bench: &str) -> Result<Self> {
        let mut rows = BTreeMap::new();
        let mut better = None;
        for (number, line) in (1..).zip(text.lines()) {
            let malformed = || format!("asked.toml, line {number}: cannot be read: {line}");
            let content = line.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            if let Some(table) = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                let (name, bound) = table.split_once('.').ok_or_else(malformed)?;
                let bound = match bound {
                    "at_least" => Better::Higher,
                    "at_most" => Better::Lower,
                    _ => return Err(malformed().into()),
                };
                better = Some((name == bench, bound));
                continue;
            }
            let (key, figure) = content.split_once('=').ok_or_else(malformed)?;
            let key = key.trim().strip_prefix('"').and_then(|key| key.strip_suffix('"'));
            let key = key.ok_or_else(malformed)?.to_owned();
            let figure = figure.trim().parse().map_err(|_| malformed())?;
            let is_fences = key.starts_with("fences.") && figure >= 1.0;
            let slack = if is_fences { FENCES_SLACK } else { 0.0 };
            let (ours, better) = better.ok_or_else(malformed)?;
            if ours && rows.insert(key, Asked { figure, better, slack }).is_some() {
                return Err(format!("asked.toml, line {number}: a second figure: {line}").into());
            }
        }
        Ok(Self { rows })
    }

    /// The target of `row`, if there is one.
    pub fn get(&self, row: &str) -> Option<Asked> {
        self.rows.get(row).copied()
    }

    /// Names of all rows with targets.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read() {
        let asked = AskedRows::of("kv").unwrap();
        let put = asked.get("put.sync.1t.vs_raw").unwrap();
        assert_eq!(put.better, Better::Higher);
        assert!(put.holds(0.9) && !put.holds(0.89));
        let open = asked.get("open.clean").unwrap();
        assert!(open.holds(0.5) && !open.holds(1.5));
        assert_eq!(asked.get("put.sync.1t"), None);
        let fences = AskedRows::of("heap").unwrap().get("fences.alloc.64").unwrap();
        assert!(fences.holds(1.005) && !fences.holds(1.1));
        assert_eq!(AskedRows::of("other").unwrap().names().count(), 0);
    }

    #[test]
    fn malformed_lines_are_named() {
        let texts = ["x", "\"a\" = 1", "[kv]", "[kv.at_most]\na = 1", "[kv.at_most]\n\"a\" = b"];
        for text in texts {
            let error = AskedRows::parse(text, "kv").unwrap_err().to_string();
            assert!(error.contains(&format!("line {}", text.lines().count())), "{error}");
        }
        assert!(AskedRows::parse("[kv.at_most]\n\"a\" = 1\n\"a\" = 2", "kv").is_err());
    }
}
