//! Checks in parts: they visit everything, and report no finding for changes between the parts.

use adamant_trees::{Checking, OrderedMap, Result};

use crate::common::mock::Mock;
use crate::common::{built, for_each_tree};

const PAIRS: u64 = 12_000;
/// Maximum block reads of a part: it ends soon after 2,048 pairs, each of which has an entry that
/// is read a few times, and at most one node.
const PART_READS_MAX: u64 = 2_500 * 8;

for_each_tree! {
    each_part_is_bounded_and_all_are_the_whole
    what_changes_between_parts_is_not_damage
    damage_is_found_in_parts_too
}

fn key(number: u64) -> Vec<u8> {
    let number = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    format!("{:x}/{number}", number % 251).into_bytes()
}

/// Checks in parts as short as possible; `between` is called after each but the last.
fn check_in_parts<T: OrderedMap>(
    heap: &mut Mock,
    tree: T,
    mut between: impl FnMut(&mut Mock),
) -> Result<(Checking, u64)> {
    let (mut checking, mut parts) = (Checking::default(), 1);
    while !tree.check_part(heap, &mut checking, &|| true)? {
        between(heap);
        parts += 1;
        assert!(parts < 100, "each part comes further");
    }
    Ok((checking, parts))
}

fn each_part_is_bounded_and_all_are_the_whole<T: OrderedMap>() {
    let (mut heap, tree) = built::<T>(PAIRS, key);
    let pairs = tree.len(&heap).unwrap();
    let mut before = heap.reads.get();
    let (checking, parts) = check_in_parts(&mut heap, tree, |heap| {
        let reads = heap.reads.get() - before;
        assert!(reads <= PART_READS_MAX, "{reads} reads in a part");
        before = heap.reads.get();
    })
    .unwrap();
    assert!((4..=7).contains(&parts), "{parts} parts");
    assert!(!checking.is_whole());
    let found = checking.report().pairs;
    assert!((pairs..pairs + 100 * parts).contains(&found), "{found} of {pairs} pairs");

    let mut checking = Checking::default();
    assert!(tree.check_part(&heap, &mut checking, &|| false).unwrap() && checking.is_whole());
    assert_eq!(checking.report(), tree.check(&heap).unwrap());
    assert_eq!(checking.report().pairs, pairs);
}

fn what_changes_between_parts_is_not_damage<T: OrderedMap>() {
    for seed in 0..4 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut heap, tree) = built::<T>(PAIRS, key);
        let between = |heap: &mut Mock| {
            if seed == 3 {
                tree.clear(heap).unwrap();
            }
            for _ in 0..400 * seed {
                let number = rng.u64(..PAIRS * 2);
                tree.remove(heap, &key(number)).unwrap();
                if rng.bool() {
                    tree.insert(heap, &key(rng.u64(..PAIRS * 2)), &[2; 30]).unwrap();
                }
            }
            heap.commit();
        };
        let (_, parts) = check_in_parts(&mut heap, tree, between).unwrap();
        assert!(parts > 1);
        tree.check(&heap).unwrap();
    }
}

fn damage_is_found_in_parts_too<T: OrderedMap>() {
    let (heap, tree) = built::<T>(PAIRS / 2, key);
    let (offsets, mut rng) = (heap.offsets(), fastrand::Rng::with_seed(7));
    let mut found = 0;
    for _ in 0..30 {
        let mut heap = heap.clone();
        let offset = offsets[rng.usize(..offsets.len())];
        let bytes = heap.bytes_mut(offset);
        let at = rng.usize(..bytes.len().min(64));
        bytes[at] ^= 1 << rng.u8(..8);
        let Err(whole) = tree.check(&heap) else { continue };
        // Totals, and double references from two parts, need a single state.
        let what = whole.to_string();
        let is_of_all = what.contains("counts other") || what.contains("twice");
        let parts = check_in_parts(&mut heap, tree, |_| ());
        assert!(parts.is_err() || is_of_all, "block {offset:#x}, byte {at}: {what}");
        found += u64::from(parts.is_err());
    }
    assert!(found > 5, "{found} of 30");
}
