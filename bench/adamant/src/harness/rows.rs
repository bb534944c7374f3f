//! Rows of several processes, as medians.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::error::Result;
use crate::harness::measure::median;

/// What was measured, in the order in which rows came first.
#[derive(Debug, Default)]
pub struct Rows {
    names: Vec<String>,
    units: BTreeMap<String, (String, bool)>,
    samples: BTreeMap<(String, String), Vec<f64>>,
}

impl Rows {
    /// Adds lines of JSON, as rows of their own engine or of the one given.
    ///
    /// # Errors
    /// A line that is no row.
    pub fn add(&mut self, lines: &str, engine: Option<&str>) -> Result<()> {
        for line in lines.lines() {
            let row: Value = serde_json::from_str(line)?;
            let word = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let name = word("row");
            if !self.units.contains_key(&name) {
                self.names.push(name.clone());
                self.units.insert(name.clone(), (word("unit"), word("better") == "higher"));
            }
            let sample = row["median"].as_f64().ok_or_else(|| format!("no figure: {line}"))?;
            let engine = engine.map_or_else(|| word("engine"), str::to_owned);
            self.samples.entry((name, engine)).or_default().push(sample);
        }
        Ok(())
    }

    /// The median of an engine's row, if it has one.
    pub fn median(&self, row: &str, engine: &str) -> Option<f64> {
        let samples = self.samples.get(&(row.to_owned(), engine.to_owned()))?;
        Some(median(samples.clone()))
    }

    /// Rows and their units.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str)> {
        let unit = |name: &String| self.units.get(name).map_or("", |(unit, _)| unit);
        self.names.iter().map(move |name| (name.as_str(), unit(name)))
    }

    /// Whether more is better in a row.
    pub fn is_higher_better(&self, row: &str) -> bool {
        self.units.get(row).is_some_and(|(_, is_higher_better)| *is_higher_better)
    }
}
