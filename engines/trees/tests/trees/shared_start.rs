//! B+ trees whose keys share a long start: inner nodes skip it, at the edges of the tree, too.

use std::cell::Cell;
use std::collections::BTreeMap;

use adamant_heap::access::Read;
use adamant_heap::error::Result;
use adamant_trees::{Bplus, OrderedMap};

use crate::common::mock::Mock;

/// A heap that counts the blocks that are looked at.
struct Counted<'h> {
    heap: &'h Mock,
    blocks: Cell<u64>,
}

impl Read for Counted<'_> {
    fn block(&self, block: u64) -> Result<&[u8]> {
        self.blocks.set(self.blocks.get() + 1);
        self.heap.block(block)
    }

    fn prefetch(&self, offset: u64) {
        self.heap.prefetch(offset);
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("user/profile/{number:06}").into_bytes()
}

fn filled(numbers: impl Iterator<Item = u64>) -> (Mock, Bplus, BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut heap = Mock::new();
    let tree = Bplus::create(&mut heap).unwrap();
    let mut model = BTreeMap::new();
    for number in numbers {
        tree.insert(&mut heap, &key(number), b"value").unwrap();
        model.insert(key(number), b"value".to_vec());
    }
    (heap, tree, model)
}

#[test]
fn a_get_looks_at_few_separators() {
    const ENTRIES: u64 = 60_000;
    let mut random = fastrand::Rng::with_seed(1);
    let mut shuffled: Vec<u64> = (0..ENTRIES).collect();
    random.shuffle(&mut shuffled);
    for (order, numbers) in
        [shuffled, (0..ENTRIES).collect(), (0..ENTRIES).rev().collect()].into_iter().enumerate()
    {
        let (heap, tree, _) = filled(numbers.into_iter());
        let height = tree.check(&heap).unwrap().height;
        let counted = Counted { heap: &heap, blocks: Cell::new(0) };
        for number in 0..ENTRIES {
            assert!(tree.get(&counted, &key(number)).unwrap().is_some());
        }
        // The head, the inner nodes, the leaf and the entry; one separator at the root, and one at
        // each node of an edge.
        let each = counted.blocks.get() as f64 / ENTRIES as f64;
        println!("order {order}: {each} blocks, {height} levels");
        assert!(each < 3.0 + height as f64 + 1.5, "order {order}: {each} blocks, {height} levels");
    }
}

/// Keys that do not have the start come and go, at both edges and at all levels.
#[test]
fn keys_without_the_shared_start_are_found_and_change_it() {
    let strangers: Vec<Vec<u8>> = [
        "",
        "a",
        "u",
        "user",
        "user/",
        "user/profile",
        "user/profile/",
        "user/profile/0",
        "user/profile/9",
        "user/profile/999999",
        "user/profile/999999\0",
        "user/profile0",
        "user/profile\u{ff}",
        "user/q",
        "user0",
        "v",
        "\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}",
    ]
    .iter()
    .map(|key| key.as_bytes().to_vec())
    .collect();
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = [40, 200, 3_000, 12_000][seed as usize % 4];
        let mut numbers: Vec<u64> = (0..count).map(|at| at * 7).collect();
        random.shuffle(&mut numbers);
        let (mut heap, tree, mut model) = filled(numbers.into_iter());
        let verify = |heap: &Mock, model: &BTreeMap<Vec<u8>, Vec<u8>>| {
            assert_eq!(tree.check(heap).unwrap().pairs, model.len() as u64, "seed {seed}");
            for key in strangers.iter().chain(model.keys().step_by(97)) {
                let found = tree.get(heap, key).unwrap();
                assert_eq!(found, model.get(key).map(Vec::as_slice), "seed {seed}: {key:?}");
            }
        };
        verify(&heap, &model);
        for _ in 0..4 {
            // Many under one of them, so that leaves of them split and separators lack the start.
            for stranger in &strangers {
                for at in 0..random.u64(1..120) {
                    let mut key = stranger.clone();
                    key.extend_from_slice(format!("{at}").as_bytes());
                    tree.insert(&mut heap, &key, b"other").unwrap();
                    model.insert(key, b"other".to_vec());
                }
                verify(&heap, &model);
            }
            let all: Vec<Vec<u8>> = model.keys().cloned().collect();
            let start = random.usize(..all.len());
            let end = (start + random.usize(..1 + all.len() / 2)).min(all.len());
            for (step, key) in all[start..end].iter().enumerate() {
                assert!(tree.remove(&mut heap, key).unwrap());
                model.remove(key);
                if step % 200 == 0 {
                    verify(&heap, &model);
                }
            }
            verify(&heap, &model);
        }
    }
}
