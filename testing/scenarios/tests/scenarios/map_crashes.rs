//! Each tree by itself on a heap that crashes: after every power cut its content is that of a
//! promised commit, and no block is lost.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use adamant_heap::{Durability, Heap, Options};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, SimDirectory, SimDisk, Tally};
use adamant_trees::{Bplus, Btree, Critbit, Cursor, Error, Moves, OrderedMap, Redblack};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// One crash point in so many is tried, in so many states.
const STEP: usize = 3;
const STATES: u64 = 2;

/// The content of a heap after a commit.
#[derive(Clone)]
struct State {
    map: Map,
    blocks: u64,
}

fn open(disk: &SimDisk) -> Heap {
    let mut options = Options::default();
    options.log_bytes_max = 4 << 20;
    options.address_bytes_max = 256 << 20;
    options.background = false;
    Heap::open(Arc::new(SimDirectory::root(disk)), options).expect("opens").0
}

/// The kind of a tree's pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pairs {
    /// Keys with a common prefix, values of 9 bytes, of 9 and 10 in turn, and of 5,000.
    Any,
    /// 8 bytes and 8 bytes, in the nodes of a tree that was created for them.
    Words,
}

impl Pairs {
    fn key(self, number: u64) -> Vec<u8> {
        match self {
            Self::Any => key(number),
            Self::Words => number.swap_bytes().to_le_bytes().into(),
        }
    }

    fn value(self, number: u64, commit: u64) -> Vec<u8> {
        match self {
            Self::Any => {
                let is_longer = number.is_multiple_of(7) && commit.is_multiple_of(2);
                let short = if is_longer { 10 } else { 9 };
                vec![commit as u8; if number.is_multiple_of(40) { 5000 } else { short }]
            }
            Self::Words => (commit << 32 | number).to_le_bytes().into(),
        }
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("a/shared/start/{number:05}").into_bytes()
}

/// Allocated blocks of a heap without findings.
fn blocks(heap: &Heap) -> u64 {
    let check = heap.check().expect("can be checked");
    assert!(check.is_clean(), "{:?}", check.findings);
    check.blocks
}

/// Panics unless the tree whose head is that root of a heap has exactly this content.
fn verify_tree<T: OrderedMap>(heap: &Heap, root: usize, map: &Map) {
    let view = heap.view().expect("this is no fork");
    let tree = T::open(&view, view.root(root)).expect("is a tree");
    let report = tree.check(&view).expect("whole");
    assert_eq!(report.pairs, map.len() as u64);
    let mut cursor = tree.cursor(&view);
    for (key, value) in map {
        assert_eq!(cursor.next().expect("whole"), Some((&key[..], &value[..])));
        assert_eq!(tree.get(&view, key).expect("whole"), Some(&value[..]));
    }
    assert_eq!(cursor.next().expect("whole"), None);
}

/// Panics unless the tree of a heap has exactly this content, and nothing else is allocated.
fn verify<T: OrderedMap>(heap: &Heap, state: &State) {
    verify_tree::<T>(heap, 0, &state.map);
    assert_eq!(blocks(heap), state.blocks, "blocks that are allocated");
}

/// One transaction: changes of adjacent keys, which split and merge nodes.
fn step<T: OrderedMap>(
    heap: &Heap,
    (tree, pairs): (T, Pairs),
    commit: u64,
    changes: &[(u64, bool)],
    state: &State,
) -> State {
    let mut map = state.map.clone();
    let change = |tx: &mut adamant_heap::Transaction<'_>| {
        for (number, is_insert) in changes {
            let (key, value) = (pairs.key(*number), pairs.value(*number, commit));
            if *is_insert {
                assert_eq!(tree.insert(tx, &key, &value)?, map.insert(key, value).is_some());
            } else {
                assert_eq!(tree.remove(tx, &key)?, map.remove(&key).is_some());
            }
        }
        tx.set_root(1, commit)?;
        Ok::<_, Error>(())
    };
    heap.transaction(Durability::Sync, change).expect("nothing fails");
    State { map, blocks: blocks(heap) }
}

fn every_crash_point<T: OrderedMap>(name: &str, pairs: Pairs, number: u64) {
    let disk = SimDisk::new(seed(number));
    let heap = open(&disk);
    let mut random = fastrand::Rng::with_seed(seed(number));
    let mut states = vec![State { map: Map::new(), blocks: blocks(&heap) }];
    let tree = heap
        .transaction(Durability::Sync, |tx| {
            let is_of_words = pairs == Pairs::Words;
            let tree = if is_of_words { T::create_of_words(tx)? } else { T::create(tx)? };
            tx.set_root(0, tree.head())?;
            Ok::<_, Error>(tree)
        })
        .expect("nothing fails");
    states[0].blocks = blocks(&heap);
    Mark::Durable.put(&disk, 0);
    let mut next = |commit: u64, changes: &[(u64, bool)]| {
        Mark::Begun.put(&disk, commit);
        let state = step(&heap, (tree, pairs), commit, changes, &states[commit as usize - 1]);
        Mark::Durable.put(&disk, commit);
        states.push(state);
    };
    // Fill in an order that splits everywhere, change at random, then empty: two or three changes a
    // commit, so that a commit is more than its publishing store.
    let numbers: Vec<u64> = (0..120).map(|number| number * 77 % 120).collect();
    let inserts = numbers.chunks(3).map(|some| some.iter().map(|it| (*it, true)).collect());
    // Overwritten in place or by new entries; one key of each commit twice.
    let overwrites = numbers.chunks(8).map(|some| {
        let again = some.iter().take(1);
        some.iter().chain(again).map(|it| (*it, true)).collect()
    });
    let mixed = (0..20).map(|_| (0..2).map(|_| (random.u64(..120), random.bool())).collect());
    let removes = (0..120).collect::<Vec<u64>>();
    let removes = removes.chunks(4).map(|some| some.iter().map(|it| (*it, false)).collect());
    let plans: Vec<Vec<(u64, bool)>> =
        inserts.chain(overwrites).chain(mixed).chain(removes).collect();
    for (commit, changes) in (1..).zip(&plans) {
        next(commit, changes);
    }
    assert!(states.last().is_some_and(|state| state.map.is_empty()));
    drop(heap);
    let points = try_power_cuts(&disk, name, |heap, commit| {
        verify::<T>(heap, &states[commit]);
    });
    assert!(points > plans.len() as u64, "each commit has crash points");
}

/// Opens the heap after power cuts, and passes it to `verify` with the number of the commit that it
/// holds, which was promised. Returns the number of crash points.
fn try_power_cuts(disk: &SimDisk, name: &str, mut verify: impl FnMut(&Heap, usize)) -> u64 {
    let mut tally = Tally::new();
    tally.power_cuts(disk, STEP, STATES, |crashed, promise| {
        if !promise.created {
            return;
        }
        let heap = open(&crashed);
        let commit = heap.view().expect("this is no fork").root(1);
        assert!((promise.least..=promise.most).contains(&commit), "{commit} of {promise:?}");
        verify(&heap, commit as usize);
    });
    tally.print(name);
    tally.points
}

/// A change of a transaction of loads and moves.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// Loads this many pairs in order, from a key on, with values of 9 bytes or 5,000.
    Load(u64, u64),
    /// Renames a key.
    Rename(u64, u64),
    /// Swaps values of the first tree and of the second.
    Swap(u64, u64),
    /// Moves a pair to the other tree under its key, and back again under another.
    Across(u64, u64),
    /// Moves up to this many pairs to the other tree, from a key on.
    Range(u64, usize),
    /// Moves everything in the other tree back.
    Back,
}

/// The two trees of a heap, whose heads are the first and the third root.
struct Pair<T>(T, Btree);

impl<T: OrderedMap> Pair<T> {
    /// Makes a change in the trees and in their models.
    fn make(
        &self,
        tx: &mut adamant_heap::Transaction<'_>,
        change: Move,
        maps: &mut [Map; 2],
    ) -> Result<(), Error> {
        let Self(one, two) = self;
        let [left, right] = maps;
        match change {
            Move::Load(start, count) => {
                let value = |number: u64| {
                    vec![number as u8; if number.is_multiple_of(9) { 5000 } else { 9 }]
                };
                let numbers = start..start + count;
                let pairs: Vec<_> = numbers.map(|number| (key(number), value(number))).collect();
                let lent: Vec<_> =
                    pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
                one.load_sorted(tx, &lent)?;
                left.extend(pairs);
            }
            Move::Rename(from, to) => {
                one.rename(tx, &key(from), &key(to))?;
                left.remove(&key(from)).map(|value| left.insert(key(to), value));
            }
            Move::Swap(from, to) => {
                let swapped = one.swap(tx, &key(from), two, &key(to))?;
                if let (Some(one), Some(two)) = (left.get_mut(&key(from)), right.get_mut(&key(to)))
                {
                    std::mem::swap(one, two);
                    assert!(swapped);
                }
            }
            Move::Across(from, to) => {
                one.move_to(tx, &key(from), two, &key(from))?;
                left.remove(&key(from)).map(|value| right.insert(key(from), value));
                two.move_to(tx, &key(from), one, &key(to))?;
                right.remove(&key(from)).map(|value| left.insert(key(to), value));
            }
            Move::Range(from, pairs) => {
                let start = key(from);
                let range = (Bound::Included(&start[..]), Bound::Unbounded);
                one.move_range(tx, range, two, pairs)?;
                let keys: Vec<_> = left.range(start..).take(pairs).map(|it| it.0.clone()).collect();
                right.extend(keys.into_iter().filter_map(|key| left.remove_entry(&key)));
            }
            Move::Back => {
                two.move_range(tx, (Bound::Unbounded, Bound::Unbounded), one, usize::MAX)?;
                left.append(right);
            }
        }
        Ok(())
    }

    fn verify(heap: &Heap, maps: &[Map; 2]) {
        verify_tree::<T>(heap, 0, &maps[0]);
        verify_tree::<Btree>(heap, 2, &maps[1]);
    }
}

/// Bulk loads, then moves, one or a few a commit: no value is lost or duplicated, at any power cut.
fn every_crash_point_of_loads_and_moves<T: OrderedMap>(name: &str, number: u64) {
    let disk = SimDisk::new(seed(number));
    let heap = open(&disk);
    let mut random = fastrand::Rng::with_seed(seed(number));
    let pair = heap
        .transaction(Durability::Sync, |tx| {
            let pair = Pair(T::create(tx)?, Btree::create(tx)?);
            tx.set_root(0, pair.0.head())?;
            tx.set_root(2, pair.1.head())?;
            Ok::<_, Error>(pair)
        })
        .expect("nothing fails");
    let mut states = vec![(<[Map; 2]>::default(), blocks(&heap))];
    Mark::Durable.put(&disk, 0);
    // After all others, into gaps of leaves, and over existing pairs.
    let loads = [(0, 60), (500, 60), (60, 70), (300, 100), (330, 40), (505, 5), (30, 100)];
    let loads = loads.into_iter().map(|(start, count)| vec![Move::Load(start, count)]);
    let moves = (0..60).map(|_| {
        let (from, to) = (random.u64(..120), random.u64(..120));
        let some = |random: &mut fastrand::Rng| match random.u8(..8) {
            0..3 => Move::Rename(from, to),
            3..5 => Move::Swap(from, to),
            5..7 => Move::Across(from, to),
            _ => Move::Range(from, random.usize(1..30)),
        };
        (0..random.usize(1..3)).map(|_| some(&mut random)).collect()
    });
    let plans: Vec<Vec<Move>> = loads.chain(moves).chain([vec![Move::Back]]).collect();
    for (commit, changes) in (1..).zip(&plans) {
        Mark::Begun.put(&disk, commit);
        let (mut maps, _) = states[commit as usize - 1].clone();
        heap.transaction(Durability::Sync, |tx| {
            for change in changes {
                pair.make(tx, *change, &mut maps)?;
            }
            tx.set_root(1, commit)?;
            Ok::<_, Error>(())
        })
        .expect("nothing fails");
        states.push((maps, blocks(&heap)));
        Mark::Durable.put(&disk, commit);
    }
    assert!(states.iter().any(|(maps, _)| maps[1].len() > 20), "both trees have pairs");
    drop(heap);
    let name = format!("loads and moves of {name}");
    let points = try_power_cuts(&disk, &name, |heap, commit| {
        let (maps, expected) = &states[commit];
        Pair::<T>::verify(heap, maps);
        assert_eq!(blocks(heap), *expected, "blocks that are allocated");
    });
    assert!(points > plans.len() as u64, "each commit has crash points");
}

macro_rules! crashes {
    ($($module:ident $tree:ident $number:literal)+) => {$(
        mod $module {
            use super::*;

            #[test]
            fn changes() {
                every_crash_point::<$tree>(stringify!($tree), Pairs::Any, $number);
            }

            #[test]
            fn loads_and_moves() {
                every_crash_point_of_loads_and_moves::<$tree>(stringify!($tree), $number + 10);
            }
        }
    )+};
}

macro_rules! crashes_of_words {
    ($($name:ident $tree:ident $number:literal)+) => {$(
        #[test]
        fn $name() {
            let name = concat!(stringify!($tree), " of words");
            every_crash_point::<$tree>(name, Pairs::Words, $number);
        }
    )+};
}

crashes_of_words! {
    btree_of_words Btree 82
    redblack_of_words Redblack 84
}

crashes! {
    bplus Bplus 61
    btree Btree 62
    critbit Critbit 63
    redblack Redblack 64
}
