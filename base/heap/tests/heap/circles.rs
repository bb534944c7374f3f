//! No deadlocks: threads that do every waiting operation at once never wait for each other in a
//! circle (C8).

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use adamant_heap::{Durability, Error, Flushing, Heap, Options, Read, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use fastrand::Rng;

/// Longer than any step takes, on a machine under heavy load.
const PATIENCE: Duration = Duration::from_secs(30);
/// The smallest possible log.
const LOG_BYTES: u64 = 4 << 20;
/// The most blocks of a thread.
const BLOCKS_MAX: usize = 20;

fn open(directory: &Arc<dyn Directory>, flushing: Flushing) -> Heap {
    let mut options = Options::default();
    options.flushing = flushing;
    options.log_bytes_max = LOG_BYTES;
    options.memory_bytes_max = 4 << 20;
    options.address_bytes_max = 1 << 30;
    Heap::open(Arc::clone(directory), options).expect("opens").0
}

/// Blocks that a thread has made: offset, length, and the byte that each consists of.
type Blocks = Vec<(u64, usize, u8)>;

/// A step of a thread.
type Step = fn(&Heap, &mut Rng, &mut Blocks) -> Result<(), Error>;

/// The step of each thread, and how often it runs.
const THREADS: [(&str, Step, usize); 10] = [
    ("commits", commit, 300),
    ("commits, too", commit, 300),
    ("reserves and publishes", publish, 300),
    ("shares commits", combine, 300),
    ("shares commits, too", combine, 300),
    ("holds turns", hold_turn, 200),
    ("makes checkpoints", checkpoint, 100),
    ("shrinks", shrink, 40),
    ("checks", check, 20),
    ("backs up", back_up, 10),
];

fn durability(rng: &mut Rng) -> Durability {
    [Durability::Sync, Durability::Buffered, Durability::Deferred][rng.usize(..3)]
}

/// Makes a block of `bytes` bytes, and frees one if there are many.
fn change(tx: &mut impl Write, (bytes, tag): (usize, u8), blocks: &Blocks) -> Result<u64, Error> {
    let block = tx.reserve(bytes as u64)?;
    tx.write(block, 0, bytes)?.fill(tag);
    if blocks.len() == BLOCKS_MAX {
        tx.free(blocks[0].0)?;
    }
    Ok(block)
}

fn note(blocks: &mut Blocks, block: u64, (bytes, tag): (usize, u8)) {
    if blocks.len() == BLOCKS_MAX {
        blocks.remove(0);
    }
    blocks.push((block, bytes, tag));
}

/// One in eight is more than the log has ready.
fn commit(heap: &Heap, rng: &mut Rng, blocks: &mut Blocks) -> Result<(), Error> {
    let most = if rng.u8(..8) == 0 { 600_000 } else { 20_000 };
    let new = (rng.usize(1..most), rng.u8(..));
    let block = heap.transaction(durability(rng), |tx| change(tx, new, blocks))?;
    note(blocks, block, new);
    Ok(())
}

fn combine(heap: &Heap, rng: &mut Rng, blocks: &mut Blocks) -> Result<(), Error> {
    let new = (rng.usize(1..2_000), rng.u8(..));
    let its = &*blocks;
    let block = heap.transaction_combined(durability(rng), new.0, |tx| change(tx, new, its))?;
    note(blocks, block, new);
    Ok(())
}

fn publish(heap: &Heap, rng: &mut Rng, blocks: &mut Blocks) -> Result<(), Error> {
    let new = (rng.usize(1..50_000), rng.u8(..));
    let mut reserved = heap.reserve(new.0 as u64)?;
    reserved.fill(new.1);
    if rng.u8(..4) == 0 {
        return Ok(());
    }
    let block = reserved.offset();
    heap.publish(durability(rng), [reserved])?;
    if blocks.len() == BLOCKS_MAX {
        heap.free(durability(rng), blocks[0].0)?;
    }
    note(blocks, block, new);
    Ok(())
}

fn hold_turn(heap: &Heap, rng: &mut Rng, blocks: &mut Blocks) -> Result<(), Error> {
    let permit = match rng.u8(..3) {
        0 => heap.take_write_permit_within(Duration::from_millis(1))?,
        _ => Some(heap.take_write_permit()?),
    };
    let Some(permit) = permit else { return Ok(()) };
    if rng.bool() {
        std::thread::yield_now();
    }
    if rng.u8(..4) > 0 {
        let new = (rng.usize(1..30_000), rng.u8(..));
        let mut write = permit.begin_write()?;
        let block = change(&mut *write, new, blocks)?;
        write.commit(durability(rng))?;
        note(blocks, block, new);
    }
    Ok(())
}

fn checkpoint(heap: &Heap, _: &mut Rng, _: &mut Blocks) -> Result<(), Error> {
    heap.checkpoint()
}

fn shrink(heap: &Heap, rng: &mut Rng, _: &mut Blocks) -> Result<(), Error> {
    match rng.u8(..3) {
        0 => heap.shrink().map(drop),
        1 => heap.give_back().map(drop),
        _ => heap.lend_log_space(|| ()),
    }
}

fn check(heap: &Heap, _: &mut Rng, _: &mut Blocks) -> Result<(), Error> {
    let report = heap.check()?;
    assert!(report.is_clean(), "{:?}", report.findings);
    assert!(heap.stats().pool_bytes > 0);
    Ok(())
}

fn back_up(heap: &Heap, _: &mut Rng, _: &mut Blocks) -> Result<(), Error> {
    let target: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    match heap.back_up(target.as_ref()) {
        // Freeing the log takes precedence over the copy, which then fails.
        Err(error) if error.is_out_of_space() => return Ok(()),
        copied => copied?,
    };
    assert!(open(&target, Flushing::Auto).check()?.is_clean());
    Ok(())
}

fn assert_holds(heap: &Heap, blocks: &Blocks) {
    let view = heap.view().expect("not a child");
    for (block, bytes, tag) in blocks {
        let found = &view.block(*block).expect("a block")[..*bytes];
        assert!(found.iter().all(|byte| byte == tag), "{bytes} bytes at {block:#x}");
    }
}

/// Starts a thread, which sends its number after each step.
fn start(
    heap: &Arc<Heap>,
    (number, seed): (usize, u64),
    steps: Sender<usize>,
) -> JoinHandle<Blocks> {
    let heap = Arc::clone(heap);
    std::thread::spawn(move || {
        let (name, step, count) = THREADS[number];
        let (mut rng, mut blocks) = (Rng::with_seed(seed + number as u64), Blocks::new());
        for at in 0..count {
            step(&heap, &mut rng, &mut blocks)
                .unwrap_or_else(|error| panic!("who {name} fails at step {at}: {error}"));
            let _ = steps.send(number);
        }
        assert_holds(&heap, &blocks);
        blocks
    })
}

/// Waits until all have ended; panics when no thread takes a step any more, which is a deadlock.
fn watch(steps: &Receiver<usize>) {
    let mut taken = [0; THREADS.len()];
    loop {
        match steps.recv_timeout(PATIENCE) {
            Ok(number) => taken[number] += 1,
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
            Err(mpsc::RecvTimeoutError::Timeout) => break,
        }
    }
    let waiting = THREADS.iter().zip(taken).filter(|((.., count), taken)| taken < count);
    let names: Vec<_> = waiting.map(|((name, ..), taken)| format!("{name} ({taken})")).collect();
    panic!("in a circle wait who {}", names.join(", "));
}

fn run(flushing: Flushing, seed: u64) {
    println!("{flushing:?}, seed {seed}");
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = Arc::new(open(&directory, flushing));
    let (sender, steps) = mpsc::channel();
    let started = (0..THREADS.len()).map(|number| start(&heap, (number, seed), sender.clone()));
    let threads: Vec<_> = started.collect();
    drop(sender);
    watch(&steps);
    let ended = threads.into_iter().map(|thread| thread.join().expect("no panic"));
    let blocks: Vec<Blocks> = ended.collect();
    let stats = heap.stats();
    assert!(stats.journal.log_appended_bytes > 6 * LOG_BYTES, "{stats:?}");
    heap.close().expect("closes");
    drop(heap);
    let heap = open(&directory, flushing);
    blocks.iter().for_each(|blocks| assert_holds(&heap, blocks));
    assert!(heap.check().expect("checks").is_clean());
}

#[test]
fn nobody_waits_in_a_circle() {
    for (flushing, seed) in [(Flushing::Auto, 107), (Flushing::Volatile, 1070)] {
        run(flushing, seed);
    }
}
