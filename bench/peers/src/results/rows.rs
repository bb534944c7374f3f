//! The rows of a run, as JSON lines.

use std::fs;
use std::path::Path;

use adamant_bench::harness::error::Result;
use serde_json::Value;

/// Those of an earlier run that were stored in `from`, or else what `measure` returns, stored in
/// `path`.
///
/// # Errors
/// Those of `measure` and of the file system; lines that are no JSON.
pub fn read_or_measure(
    from: Option<&Path>,
    path: &Path,
    measure: impl FnOnce() -> Result<Vec<Value>>,
) -> Result<Vec<Value>> {
    if let Some(from) = from {
        let text = fs::read_to_string(from)?;
        return Ok(text
            .lines()
            .map(serde_json::from_str)
            .collect::<std::result::Result<_, _>>()?);
    }
    let rows = measure()?;
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(path, text)?;
    Ok(rows)
}
