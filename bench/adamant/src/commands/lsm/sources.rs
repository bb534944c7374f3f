//! `lsm --sources`: parts of the engine, each by itself.
//!
//! Purpose: the time of merging tables, and the share of making slices in it; the cost of a value
//! that is handed out as a slice or as a copy; reads of large values from the cache; reads without
//! a cache; what compressions save and cost on real records.
//! Invariants: all that is read is verified, at least by its length. Times are processor times of
//! the thread: files are in the system's cache, so there is no other waiting.

mod ground;

mod blobs;
mod compressions;
mod gets;
mod merging;

use std::sync::Arc;

use adamant_medium::system::os::OsDirectory;

use crate::commands::lsm::sources::ground::{NAME, Place};
use crate::harness::error::{Result, ensure};
use crate::harness::report::Report;

pub use crate::commands::lsm::sources::ground::SourcesSettings;

/// The function that measures a part.
type Measure = fn(&mut Place<'_>) -> Result<()>;

/// Measures all parts; `tell` is called with each next step.
///
/// # Errors
/// The first of the engine or the file system, and contents that are not what was written.
pub fn run(settings: &SourcesSettings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut report = Report::new("lsm", NAME);
    for round in 0..settings.rounds {
        let parts: [(&str, Measure); 4] = [
            ("merging", merging::measure),
            ("gets", gets::measure),
            ("blobs", blobs::measure),
            ("compressions", compressions::measure),
        ];
        let is_wanted = |name: &str| settings.part.as_ref().is_none_or(|part| part == name);
        ensure(parts.iter().any(|(name, _)| is_wanted(name)), || {
            format!("there is no part {:?}", settings.part)
        })?;
        for (name, measure) in parts.into_iter().filter(|(name, _)| is_wanted(name)) {
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
