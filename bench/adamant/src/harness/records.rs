//! Real records, of a file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::data::Record;
use crate::harness::error::Result;
use crate::harness::key::{KEY_BYTES_MAX, Key};

/// Bytes of a repeated key that its prefix takes at the most.
const PREFIX_BYTES_MAX: usize = 12;

/// Reads JSON lines of `{"key": .., "value": ..}`: those of `path`, or the repository's sample.
///
/// # Errors
/// There is no such file, or it holds anything else, or keys too long to get a prefix.
pub fn read_records(path: Option<&Path>) -> Result<Vec<Record>> {
    let sample = || {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        package.join("../../interfaces/cli/data/packages-sample.jsonl")
    };
    let path: PathBuf = path.map_or_else(sample, Path::to_owned);
    let text = fs::read_to_string(&path)?;
    let mut records = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let malformed = |what: &str| format!("{}, line {number}: {what}", path.display());
        let record: serde_json::Value = serde_json::from_str(line)?;
        let text_of = |name: &str| {
            record[name].as_str().ok_or_else(|| malformed(&format!("{name} is no string")))
        };
        let (key, value) = (text_of("key")?, text_of("value")?);
        if key.len() + PREFIX_BYTES_MAX > KEY_BYTES_MAX {
            return Err(malformed("the key is too long for this benchmark").into());
        }
        records.push((Key::new(key.as_bytes()), value.as_bytes().to_vec()));
    }
    if records.is_empty() {
        return Err(format!("{} has no records", path.display()).into());
    }
    Ok(records)
}
