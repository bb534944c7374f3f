//! A reopened pool is the file until it is stored to: pages that become private memory, one by one
//! or many at once, keep their bytes, while other threads read, keep slices, and fill reservations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use adamant_heap::{Directory, Durability, Error, Heap, Options, Read, Write};
use adamant_medium::system::os::OsDirectory;

const BLOCK_BYTES: usize = 1000;
/// Some 16 MiB: 250 groups of sixteen pages.
const BLOCKS: u64 = 16_000;
const ROUNDS: u64 = 4;

fn open(path: &std::path::Path) -> Heap {
    let directory: Arc<dyn Directory> = Arc::new(OsDirectory::open(path).unwrap());
    let mut options = Options::default();
    options.address_bytes_max = 1 << 30;
    Heap::open(directory, options).unwrap().0
}

/// The blocks of a heap, and the byte that each is full of.
type Model = BTreeMap<u64, u8>;

fn fill(heap: &Heap) -> Model {
    let mut model = Model::new();
    for piece in 0..BLOCKS / 1000 {
        let made = heap.transaction::<_, Error>(Durability::Deferred, |tx| {
            let one = |number: u64| {
                let block = tx.reserve(BLOCK_BYTES as u64)?;
                tx.write(block, 0, BLOCK_BYTES)?.fill((piece + number) as u8);
                Ok((block, (piece + number) as u8))
            };
            (0..1000).map(one).collect::<Result<Vec<_>, Error>>()
        });
        model.extend(made.unwrap());
    }
    model
}

fn verify(heap: &Heap, model: &Model) {
    let view = heap.view().unwrap();
    for (block, byte) in model {
        let bytes = &view.block(*block).unwrap()[..BLOCK_BYTES];
        assert!(bytes.iter().all(|found| found == byte), "block {block:#x} is not full of {byte}");
    }
}

/// Overwrites some blocks, and replaces one in four by a new one that another thread filled.
fn change(heap: &Heap, model: &mut Model, random: &mut fastrand::Rng, changes: usize) {
    let blocks: Vec<u64> = model.keys().copied().collect();
    for _ in 0..changes {
        let (block, byte) = (blocks[random.usize(..blocks.len())], random.u8(..));
        if !model.contains_key(&block) {
            continue;
        }
        if random.u8(..4) > 0 {
            let done = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
                tx.write(block, 0, BLOCK_BYTES)?.fill(byte);
                Ok(())
            });
            // A borrowed block stays as it is.
            if done.is_ok() {
                model.insert(block, byte);
            }
            continue;
        }
        let mut room = heap.reserve(BLOCK_BYTES as u64).unwrap();
        let room = thread::scope(|scope| {
            let filled = scope.spawn(move || {
                room.fill(byte);
                room
            });
            filled.join().unwrap()
        });
        let added = heap.transaction::<_, Error>(Durability::Deferred, |tx| {
            tx.free(block)?;
            tx.publish(room)
        });
        model.remove(&block);
        model.insert(added.unwrap(), byte);
    }
}

/// Reads blocks at random, each of which is full of one byte at any time, and keeps slices of some
/// of them for a while.
fn watch(heap: &Heap, blocks: &[u64], seed: u64, is_done: &AtomicBool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut kept = Vec::new();
    while !is_done.load(Ordering::Relaxed) {
        let block = blocks[random.usize(..blocks.len())];
        let view = heap.view().unwrap();
        // The block may be gone, or a larger one may be in its place.
        let Ok(bytes) = view.part(block, 0, BLOCK_BYTES) else { continue };
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "block {block:#x} is half changed");
        if random.u8(..8) == 0 {
            kept.extend(view.lend(block, BLOCK_BYTES).ok().map(|slice| (slice, bytes[0])));
        }
        drop(view);
        if kept.len() > 20 {
            let (slice, byte) = kept.swap_remove(random.usize(..kept.len()));
            assert!(slice.iter().all(|found| *found == byte), "a slice has changed");
        }
    }
}

#[test]
fn what_is_stored_to_pages_of_the_file_stays_and_all_else_is_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let heap = open(directory.path());
    let mut model = fill(&heap);
    heap.close().unwrap();
    drop(heap);
    for round in 0..ROUNDS {
        println!("round {round}");
        let mut random = fastrand::Rng::with_seed(round);
        let heap = open(directory.path());
        let blocks: Vec<u64> = model.keys().copied().collect();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| watch(&heap, &blocks, round, &is_done));
            // Few at first, so that most groups have one page that was stored to, or none.
            for changes in [50, 500, 2_000] {
                change(&heap, &mut model, &mut random, changes);
                verify(&heap, &model);
            }
            is_done.store(true, Ordering::Relaxed);
        });
        // If it is not closed, the next opening replays the commits that only the log has.
        if round % 2 == 0 {
            heap.close().unwrap();
        }
        drop(heap);
    }
    let heap = open(directory.path());
    verify(&heap, &model);
    assert!(heap.check().unwrap().findings.is_empty(), "a check finds something");
}
