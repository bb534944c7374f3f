//! A tree behaves like a `BTreeMap`, whatever the shape of its keys, and stays valid.

use std::collections::BTreeSet;

use adamant_heap::access::Write;
use adamant_trees::{Bplus, Btree, Cursor, Error, OrderedMap, Pair, Seek};

use crate::common::mock::Mock;
use crate::common::model::Model;
use crate::common::shapes::{SHAPES, Shape};
use crate::common::{built, for_each_tree};

for_each_tree! {
    changes_and_scans_match_a_model
    batches_match_a_model
    the_empty_key_is_a_key
    impossible_keys_change_nothing
    an_empty_tree_has_nothing
    tall_trees_grow_and_shrink
    runs_of_any_length_go_and_come
}

fn changes_and_scans_match_a_model<T: OrderedMap>() {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let mut heap = Mock::new();
        let mut model = Model::<T>::new(&mut heap, shape, seed as u64).unwrap();
        let blocks_before = heap.block_count();
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
        assert_eq!(heap.block_count(), blocks_before, "what a new tree has is left");
        model.change(&mut heap, changes / 10, 20).unwrap();
        model.tree.destroy(&mut heap).unwrap();
        assert_eq!(heap.block_count(), 0, "nothing is left");
    }
}

/// An empty tree as format 1 had it: tagged by hashes.
fn make_format_1(heap: &mut Mock, tree: Bplus) {
    let head = heap.bytes_mut(tree.head());
    head[7] = 1;
    let root = u64::from_le_bytes(*head[8..].first_chunk().unwrap());
    heap.bytes_mut(root)[56..64].fill(0);
}

#[test]
fn a_tree_of_format_1_stays_one_and_matches_a_model() {
    for (seed, shape) in SHAPES.into_iter().filter(|shape| *shape != Shape::Words).enumerate() {
        let mut heap = Mock::new();
        let mut model = Model::<Bplus>::new(&mut heap, shape, 200 + seed as u64).unwrap();
        make_format_1(&mut heap, model.tree);
        let changes = shape.changes();
        for removes in [5, 60, 10, 80] {
            model.change(&mut heap, changes / 8, removes).unwrap();
            model.batch(&mut heap, changes / 8, removes).unwrap();
            heap.commit();
            model.compare_ranges(&heap, 50).unwrap();
        }
        // The check refuses ordered tags in a tree of format 1.
        model.compare(&heap).unwrap();
        model.tree.clear(&mut heap).unwrap();
        model.map.clear();
        model.change(&mut heap, changes / 10, 20).unwrap();
        assert_eq!(heap.bytes_mut(model.tree.head())[7], 1);
    }
}

/// A scan of ten entries reads those, and few of the others in its leaves: the tags say where it
/// begins, and in which order the entries are.
#[test]
fn a_short_scan_reads_few_other_entries() {
    const SCANS: u64 = 500;
    let (heap, tree) = built::<Bplus>(20_000, |number| {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().to_vec()
    });
    let mut random = fastrand::Rng::with_seed(9);
    let height = tree.check(&heap).unwrap().height;
    heap.reads.set(0);
    for _ in 0..SCANS {
        let mut cursor = tree.cursor(&heap);
        cursor.seek(Seek::Before(&random.u64(..).to_le_bytes())).unwrap();
        for _ in 0..10 {
            cursor.next().unwrap();
        }
    }
    let reads = heap.reads.get() as f64 / SCANS as f64;
    println!("{reads} blocks a scan, height {height}");
    assert!(reads < 10.0 + 4.0 * (height + 1) as f64, "{reads} blocks");
}

fn batches_match_a_model<T: OrderedMap>() {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let mut heap = Mock::new();
        let mut model = Model::<T>::new(&mut heap, shape, 100 + seed as u64).unwrap();
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

/// The empty key was refused, and is now the lowest key of all: alone, before others, and as an
/// excluded bound.
fn the_empty_key_is_a_key<T: OrderedMap>() {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    let blocks = heap.block_count();
    assert!(!tree.insert(&mut heap, b"", b"alone").unwrap());
    assert_eq!(tree.get(&heap, b"").unwrap(), Some(&b"alone"[..]));
    assert_eq!(tree.check(&heap).unwrap().pairs, 1);
    for number in 0..3000_u32 {
        // Keys of zeros among others: heads of keys are padded with zeros.
        let key = number.swap_bytes().to_le_bytes();
        tree.insert(&mut heap, &key[..1 + number as usize % 4], b"other").unwrap();
    }
    assert!(tree.insert(&mut heap, b"", &[7; 5000]).unwrap(), "it was there");
    let first = tree.first(&heap).unwrap().unwrap();
    assert_eq!((first.0, first.1.len()), (&b""[..], 5000));
    let mut cursor = tree.cursor(&heap);
    cursor.seek(Seek::After(b"")).unwrap();
    assert_eq!(cursor.next().unwrap().unwrap().0, b"\0");
    assert_eq!(cursor.previous().unwrap().unwrap().0, b"\0");
    assert_eq!(cursor.previous().unwrap().unwrap().0, b"");
    assert!(cursor.previous().unwrap().is_none());
    cursor.seek(Seek::Before(b"")).unwrap();
    assert_eq!(cursor.next().unwrap().unwrap().0, b"");
    drop(cursor);
    tree.check(&heap).unwrap();
    assert!(tree.remove(&mut heap, b"").unwrap() && !tree.remove(&mut heap, b"").unwrap());
    assert_eq!(tree.first(&heap).unwrap().unwrap().0, b"\0");
    tree.clear(&mut heap).unwrap();
    let pairs: [Pair<'_>; 3] = [(b"", b"1"), (b"\0", b"2"), (b"\0\0", b"3")];
    assert_eq!(tree.load_sorted(&mut heap, &pairs).unwrap(), 0);
    assert_eq!(tree.check(&heap).unwrap().pairs, 3);
    for (key, value) in pairs {
        assert_eq!(tree.get(&heap, key).unwrap(), Some(value));
        assert!(tree.remove(&mut heap, key).unwrap());
    }
    assert_eq!(heap.block_count(), blocks);
}

fn impossible_keys_change_nothing<T: OrderedMap>() {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    let blocks = heap.block_count();
    let long = vec![0; 65_536];
    assert!(matches!(
        tree.insert(&mut heap, &long, b"value"),
        Err(Error::KeyTooLong { bytes: 65_536, bytes_max: 65_535 })
    ));
    assert!(tree.insert(&mut heap, &long[1..], b"value").is_ok());
    assert!(tree.get(&heap, b"").unwrap().is_none());
    assert!(tree.get(&heap, &long).unwrap().is_none());
    assert!(!tree.remove(&mut heap, &long).unwrap());
    assert!((blocks + 1..=blocks + 2).contains(&heap.block_count()), "an entry, maybe a node");
    assert_eq!(tree.check(&heap).unwrap().pairs, 1);
}

fn an_empty_tree_has_nothing<T: OrderedMap>() {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    assert!(tree.is_empty(&heap).unwrap());
    assert!(tree.first(&heap).unwrap().is_none());
    assert!(tree.last(&heap).unwrap().is_none());
    assert!(tree.cursor(&heap).next().unwrap().is_none());
    assert!(tree.cursor(&heap).previous().unwrap().is_none());
    assert_eq!(T::open(&heap, tree.head()).unwrap().head(), tree.head());
    let other = heap.reserve_zeroed(4096).unwrap();
    assert!(matches!(T::open(&heap, other), Err(Error::NotThisTree { .. })));
}

fn tall_trees_grow_and_shrink<T: OrderedMap>() {
    grow_and_shrink::<T>(45_000);
}

/// Three levels of inner nodes.
#[test]
fn a_bplus_tree_of_three_levels_grows_and_shrinks() {
    assert_eq!(grow_and_shrink::<Bplus>(180_000), 3);
}

/// Grown and shrunk at random and from either end, with keys that share long prefixes. Returns the
/// height that it had.
fn grow_and_shrink<T: OrderedMap>(count: u64) -> u64 {
    let key = |number: u64| format!("a/long/shared/start/{:04}/{:04}", number / 700, number % 700);
    let mut height = 0;
    for (seed, rising) in [(1, None), (2, Some(true)), (3, Some(false))] {
        println!("seed {seed}");
        let mut heap = Mock::new();
        let tree = T::create(&mut heap).unwrap();
        let mut numbers: Vec<u64> = (0..count).collect();
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
        height = report.height;
        for number in (0..count).step_by(101) {
            let value = tree.get(&heap, key(number).as_bytes()).unwrap();
            assert_eq!(value, Some(&number.to_le_bytes()[..]));
        }
        let mut left = count;
        for chunk in numbers.chunks(count as usize / 9) {
            for number in chunk {
                assert!(tree.remove(&mut heap, key(*number).as_bytes()).unwrap());
            }
            left -= chunk.len() as u64;
            assert_eq!(tree.check(&heap).unwrap().pairs, left);
        }
        let report = tree.check(&heap).unwrap();
        assert_eq!((report.height, report.inner_nodes), (0, 0));
    }
    height
}

fn number_key(number: u32) -> [u8; 4] {
    number.swap_bytes().to_le_bytes()
}

/// An empty leaf may stay while it is an only child; it goes when its parent is merged.
#[test]
fn an_empty_leaf_gets_no_neighbours() {
    for is_rising in [true, false] {
        let mut heap = Mock::new();
        let tree = Bplus::create(&mut heap).unwrap();
        let blocks = heap.block_count();
        // 60 full leaves below one inner node, and a leaf of one entry below the other.
        let key = |number: u32| number_key(if is_rising { number } else { 2880 - number });
        for number in 0..=2880 {
            tree.insert(&mut heap, &key(number), b"value").unwrap();
        }
        assert_eq!(tree.check(&heap).unwrap().leaves, 61);
        assert!(tree.remove(&mut heap, &key(2880)).unwrap());
        for number in 0..2880 {
            assert!(tree.remove(&mut heap, &key(number)).unwrap());
            if number % 16 == 15 || number > 2800 {
                assert_eq!(tree.check(&heap).unwrap().pairs, u64::from(2879 - number));
            }
        }
        assert_eq!(heap.block_count(), blocks, "what a new tree has is left");
    }
}

/// Runs of keys come and go, so that inner nodes with one leaf, which may be empty, are merged.
fn runs_of_any_length_go_and_come<T: OrderedMap>() {
    const KEYS: u32 = 12_000;
    for seed in 0..4 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut heap = Mock::new();
        let tree = T::create(&mut heap).unwrap();
        let blocks = heap.block_count();
        let mut model = BTreeSet::new();
        for round in 0..200 {
            let is_fill = round == 0 || random.u32(..100) < 25;
            let len = [KEYS, 48, 200, 1500, 2880][random.usize(usize::from(round > 0)..5)];
            let start = random.u32(..KEYS);
            let mut run: Vec<u32> = (start..KEYS.min(start + len)).collect();
            if round == 0 {
                run = (0..KEYS).collect();
            }
            if random.bool() {
                run.reverse();
            }
            for number in run {
                let key = number_key(number);
                if is_fill {
                    tree.insert(&mut heap, &key, b"value").unwrap();
                    model.insert(number);
                } else {
                    let was_there = tree.remove(&mut heap, &key).unwrap();
                    assert_eq!(was_there, model.remove(&number), "seed {seed}");
                }
            }
            let report = tree.check(&heap).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(report.pairs, model.len() as u64, "seed {seed}");
        }
        for number in 0..KEYS {
            assert_eq!(tree.remove(&mut heap, &number_key(number)).unwrap(), model.remove(&number));
        }
        assert_eq!(heap.block_count(), blocks, "seed {seed}: what a new tree has is left");
    }
}

/// A B-tree of any order behaves like one of the usual order.
#[test]
fn btrees_of_any_order() {
    for order in [0, 8, 9, 10, 32, 64, 1000] {
        let mut heap = Mock::new();
        let mut model = Model::<Btree>::new(&mut heap, SHAPES[0], order as u64).unwrap();
        model.tree.destroy(&mut heap).unwrap();
        model.tree = Btree::create_with_order(&mut heap, order).unwrap();
        for removes in [0, 50, 80, 20, 60] {
            model.change(&mut heap, 4000, removes).unwrap();
            heap.commit();
            model.compare_ranges(&heap, 20).unwrap();
        }
        model.drain(&mut heap).unwrap();
        assert_eq!(heap.block_count(), 1, "the head is left");
    }
}
