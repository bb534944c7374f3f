//! Bulk loads: `load_sorted` has the effect of inserts, with fuller nodes and less log.

use std::sync::Arc;

use adamant_heap::Durability;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use adamant_trees::{Bplus, Btree, Error, OrderedMap, Pair, Report};

use crate::common::mock::Mock;
use crate::common::model::Model;
use crate::common::shapes::{SHAPES, Shape};
use crate::common::{for_each_tree, open};

for_each_tree! {
    loads_match_a_model
    runs_of_any_length_go_into_gaps_of_any_leaf
    what_does_not_ascend_changes_nothing
    loads_take_no_more_log_than_inserts
}

fn loads_match_a_model<T: OrderedMap>() {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let mut heap = Mock::new();
        let mut model = Model::<T>::new(&mut heap, shape, 400 + seed as u64).unwrap();
        let blocks = heap.block_count();
        for part in [1, 15, 16, 48, 49, 300, 1000, 3000] {
            let part = part.min(shape.changes() / 5);
            model.load(&mut heap, part).unwrap();
            heap.commit();
            model.change(&mut heap, part / 2, 70).unwrap();
            model.load(&mut heap, part).unwrap();
            model.compare_ranges(&heap, 10).unwrap();
        }
        model.drain(&mut heap).unwrap();
        model.load(&mut heap, 200).unwrap();
        model.tree.clear(&mut heap).unwrap();
        assert_eq!(heap.block_count(), blocks, "what a new tree has is left");
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key/{number:010}").into_bytes()
}

/// Loads pairs with these numbers as keys.
fn load<T: OrderedMap>(tree: &T, heap: &mut Mock, numbers: impl Iterator<Item = u64>) -> u64 {
    let pairs: Vec<_> = numbers.map(|number| (key(number), number.to_le_bytes())).collect();
    let pairs: Vec<Pair<'_>> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    tree.load_sorted(heap, &pairs).unwrap()
}

/// Leaves with 0 to 48 entries, and a run that falls before, between or after them.
fn runs_of_any_length_go_into_gaps_of_any_leaf<T: OrderedMap>() {
    for entries in 0..=48 {
        for run in [15, 16, 17, 47, 48, 49, 96, 97, 200] {
            for at in [0, entries / 3, entries] {
                let mut heap = Mock::new();
                let tree = T::create(&mut heap).unwrap();
                let number = |entry: u64| entry * 1000;
                load(&tree, &mut heap, (1..=entries).map(number));
                let start = number(at) + 1;
                assert_eq!(load(&tree, &mut heap, start..start + run), 0);
                let report = tree.check(&heap).unwrap();
                assert_eq!(report.pairs, entries + run, "{entries} entries, {run} at {at}");
                for number in (1..=entries).map(number).chain(start..start + run) {
                    let value = tree.get(&heap, &key(number)).unwrap();
                    assert_eq!(value, Some(&number.to_le_bytes()[..]));
                }
                // Once more: all are replaced.
                assert_eq!(load(&tree, &mut heap, start..start + run), run);
                assert_eq!(tree.check(&heap).unwrap().pairs, entries + run);
            }
        }
    }
}

fn what_does_not_ascend_changes_nothing<T: OrderedMap>() {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    load(&tree, &mut heap, 0..100);
    heap.commit();
    let mut pairs: Vec<(Vec<u8>, &[u8])> =
        (0..100).map(|number| (key(number), &b"new"[..])).collect();
    for (position, bad) in [(70, 69), (1, 0), (99, 5)] {
        let good = std::mem::replace(&mut pairs[position].0, key(bad));
        let lent: Vec<Pair<'_>> = pairs.iter().map(|(key, value)| (&key[..], *value)).collect();
        match tree.load_sorted(&mut heap, &lent) {
            Err(Error::NotAscending { position: found }) => assert_eq!(found, position as u64),
            other => panic!("{other:?}"),
        }
        pairs[position].0 = good;
    }
    let long = [7; 65_536];
    let too_long: [Pair<'_>; 1] = [(&long, b"")];
    assert!(matches!(tree.load_sorted(&mut heap, &too_long), Err(Error::KeyTooLong { .. })));
    assert_eq!(heap.commit(), 0, "nothing was written");
    assert_eq!(tree.load_sorted(&mut heap, &[]).unwrap(), 0);
    assert_eq!(tree.check(&heap).unwrap().pairs, 100);
}

fn sequential<T: OrderedMap>(piece: u64, count: u64) -> Report {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    for start in (0..count).step_by(piece as usize) {
        load(&tree, &mut heap, start..(start + piece).min(count));
    }
    let report = tree.check(&heap).unwrap();
    println!("{} by {piece}: {:.3} full, {report:?}", T::NAME, report.leaf_fill());
    report
}

/// In pieces of any size: full leaves, and full inner nodes above them.
#[test]
fn sequential_loads_leave_full_nodes() {
    for piece in [1, 10, 47, 48, 100, 1024, 50_000] {
        let report = sequential::<Bplus>(piece, 50_000);
        assert!(report.leaf_fill() >= 0.999, "by {piece}: {}", report.leaf_fill());
        assert!(report.inner_nodes <= report.leaves / 60 + 2, "{report:?}");
        let report = sequential::<Btree>(piece, 50_000);
        assert!(report.leaf_fill() >= 0.95, "by {piece}: {}", report.leaf_fill());
    }
}

/// Runs into the gaps of a tree that was filled at random.
#[test]
fn runs_in_gaps_leave_full_leaves() {
    let mut heap = Mock::new();
    let tree = Bplus::create(&mut heap).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..2_000 {
        tree.insert(&mut heap, &key(rng.u64(..1_000_000) * 1000), b"").unwrap();
    }
    let before = tree.check(&heap).unwrap();
    for _ in 0..50 {
        let start = rng.u64(..1_000_000) * 1000 + 1;
        load(&tree, &mut heap, start..start + 900);
    }
    let report = tree.check(&heap).unwrap();
    let added = (report.pairs - before.pairs) as f64;
    let fill = added / (48 * (report.leaves - before.leaves)) as f64;
    println!("leaves that were added are {fill:.3} full");
    assert!(fill >= 0.9, "{fill}");
}

/// Log bytes for each pair of 20 + 100 bytes, in order and in commits of 1,000.
fn loads_take_no_more_log_than_inserts<T: OrderedMap>() {
    const COUNT: u64 = 20_000;
    let bytes = |work: &dyn Fn(&mut adamant_heap::Transaction<'_>, T, &[Pair<'_>])| {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let heap = open(&directory);
        let tree = heap.transaction(Durability::Buffered, |tx| T::create(tx)).unwrap();
        let before = heap.stats().journal;
        for start in (0..COUNT).step_by(1000) {
            let keys: Vec<_> =
                (start..start + 1000).map(|number| format!("{number:020}")).collect();
            let pairs: Vec<Pair<'_>> =
                keys.iter().map(|key| (key.as_bytes(), &[7; 100][..])).collect();
            heap.transaction(Durability::Buffered, |tx| {
                work(tx, tree, &pairs);
                Ok::<_, Error>(())
            })
            .unwrap();
        }
        let after = heap.stats().journal;
        (after.log_appended_bytes - before.log_appended_bytes) as f64 / COUNT as f64
    };
    let inserted = bytes(&|tx, tree, pairs| {
        for (key, value) in pairs {
            tree.insert(tx, key, value).unwrap();
        }
    });
    let loaded = bytes(&|tx, tree, pairs| assert_eq!(tree.load_sorted(tx, pairs).unwrap(), 0));
    println!("{}: {inserted:.1} bytes of log for an insert, {loaded:.1} for a load", T::NAME);
    assert!(loaded <= inserted, "{loaded} bytes of log for a pair loaded, {inserted} inserted");
}

/// A loaded tree stays valid under random changes, though its shape is unusual.
#[test]
fn loaded_trees_go_on() {
    let mut heap = Mock::new();
    let mut model = Model::<Bplus>::new(&mut heap, Shape::Random20, 9).unwrap();
    for removes in [10, 60, 90, 20] {
        model.load(&mut heap, 3_000).unwrap();
        model.change(&mut heap, 3_000, removes).unwrap();
    }
    model.drain(&mut heap).unwrap();
}
