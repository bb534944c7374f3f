//! Where the time goes in rows in which Adamant is behind: `notes.toml`, written by hand.

use std::collections::BTreeMap;

use adamant_bench::harness::error::Result;

/// Notes by row.
#[derive(Debug, Default)]
pub struct Notes(BTreeMap<String, String>);

impl Notes {
    /// Reads the file.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn read() -> Result<Self> {
        Self::parse(include_str!("../../notes.toml"))
    }

    fn parse(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse()?;
        let mut notes = BTreeMap::new();
        for (row, note) in table {
            let note = note.as_str().ok_or_else(|| format!("notes.toml: {row} is no text"))?;
            notes.insert(row, note.trim().to_owned());
        }
        Ok(Self(notes))
    }

    /// The note of a row: its own, or that of the rows whose names begin alike; with its name.
    pub fn of(&self, row: &str) -> Option<(&str, &str)> {
        let starts = self.0.iter().filter(|(name, _)| row.starts_with(name.as_str()));
        starts.max_by_key(|(name, _)| name.len()).map(|(name, note)| (name.as_str(), note.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_fits_is_taken() {
        let notes = Notes::parse("\"get\" = 'a'\n\"get.missing\" = 'b'").unwrap();
        assert_eq!(notes.of("get.missing.1t"), Some(("get.missing", "b")));
        assert_eq!(notes.of("get.uniform.1t"), Some(("get", "a")));
        assert_eq!(notes.of("scan.full"), None);
        assert!(Notes::read().is_ok());
    }
}
