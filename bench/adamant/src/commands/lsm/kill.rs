//! Opening after a kill: a child writes half a memtable and is ended by SIGKILL.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::commands::lsm::ground::Ground;
use crate::harness::data::{Data, KEY_BYTES};
use crate::harness::engine::{LsmEngine, LsmSetup};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::once;
use crate::harness::report::Unit;
use crate::harness::text;

/// First argument of a child process.
pub const CHILD_COMMAND: &str = "lsm-child";

/// Entries of a commit.
const BATCH: usize = 100;

/// Row: `open.kill`.
pub(super) fn open_after_kill<E: LsmEngine>(ground: &mut Ground<'_, E>) -> Result<()> {
    ground.close()?;
    let setup = ground.setup();
    let record_bytes = (KEY_BYTES + ground.set.value_bytes) as u64;
    let count = (setup.memtable_bytes / 2 / record_bytes).min(ground.set.entries);
    ground.version += 1;
    let numbers = [
        setup.cache_bytes,
        setup.memtable_bytes,
        ground.data.seed(),
        ground.set.value_bytes as u64,
        count,
        ground.version,
    ];
    let mut child = Command::new(env::current_exe()?)
        .args([CHILD_COMMAND, E::NAME])
        .arg(ground.path())
        .args(numbers.map(|number| number.to_string()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("the child has no output")?;
    let line = BufReader::new(output).lines().next();
    child.kill()?;
    child.wait()?;
    line.ok_or("the child ended before it was killed")??;
    let (_, opened) = once(|| ground.open(setup))?;
    ground.add("open.kill", Unit::Milliseconds, opened.milliseconds());
    for index in 0..ground.set.entries.min(2 * count) {
        let version = if index < count { ground.version } else { ground.version - 1 };
        let value = ground.engine()?.get(&ground.data.key(index))?;
        let is_right =
            value.is_some_and(|value| value.as_ref() == ground.data.value(index, version));
        ensure(is_right, || format!("{}: entry {index} is lost by SIGKILL", E::NAME))?;
    }
    Ok(())
}

/// The child's work, from the arguments after `CHILD_COMMAND` and the engine's name: writes,
/// reports it, and waits to be killed.
///
/// # Errors
/// The engine's, or invalid arguments.
pub fn child<E: LsmEngine>(arguments: &[String]) -> Result<()> {
    let [directory, numbers @ ..] = arguments else {
        return Err("a child needs a directory".into());
    };
    let [cache_bytes, memtable_bytes, seed, value_bytes, count, version] = text::numbers(numbers)?;
    let data = Data::half_compressible(seed, usize::try_from(value_bytes)?);
    let engine = E::open_lsm(Path::new(directory), LsmSetup { cache_bytes, memtable_bytes })?;
    let indices: Vec<u64> = (0..count).collect();
    for chunk in indices.chunks(BATCH) {
        let entries: Vec<_> =
            chunk.iter().map(|&index| (data.key(index), data.value(index, version))).collect();
        engine.put_batch(&entries)?;
    }
    writeln!(std::io::stdout(), "written")?;
    // Until the other side ends, if not this one before.
    std::io::stdin().lines().for_each(drop);
    Ok(())
}
