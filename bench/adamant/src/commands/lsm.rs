//! `lsm`: the log-structured merge tree: loads, reads, write and space amplification, write stalls.
//!
//! Purpose: rows that any engine of this kind can have, so that peers are measured by the same
//! code. Keys are 20 random bytes; about half of each value can be compressed. Bytes written are
//! those that the system counts for the process, in any file. All that is read is verified.

mod settings;

mod ground;
mod kill;
mod reads;
mod sources;
mod writes;

use crate::harness::engine::LsmEngine;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::{once, settle};
use crate::harness::report::{Report, Unit};
use crate::workload::soak::raw_waits;

use crate::commands::lsm::ground::Ground;

pub use crate::commands::lsm::kill::{CHILD_COMMAND, child};
pub use crate::commands::lsm::settings::{Set, Settings};
pub use crate::commands::lsm::sources::{SourcesSettings, run as run_sources};

/// Engine of the rows of the raw disk.
const RAW: &str = "raw";

/// Measures an engine; `tell` is called with each next step.
///
/// # Errors
/// The first of the engine or the file system, and contents that are not what was written.
pub fn run<E: LsmEngine>(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut report = Report::new("lsm", E::NAME);
    for round in 0..settings.rounds {
        for set in &settings.sets {
            tell(&format!("round {}: {}", round + 1, set.name));
            measure::<E>(settings, set, u64::from(round), &mut report, tell)?;
        }
    }
    Ok(report)
}

/// One set of entries, in a directory of its own.
fn measure<E: LsmEngine>(
    settings: &Settings,
    set: &Set,
    round: u64,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<()> {
    let directory = tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(&settings.path)?;
    let seed = settings.seed.wrapping_mul(1_000).wrapping_add(round);
    let path = directory.path().join("store");
    let mut ground: Ground<'_, E> = Ground::begin(settings, set, seed, &path, report)?;
    tell("load");
    writes::load(&mut ground)?;
    tell("reads");
    reads::warm(&mut ground)?;
    reads::cold(&mut ground)?;
    tell("overwrite");
    writes::overwrite(&mut ground)?;
    let [written, synced] = raw_waits(directory.path(), settings.raw_time)?;
    for (name, waits) in [("write", written), ("fdatasync", synced)] {
        let row = format!("raw.{name}.longest.{}", set.name);
        let longest = waits.max() as f64 / 1e6;
        ground.report.add(&row, RAW, Unit::Milliseconds, waits.len(), longest);
    }
    reads::mixed(&mut ground)?;
    reads::mixed_by_threads(&mut ground)?;
    tell("open");
    ground.reopen("open.clean")?;
    kill::open_after_kill(&mut ground)?;
    tell("delete");
    writes::delete(&mut ground)?;
    let (_, compacted) = once(|| ground.engine()?.compact())?;
    ground.add("compact", Unit::Milliseconds, compacted.milliseconds());
    settle();
    ground.space("compacted", set.entries - set.entries.div_ceil(2))?;
    let count = ground.engine()?.count()?;
    let expected = set.entries / 2;
    ensure(count == expected, || format!("{}: {count} entries, not {expected}", E::NAME))?;
    ground.close()?;
    tell("ingest");
    writes::ingest(&mut ground)
}
