//! `lsm --sources`: parts of the engine, each by itself.
//!
//! Purpose: what merging tables takes, and how much of that is making slices; what a value costs that is
//! handed out as a slice or as a copy; reads of large values from the cache; reads without one.
//! Invariants: all that is read is compared, at least by its length. Times are those that the thread had a
//! processor: files are in the system's cache, so nothing is waited for but others.

mod ground;

mod blobs;
mod gets;
mod merging;

use std::sync::Arc;

use adamant_medium::os::OsDirectory;

use crate::error::Result;
use crate::lsm::sources::ground::{NAME, Place};
use crate::report::Report;

pub use crate::lsm::sources::ground::SourcesSettings;

/// What measures a part.
type Measure = fn(&mut Place<'_>) -> Result<()>;

/// Measures all parts; `tell` is called with what comes next.
///
/// # Errors
/// The first of the engine or the file system, and contents that are not what was written.
pub fn run(settings: &SourcesSettings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut report = Report::new("lsm", NAME);
    for round in 0..settings.rounds {
        let parts: [(&str, Measure); 3] =
            [("merging", merging::measure), ("gets", gets::measure), ("blobs", blobs::measure)];
        for (name, measure) in parts {
            tell(&format!("round {}: {name}", round + 1));
            let folder =
                tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(&settings.path)?;
            let directory = Arc::new(OsDirectory::open(folder.path())?);
            let seed = settings.seed.wrapping_mul(1_000).wrapping_add(u64::from(round));
            measure(&mut Place { settings, directory, report: &mut report, seed })?;
        }
    }
    Ok(report)
}
