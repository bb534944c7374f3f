//! Peak memory.
//!
//! A child process loads the engine and reports its peak: in a process that has done other things
//! before, memory that the allocator kept would hide it.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::data::Data;
use crate::harness::engine::Engine;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::{memory_anonymous_bytes, memory_bytes, memory_peak_bytes};
use crate::harness::report::{Report, Unit};
use crate::workload::load::{MEBIBYTE, put_in_batches};
use crate::workload::session::Session;

/// First argument of a child process.
pub const CHILD_COMMAND: &str = "memory-child";

/// Loads `entries` in a child process. Rows, beyond the memory of an idle process: `memory.peak`,
/// and `memory.anonymous`, of anonymous memory, at the end.
///
/// # Errors
/// The child failed.
pub fn peak_of_load<E: Engine>(
    report: &mut Report,
    directory: &Path,
    data: &Data,
    entries: u64,
    log_bytes_max: u64,
) -> Result<()> {
    let numbers = [data.seed(), data.value_bytes() as u64, entries, log_bytes_max];
    let output = Command::new(env::current_exe()?)
        .arg(CHILD_COMMAND)
        .arg(E::NAME)
        .arg(directory)
        .args(numbers.map(|number| number.to_string()))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    ensure(output.status.success(), || format!("{}: the memory child failed", E::NAME))?;
    let text = String::from_utf8(output.stdout)?;
    let mut figures = text.split_whitespace();
    for row in ["memory.peak", "memory.anonymous"] {
        let bytes: u64 = figures.next().ok_or("the memory child said nothing")?.parse()?;
        report.add(row, E::NAME, Unit::Mebibytes, entries, bytes as f64 / MEBIBYTE);
    }
    Ok(())
}

/// The child's work, from the arguments after `CHILD_COMMAND` and the engine's name: loads, and
/// prints the bytes of the rows.
///
/// # Errors
/// The engine's, or invalid arguments.
pub fn child<E: Engine>(arguments: &[String]) -> Result<()> {
    let [directory, seed, value_bytes, entries, log_bytes_max] = arguments else {
        return Err("a child needs a directory and four numbers".into());
    };
    let data = Data::new(seed.parse()?, value_bytes.parse()?);
    let (idle, idle_anonymous) = (memory_bytes()?, memory_anonymous_bytes()?);
    let entries = entries.parse()?;
    let session =
        Session::<E>::begin(Path::new(directory), &data, entries, log_bytes_max.parse()?, 0, "")?;
    put_in_batches(&session, 0..entries, 0)?;
    session.engine().sync()?;
    let peak = memory_peak_bytes()?.saturating_sub(idle);
    let anonymous = memory_anonymous_bytes()?.saturating_sub(idle_anonymous);
    println!("{peak} {anonymous}");
    Ok(())
}
