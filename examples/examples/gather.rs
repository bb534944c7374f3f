//! Results of worker threads on the bare heap: each thread reserves blocks and fills them, beside
//! the others and without any lock or record; then one transaction publishes all of them. Either
//! the whole of it is there, or nothing: a crash or an error before leaves no block behind.
//!
//! `cargo run -p adamant-examples --example gather`

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;

use adamant_heap::{Durability, Heap, Options, OsDirectory, Read, Reservation, Write};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const THREAD_COUNT: u64 = 4;
/// Chunks of numbers that each thread works out.
const CHUNK_COUNT: u64 = 50;
const CHUNK_NUMBERS: u64 = 512;
const CHUNK_BYTES: u64 = CHUNK_NUMBERS * 8;
/// The root word of the list: 8 bytes for each chunk, where it is.
const LIST_ROOT: usize = 0;

fn open(path: &Path) -> Result<Heap> {
    std::fs::create_dir_all(path)?;
    Ok(Heap::open(Arc::new(OsDirectory::open(path)?), Options::default())?.0)
}

/// What there is to work out: how often `n` becomes `3 n + 1` or `n / 2` before it is 1.
fn steps(number: u64) -> u64 {
    let next = |n: &u64| Some(if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 });
    std::iter::successors(Some(number), next).take_while(|n| *n > 1).count() as u64
}

/// Works out a thread's share of the chunks, each into a block that only this thread knows.
fn work(heap: &Heap, thread: u64, done: &mpsc::Sender<(u64, Reservation)>) -> Result<()> {
    for chunk in (thread..THREAD_COUNT * CHUNK_COUNT).step_by(THREAD_COUNT as usize) {
        let mut reservation = heap.reserve(CHUNK_BYTES)?;
        let first = chunk * CHUNK_NUMBERS + 1;
        for (number, word) in (first..).zip(reservation.chunks_exact_mut(8)) {
            word.copy_from_slice(&steps(number).to_le_bytes());
        }
        done.send((chunk, reservation))?;
    }
    Ok(())
}

/// Has all threads work, and publishes what they did as one.
fn gather(heap: &Heap) -> Result<()> {
    let (done, results) = mpsc::channel();
    thread::scope(|scope| {
        let start = |thread| {
            let done = done.clone();
            scope.spawn(move || work(heap, thread, &done))
        };
        let workers: Vec<_> = (0..THREAD_COUNT).map(start).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => Err("a worker panicked".into()),
        })
    })?;
    drop(done);
    let results: Vec<(u64, Reservation)> = results.into_iter().collect();
    heap.transaction(Durability::Sync, |tx| {
        let list_bytes = results.len() * 8;
        let list = tx.reserve(list_bytes as u64)?;
        for (chunk, reservation) in results {
            let block = tx.publish(reservation)?;
            tx.write(list, chunk as usize * 8, 8)?.copy_from_slice(&block.to_le_bytes());
        }
        tx.set_root(LIST_ROOT, list)
    })?;
    Ok(())
}

/// A little-endian word of a block.
fn word(heap: &impl Read, block: u64, at: u64) -> Result<u64> {
    let at = at as usize;
    let bytes = heap.block(block)?.get(at..at + 8).ok_or("a shorter block than was stored")?;
    Ok(u64::from_le_bytes(bytes.try_into()?))
}

/// The steps of a number, as they were stored.
fn stored(heap: &impl Read, list: u64, number: u64) -> Result<u64> {
    let (chunk, at) = ((number - 1) / CHUNK_NUMBERS, (number - 1) % CHUNK_NUMBERS);
    word(heap, word(heap, list, chunk * 8)?, at * 8)
}

fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("heap");
    let heap = open(&path)?;
    gather(&heap)?;
    // What is reserved and never published is not there.
    drop(heap.reserve(CHUNK_BYTES)?);
    heap.close()?;
    drop(heap);

    let heap = open(&path)?;
    let report = heap.check()?;
    let blocks = THREAD_COUNT * CHUNK_COUNT + 1;
    assert!(report.is_clean() && report.blocks == blocks, "expected {blocks} blocks: {report:?}");
    let view = heap.view()?;
    let list = view.root(LIST_ROOT);
    let last = THREAD_COUNT * CHUNK_COUNT * CHUNK_NUMBERS;
    let mut longest = (0, 0);
    for number in 1..=last {
        let count = stored(&view, list, number)?;
        assert_eq!(count, steps(number), "the steps of {number}");
        longest = longest.max((count, number));
    }
    let (count, number) = longest;
    println!(
        "{blocks} blocks published at once; of 1 to {last}, {number} takes longest: {count} steps"
    );
    Ok(())
}

fn main() -> Result<()> {
    run()
}

#[test]
fn runs() -> Result<()> {
    run()
}
