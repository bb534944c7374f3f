//! Opening after SIGKILL.
//!
//! A child process opens the engine, puts records that survive its death, and reports each hundred
//! of them; the parent kills it in the middle of that, and opens. All reported records must be
//! there.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::harness::data::Data;
use crate::harness::engine::{Durability, Engine, Setup};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::once;
use crate::harness::report::{Report, Unit};
use crate::harness::text;
use crate::workload::session::Session;

/// First argument of a child process.
pub const CHILD_COMMAND: &str = "kill-child";

/// Puts between two reports of the child.
const REPORT_PUTS: u64 = 100;

/// Factor by which there are fewer puts if each waits for the disk.
const SYNCED_PUTS_DIVISOR: u64 = 20;

/// The task of a child, passed as its arguments.
#[derive(Clone, Copy, Debug)]
struct Task {
    data_seed: u64,
    value_bytes: usize,
    first_index: u64,
    log_bytes_max: u64,
}

/// The weakest durability that survives the death of the process.
fn surviving_durability<E: Engine>() -> Option<Durability> {
    let mut surviving = [Durability::Buffered, Durability::Sync].into_iter();
    surviving.find(|durability| E::IS_PERSISTENT && E::DURABILITIES.contains(durability))
}

/// Kills a child that has reported `puts` puts (a twentieth, if each waits for the disk), and opens
/// the engine. Row: `open.after_kill`.
///
/// # Errors
/// The engine's, or a missing reported record.
pub fn open_after_kill<E: Engine>(
    session: &mut Session<'_, E>,
    report: &mut Report,
    puts: u64,
) -> Result<()> {
    let puts = match surviving_durability::<E>() {
        Some(Durability::Sync) => puts.div_ceil(SYNCED_PUTS_DIVISOR),
        Some(_) => puts,
        None => return Ok(()),
    };
    session.close()?.close()?;
    let setup = session.setup(Durability::Deferred);
    let first_index = session.next();
    let (data_seed, value_bytes) = (session.data.seed(), session.data.value_bytes());
    let log_bytes_max = setup.log_bytes_max;
    let task = Task { data_seed, value_bytes, first_index, log_bytes_max };
    let reported = run_and_kill::<E>(&session.directory, task, puts)?;
    let (engine, opened) = once(|| E::open(&session.directory, setup))?;
    session.resume(engine, setup.durability);
    session.add(report, "open.after_kill", Unit::Milliseconds, opened.milliseconds());
    // Beyond the reported records, there may be more that follow without a gap, and no others.
    let mut next = first_index;
    while let Some(value) = session.engine().get(&session.data.key(next))? {
        ensure(value.as_ref() == session.data.value(next, 0), || {
            format!("{}: record {next} changed when its writer was killed", E::NAME)
        })?;
        next += 1;
    }
    ensure(next >= first_index + reported, || {
        format!("{}: {} of {reported} records survived SIGKILL", E::NAME, next - first_index)
    })?;
    session.set_next(next);
    session.verify("SIGKILL", true)
}

/// Kills a child that has not ended otherwise.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Fails only when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets a child put at least `puts` records, kills it, and returns how many it reported.
fn run_and_kill<E: Engine>(directory: &Path, task: Task, puts: u64) -> Result<u64> {
    let numbers = [task.data_seed, task.value_bytes as u64, task.first_index, task.log_bytes_max];
    let child = Command::new(env::current_exe()?)
        .arg(CHILD_COMMAND)
        .arg(E::NAME)
        .arg(directory)
        .args(numbers.map(|number| number.to_string()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut child = KilledOnDrop(child);
    let output = child.0.stdout.take().ok_or("the child has no output")?;
    let mut reported = 0;
    let mut lines = BufReader::new(output).lines();
    while reported < puts {
        let line = lines.next().ok_or("the child ended before it was killed")??;
        reported = line.parse()?;
    }
    // SIGKILL: the child is in the middle of its next puts.
    child.0.kill()?;
    child.0.wait()?;
    // Its reports before it died count, too.
    for line in lines {
        // The last line may be cut off.
        reported = reported.max(line?.parse().unwrap_or(0));
    }
    Ok(reported)
}

/// The child's work, from the arguments after `CHILD_COMMAND` and the engine's name: puts records
/// until it is killed.
///
/// # Errors
/// The engine's, or invalid arguments.
pub fn child<E: Engine>(arguments: &[String]) -> Result<()> {
    let [directory, numbers @ ..] = arguments else {
        return Err("a child needs a directory".into());
    };
    let [data_seed, value_bytes, first_index, log_bytes_max] = text::numbers(numbers)?;
    let data = Data::new(data_seed, usize::try_from(value_bytes)?);
    let durability = surviving_durability::<E>().ok_or("this engine survives no SIGKILL")?;
    let setup = Setup { durability, log_bytes_max };
    let engine = E::open(Path::new(directory), setup)?;
    let mut output = std::io::stdout().lock();
    let mut done = 0;
    loop {
        let index = first_index + done;
        engine.put(&data.key(index), data.value(index, 0))?;
        done += 1;
        if done % REPORT_PUTS == 0 {
            writeln!(output, "{done}")?;
            output.flush()?;
        }
    }
}
