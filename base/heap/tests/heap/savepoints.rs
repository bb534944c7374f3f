//! Savepoints within savepoints that fail, panic or succeed, over blocks that outer levels made,
//! changed and freed: each undoes exactly what it did.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use adamant_heap::{Durability, Error, Heap, Read, Transaction, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use fastrand::Rng;

/// The expected contents of blocks: their length, and the byte that fills them.
type Model = BTreeMap<u64, (usize, u8)>;

const SIZES: [usize; 9] = [8, 24, 64, 100, 130, 1000, 5000, 33_000, 100_000];
pub(crate) const PLANNED: Error = Error::Misuse { what: "planned" };

pub(crate) fn open(directory: &Arc<dyn Directory>) -> Heap {
    let mut options = crate::setup::options();
    options.background = false;
    options.log_bytes_max = 4 << 20;
    options.address_bytes_max = 1 << 30;
    let (heap, _) = Heap::open(Arc::clone(directory), options).expect("opens");
    heap
}

fn assert_holds(read: &impl Read, model: &Model) {
    for (block, (bytes, tag)) in model {
        let found = read.block(*block).expect("a block");
        assert!(found[..*bytes].iter().all(|byte| byte == tag), "block {block:#x}");
    }
}

fn any(model: &Model, random: &mut Rng) -> Option<u64> {
    (!model.is_empty())
        .then(|| random.usize(..model.len()))
        .and_then(|n| model.keys().nth(n))
        .copied()
}

fn work(
    tx: &mut Transaction<'_>,
    random: &mut Rng,
    model: &mut Model,
    depth: u32,
) -> Result<(), Error> {
    for _ in 0..random.u32(1..12) {
        let (step, tag) = (random.u32(..12), random.u8(..));
        match (step, any(model, random)) {
            (4..=6, Some(block)) => {
                tx.free(block)?;
                model.remove(&block);
                assert!(tx.free(block).is_err(), "freed twice");
            }
            (7..=8, Some(block)) => {
                let bytes = model[&block].0;
                // No block is borrowed here.
                let target = if step == 7 { tx.overwrite(block, 0, bytes)? } else { None };
                match target {
                    Some(target) => target.fill(tag),
                    None => tx.write(block, 0, bytes)?.fill(tag),
                }
                model.insert(block, (bytes, tag));
            }
            (9.., _) if depth < 4 => savepoint(tx, random, model, depth),
            _ => {
                let bytes = SIZES[random.usize(..SIZES.len())];
                let block = tx.reserve(bytes as u64)?;
                tx.write(block, 0, bytes)?.fill(tag);
                assert!(model.insert(block, (bytes, tag)).is_none(), "given out twice");
            }
        }
    }
    Ok(())
}

/// Changes the heap and its model, or undoes that at its end. With `copied_bytes_max` as a chunked
/// transaction.
pub(crate) fn transact<M: Clone>(
    heap: &Heap,
    model: &mut M,
    (fails, copied_bytes_max): (bool, Option<u64>),
    work: impl FnOnce(&mut Transaction<'_>, &mut M) -> Result<(), Error>,
) {
    let mut changed = model.clone();
    let work = |tx: &mut Transaction<'_>| {
        work(tx, &mut changed)?;
        if fails { Err(PLANNED) } else { Ok(()) }
    };
    let outcome = match copied_bytes_max {
        Some(bytes) => heap.chunked_transaction(Durability::Buffered, bytes, work, |_| ()),
        None => heap.transaction(Durability::Buffered, work),
    };
    assert_eq!(outcome.is_err(), fails, "{outcome:?}");
    if !fails {
        *model = changed;
    }
}

fn savepoint(tx: &mut Transaction<'_>, random: &mut Rng, model: &mut Model, depth: u32) {
    let mut inner = model.clone();
    let fate = random.u32(..4);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        tx.savepoint(|tx| {
            work(tx, random, &mut inner, depth + 1)?;
            match fate {
                0 => Err(PLANNED),
                1 => resume_unwind(Box::new(())),
                _ => Ok(()),
            }
        })
    }));
    match outcome {
        Ok(Ok(())) => *model = inner,
        Ok(Err(error)) => assert_eq!(fate, 0, "{error}"),
        Err(panic) if fate != 1 => resume_unwind(panic),
        Err(_) => {}
    }
    assert_holds(tx, model);
}

#[test]
fn each_savepoint_takes_back_exactly_what_it_did() {
    for seed in 0..12 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let mut heap = open(&directory);
        let (mut model, mut pins) = (Model::new(), Vec::new());
        for _ in 0..60 {
            let fails = random.u32(..5) == 0;
            transact(&heap, &mut model, (fails, None), |tx, model| work(tx, &mut random, model, 0));
            assert_holds(&heap.view().expect("ours"), &model);
            match random.u32(..12) {
                0..3 => pins.push(heap.pin().expect("ours")),
                3..5 => pins.clear(),
                5..7 => {
                    let report = heap.check().expect("can be checked");
                    assert!(report.is_clean(), "{:?}", report.findings);
                    assert_eq!(report.blocks as usize, model.len(), "blocks leaked or lost");
                }
                7 => {
                    pins.clear();
                    drop(heap);
                    heap = open(&directory);
                    assert_holds(&heap.view().expect("ours"), &model);
                }
                _ => {}
            }
        }
    }
}

/// A savepoint writes to a block of its transaction and frees it: another thread reserves and fills
/// it, and the transaction is undone.
#[test]
fn what_was_given_back_is_not_put_back() {
    for (len, frees_within) in [(100, false), (100, true), (5000, false), (5000, true)] {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let heap = open(&directory);
        let mut reserved = None;
        let outcome = heap.transaction(Durability::Buffered, |tx| -> Result<(), Error> {
            let block = tx.reserve(100_000)?;
            tx.savepoint(|tx| -> Result<(), Error> {
                tx.write(block, 30, len)?.fill(1);
                if frees_within { tx.free(block) } else { Ok(()) }
            })?;
            if !frees_within {
                tx.free(block)?;
            }
            let reserve = || heap.reserve(100_000);
            let other = std::thread::scope(|scope| scope.spawn(reserve).join().expect("no panic"));
            let mut reservation = other?;
            assert_eq!(reservation.offset(), block, "what was given back is what is tried");
            reservation.fill(7);
            reserved = Some(reservation);
            Err(PLANNED)
        });
        assert!(outcome.is_err());
        let reservation = reserved.expect("reserved");
        let kept = reservation.iter().take_while(|byte| **byte == 7).count();
        assert_eq!(kept, 100_000, "{len} bytes were written, freed within: {frees_within}");
    }
}
