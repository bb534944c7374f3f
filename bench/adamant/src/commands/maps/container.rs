//! A container that threads fill, against its volatile twin.
//!
//! Purpose: workers reserve objects and fill them; one transaction publishes all of them with an
//! array of their offsets. The twin makes boxes and moves them into a vector. Both are filled and
//! emptied several times: the first round touches memory for the first time, and does not count.

use std::sync::Mutex;

use adamant_heap::{Heap, Read, Reservation, Write};

use super::settings::Settings;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::{median, on_threads, thread_seconds};
use crate::harness::place::{self, DURABILITY, ENGINE};
use crate::harness::report::{Report, Unit};

/// Threads that fill.
const WORKERS: u64 = 2;
/// Bytes of an object.
const SIZES: [usize; 2] = [64, 1024];
/// Bytes of all objects.
const BYTES_MAX: u64 = 256 << 20;
/// Rounds that count.
const ROUNDS: usize = 3;

/// Adds, for each size, nanoseconds of an object here and in the twin, and their ratio.
pub(super) fn measure(settings: &Settings, report: &mut Report) -> Result<()> {
    for size in SIZES {
        let objects = settings.pairs.min(BYTES_MAX / size as u64) / WORKERS * WORKERS;
        let directory = place::work(settings.path.as_deref())?;
        let heap = place::open(&directory.path().join("heap"))?;
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=ROUNDS {
            let [persistent, volatile] = &mut times;
            let taken = [fill_heap(&heap, objects, size)?, fill_memory(objects, size)?];
            if round > 0 {
                persistent.push(taken[0]);
                volatile.push(taken[1]);
            }
        }
        heap.close()?;
        let [persistent, volatile] = times.map(median);
        let mut add = |row: &str, unit: Unit, figure: f64| {
            let row = format!("container.{size}{row}");
            report.add(&row, ENGINE, unit, objects, figure);
        };
        add("", Unit::Nanoseconds, persistent * 1e9 / objects as f64);
        add(".twin", Unit::Nanoseconds, volatile * 1e9 / objects as f64);
        add(".by_twin", Unit::Share, persistent / volatile);
    }
    Ok(())
}

/// Makes objects on all threads, with their numbers; returns the processor seconds of the slowest
/// one.
fn on_workers<T: Send>(
    objects: u64,
    make: impl Fn(u64) -> Result<T> + Sync,
) -> Result<(Vec<Mutex<Vec<T>>>, f64)> {
    let each = objects / WORKERS;
    let kept: Vec<_> =
        (0..WORKERS).map(|_| Mutex::new(Vec::with_capacity(each as usize))).collect();
    let slowest = Mutex::new(0.0_f64);
    let panicked = |_| "a measuring thread panicked";
    on_threads(WORKERS as usize, |thread| {
        let mut mine = kept[thread].lock().map_err(panicked)?;
        let start = thread_seconds();
        for number in 0..each {
            mine.push(make(thread as u64 * each + number)?);
        }
        let seconds = thread_seconds() - start;
        let mut slowest = slowest.lock().map_err(|_| "a measuring thread panicked")?;
        *slowest = slowest.max(seconds);
        Ok(each)
    })?;
    let slowest = slowest.into_inner()?;
    Ok((kept, slowest))
}

/// All bytes of an object.
fn fill(object: &mut [u8], number: u64) {
    object.fill(number as u8);
    if let Some(word) = object.first_chunk_mut() {
        *word = number.to_le_bytes();
    }
}

fn number_of(object: &[u8]) -> Option<u64> {
    object.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// Seconds until a container of the heap is full and durable. It is emptied again.
fn fill_heap(heap: &Heap, objects: u64, size: usize) -> Result<f64> {
    let (made, seconds) = on_workers(objects, |number| {
        let mut object: Reservation = heap.reserve(size as u64)?;
        fill(&mut object, number);
        Ok(object)
    })?;
    let start = thread_seconds();
    let array = heap.transaction(DURABILITY, |tx| -> Result<u64> {
        let mut words = Vec::with_capacity(8 * objects as usize);
        for some in made {
            for object in some.into_inner()? {
                words.extend_from_slice(&tx.publish(object)?.to_le_bytes());
            }
        }
        let array = tx.reserve(words.len() as u64)?;
        tx.write(array, 0, words.len())?.copy_from_slice(&words);
        tx.set_root(0, array)?;
        Ok(array)
    })?;
    let seconds = seconds + (thread_seconds() - start);
    let blocks = contents(heap, array, objects)?;
    for some in blocks.chunks(10_000) {
        heap.transaction(DURABILITY, |tx| -> Result<()> {
            some.iter().try_for_each(|block| Ok(tx.free(*block)?))
        })?;
    }
    heap.transaction(DURABILITY, |tx| tx.free(array))?;
    Ok(seconds)
}

/// The objects of a container; all must be there.
fn contents(heap: &Heap, array: u64, objects: u64) -> Result<Vec<u64>> {
    let view = heap.view()?;
    let (words, _) = view.block(array)?.as_chunks::<8>();
    let mut blocks = Vec::with_capacity(objects as usize);
    for (number, word) in (0..objects).zip(words) {
        let block = u64::from_le_bytes(*word);
        let found = number_of(view.block(block)?);
        ensure(found == Some(number), || format!("object {number} is not what was written"))?;
        blocks.push(block);
    }
    ensure(blocks.len() as u64 == objects, || "objects are missing".into())?;
    Ok(blocks)
}

/// Seconds until the twin is full.
fn fill_memory(objects: u64, size: usize) -> Result<f64> {
    let (made, seconds) = on_workers(objects, |number| {
        let mut object = vec![0; size].into_boxed_slice();
        fill(&mut object, number);
        Ok(object)
    })?;
    let start = thread_seconds();
    let mut array: Vec<Box<[u8]>> = Vec::with_capacity(objects as usize);
    for some in made {
        array.extend(some.into_inner()?);
    }
    let seconds = seconds + (thread_seconds() - start);
    for (number, object) in (0..objects).zip(&array) {
        ensure(number_of(object) == Some(number), || "an object is missing".into())?;
    }
    Ok(seconds)
}
