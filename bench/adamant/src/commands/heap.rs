//! `heap`: the persistent heap by itself, on each storage backend.
//!
//! Purpose: the groups of rows and their rounds. The program in `bench/peers/pmdk` measures the
//! same rows of libpmemobj, so names, sizes and counts agree with it. Backends take turns in every
//! group, in changing order, so that a slow minute of the machine affects all of them; figures are
//! medians over rounds.

mod medium;
mod settings;
mod ground;

mod actions;
mod blocks;
mod frees;
mod inserts;
mod large;
mod open;
mod post_commit;
mod space;
mod writes;

use serde_json::Value;

use crate::commands::heap::ground::Ground;
use crate::harness::error::{Result, ensure};
use crate::harness::report::Report;

pub use crate::commands::heap::medium::{Costs, CostsEach, Medium, used_bytes};
pub use crate::commands::heap::settings::Settings;

/// The function that measures a group.
type Measure = fn(&mut Ground<'_>) -> Result<()>;

/// All groups, in the order in which they are measured.
const GROUPS: &[(&str, Measure)] = &[
    ("blocks", blocks::measure),
    ("actions", actions::measure),
    ("writes", writes::measure),
    ("frees", frees::measure),
    ("post_commit", post_commit::measure),
    ("inserts", inserts::measure),
    ("space", space::measure),
    ("open", open::measure),
    ("large", large::measure),
];

/// Names of all groups.
pub fn group_names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(name, _)| *name)
}

/// The results.
#[derive(Debug)]
pub struct Outcome {
    /// Rows.
    pub report: Report,
    /// Points of plots, as JSON objects: `curve`, `engine`, `points`.
    pub curves: Vec<Value>,
    /// Why a backend was left out.
    pub notes: Vec<String>,
}

/// Measures everything; `tell` is called with each next step.
///
/// # Errors
/// The first of the heap or the file system, and contents that are not what was written.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Outcome> {
    let wanted = |name: &str| settings.group.as_deref().is_none_or(|group| group == name);
    ensure(group_names().any(wanted), || {
        let names: Vec<&str> = group_names().collect();
        format!("there is no such group; there are {}", names.join(", "))
    })?;
    let report = Report::new("heap", Medium::ALL[0].name());
    let mut outcome = Outcome { report, curves: Vec::new(), notes: Vec::new() };
    let mut able = Vec::new();
    for &medium in &settings.media {
        let Outcome { report, curves, notes } = &mut outcome;
        // Memory is available where the system has a tmpfs.
        match Ground::new(settings, medium, report, curves)?.empty_heap() {
            Ok(heap) => {
                heap.close()?;
                able.push(medium);
            }
            Err(error) => notes.push(format!("no rows of {}: {error}", medium.name())),
        }
    }
    ensure(!able.is_empty(), || outcome.notes.join("; "))?;
    for round in 0..settings.rounds {
        for (name, measure) in GROUPS.iter().filter(|(name, _)| wanted(name)) {
            let mut media = able.clone();
            if round % 2 == 1 {
                media.reverse();
            }
            for medium in media {
                tell(&format!("round {}: {name}: {}", round + 1, medium.name()));
                let Outcome { report, curves, .. } = &mut outcome;
                measure(&mut Ground::new(settings, medium, report, curves)?)?;
            }
        }
    }
    Ok(outcome)
}
