//! Estimates of ranges: how far from the truth, over uniform and skewed keys, and what they read.

use std::collections::BTreeSet;
use std::ops::Bound;

use adamant_trees::{Bplus, Critbit, Estimate, OrderedMap};
use fastrand::Rng;

use crate::common::for_each_tree;
use crate::common::mock::Mock;

const PAIRS: u64 = 40_000;
const RANGES: u32 = 150;
/// Counted by the trees of single pairs.
const COUNTED_MAX: u64 = 1_000;

for_each_tree! {
    ranges_are_estimated_within_bounds
    a_whole_tree_is_exact
    reads_grow_with_the_logarithm
    damaged_trees_give_errors_or_numbers
}

/// How keys lie, and how a tree came by them.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Uniform,
    Ascending,
    /// Nine tenths of them in a hundredth of the space.
    Skewed,
    /// Nine tenths of the lower half were removed again: its leaves are thin.
    Thinned,
    /// Loaded in order, then some inserted between: some leaves are full, some half full.
    Loaded,
}

const ALL: [Keys; 5] = [Keys::Uniform, Keys::Ascending, Keys::Skewed, Keys::Thinned, Keys::Loaded];

fn key(number: u64) -> Vec<u8> {
    format!("{number:012}").into_bytes()
}

/// The length of the value of a key: 10 or, for the upper half, 90.
fn value_len(number: u64) -> usize {
    if number < 500_000_000 { 10 } else { 90 }
}

fn number(keys: Keys, at: u64, random: &mut Rng) -> u64 {
    match keys {
        Keys::Ascending | Keys::Loaded => at * (1_000_000_000 / PAIRS),
        Keys::Uniform | Keys::Thinned => random.u64(..1_000_000_000),
        Keys::Skewed if random.u32(..10) > 0 => 300_000_000 + random.u64(..10_000_000),
        Keys::Skewed => random.u64(..1_000_000_000),
    }
}

fn built<T: OrderedMap>(keys: Keys, pairs: u64, random: &mut Rng) -> (Mock, T, Vec<u64>) {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    let mut model = BTreeSet::new();
    for at in 0..pairs {
        model.insert(number(keys, at, random));
    }
    let put = |heap: &mut Mock, number: u64| {
        tree.insert(heap, &key(number), &vec![7; value_len(number)]).unwrap();
    };
    if let Keys::Loaded = keys {
        let all: Vec<_> = model.iter().map(|it| (key(*it), vec![7; value_len(*it)])).collect();
        let all: Vec<_> = all.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        tree.load_sorted(&mut heap, &all).unwrap();
        for _ in 0..pairs / 10 {
            let number = random.u64(..250_000_000);
            put(&mut heap, number);
            model.insert(number);
        }
    } else {
        // The ascending ones in order, the others as they came.
        let mut order: Vec<_> = model.iter().copied().collect();
        if !matches!(keys, Keys::Ascending) {
            random.shuffle(&mut order);
        }
        order.into_iter().for_each(|number| put(&mut heap, number));
    }
    if let Keys::Thinned = keys {
        let lower: Vec<_> = model.range(..500_000_000).copied().collect();
        for number in lower.into_iter().filter(|_| random.u32(..10) > 0) {
            assert!(tree.remove(&mut heap, &key(number)).unwrap());
            model.remove(&number);
        }
    }
    (heap, tree, model.into_iter().collect())
}

/// The truth: entries and bytes of the keys from one up to another, which is not among them.
fn truth(model: &[u64], low: u64, high: u64) -> (u64, u64) {
    let within = model.partition_point(|it| *it < low)..model.partition_point(|it| *it < high);
    let bytes: usize = model[within.clone()].iter().map(|it| 12 + value_len(*it)).sum();
    (within.len() as u64, bytes as u64)
}

fn ranges_are_estimated_within_bounds<T: OrderedMap>() {
    let seed = 17;
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    for keys in ALL {
        let (heap, tree, model) = built::<T>(keys, PAIRS, &mut random);
        let (mut worst, mut sum, mut inexact) = (0.0_f64, 0.0, 0);
        // The shape of a crit-bit tree is that of its keys: most paths lead to where few are, and
        // nothing is promised but a number that can be.
        let is_uneven = T::NAME == Critbit::NAME && matches!(keys, Keys::Skewed);
        let most = if is_uneven { 1.0 } else { 0.15 };
        for _ in 0..RANGES {
            // Between two keys, of all lengths alike.
            let entries = 2_f64.powf(random.f64() * (model.len() as f64).log2()) as usize;
            let first = random.usize(..model.len() - entries.min(model.len() - 1));
            let (low, high) = (model[first], model[(first + entries).min(model.len() - 1)]);
            let (lower, upper) = (key(low), key(high));
            let bounds = (Bound::Included(&lower[..]), Bound::Excluded(&upper[..]));
            let found = tree.estimate(&heap, bounds.0, bounds.1).unwrap();
            let (entries, bytes) = truth(&model, low, high);
            if found.is_exact {
                assert_eq!(found.entries, entries, "{keys:?}");
            } else if T::NAME == Bplus::NAME {
                let error = found.entries.abs_diff(entries) as f64 / entries as f64;
                // A range of more than two leaves.
                assert!(entries > 20 && error < 0.5, "{keys:?}: {entries}, {found:?}");
                (worst, sum, inexact) = (worst.max(error), sum + error, inexact + 1);
            } else {
                let error = found.entries.abs_diff(entries) as f64 / model.len() as f64;
                assert!(entries > COUNTED_MAX && error < most, "{keys:?}: {entries}, {found:?}");
                (worst, sum, inexact) = (worst.max(error), sum + error, inexact + 1);
            }
            let bytes_each = found.bytes as f64 / found.entries.max(1) as f64;
            let expected = bytes as f64 / entries.max(1) as f64;
            // Of a short range few are in the sample of a tree of single pairs.
            let is_sampled = entries > 5 * COUNTED_MAX && !is_uneven;
            if is_sampled || T::NAME == Bplus::NAME && entries > 0 {
                let factor = bytes_each / expected;
                assert!((0.5..2.0).contains(&factor), "{keys:?}: {bytes} bytes, {found:?}");
                assert!(found.block_bytes >= found.bytes, "{found:?}");
            }
        }
        let mean = sum / f64::from(inexact.max(1));
        println!("{} {keys:?}: {inexact} inexact, error {mean:.3}, at most {worst:.3}", T::NAME);
        assert!(mean < 0.5 * most, "{keys:?}: {mean}");
    }
}

fn a_whole_tree_is_exact<T: OrderedMap>() {
    let mut random = Rng::with_seed(18);
    for (pairs, keys) in [0, 1, 2, 50, 3_000].into_iter().flat_map(|it| ALL.map(|keys| (it, keys)))
    {
        let (heap, tree, model) = built::<T>(keys, pairs, &mut random);
        let all = tree.estimate(&heap, Bound::Unbounded, Bound::Unbounded).unwrap();
        assert_eq!((all.entries, all.is_exact), (model.len() as u64, true), "{keys:?}");
        let beyond = [key(5), key(1)];
        let nothing = [
            (Bound::Excluded(&beyond[0][..]), Bound::Excluded(&beyond[1][..])),
            (Bound::Excluded(b"9999999999999"), Bound::Unbounded),
            (Bound::Unbounded, Bound::Excluded(b"")),
        ];
        for (lower, upper) in nothing {
            let found = tree.estimate(&heap, lower, upper).unwrap();
            assert_eq!((found.entries, found.bytes, found.is_exact), (0, 0, true), "{keys:?}");
        }
    }
}

/// Reads of blocks by an estimate of the middle half of a tree.
fn reads<T: OrderedMap>(pairs: u64) -> u64 {
    let (heap, tree, model) = built::<T>(Keys::Uniform, pairs, &mut Rng::with_seed(19));
    let (low, high) = (key(model[model.len() / 4]), key(model[model.len() / 4 * 3]));
    let before = heap.reads.get();
    tree.estimate(&heap, Bound::Included(&low), Bound::Included(&high)).unwrap();
    heap.reads.get() - before
}

fn reads_grow_with_the_logarithm<T: OrderedMap>() {
    let counts = [4_000, 16_000, 64_000, 256_000].map(reads::<T>);
    println!("{}: {counts:?} reads of 4,000 to 256,000 pairs", T::NAME);
    let most = if T::NAME == Bplus::NAME { 800 } else { 30_000 };
    for (one, next) in counts.iter().zip(&counts[1..]) {
        // Four times the pairs are two levels more of a binary tree.
        assert!(next.saturating_sub(*one) < most / 10 + 1_000, "{counts:?}");
    }
    assert!(counts[3] < most, "{counts:?}");
}

/// Whatever a word of a tree is changed to, an estimate ends.
fn damaged_trees_give_errors_or_numbers<T: OrderedMap>() {
    let mut random = Rng::with_seed(20);
    let (mut heap, tree, _) = built::<T>(Keys::Uniform, 2_000, &mut random);
    let whole = tree.estimate(&heap, Bound::Included(b"0001"), Bound::Included(b"0008")).unwrap();
    let offsets = heap.offsets();
    let mut errors = 0;
    for _ in 0..600 {
        let block = offsets[random.usize(..offsets.len())];
        let before = heap.bytes_mut(block).clone();
        let at = random.usize(..before.len());
        // A bit, or a word of ones.
        match random.bool() {
            true => heap.bytes_mut(block)[at] ^= 1 << random.u32(..8),
            false => {
                let end = (at / 8 * 8 + 8).min(before.len());
                heap.bytes_mut(block)[at / 8 * 8..end].fill(0xFF);
            }
        }
        let found = tree.estimate(&heap, Bound::Included(b"0001"), Bound::Included(b"0008"));
        errors += u32::from(found.is_err());
        *heap.bytes_mut(block) = before;
    }
    let again = tree.estimate(&heap, Bound::Included(b"0001"), Bound::Included(b"0008")).unwrap();
    assert_eq!(again, whole);
    assert!(errors > 0, "{errors} of 600");
    assert!(whole.entries > 1_000 && whole != Estimate::default(), "{whole:?}");
}
