//! Overlapping ranges of any length, anywhere in blocks, in savepoints that succeed and fail: the
//! bytes undone and the bytes in a record match a model byte for byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant_heap::{Durability, Error, Read, Transaction, Write};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use fastrand::Rng;

use crate::savepoints::{PLANNED, open, transact};

/// Bytes of blocks: lines that they share with others, blocks of a run and extents.
const SIZES: [usize; 7] = [40, 264, 300, 1000, 4096, 9000, 70_000];

type Model = BTreeMap<u64, Vec<u8>>;

fn assert_holds(read: &impl Read, model: &Model) {
    for (block, bytes) in model {
        let found = &read.block(*block).expect("a block")[..bytes.len()];
        let differs = found.iter().zip(bytes).position(|(found, expected)| found != expected);
        assert_eq!(differs, None, "block {block:#x} of {} bytes", bytes.len());
    }
}

fn work(
    tx: &mut Transaction<'_>,
    random: &mut Rng,
    before: &Model,
    model: &mut Model,
    depth: u32,
) -> Result<(), Error> {
    for _ in 0..random.u32(1..10) {
        if depth < 4 && random.u32(..4) == 0 {
            let (mut inner, fails) = (model.clone(), random.bool());
            let outcome = tx.savepoint(|tx| {
                work(tx, random, before, &mut inner, depth + 1)?;
                if fails { Err(PLANNED) } else { Ok(()) }
            });
            if outcome.is_ok() {
                *model = inner;
            }
            assert_eq!(outcome.is_err(), fails);
            assert_holds(tx, model);
            continue;
        }
        if random.u32(..6) == 0
            && let Some(earlier) = tx.earlier()
        {
            // Admitted views see the state before, whatever was changed, merged and undone until
            // now.
            assert_holds(&earlier, before);
        }
        let chosen = random.usize(..model.len());
        let (block, bytes) = model.iter_mut().nth(chosen).expect("a block");
        let at = random.usize(..bytes.len());
        // Most are short.
        let len_max =
            if random.u32(..3) == 0 { bytes.len() - at } else { 100.min(bytes.len() - at) };
        let (len, tag) = (random.usize(..=len_max), random.u8(..));
        tx.write(*block, at, len)?.fill(tag);
        bytes[at..at + len].fill(tag);
    }
    Ok(())
}

#[test]
fn are_put_back_and_recorded_byte_by_byte() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let mut heap = open(&directory);
        let mut model = heap
            .transaction(Durability::Buffered, |tx| -> Result<Model, Error> {
                let mut model = Model::new();
                for bytes in SIZES.into_iter().chain(SIZES) {
                    let block = tx.reserve(bytes as u64)?;
                    tx.write(block, 0, bytes)?.fill(1);
                    model.insert(block, vec![1; bytes]);
                }
                Ok(model)
            })
            .expect("reserved");
        for round in 0..20 {
            let fails = random.u32(..4) == 0;
            let copied_bytes_max = [None, Some(64 << 10), Some(16 << 20)][random.usize(..3)];
            let before = model.clone();
            transact(&heap, &mut model, (fails, copied_bytes_max), |tx, model| {
                work(tx, &mut random, &before, model, 0)
            });
            assert_holds(&heap.view().expect("ours"), &model);
            if round % 7 == 6 {
                // The log's records are applied over pages that a checkpoint wrote earlier.
                drop(heap);
                heap = open(&directory);
                assert_holds(&heap.view().expect("ours"), &model);
            }
        }
    }
}
