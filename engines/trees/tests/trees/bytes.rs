//! Leaf fill, bytes that a split copies, and bytes that a change logs.

use adamant_heap::access::Write;
use adamant_trees::{Bplus, Operation, OrderedMap};

use crate::common::mock::Mock;

fn numbered(number: u64) -> Vec<u8> {
    format!("{number:020}").into_bytes()
}

fn random_key(rng: &mut fastrand::Rng) -> [u8; 20] {
    std::array::from_fn(|_| rng.u8(..))
}

#[test]
fn loads_in_order_fill_leaves() {
    const COUNT: u64 = 50_000;
    type Load = fn(u64) -> Vec<u64>;
    let loads: [(&str, Load); 3] = [
        ("ascending", |count| (0..count).collect()),
        ("descending", |count| (0..count).rev().collect()),
        // Two ascending runs, only one of which is at the end of the tree.
        ("interleaved", |count| {
            (0..count).map(|number| (number & 1) * 1_000_000 + number).collect()
        }),
    ];
    for (name, load) in loads {
        let mut heap = Mock::new();
        let tree = Bplus::create(&mut heap).unwrap();
        for number in load(COUNT) {
            tree.insert(&mut heap, &numbered(number), b"value").unwrap();
        }
        let report = tree.check(&heap).unwrap();
        println!("{name}: {:.3} full, {report:?}", report.leaf_fill());
        assert!(report.leaf_fill() >= 0.9, "{name} filled {}", report.leaf_fill());
    }
}

#[test]
fn batches_in_order_fill_leaves() {
    let mut heap = Mock::new();
    let tree = Bplus::create(&mut heap).unwrap();
    for start in (0..50_000).step_by(1000) {
        let keys: Vec<_> = (start..start + 1000).map(numbered).collect();
        let operations: Vec<_> =
            keys.iter().map(|key| Operation { key, value: Some(b"value") }).collect();
        tree.apply_sorted(&mut heap, &operations, &mut Vec::new()).unwrap();
    }
    assert!(tree.check(&heap).unwrap().leaf_fill() >= 0.9);
}

/// A split of a leaf with values of 4 KB writes a leaf, a separator and some words, and no value
/// again.
#[test]
fn a_split_copies_nothing_out_of_line() {
    let mut heap = Mock::new();
    let tree = Bplus::create(&mut heap).unwrap();
    let mut leaves = 1;
    let mut splits = 0;
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..1500 {
        let entry_bytes = 20 + 4000 + 3;
        tree.insert(&mut heap, &random_key(&mut rng), &[7; 4000]).unwrap();
        assert!(heap.fresh_bytes_of(2000) <= entry_bytes, "one entry is written, no other");
        let logged_bytes = heap.commit() as usize - entry_bytes;
        let report = tree.check(&heap).unwrap();
        if report.leaves > leaves {
            splits += 1;
            assert!(logged_bytes < 3 * 1536, "a split logged {logged_bytes} bytes");
        }
        leaves = report.leaves;
    }
    assert!(splits > 30, "only {splits} splits");
}

#[test]
fn an_insert_logs_little_beside_its_entry() {
    const COUNT: u64 = 100_000;
    let mut heap = Mock::new();
    let tree = Bplus::create(&mut heap).unwrap();
    let mut rng = fastrand::Rng::with_seed(2);
    let mut tail_bytes = 0;
    for number in 0..COUNT {
        tree.insert(&mut heap, &random_key(&mut rng), &[3; 100]).unwrap();
        let bytes = heap.commit();
        if number >= COUNT / 2 {
            tail_bytes += bytes;
        }
    }
    let average = tail_bytes as f64 / (COUNT / 2) as f64;
    let report = tree.check(&heap).unwrap();
    println!("{average:.1} bytes per random insert of 20+100 B; fill {:.3}", report.leaf_fill());
    assert!(average < 165.0, "{average} bytes are logged per insert");
    assert!(report.leaf_fill() > 0.65);
}

#[test]
fn an_overwrite_logs_its_entry_and_a_word() {
    let mut heap = Mock::new();
    let tree = Bplus::create(&mut heap).unwrap();
    for number in 0..1000 {
        tree.insert(&mut heap, &numbered(number), &[3; 100]).unwrap();
    }
    heap.commit();
    assert!(tree.insert(&mut heap, &numbered(500), &[4; 100]).unwrap());
    assert!(heap.commit() <= 123 + 6);
    assert!(tree.remove(&mut heap, &numbered(500)).unwrap());
    assert!(heap.commit() <= 4);
}

/// Random removal of most pairs of a tree frees most of its leaves.
#[test]
fn sparse_leaves_merge() {
    let mut heap = Mock::new();
    let tree = Bplus::create(&mut heap).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    let mut keys: Vec<_> = (0..20_000).map(numbered).collect();
    for key in &keys {
        tree.insert(&mut heap, key, b"value").unwrap();
    }
    let before = tree.check(&heap).unwrap();
    rng.shuffle(&mut keys);
    for key in &keys[..19_000] {
        assert!(tree.remove(&mut heap, key).unwrap());
    }
    let after = tree.check(&heap).unwrap();
    assert!(after.leaves * 5 < before.leaves, "{after:?}");
    assert!(after.leaf_fill() > 0.25, "{after:?}");
    assert!(heap.free(tree.head()).is_ok());
}
