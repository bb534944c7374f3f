//! Trees on a real heap: transactions, undone ones, reopening, and no block leaked.

use std::sync::Arc;

use adamant_heap::{Durability, Heap, Transaction};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use adamant_trees::{Bplus, Error, Operation, OrderedMap, Part};

use crate::common::model::Model;
use crate::common::shapes::{SHAPES, Shape};
use crate::common::{for_each_tree, open};

fn blocks(heap: &Heap) -> u64 {
    let report = heap.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    report.blocks
}

for_each_tree! {
    changes_match_a_model_over_reopenings
    values_are_overwritten_where_they_lie_unless_lent
    #[ignore = "a minute with optimisation: cargo test --release -- --ignored a_million"]
    a_million_changes
}

/// The block of the entry of a tree's only pair.
fn entry_of<T: OrderedMap>(heap: &Heap, tree: T) -> u64 {
    let view = heap.view().unwrap();
    let (mut last, mut entry) = (0, None);
    tree.parts(&view, &mut |part| match part {
        Part::Block(block) => last = block,
        Part::Value(_) => entry = Some(last),
        _ => {}
    })
    .unwrap();
    entry.expect("a pair")
}

/// Values of up to 4 KiB are replaced by others with the same block size, in commits of their own
/// and within one.
fn values_are_overwritten_where_they_lie_unless_lent<T: OrderedMap>() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    let create = |tx: &mut Transaction<'_>| T::create(tx);
    let tree = heap.transaction(Durability::Buffered, create).unwrap();
    let put = |len: usize, byte: u8| {
        let put = |tx: &mut Transaction<'_>| {
            tree.insert(tx, b"key", &vec![!byte; len])?;
            assert_eq!(tree.get(tx, b"key")?, Some(&vec![!byte; len][..]));
            let operation = Operation { key: b"key", value: Some(&vec![byte; len]) };
            tree.apply_sorted(tx, &[operation], &mut Vec::new())
        };
        heap.transaction(Durability::Buffered, put).unwrap();
        let view = heap.view().unwrap();
        assert_eq!(tree.get(&view, b"key").unwrap(), Some(&vec![byte; len][..]));
        assert_eq!(tree.len(&view).unwrap(), 1);
    };
    // Blocks have 208 or 224 bytes: a value that needs the other size is in a new entry.
    for (len, is_same) in [(190, false), (200, true), (187, true), (203, false), (202, false)] {
        let entry = (len != 190).then(|| entry_of(&heap, tree));
        put(len, 1);
        assert_eq!(entry == Some(entry_of(&heap, tree)), is_same, "{len} bytes");
    }
    for len in [0, 1, 20, 127, 1024, 4096, 4097] {
        put(len, 1);
        let entry = entry_of(&heap, tree);
        put(len, 2);
        let is_same = entry_of(&heap, tree) == entry;
        assert!(is_same || len > 4096, "{len} bytes are overwritten where they lie");
        if len < 20 {
            // A slice of so few bytes is a copy.
            continue;
        }
        let (entry, blocks_before) = (entry_of(&heap, tree), blocks(&heap));
        let slice = heap.view().unwrap().lend(entry, len + 3).unwrap();
        let lent = slice.to_vec();
        put(len, 3);
        assert_ne!(entry_of(&heap, tree), entry, "somebody looks at it");
        assert_eq!(slice, lent);
        assert_eq!(blocks(&heap), blocks_before);
    }
}

/// A million random operations; the heap is closed or dropped and opened again after each 25,000.
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

/// Log bytes of a put of 20 + 100 bytes and of a batch of them.
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
