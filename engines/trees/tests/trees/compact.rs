//! Compaction: the same pairs, in new blocks and full nodes.

use std::collections::HashSet;

use adamant_trees::{Bplus, OrderedMap, Part};

use crate::common::for_each_tree;
use crate::common::mock::Mock;
use crate::common::model::Model;
use crate::common::shapes::SHAPES;

for_each_tree! {
    compaction_keeps_what_a_model_has
    parts_of_any_size_go_on_where_the_last_one_ended
    large_values_stay_in_place
}

/// Compacts all of a tree in parts; returns how many there were.
fn compact<T: OrderedMap>(tree: &T, heap: &mut Mock, pairs_max: usize) -> usize {
    let (mut next, mut parts) = (Some(Vec::new()), 0);
    while let Some(from) = next {
        next = tree.compact_part(heap, &from, pairs_max).unwrap();
        assert!(next.as_ref().is_none_or(|next| *next > from), "{next:?} behind {from:?}");
        parts += 1;
    }
    parts
}

/// Among changes between the parts, too.
fn compaction_keeps_what_a_model_has<T: OrderedMap>() {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let mut heap = Mock::new();
        let mut model = Model::<T>::new(&mut heap, shape, 700 + seed as u64).unwrap();
        let blocks = heap.block_count();
        for removes in [0, 20, 60, 90] {
            model.change(&mut heap, shape.changes() / 3, removes).unwrap();
            for pairs_max in [1, 50, 1000] {
                let mut next = Some(Vec::new());
                while let Some(from) = next {
                    next = model.tree.compact_part(&mut heap, &from, pairs_max).unwrap();
                    if pairs_max == 50 {
                        model.change(&mut heap, 3, removes).unwrap();
                    }
                }
                model.compare(&heap).unwrap();
            }
            model.compare_ranges(&heap, 10).unwrap();
        }
        model.drain(&mut heap).unwrap();
        compact(&model.tree, &mut heap, 10);
        model.tree.clear(&mut heap).unwrap();
        assert_eq!(heap.block_count(), blocks, "what a new tree has is left");
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key/{number:06}").into_bytes()
}

/// A tree of so many pairs that were inserted in a random order.
fn shuffled<T: OrderedMap>(heap: &mut Mock, count: u64) -> T {
    let tree = T::create(heap).unwrap();
    let mut numbers: Vec<u64> = (0..count).collect();
    fastrand::Rng::with_seed(count).shuffle(&mut numbers);
    for number in numbers {
        tree.insert(heap, &key(number), &number.to_le_bytes()).unwrap();
    }
    tree
}

fn parts_of_any_size_go_on_where_the_last_one_ended<T: OrderedMap>() {
    for count in [0, 1, 47, 48, 49, 300, 4_000] {
        for pairs_max in [0, 1, 47, 48, 49, 1_000, 10_000] {
            let mut heap = Mock::new();
            let tree = shuffled::<T>(&mut heap, count);
            let parts = compact(&tree, &mut heap, pairs_max);
            assert!(parts as u64 <= count / 10 + 1, "{parts} parts of {count}, by {pairs_max}");
            assert_eq!(tree.check(&heap).unwrap().pairs, count);
            for number in 0..count {
                let value = tree.get(&heap, &key(number)).unwrap();
                assert_eq!(value, Some(&number.to_le_bytes()[..]));
            }
        }
    }
}

/// The blocks of a tree except its head.
fn blocks<T: OrderedMap>(tree: &T, heap: &Mock) -> HashSet<u64> {
    let mut blocks = HashSet::new();
    tree.parts(heap, &mut |part| {
        if let Part::Block(block) = part {
            blocks.insert(block);
        }
    })
    .unwrap();
    blocks
}

/// Nothing may stay among the blocks of others.
#[test]
fn a_bplus_tree_leaves_no_block_behind() {
    for (count, kept_one_in) in [(10, 1), (1_000, 1), (50_000, 1), (200_000, 1), (50_000, 20)] {
        let mut heap = Mock::new();
        let tree = shuffled::<Bplus>(&mut heap, count);
        for number in (0..count).filter(|number| number % kept_one_in != 0) {
            tree.remove(&mut heap, &key(number)).unwrap();
        }
        let before = blocks(&tree, &heap);
        compact(&tree, &mut heap, 512);
        let after = blocks(&tree, &heap);
        assert_eq!(before.intersection(&after).count(), 0, "{count}, 1 in {kept_one_in} kept");
        let report = tree.check(&heap).unwrap();
        println!("{report:?}");
        assert!(report.leaf_fill() > 0.97 || count < 100, "{report:?}");
        assert!(report.inner_nodes <= report.leaves / 16 + 1, "{report:?}");
        let (before, after) = (heap.block_count(), tree.len(&heap).unwrap());
        compact(&tree, &mut heap, 512);
        assert_eq!((heap.block_count(), tree.len(&heap).unwrap()), (before, after));
    }
}

fn large_values_stay_in_place<T: OrderedMap>() {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    let sizes = [0, 100, 4_096, 4_097, 40 << 10, (40 << 10) + 1, 1 << 20];
    for (number, size) in sizes.into_iter().cycle().take(140).enumerate() {
        tree.insert(&mut heap, &key(number as u64), &vec![number as u8; size]).unwrap();
    }
    let block = |heap: &Mock, number: usize| {
        let (value, block) = tree.get_with_block(heap, &key(number as u64)).unwrap().unwrap();
        assert_eq!(value, vec![number as u8; sizes[number % 7]]);
        block
    };
    let before: Vec<_> = (0..140).map(|number| block(&heap, number)).collect();
    // 1 MiB in each seven pairs, but only those that move count.
    assert!(compact(&tree, &mut heap, 1_000) < 20);
    for (number, before) in before.into_iter().enumerate() {
        let after = block(&heap, number);
        match sizes[number % 7] {
            ..=4_096 => assert_eq!(after, None),
            4_097..=0xa000 => assert_ne!(after, before),
            _ => assert_eq!(after, before),
        }
    }
    tree.check(&heap).unwrap();
}
