//! Each tree by itself on a heap that crashes, by both journals: after every power cut it is what it
//! was after one of the commits that were promised, whole, and no block is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant_heap::{Durability, Heap, JournalKind, Options};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, SimDirectory, SimDisk, Tally};
use adamant_trees::{Bplus, Btree, Critbit, Cursor, Error, OrderedMap, Redblack};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a heap holds after a commit.
#[derive(Clone)]
struct State {
    map: Map,
    blocks: u64,
}

fn open(disk: &SimDisk, journal: JournalKind) -> Heap {
    let mut options = Options::default();
    options.journal = journal;
    options.log_bytes_max = 4 << 20;
    options.address_bytes_max = 256 << 20;
    options.background = false;
    Heap::open(Arc::new(SimDirectory::root(disk)), options).expect("opens").0
}

fn key(number: u64) -> Vec<u8> {
    format!("a/shared/start/{number:05}").into_bytes()
}

/// Allocated blocks of a heap in which nothing is wrong.
fn blocks(heap: &Heap) -> u64 {
    let check = heap.check().expect("can be checked");
    assert!(check.is_clean(), "{:?}", check.findings);
    check.blocks
}

/// Panics unless the tree of a heap holds exactly this.
fn verify<T: OrderedMap>(heap: &Heap, state: &State) {
    {
        let view = heap.view().expect("this is no fork");
        let tree = T::open(&view, view.root(0)).expect("is a tree");
        let report = tree.check(&view).expect("whole");
        assert_eq!(report.pairs, state.map.len() as u64);
        let mut cursor = tree.cursor(&view);
        for (key, value) in &state.map {
            assert_eq!(cursor.next().expect("whole"), Some((&key[..], &value[..])));
            assert_eq!(tree.get(&view, key).expect("whole"), Some(&value[..]));
        }
        assert_eq!(cursor.next().expect("whole"), None);
    }
    assert_eq!(blocks(heap), state.blocks, "blocks that are allocated");
}

/// One transaction: changes of neighbouring keys, which split and merge nodes.
fn step<T: OrderedMap>(
    heap: &Heap,
    tree: T,
    commit: u64,
    changes: &[(u64, bool)],
    state: &State,
) -> State {
    let mut map = state.map.clone();
    let change = |tx: &mut adamant_heap::Transaction<'_>| {
        for (number, is_insert) in changes {
            let key = key(*number);
            let value = vec![commit as u8; if number % 40 == 0 { 5000 } else { 9 }];
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

fn every_crash_point<T: OrderedMap>(name: &str, journal: JournalKind, number: u64) {
    let disk = SimDisk::new(seed(number));
    let heap = open(&disk, journal);
    let mut random = fastrand::Rng::with_seed(seed(number));
    let mut states = vec![State { map: Map::new(), blocks: blocks(&heap) }];
    let tree = heap
        .transaction(Durability::Sync, |tx| {
            let tree = T::create(tx)?;
            tx.set_root(0, tree.head())?;
            Ok::<_, Error>(tree)
        })
        .expect("nothing fails");
    states[0].blocks = blocks(&heap);
    Mark::Durable.put(&disk, 0);
    let mut next = |commit: u64, changes: &[(u64, bool)]| {
        Mark::Begun.put(&disk, commit);
        let state = step(&heap, tree, commit, changes, &states[commit as usize - 1]);
        Mark::Durable.put(&disk, commit);
        states.push(state);
    };
    // Fill in an order that splits everywhere, change at random, then take down: two or three
    // changes a commit, so that a commit is more than its publishing store.
    let numbers: Vec<u64> = (0..120).map(|number| number * 77 % 120).collect();
    let inserts = numbers.chunks(3).map(|some| some.iter().map(|it| (*it, true)).collect());
    let mixed = (0..20).map(|_| (0..2).map(|_| (random.u64(..120), random.bool())).collect());
    let removes = (0..120).collect::<Vec<u64>>();
    let removes = removes.chunks(4).map(|some| some.iter().map(|it| (*it, false)).collect());
    let plans: Vec<Vec<(u64, bool)>> = inserts.chain(mixed).chain(removes).collect();
    for (commit, changes) in (1..).zip(&plans) {
        next(commit, changes);
    }
    assert!(states.last().is_some_and(|state| state.map.is_empty()));
    drop(heap);
    let mut tally = Tally::new();
    let (step, states_each) = if journal == JournalKind::Undo { (1, 6) } else { (3, 2) };
    tally.power_cuts(&disk, step, states_each, |crashed, promise| {
        if !promise.created {
            return;
        }
        let heap = open(&crashed, journal);
        let commit = heap.view().expect("this is no fork").root(1);
        assert!((promise.least..=promise.most).contains(&commit), "{commit} of {promise:?}");
        verify::<T>(&heap, &states[commit as usize]);
    });
    assert!(tally.points > plans.len() as u64, "each commit has crash points");
    tally.print(&format!("{name}, {journal:?} journal"));
}

macro_rules! crashes {
    ($($redo:ident $undo:ident $tree:ident $number:literal)+) => {$(
        #[test]
        fn $redo() {
            every_crash_point::<$tree>(stringify!($tree), JournalKind::Redo, $number);
        }

        #[test]
        fn $undo() {
            every_crash_point::<$tree>(stringify!($tree), JournalKind::Undo, $number);
        }
    )+};
}

crashes! {
    bplus_by_redo bplus_by_undo Bplus 61
    btree_by_redo btree_by_undo Btree 62
    critbit_by_redo critbit_by_undo Critbit 63
    redblack_by_redo redblack_by_undo Redblack 64
}
