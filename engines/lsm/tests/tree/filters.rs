//! Filtered compactions on a disk that loses power: what the filter takes is gone as a whole or not
//! at all, and nothing older is there in its place; a held moment keeps what it sees.

use std::ops::Bound;

use adamant_heap::Durability;
use adamant_lsm::{Error, Lsm, NEWEST, Verdict};
use adamant_sim::{Choice, SimDisk};

use crate::store::{Pair, Store, TREE, open_on};

/// Removes values that begin with 1, and makes those that begin with 2 begin with 3.
fn filter(_key: &[u8], value: &[u8]) -> Verdict {
    match value {
        [1, ..] => Verdict::Remove,
        [2, rest @ ..] => Verdict::Change([&[3], rest].concat()),
        _ => Verdict::Keep,
    }
}

/// A store whose tree has no merge operator: those with one are not filtered.
fn open(disk: &SimDisk) -> Result<Store, Error> {
    let mut store = open_on(disk)?;
    let tree = {
        let view = store.heap.view()?;
        Lsm::open(&view, view.root(TREE), &store.context)?
    };
    store.tree = tree;
    Ok(store)
}

fn write(store: &Store, first_of: impl Fn(u8) -> u8) {
    let pairs: Vec<_> = (0..40_u8).map(|at| ([b'k', at], [first_of(at), at])).collect();
    let changes = pairs.iter().map(|(key, value)| (&key[..], Some(&value[..])));
    let done = store.heap.transaction(Durability::Sync, |tx| store.tree.write(tx, changes));
    done.unwrap_or_else(|error: Error| panic!("{error}"));
}

fn all(store: &Store, sequence: u64) -> Vec<Pair> {
    store.scan((Bound::Unbounded, Bound::Unbounded), true, sequence, 7).unwrap()
}

#[test]
fn a_filtered_compaction_is_whole_or_nothing() {
    let disk = SimDisk::new(3);
    let store = open(&disk).unwrap();
    let seen = || Ok(store.context.sequences().visible());
    write(&store, |_| 0);
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    write(&store, |at| at % 4);
    let before = all(&store, NEWEST);
    store.heap.sync().unwrap();
    store.tree.set_filter(Box::new(filter));
    let begun = disk.operation_count();
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    let ended = disk.operation_count();
    let after = all(&store, NEWEST);
    assert_eq!((before.len(), after.len()), (40, 30), "no older value is there in place of ten");
    assert!(after.iter().all(|(_, value)| matches!(value[0], 0 | 3)));
    let (mut as_before, mut as_after) = (0, 0);
    for point in begun..=ended {
        let mut crashed = vec![disk.kill(point)];
        crashed.push(disk.crash(point, &mut Choice::None));
        crashed.extend((0..3).map(|seed| disk.crash(point, &mut Choice::torn(seed))));
        for disk in crashed {
            let store = open(&disk).unwrap_or_else(|error| panic!("point {point}: {error}"));
            let found = all(&store, NEWEST);
            as_before += u32::from(found == before);
            as_after += u32::from(found == after);
            assert!(found == before || found == after, "point {point}");
            assert!(store.check().is_clean(), "point {point}");
        }
    }
    assert!(as_before > 10 && as_after > 0, "{as_before} as before, {as_after} as after");
}

#[test]
fn a_held_moment_keeps_what_it_sees() {
    let disk = SimDisk::new(4).without_history();
    let store = open(&disk).unwrap();
    store.tree.set_filter(Box::new(filter));
    write(&store, |at| at % 4);
    let moment = store.context.sequences().visible();
    store.context.sequences().hold(std::iter::once(moment));
    let before = all(&store, moment);
    let seen = || Ok(moment);
    // Newer values are filtered, and those that the moment sees are not.
    let done = store.heap.transaction(Durability::Buffered, |tx| {
        store.tree.write(tx, [(&b"k\x01"[..], Some(&[1, 1][..])), (b"new", Some(&[1]))])
    });
    done.unwrap_or_else(|error: Error| panic!("{error}"));
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    assert!(all(&store, moment) == before);
    assert_eq!(store.get(b"k\x01", NEWEST).unwrap(), None);
    assert_eq!(store.get(b"new", NEWEST).unwrap(), None);
    assert_eq!(all(&store, NEWEST).len(), 39);
    store.context.sequences().hold(std::iter::empty());
    let seen = || Ok(store.context.sequences().visible());
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    assert_eq!(all(&store, NEWEST).len(), 30);
}
