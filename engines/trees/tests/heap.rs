//! The same on a real heap: transactions, undone ones, reopening, and no block lost.

mod common;

use std::sync::Arc;

use adamant_heap::{Durability, Heap, Options, Transaction};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use adamant_trees::{Bplus, Error, OrderedMap};
use common::for_each_tree;
use common::model::Model;
use common::shapes::{SHAPES, Shape};

fn open(directory: &Arc<dyn Directory>) -> Heap {
    let mut options = Options::default();
    options.background = false;
    options.address_bytes_max = 4 << 30;
    Heap::open(Arc::clone(directory), options).unwrap().0
}

fn blocks(heap: &Heap) -> u64 {
    let report = heap.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    report.blocks
}

for_each_tree! {
    changes_match_a_model_over_reopenings
    #[ignore = "a minute with optimisation: cargo test --release -- --ignored a_million"]
    a_million_changes
}

/// A million random operations, the heap closed or dropped and opened again after each 25,000.
fn a_million_changes<T: OrderedMap>() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut heap = open(&directory);
    let create = |tx: &mut Transaction<'_>| {
        let model = Model::<T>::new(tx, Shape::Random20, 300)?;
        tx.set_root(0, model.tree.head())?;
        Ok::<_, Error>(model)
    };
    let mut model = heap.transaction(Durability::Buffered, create).unwrap();
    for round in 0..40 {
        let removes = [10, 50, 80, 30][round % 4];
        for _ in 0..5 {
            heap.transaction(Durability::Deferred, |tx| {
                model.change(tx, 4_000, removes)?;
                model.batch(tx, 500, removes)?;
                model.load(tx, 500)
            })
            .unwrap();
        }
        model.compare_ranges(&heap.view().unwrap(), 100).unwrap();
        if round % 2 == 0 {
            heap.close().unwrap();
        } else {
            drop(heap);
        }
        heap = open(&directory);
        model.compare(&heap.view().unwrap()).unwrap();
        blocks(&heap);
    }
}

fn changes_match_a_model_over_reopenings<T: OrderedMap>() {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let mut heap = open(&directory);
        let blocks_before = blocks(&heap);
        let mut model = heap
            .transaction(Durability::Buffered, |tx| {
                let model = Model::<T>::new(tx, shape, 200 + seed as u64)?;
                tx.set_root(0, model.tree.head())?;
                Ok::<_, Error>(model)
            })
            .unwrap();
        let changes = shape.changes();
        for (round, removes) in [5, 40, 90, 20, 60].into_iter().enumerate() {
            for _ in 0..8 {
                // Half of the transactions fail after the same changes, and leave nothing.
                let mut aside = model.clone();
                let undone = heap.transaction(Durability::Deferred, |tx| {
                    aside.change(tx, changes / 80, removes)?;
                    aside.batch(tx, changes / 80, removes)?;
                    Err::<(), Error>(Error::KeyTooLong { bytes: 0, bytes_max: 0 })
                });
                assert!(matches!(undone, Err(Error::KeyTooLong { .. })));
                model.compare(&heap.view().unwrap()).unwrap();
                heap.transaction(Durability::Deferred, |tx| {
                    model.change(tx, changes / 80, removes)?;
                    model.batch(tx, changes / 80, removes)
                })
                .unwrap();
                model.compare(&heap.view().unwrap()).unwrap();
            }
            model.compare_ranges(&heap.view().unwrap(), 20).unwrap();
            assert!(blocks(&heap) > blocks_before);
            if round % 2 == 0 {
                heap.close().unwrap();
            } else {
                drop(heap);
            }
            heap = open(&directory);
            let view = heap.view().unwrap();
            assert_eq!(T::open(&view, view.root(0)).unwrap().head(), model.tree.head());
            model.compare(&view).unwrap();
        }
        heap.transaction(Durability::Buffered, |tx| model.drain(tx)).unwrap();
        heap.transaction(Durability::Buffered, |tx| {
            model.change(tx, changes / 20, 10)?;
            model.tree.destroy(tx)?;
            tx.set_root(0, 0)?;
            Ok::<_, Error>(())
        })
        .unwrap();
        assert_eq!(blocks(&heap), blocks_before, "every block was given back");
    }
}

/// What a put of 20 + 100 bytes and a batch of them take in the log.
#[test]
fn puts_log_little() {
    const COUNT: u64 = 20_000;
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    let tree = heap.transaction(Durability::Buffered, |tx| Bplus::create(tx)).unwrap();
    let mut rng = fastrand::Rng::with_seed(5);
    let mut put = |count: u64| {
        let before = heap.stats().journal;
        for _ in 0..count {
            let key: [u8; 20] = std::array::from_fn(|_| rng.u8(..));
            heap.transaction(Durability::Buffered, |tx| tree.insert(tx, &key, &[9; 100])).unwrap();
        }
        let after = heap.stats().journal;
        (after.log_appended_bytes - before.log_appended_bytes) as f64 / count as f64
    };
    put(COUNT);
    let average = put(COUNT);
    println!("{average:.1} bytes of log for a put of 20+100 B");
    assert!(average <= 200.0, "{average} bytes of log for a put");
}
