//! Damaged blocks and a full device give errors: no panic, no endless loop.

use std::ops::{Bound, ControlFlow};

use adamant_heap::access::Read;
use adamant_trees::{Cursor, Moves, Operation, OrderedMap, Pair, Result, Seek, Walk};

use crate::common::mock::Mock;
use crate::common::{built, for_each_tree};

const PAIRS: u64 = 3000;

fn key(number: u64) -> Vec<u8> {
    format!("key/{:08}", number * 7919 % PAIRS).into_bytes()
}

fn scan(heap: &Mock, tree: impl OrderedMap) -> Result<u64> {
    let mut cursor = tree.cursor(heap);
    let mut count = 0;
    while cursor.next()?.is_some() {
        count += 1;
    }
    cursor.seek(Seek::Last)?;
    while cursor.previous()?.is_some() {
        count += 1;
    }
    let mut walked = 0;
    for (forward, start) in [(true, Seek::First), (false, Seek::Last)] {
        cursor.seek(start)?;
        let mut each = |_: Pair<'_>| {
            walked += 1;
            ControlFlow::Continue(())
        };
        while cursor.walk(forward, Bound::Unbounded, &mut each)? != Walk::End {}
    }
    assert_eq!(walked, count, "a walk goes where single steps go");
    Ok(count)
}

fn change(heap: &mut Mock, tree: impl OrderedMap, rng: &mut fastrand::Rng) -> Result<()> {
    for _ in 0..40 {
        let number = rng.u64(..PAIRS * 2);
        tree.remove(heap, &key(number))?;
        tree.insert(heap, &key(number), b"new")?;
    }
    let keys: Vec<_> = (0..100).map(|_| key(rng.u64(..PAIRS * 2))).collect();
    let operations: Vec<_> = keys.iter().map(|key| Operation { key, value: None }).collect();
    tree.apply_sorted(heap, &operations, &mut Vec::new())
}

/// Moves, loads and compaction, each of which may find the damage.
fn move_and_load<T: OrderedMap>(heap: &mut Mock, tree: T, rng: &mut fastrand::Rng) {
    let other = T::create(heap).unwrap();
    for _ in 0..30 {
        let [from, to] = [key(rng.u64(..PAIRS)), key(rng.u64(..PAIRS * 2))];
        let _ = tree.rename(heap, &from, &to);
        let _ = tree.swap(heap, &from, &tree, &to);
        let _ = tree.move_to(heap, &from, &other, &from);
        let _ = tree.swap(heap, &to, &other, &from);
        let range = (Bound::Included(&from[..]), Bound::Unbounded);
        let _ = tree.move_range(heap, range, &other, 20);
        let _ = other.move_range(heap, range, &tree, 20);
    }
    for _ in 0..10 {
        let start = rng.u64(..PAIRS);
        let keys: Vec<_> = (0..150).map(|number| format!("key/{start:08}/{number:03}")).collect();
        let pairs: Vec<Pair<'_>> = keys.iter().map(|key| (key.as_bytes(), &b"new"[..])).collect();
        let _ = tree.load_sorted(heap, &pairs);
    }
    let (mut next, mut parts) = (Some(Vec::new()), 0);
    while let Some(from) = next {
        next = tree.compact_part(heap, &from, 60).ok().flatten();
        parts += 1;
        assert!(parts < PAIRS, "the compaction of damage ran on");
    }
}

for_each_tree! {
    damage_gives_errors
    a_full_device_is_an_error
}

/// Whether a block has a size that only nodes have in these tests: keys have 12 bytes and values 20
/// or 5,000.
fn is_node(bytes: usize) -> bool {
    !matches!(bytes, 40 | 5056 | 48)
}

/// Flips bytes of nodes, separators and entries; a block may also be swapped for another.
fn damage_gives_errors<T: OrderedMap>() {
    let (whole, tree) = built::<T>(PAIRS, key);
    let offsets = whole.offsets();
    let mut found = 0;
    for seed in 0..400 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut heap = whole.clone();
        // Nodes are few among the blocks: half of the time one of them is hit.
        let large: Vec<u64> = offsets
            .iter()
            .copied()
            .filter(|block| is_node(heap.block(*block).unwrap().len()))
            .collect();
        for _ in 0..rng.u32(1..6) {
            let from = if rng.bool() { &large } else { &offsets };
            let block = from[rng.usize(..from.len())];
            let other = heap.block(from[rng.usize(..from.len())]).unwrap().to_vec();
            let bytes = heap.bytes_mut(block);
            match rng.u8(..4) {
                0 => *bytes = other,
                1 => bytes.truncate(rng.usize(..bytes.len())),
                _ => {
                    let at = rng.usize(..bytes.len());
                    bytes[at] ^= 1 << rng.u8(..8);
                }
            }
        }
        println!("seed {seed}");
        found += u32::from(tree.check(&heap).is_err());
        heap.reads.set(0);
        let _ = scan(&heap, tree);
        assert!(heap.reads.get() < 20 * PAIRS, "a scan of damage ran on");
        for number in (0..PAIRS).step_by(17) {
            let _ = tree.get(&heap, &key(number));
        }
        if seed % 4 == 0 {
            let mut moved = heap.clone();
            move_and_load(&mut moved, tree, &mut rng);
            let _ = tree.check(&moved);
        }
        let _ = change(&mut heap, tree, &mut rng);
        let _ = tree.clear(&mut heap);
    }
    assert!(found > 200, "check found only {found}");
}

/// A walk ends at once in a tree whose nodes refer back to their own level.
#[test]
fn cycles_end() {
    let (whole, tree) = built::<adamant_trees::Bplus>(PAIRS, key);
    let inner: Vec<u64> = whole
        .offsets()
        .into_iter()
        .filter(|block| whole.block(*block).unwrap().len() == 1536)
        .collect();
    let mut heap = whole.clone();
    for block in &inner {
        // All children are the first one.
        let bytes = heap.bytes_mut(*block);
        bytes[4..64].fill(0);
    }
    assert!(tree.check(&heap).is_err());
    assert!(scan(&heap, tree).is_err());
    assert!(tree.clear(&mut heap).is_err());
}

/// The device fills up at any reserve of a change: the result is an error, and the transaction
/// restores the previous state (here: from a copy).
fn a_full_device_is_an_error<T: OrderedMap>() {
    let (whole, tree) = built::<T>(PAIRS, key);
    for reserves in 0..40 {
        let mut heap = whole.clone();
        heap.reserves_left = reserves;
        let keys: Vec<_> = (0..200).map(|number| format!("key/00001{number:06}")).collect();
        let operations: Vec<_> = keys
            .iter()
            .map(|key| Operation { key: key.as_bytes(), value: Some(&[2; 5000]) })
            .collect();
        assert!(tree.apply_sorted(&mut heap, &operations, &mut Vec::new()).is_err());
        // Removes need no space.
        let mut heap = whole.clone();
        heap.reserves_left = 0;
        for number in 0..PAIRS {
            assert!(tree.remove(&mut heap, &key(number)).unwrap());
        }
        assert!(tree.check(&heap).unwrap().pairs == 0);
    }
    assert_eq!(tree.check(&whole).unwrap().pairs, PAIRS);
}
