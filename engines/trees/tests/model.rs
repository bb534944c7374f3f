//! A tree does what a `BTreeMap` does, whatever its keys look like, and stays whole meanwhile.

mod common;

use adamant_trees::{Bplus, Cursor, Error, OrderedMap};
use common::mock::Mock;
use common::model::Model;
use common::shapes::SHAPES;

#[test]
fn changes_and_scans_match_a_model() {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let mut heap = Mock::new();
        let mut model = Model::new(&mut heap, shape, seed as u64).unwrap();
        let changes = shape.changes();
        for removes in [5, 30, 80, 10, 60] {
            model.change(&mut heap, changes / 5, removes).unwrap();
            heap.commit();
            model.compare_ranges(&heap, 50).unwrap();
        }
        model.drain(&mut heap).unwrap();
        model.change(&mut heap, changes / 10, 20).unwrap();
        model.tree.clear(&mut heap).unwrap();
        model.map.clear();
        model.compare(&heap).unwrap();
        assert_eq!(heap.block_count(), 2, "head and root are left");
        model.change(&mut heap, changes / 10, 20).unwrap();
        model.tree.destroy(&mut heap).unwrap();
        assert_eq!(heap.block_count(), 0, "nothing is left");
    }
}

#[test]
fn batches_match_a_model() {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let mut heap = Mock::new();
        let mut model = Model::new(&mut heap, shape, 100 + seed as u64).unwrap();
        let changes = shape.changes();
        for removes in [0, 10, 50, 95, 10] {
            for part in [1, 7, changes / 20, changes / 5] {
                model.batch(&mut heap, part, removes).unwrap();
                heap.commit();
            }
        }
        model.drain(&mut heap).unwrap();
    }
}

#[test]
fn impossible_keys_change_nothing() {
    let mut heap = Mock::new();
    let tree = Bplus::create(&mut heap).unwrap();
    let blocks = heap.block_count();
    assert!(matches!(tree.insert(&mut heap, b"", b"value"), Err(Error::KeyEmpty)));
    let long = vec![0; 65_536];
    assert!(matches!(
        tree.insert(&mut heap, &long, b"value"),
        Err(Error::KeyTooLong { bytes: 65_536, bytes_max: 65_535 })
    ));
    assert!(tree.insert(&mut heap, &long[1..], b"value").is_ok());
    assert!(tree.get(&heap, b"").unwrap().is_none());
    assert!(tree.get(&heap, &long).unwrap().is_none());
    assert!(!tree.remove(&mut heap, &long).unwrap());
    assert_eq!(heap.block_count(), blocks + 1);
    assert_eq!(tree.check(&heap).unwrap().pairs, 1);
}

#[test]
fn an_empty_tree_has_nothing() {
    let mut heap = Mock::new();
    let tree = Bplus::create(&mut heap).unwrap();
    assert!(tree.is_empty(&heap).unwrap());
    assert!(tree.first(&heap).unwrap().is_none());
    assert!(tree.last(&heap).unwrap().is_none());
    assert!(tree.cursor(&heap).next().unwrap().is_none());
    assert!(tree.cursor(&heap).previous().unwrap().is_none());
    assert_eq!(Bplus::open(&heap, tree.head()).unwrap(), tree);
    let other = heap.offsets()[0];
    assert!(matches!(Bplus::open(&heap, other), Err(Error::NotThisTree { .. })));
}

/// Three levels of inner nodes, grown and taken down at random and from either end, with keys that
/// share long starts.
#[test]
fn tall_trees_grow_and_shrink() {
    const COUNT: u64 = 180_000;
    let key = |number: u64| format!("a/long/shared/start/{:04}/{:04}", number / 700, number % 700);
    for (seed, rising) in [(1, None), (2, Some(true)), (3, Some(false))] {
        println!("seed {seed}");
        let mut heap = Mock::new();
        let tree = Bplus::create(&mut heap).unwrap();
        let mut numbers: Vec<u64> = (0..COUNT).collect();
        let mut rng = fastrand::Rng::with_seed(seed);
        match rising {
            None => rng.shuffle(&mut numbers),
            Some(true) => {}
            Some(false) => numbers.reverse(),
        }
        for number in &numbers {
            tree.insert(&mut heap, key(*number).as_bytes(), &number.to_le_bytes()).unwrap();
        }
        let report = tree.check(&heap).unwrap();
        println!("{report:?}");
        assert_eq!(report.height, 3);
        for number in (0..COUNT).step_by(101) {
            let value = tree.get(&heap, key(number).as_bytes()).unwrap();
            assert_eq!(value, Some(&number.to_le_bytes()[..]));
        }
        let mut left = COUNT;
        for chunk in numbers.chunks(COUNT as usize / 9) {
            for number in chunk {
                assert!(tree.remove(&mut heap, key(*number).as_bytes()).unwrap());
            }
            left -= chunk.len() as u64;
            assert_eq!(tree.check(&heap).unwrap().pairs, left);
        }
        let report = tree.check(&heap).unwrap();
        assert_eq!((report.height, report.leaves, report.inner_nodes), (0, 1, 0));
    }
}
