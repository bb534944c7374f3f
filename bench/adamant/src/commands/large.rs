//! `large`: data of five times the memory that the process may have.
//!
//! Purpose: how an engine degrades when its data do not fit: rates, longest waits, bytes read for a
//! get, write and space amplification. Each engine has a process of its own in a control group that
//! limits its memory, the system's cache of its files included; where no such group can be made,
//! data of 30 GB. Keys are 20 random bytes, in random order; about half of each value of 1 KiB can
//! be compressed. Writes survive the death of the process. What is read is verified.

mod settings;

mod subject;

mod rows;

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::engines::adamant::AdamantEngine;
use crate::harness::asked::AskedRows;
use crate::harness::control_group::{self, ControlGroup};
use crate::harness::engine::{Durability, Engine, LsmEngine, LsmSetup, Setup};
use crate::harness::error::Result;
use crate::harness::rows::Rows;
use crate::harness::text;

pub use crate::commands::large::settings::Settings;
use crate::commands::large::settings::VALUE_BYTES;
pub use crate::commands::large::subject::Subject;

/// First argument of a child process.
pub const CHILD_COMMAND: &str = "large-engine";
/// In place of the path of a control group: there is none.
const NO_GROUP: &str = "-";

/// Names of Adamant's engines.
pub const BPLUS: &str = "bplus";
/// The log-structured merge tree.
pub const LSM: &str = "lsm";

/// What was measured.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The rows of all engines.
    pub rows: Rows,
    /// Engines that failed, and how.
    pub failures: Vec<String>,
    /// Entries that were asked for.
    pub entries: u64,
    /// Whether memory was limited.
    pub is_limited: bool,
}

impl Outcome {
    /// A table in Markdown with a column for each name, below a line that says how much was
    /// measured, and above one for each engine that failed.
    pub fn page(&self, names: &[&str]) -> String {
        let limited = if self.is_limited { "a limited memory" } else { "all memory" };
        let mut page = format!("{} entries of 20 + {VALUE_BYTES} B, {limited}.\n\n", self.entries);
        let head = ["row", "unit"].iter().chain(names).map(|&name| name.to_owned());
        let lines: Vec<Vec<String>> = self
            .rows
            .rows()
            .map(|(row, unit)| {
                let cell = |name: &&str| {
                    self.rows.median(row, name).map_or_else(String::new, text::figure)
                };
                let mut line = vec![format!("`{row}`"), unit.to_owned()];
                line.extend(names.iter().map(cell));
                line
            })
            .collect();
        page += &text::table(&head.collect::<Vec<_>>(), &lines);
        for failure in &self.failures {
            page += &format!("{failure}.\n");
        }
        page
    }
}

/// A log-structured merge tree: a quarter of the memory is its cache, a sixteenth a memtable.
///
/// # Errors
/// The engine's.
pub fn open_lsm<E: LsmEngine>(path: &Path, memory_bytes: u64) -> Result<E> {
    let setup = LsmSetup { cache_bytes: memory_bytes / 4, memtable_bytes: memory_bytes / 16 };
    E::open_lsm(path, setup)
}

/// A tree that is mapped into memory, as it comes, with a log of a quarter of the memory.
///
/// # Errors
/// The engine's.
pub fn open_tree<E: Engine>(path: &Path, memory_bytes: u64) -> Result<E> {
    E::open(path, Setup { durability: Durability::Buffered, log_bytes_max: memory_bytes / 4 })
}

/// Measures engines by name, each in a child process of this program; `tell` is called with each
/// next step.
///
/// # Errors
/// When a child cannot be started, or prints what is no row. An engine that fails is in the result.
pub fn run(settings: &Settings, names: &[&str], tell: &mut dyn FnMut(&str)) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for round in 0..settings.rounds {
        for name in names {
            tell(&format!("round {} of {}: {name}", round + 1, settings.rounds));
            let group = ControlGroup::with_memory(settings.memory_bytes);
            outcome.is_limited = group.is_some();
            outcome.entries = settings.entries(outcome.is_limited);
            let directory =
                tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(&settings.path)?;
            let numbers = [
                settings.memory_bytes,
                outcome.entries,
                settings.seed + u64::from(round),
                settings.row_time.as_secs(),
                settings.load_time_max.as_secs(),
            ];
            let output = Command::new(env::current_exe()?)
                .args([CHILD_COMMAND, name])
                .arg(group.as_ref().map_or(Path::new(NO_GROUP), ControlGroup::path))
                .arg(directory.path())
                .args(numbers.map(|number| number.to_string()))
                .stdin(Stdio::null())
                .stderr(Stdio::inherit())
                .output()?;
            if output.status.success() {
                outcome.rows.add(&String::from_utf8(output.stdout)?, None)?;
            } else {
                // Killed by signal 9: the group had no memory left.
                outcome.failures.push(format!("{name} failed: {}", output.status));
            }
        }
    }
    Ok(outcome)
}

/// The work of a child, from the arguments after `CHILD_COMMAND` and the engine's name: prints rows
/// as JSON lines.
///
/// # Errors
/// The engine's, or invalid arguments.
pub fn child<E: Engine>(subject: &Subject<E>, arguments: &[String]) -> Result<()> {
    let [group, path, numbers @ ..] = arguments else {
        return Err("a child needs a control group and a directory".into());
    };
    if group != NO_GROUP {
        control_group::enter(Path::new(group))?;
    }
    let [memory_bytes, entries, seed, row_seconds, load_seconds] = text::numbers(numbers)?;
    let path = Path::new(path);
    let settings = Settings {
        seed,
        memory_bytes,
        row_time: Duration::from_secs(row_seconds),
        load_time_max: Duration::from_secs(load_seconds),
        ..Settings::full(path.to_owned())
    };
    let report = rows::measure(subject, &settings, entries, &path.join("store"))?;
    print!("{}", report.json_lines(&AskedRows::default()));
    Ok(())
}

/// The same for Adamant's own engines; false when `name` is none of theirs.
///
/// # Errors
/// As above.
pub fn own_child(name: &str, arguments: &[String]) -> Result<bool> {
    let subject = match name {
        BPLUS => Subject { name: BPLUS, open: open_tree::<AdamantEngine> },
        LSM => Subject { name: LSM, open: open_lsm },
        _ => return Ok(false),
    };
    child(&subject, arguments)?;
    Ok(true)
}
