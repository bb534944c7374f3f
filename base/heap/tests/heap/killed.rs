//! A heap after the death of its process: the next process finds a copy of the files as they are at
//! some moment. (Crashes of the medium are tested in `testing/sim`.)

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant_heap::{
    Directory, Durability, Error, Heap, Options, Read, Recovery, Salvage, Transaction, Write,
};
use fastrand::Rng;

use crate::files::{directory_of, files_of, new_directory};

/// The expected contents of blocks.
type Model = BTreeMap<u64, Vec<u8>>;

const SIZES: [usize; 8] = [8, 24, 100, 1000, 4096, 5000, 33_000, 200_000];
const PLANNED: Error = Error::Misuse { what: "planned" };

fn options() -> Options {
    let mut options = Options::default();
    options.background = false;
    options.log_bytes_max = 4 << 20;
    options.address_bytes_max = 1 << 30;
    options
}

fn open(directory: &Arc<dyn Directory>) -> Result<(Heap, Recovery), Error> {
    Heap::open(Arc::clone(directory), options())
}

fn assert_holds(heap: &Heap, model: &Model) {
    assert!(holds(heap, model));
    let report = heap.check().expect("can be checked");
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.blocks, model.len() as u64, "no block leaks, none is lost");
}

fn holds(heap: &Heap, model: &Model) -> bool {
    reads(&heap.view().expect("open"), model)
}

fn reads(read: &impl Read, model: &Model) -> bool {
    model.iter().all(|(block, bytes)| {
        read.block(*block).is_ok_and(|found| found.get(..bytes.len()) == Some(bytes))
    })
}

fn any(model: &Model, random: &mut Rng) -> Option<u64> {
    (!model.is_empty()).then(|| *model.keys().nth(random.usize(..model.len())).expect("there"))
}

/// Changes a block, and the model.
fn change(tx: &mut Transaction<'_>, model: &mut Model, random: &mut Rng) -> Result<(), Error> {
    let tag = random.u8(..);
    match (random.u8(..8), any(model, random)) {
        (0..3, _) | (_, None) => {
            let bytes = SIZES[random.usize(..SIZES.len())];
            let block = tx.reserve(bytes as u64)?;
            tx.write(block, 0, bytes)?.fill(tag);
            model.insert(block, vec![tag; bytes]);
        }
        (3..6, Some(block)) => {
            let bytes = model.get_mut(&block).expect("there");
            let at = random.usize(..bytes.len());
            let len = random.usize(1..=(bytes.len() - at).min(3000));
            tx.write(block, at, len)?.fill(tag);
            bytes[at..at + len].fill(tag);
        }
        (6, Some(block)) => {
            tx.free(block)?;
            model.remove(&block);
        }
        (_, Some(block)) => {
            tx.set_root(random.usize(..8), block)?;
        }
    }
    Ok(())
}

/// One transaction, perhaps with a savepoint that fails in it, perhaps failing itself.
fn transact(heap: &Heap, model: &mut Model, random: &mut Rng, cut: impl FnOnce()) {
    let mut planned = model.clone();
    let fails = random.u8(..6) == 0;
    let outcome = heap.transaction(Durability::Sync, |tx| {
        for _ in 0..random.usize(1..6) {
            if random.u8(..4) == 0 {
                let mut inner = planned.clone();
                let fails = random.bool();
                let result = tx.savepoint(|tx| {
                    change(tx, &mut inner, random)?;
                    change(tx, &mut inner, random)?;
                    if fails { Err(PLANNED) } else { Ok(()) }
                });
                match result {
                    Ok(()) => planned = inner,
                    Err(Error::Misuse { .. }) => assert!(fails),
                    Err(other) => return Err(other),
                }
            } else {
                change(tx, &mut planned, random)?;
            }
        }
        cut();
        if fails { Err(PLANNED) } else { Ok(()) }
    });
    match outcome {
        Ok(()) => *model = planned,
        Err(Error::Misuse { .. }) => assert!(fails),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_process_that_dies_anywhere_leaves_all_that_was_committed() {
    for seed in 0..25 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let directory = new_directory();
        let (mut heap, _) = open(&directory).expect("creates");
        let mut current = Arc::clone(&directory);
        let mut model = Model::new();
        for _ in 0..random.usize(1..6) {
            for _ in 0..random.usize(1..40) {
                transact(&heap, &mut model, &mut random, || ());
            }
            // It dies within a transaction, or after one.
            let mut files = None;
            if random.bool() {
                let before = model.clone();
                transact(&heap, &mut model, &mut random, || files = Some(files_of(&current)));
                model = before;
            }
            let files = files.unwrap_or_else(|| files_of(&current));
            drop(heap);
            current = directory_of(&files);
            // Salvage reads the state that recovery would produce.
            let left = Salvage::open(&current).expect("can be read");
            assert!(left.findings().is_empty(), "{:?}", left.findings());
            assert!(reads(&left, &model), "read without recovery");
            assert_eq!(left.allocated_blocks(), Some(model.len() as u64));
            drop(left);
            // A recovery that died after its work leaves nothing to do, and one that died before it
            // leaves everything.
            let again = directory_of(&files_of(&current));
            heap = open(&current).expect("recovers").0;
            assert_holds(&heap, &model);
            let (other, _) = open(&again).expect("recovers");
            assert_holds(&other, &model);
        }
        heap.close().expect("closes");
        drop(heap);
        let (heap, recovery) = open(&current).expect("opens");
        assert!(recovery.was_closed && recovery.records == 0);
        assert_holds(&heap, &model);
    }
}

#[test]
fn threads_that_die_leave_all_that_was_committed() {
    let directory = new_directory();
    let (heap, _) = open(&directory).expect("creates");
    let models = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let heap = &heap;
                scope.spawn(move || {
                    let (mut random, mut model) = (Rng::with_seed(thread), Model::new());
                    for _ in 0..800 {
                        if random.u8(..3) == 0
                            && let Some(block) = any(&model, &mut random)
                        {
                            heap.free(Durability::Sync, block).expect("frees");
                            model.remove(&block);
                            continue;
                        }
                        let bytes = SIZES[random.usize(..4)];
                        let mut reserved = heap.reserve(bytes as u64).expect("room");
                        reserved.fill(thread as u8);
                        model.insert(reserved.offset(), vec![thread as u8; bytes]);
                        heap.publish(Durability::Sync, [reserved]).expect("publishes");
                    }
                    model
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    let model: Model = models.into_iter().flatten().collect();
    let copy = directory_of(&files_of(&directory));
    let (recovered, recovery) = open(&copy).expect("recovers");
    assert!(recovery.records > 0);
    assert_holds(&recovered, &model);
}
