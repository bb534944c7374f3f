//! Rows of reads. The system's own cache is warm in all of them: cold means the engine's.

use std::hint::black_box;

use crate::commands::lsm::ground::Ground;
use crate::harness::data::{Distribution, draw};
use crate::harness::engine::{Direction, LsmEngine};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::Stopwatch;

/// Entries of a short scan.
const SCAN: u64 = 100;
/// Gets for each put of the mixed row of one thread, and threads of the other one.
const GETS_PER_PUT: usize = 19;
const MIXED_THREADS: u64 = 4;

/// With a warm cache of a tenth of the data. Rows: `get.uniform.warm`, `get.zipfian.warm`,
/// `get.missing`, `scan.full`, `scan.short`.
pub(super) fn warm<E: LsmEngine>(ground: &mut Ground<'_, E>) -> Result<()> {
    for (name, distribution) in
        [("uniform", Distribution::Uniform), ("zipfian", Distribution::Zipfian)]
    {
        gets(ground, None, distribution)?;
        gets(ground, Some(&format!("get.{name}.warm")), distribution)?;
    }
    missing(ground)?;
    scans(ground)
}

/// Newly opened, with a cache of a hundredth. Rows: `get.uniform.cold`, `get.zipfian.cold`.
pub(super) fn cold<E: LsmEngine>(ground: &mut Ground<'_, E>) -> Result<()> {
    for (name, distribution) in
        [("uniform", Distribution::Uniform), ("zipfian", Distribution::Zipfian)]
    {
        ground.reopen_cold()?;
        gets(ground, Some(&format!("get.{name}.cold")), distribution)?;
    }
    ground.close()?;
    ground.open(ground.setup())
}

fn amount<E: LsmEngine>(ground: &Ground<'_, E>) -> u64 {
    ground.settings.gets_max.min(ground.set.entries)
}

fn gets<E: LsmEngine>(
    ground: &mut Ground<'_, E>,
    row: Option<&str>,
    distribution: Distribution,
) -> Result<()> {
    let indices = draw(distribution, ground.set.entries, amount(ground), ground.seed);
    let (engine, mut right) = (ground.engine()?, 0);
    let watch = Stopwatch::start();
    for &index in &indices {
        let value = engine.get(&ground.data.key(index))?;
        let expected = ground.data.value(index, ground.version);
        right += u64::from(value.is_some_and(|value| value.as_ref() == expected));
    }
    let measured = watch.measured(indices.len() as u64);
    ensure(right == indices.len() as u64, || {
        format!("{}: {right} of {} gets are right", E::NAME, indices.len())
    })?;
    if let Some(row) = row {
        ground.add_rate(row, measured);
    }
    Ok(())
}

fn missing<E: LsmEngine>(ground: &mut Ground<'_, E>) -> Result<()> {
    let indices = draw(Distribution::Uniform, ground.set.entries, amount(ground), ground.seed + 1);
    let (engine, mut found) = (ground.engine()?, 0);
    let watch = Stopwatch::start();
    for &index in &indices {
        found += u64::from(engine.get(&ground.data.missing_key(index))?.is_some());
    }
    let measured = watch.measured(indices.len() as u64);
    ensure(found == 0, || format!("{}: {found} entries that nobody wrote", E::NAME))?;
    ground.add_rate("get.missing", measured);
    Ok(())
}

fn scans<E: LsmEngine>(ground: &mut Ground<'_, E>) -> Result<()> {
    let mut bytes = 0;
    let mut visit = |key: &[u8], value: &[u8]| bytes += (key.len() + value.len()) as u64;
    let watch = Stopwatch::start();
    let count = ground.engine()?.scan(None, Direction::Ascending, u64::MAX, &mut visit)?;
    let full = watch.measured(count);
    let expected = ground.user_bytes(ground.set.entries);
    ensure(bytes == expected, || format!("{}: scanned {bytes} B of {expected}", E::NAME))?;
    let starts =
        draw(Distribution::Uniform, ground.set.entries, amount(ground) / SCAN, ground.seed + 2);
    let watch = Stopwatch::start();
    let mut count = 0;
    for &index in &starts {
        let key = ground.data.key(index);
        let mut visit = |key: &[u8], value: &[u8]| _ = black_box((key, value));
        count += ground.engine()?.scan(Some(&key), Direction::Ascending, SCAN, &mut visit)?;
    }
    let short = watch.measured(count);
    ground.add_rate("scan.full", full);
    ground.add_rate("scan.short", short);
    Ok(())
}

/// Gets, and a put of one entry behind every so many of them; returns how many gets were wrong.
fn get_and_put<E: LsmEngine>(
    ground: &Ground<'_, E>,
    indices: &[u64],
    gets_per_put: usize,
) -> Result<u64> {
    let (engine, mut wrong) = (ground.engine()?, 0);
    for (number, &index) in indices.iter().enumerate() {
        let (key, value) = (ground.data.key(index), ground.data.value(index, ground.version));
        if number % (gets_per_put + 1) == gets_per_put {
            engine.put(&key, value)?;
        } else {
            wrong += u64::from(engine.get(&key)?.is_none_or(|found| found.as_ref() != value));
        }
    }
    Ok(wrong)
}

/// Gets, zipfian, and for every 19 of them a put of one entry. Row: `mixed`.
pub(super) fn mixed<E: LsmEngine>(ground: &mut Ground<'_, E>) -> Result<()> {
    let indices = draw(Distribution::Zipfian, ground.set.entries, amount(ground), ground.seed + 3);
    let watch = Stopwatch::start();
    let wrong = get_and_put(ground, &indices, GETS_PER_PUT)?;
    let measured = watch.measured(indices.len() as u64);
    ensure(wrong == 0, || format!("{}: {wrong} gets are wrong", E::NAME))?;
    ground.add_rate("mixed", measured);
    Ok(())
}

/// Gets and puts of one entry in turns, zipfian, from four threads. Row: `mixed.50_50.4t`.
pub(super) fn mixed_by_threads<E: LsmEngine>(ground: &mut Ground<'_, E>) -> Result<()> {
    let each = amount(ground) / MIXED_THREADS;
    let drawn = (0..MIXED_THREADS).map(|thread| {
        draw(Distribution::Zipfian, ground.set.entries, each, ground.seed + 4 + thread)
    });
    let drawn: Vec<_> = drawn.collect();
    let (watch, shared) = (Stopwatch::start(), &*ground);
    let wrong = std::thread::scope(|scope| {
        let work = |indices| scope.spawn(move || get_and_put(shared, indices, 1));
        let threads: Vec<_> = drawn.iter().map(|indices| work(&indices[..])).collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
        results.sum::<Result<u64>>()
    })?;
    let measured = watch.measured(MIXED_THREADS * each);
    ensure(wrong == 0, || format!("{}: {wrong} gets are wrong", E::NAME))?;
    ground.add_rate("mixed.50_50.4t", measured);
    Ok(())
}
