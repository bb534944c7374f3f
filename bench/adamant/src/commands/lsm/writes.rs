//! Rows of writes: rates, bytes written to the disk, maximum commit latency.

use std::time::Instant;

use crate::commands::lsm::ground::{Ground, MEBIBYTE};
use crate::harness::data::shuffled;
use crate::harness::engine::LsmEngine;
use crate::harness::error::{Result, ensure};
use crate::harness::key::Key;
use crate::harness::measure::{
    Measured, Stopwatch, memory_anonymous_bytes, memory_bytes, memory_peak_bytes,
    memory_peak_reset, settle, written_bytes,
};
use crate::harness::report::Unit;
use crate::workload::soak::waits;

/// Entries of a commit of the load, and of the others.
const LOAD_BATCH: usize = 1_000;
const BATCH: usize = 100;

/// Rows: `load`, `load.settled`, `memory.peak`, `write_amplification.load`, `space.load`.
pub(super) fn load<E: LsmEngine>(ground: &mut Ground<'_, E>) -> Result<()> {
    let idle = (memory_bytes()?, memory_anonymous_bytes()?);
    memory_peak_reset()?;
    let indices: Vec<u64> = (0..ground.set.entries).collect();
    write(ground, "load", &indices, LOAD_BATCH, true)?;
    let peak = memory_peak_bytes()?.saturating_sub(idle.0) as f64 / MEBIBYTE;
    ground.add("memory.peak", Unit::Mebibytes, peak);
    let kept = memory_anonymous_bytes()?.saturating_sub(idle.1) as f64 / MEBIBYTE;
    ground.add("memory.anonymous", Unit::Mebibytes, kept);
    ground.space("load", ground.set.entries)
}

/// All entries in another order, three times. Rows: `overwrite` and so on, and the same of the
/// second and the third time.
pub(super) fn overwrite<E: LsmEngine>(ground: &mut Ground<'_, E>) -> Result<()> {
    let indices: Vec<u64> = shuffled(ground.set.entries).collect();
    for row in ["overwrite", "overwrite.second", "overwrite.third"] {
        ground.version += 1;
        write(ground, row, &indices, BATCH, true)?;
        ground.space(row, ground.set.entries)?;
    }
    Ok(())
}

/// All entries in the order of their keys, into a new engine. Row: `ingest`.
pub(super) fn ingest<E: LsmEngine>(ground: &mut Ground<'_, E>) -> Result<()> {
    let (path, beside) =
        (ground.path().with_file_name("ingested"), ground.path().with_file_name("files"));
    let indices = ground.data.in_key_order(ground.set.entries);
    let engine = E::open_lsm(&path, ground.setup())?;
    let (data, version) = (&ground.data, ground.version);
    let watch = Stopwatch::start();
    let mut entries = indices.iter().map(|&index| (data.key(index), data.value(index, version)));
    engine.ingest(&beside, &mut entries)?;
    let measured = watch.measured(ground.set.entries);
    let count = engine.count()?;
    ensure(count == ground.set.entries, || format!("{}: {count} entries came in", E::NAME))?;
    engine.close()?;
    ground.add_rate("ingest", measured);
    Ok(())
}

/// Every second entry. Rows: `delete` and so on.
pub(super) fn delete<E: LsmEngine>(ground: &mut Ground<'_, E>) -> Result<()> {
    let entries = ground.set.entries;
    let indices: Vec<u64> = shuffled(entries).filter(|index| index % 2 == 0).collect();
    write(ground, "delete", &indices, BATCH, false)?;
    ground.space("delete", entries - indices.len() as u64)
}

/// Writes or removes entries, and waits until the background is idle.
fn write<E: LsmEngine>(
    ground: &mut Ground<'_, E>,
    row: &str,
    indices: &[u64],
    batch: usize,
    keeps: bool,
) -> Result<()> {
    let (before, before_by) = (written_bytes()?, ground.engine()?.written_by()?);
    let (mut commits, mut entries, mut keys) = (waits()?, Vec::new(), Vec::<Key>::new());
    let watch = Stopwatch::start();
    for chunk in indices.chunks(batch) {
        let keyed = chunk.iter().map(|&index| (ground.data.key(index), index));
        if keeps {
            entries
                .extend(keyed.map(|(key, index)| (key, ground.data.value(index, ground.version))));
        } else {
            keys.extend(keyed.map(|(key, _)| key));
        }
        let start = Instant::now();
        if keeps {
            ground.engine()?.put_batch(&entries)?;
        } else {
            ground.engine()?.remove_batch(&keys)?;
        }
        commits.saturating_record(start.elapsed().as_nanos() as u64);
        entries.clear();
        keys.clear();
    }
    let written = watch.measured(indices.len() as u64);
    let busy = settle();
    drop(entries);
    ground.add_rate(row, written);
    let settled = Measured { seconds: written.seconds + busy.as_secs_f64(), ..written };
    ground.add(&format!("{row}.settled"), Unit::ThousandPerSecond, settled.thousand_per_second());
    ground.add(&format!("{row}.commit.longest"), Unit::Milliseconds, commits.max() as f64 / 1e6);
    let often = commits.value_at_quantile(0.999) as f64 / 1e6;
    ground.add(&format!("{row}.commit.p99.9"), Unit::Milliseconds, often);
    let amplification =
        (written_bytes()? - before) as f64 / ground.user_bytes(indices.len() as u64) as f64;
    ground.add(&format!("write_amplification.{row}"), Unit::Share, amplification);
    let written_by = ground.engine()?.written_by()?;
    for ((what, bytes), (_, bytes_before)) in written_by.into_iter().zip(before_by) {
        let share = (bytes - bytes_before) as f64 / ground.user_bytes(indices.len() as u64) as f64;
        if share > 0.0 {
            ground.add(&format!("written.{what}.{row}"), Unit::Share, share);
        }
    }
    Ok(())
}
