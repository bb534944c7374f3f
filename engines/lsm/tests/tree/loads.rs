//! Loads of sorted pairs: beside merges, several in one transaction, undone ones; and tombstones.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adamant_heap::{Directory, Durability, MemoryDirectory, Transaction};
use adamant_lsm::{Error, Load, NEWEST, Options};
use adamant_slice::Slice;

use crate::store::{Store, small_options};

fn store(options: Options) -> Store {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    Store::open(&directory, options).unwrap()
}

fn pairs(keys: &[&str]) -> Vec<(Slice, Slice)> {
    keys.iter().map(|key| (Slice::new(key.as_bytes()), Slice::new(b"value"))).collect()
}

fn commit(store: &Store, work: impl FnOnce(&mut Transaction<'_>) -> Result<(), Error>) {
    store.heap.transaction(Durability::Buffered, work).unwrap();
}

fn prepare(store: &Store, keys: &[&str]) -> Load {
    store.tree.prepare_load(&pairs(keys), 1).unwrap().unwrap()
}

fn load(store: &Store, keys: &[&str]) {
    commit(store, |tx| prepare(store, keys).commit(tx));
}

/// Makes a load part of the tree, and fails then.
fn undone(load: Load, tx: &mut Transaction<'_>) -> Result<(), Error> {
    load.commit(tx)?;
    Err(Error::KeyTooLong { bytes: 0, bytes_max: 0 })
}

fn keys(store: &Store) -> Vec<String> {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let found = store.scan(all, true, NEWEST, 100).unwrap();
    found.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

fn flush(store: &Store) {
    let seen = || Ok(store.context.sequences().visible());
    store.tree.rotate(&store.heap).unwrap();
    while store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap() {}
}

fn assert_is_clean(store: &Store) {
    let report = store.check();
    assert!(report.is_clean(), "{:#?}", report.findings);
}

#[test]
fn a_load_beside_a_merge_whose_inputs_are_around_it() {
    let store = store(small_options());
    for key in ["a", "c", "x", "z"] {
        commit(&store, |tx| store.tree.write(tx, [(key.as_bytes(), Some(&b"1"[..]))]));
        if key == "c" {
            flush(&store);
        }
    }
    flush(&store);
    let seen = || Ok(store.context.sequences().visible());
    // Progress is reported before the merge commits.
    let is_loaded = AtomicBool::new(false);
    store
        .tree
        .compact_all(&store.heap, &seen, &|_| {
            if !is_loaded.swap(true, Ordering::Relaxed) {
                load(&store, &["m", "n"]);
            }
            Ok(())
        })
        .unwrap();
    assert!(is_loaded.into_inner());
    assert_eq!(keys(&store), ["a", "c", "m", "n", "x", "z"]);
    for key in ["a", "c", "m", "n", "x", "z"] {
        assert!(store.get(key.as_bytes(), NEWEST).unwrap().is_some(), "{key}");
    }
    assert_is_clean(&store);
    let seen = || Ok(store.context.sequences().visible());
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    assert_eq!(keys(&store).len(), 6);
    assert_is_clean(&store);
}

#[test]
fn files_that_go_leave_no_descriptors() {
    let store = store(small_options());
    // The first value is in a blob file.
    for value in [&[7; 200][..], b"1"] {
        commit(&store, |tx| store.tree.write(tx, [(&b"a"[..], Some(value))]));
        flush(&store);
        assert_eq!(&*store.get(b"a", NEWEST).unwrap().unwrap(), value);
    }
    assert_eq!(store.context.cache().file_count(), 3);
    let seen = || Ok(store.context.sequences().visible());
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    store.context.delete_obsolete(&store.heap).unwrap();
    assert_eq!(store.context.cache().file_count(), 0);
    assert_eq!(&*store.get(b"a", NEWEST).unwrap().unwrap(), b"1");
}

#[test]
fn several_loads_in_one_transaction() {
    let store = store(small_options());
    let loads = [["a", "b"], ["c", "d"], ["e", "f"]].map(|keys| prepare(&store, &keys));
    commit(&store, |tx| {
        let [first, second, third] = loads;
        first.commit(tx)?;
        assert!(tx.savepoint(|tx| undone(second, tx)).is_err());
        third.commit(tx)
    });
    assert_eq!(keys(&store), ["a", "b", "e", "f"]);
    assert_is_clean(&store);
    let failing = prepare(&store, &["h"]);
    assert!(store.heap.transaction(Durability::Buffered, |tx| undone(failing, tx)).is_err());
    load(&store, &["i"]);
    assert_eq!(keys(&store), ["a", "b", "e", "f", "i"]);
    assert_is_clean(&store);
    let load = prepare(&store, &["j"]);
    commit(&store, |tx| {
        load.commit(tx)?;
        store.tree.destroy(tx)?;
        tx.set_root(crate::store::TREE, 0)?;
        Ok(())
    });
    store.context.delete_obsolete(&store.heap).unwrap();
    assert_eq!(
        store.heap.check().unwrap().blocks,
        1,
        "all blocks are free but the one that counts files"
    );
}

#[test]
fn absences_go_when_nothing_is_below_them() {
    let mut options = small_options();
    options.level0_tables_max = 1;
    let store = store(options);
    let keys: Vec<Vec<u8>> = (0..50_u8).map(|key| vec![key]).collect();
    // An entry on the last level, so that tombstones are not dropped when they are flushed.
    load(&store, &["zz"]);
    commit(&store, |tx| store.tree.write(tx, keys.iter().map(|key| (&key[..], None))));
    flush(&store);
    let seen = || Ok(store.context.sequences().visible());
    while store.tree.compact_once(&store.heap, &seen, &|_| Ok(())).unwrap() {}
    let tombstones: u64 = store.tree.stats().levels.iter().map(|level| level.tombstones).sum();
    assert_eq!(tombstones, 0);
    assert_is_clean(&store);
}

/// Few tombstones wait until no commits come; ranges, which may remove much, are merged at once;
/// and so are tombstones that scans step over.
#[test]
fn tombstones_are_merged_at_the_latest_when_the_store_is_idle() {
    const ENTRIES: u32 = 20_000;
    let seen = |store: &Store| Ok(store.context.sequences().visible());
    for (is_range, is_scanned) in [(false, false), (false, true), (true, false)] {
        let store = store(Options::default());
        let keys: Vec<_> = (0..ENTRIES).map(|key| key.swap_bytes().to_le_bytes()).collect();
        let pairs = keys.iter().map(|key| (&key[..], Some(&[7; 100][..])));
        commit(&store, |tx| store.tree.write(tx, pairs));
        flush(&store);
        store.tree.compact_all(&store.heap, &|| seen(&store), &|_| Ok(())).unwrap();
        let removed = keys[..4_900].iter().map(|key| (&key[..], None));
        commit(&store, |tx| match is_range {
            true => store.tree.remove_range(tx, &keys[0], &keys[4_900]),
            false => store.tree.write(tx, removed),
        });
        flush(&store);
        if is_scanned {
            let view = store.heap.view().unwrap();
            assert!(store.first(&view, true, NEWEST).unwrap().is_some());
            drop(view);
            flush(&store);
        }
        let once = || store.tree.compact_once(&store.heap, &|| seen(&store), &|_| Ok(())).unwrap();
        assert_eq!(once(), is_range || is_scanned, "a range {is_range}, a scan {is_scanned}");
        while store.tree.wants_rest() {
            let at_rest = store.tree.compact_at_rest(&store.heap, &|| seen(&store), &|_| Ok(()));
            assert!(at_rest.unwrap(), "there is work");
        }
        let entries: u64 = store.tree.stats().levels.iter().map(|level| level.entries).sum();
        assert_eq!(entries, u64::from(ENTRIES) - 4_900);
        assert_is_clean(&store);
    }
}

#[test]
fn ranges_that_were_made_empty_fill_a_memtable_and_become_few() {
    let mut options = small_options();
    options.memtable_bytes_max = 1 << 20;
    let store = store(options);
    let mut removed = 0_u64;
    while removed < 1_000 {
        let (start, end) = ([b'a' + (removed % 20) as u8], [b'b' + (removed % 20) as u8]);
        commit(&store, |tx| store.tree.remove_range(tx, &start, &end));
        removed += 1;
    }
    assert!(store.tree.index_bytes() < 16 << 10, "twenty of them are all there is to know");
    let disjoint = |number: u32| [&b"x"[..], &number.swap_bytes().to_le_bytes()].concat();
    while !store.tree.is_full() {
        let number = removed as u32;
        let range = (disjoint(2 * number), disjoint(2 * number + 1));
        commit(&store, |tx| store.tree.remove_range(tx, &range.0, &range.1));
        removed += 1;
        assert!(removed <= 4_000, "memory is bounded");
    }
    commit(&store, |tx| store.tree.remove_range(tx, b"x", b"y"));
    // An entry below, so that they are kept.
    load(&store, &["zz"]);
    flush(&store);
    let kept: u64 = store.tree.stats().levels.iter().map(|level| level.range_tombstones).sum();
    assert!((1..=21).contains(&kept), "{kept} of {removed}");
    assert_is_clean(&store);
}

#[test]
fn files_of_a_load_that_is_undone_go_without_reopening() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let store = Store::open(&directory, small_options()).unwrap();
    let files = || directory.subdirectory("tables").unwrap().list().unwrap().len();
    for is_savepoint in [true, false] {
        let load = prepare(&store, &["k1", "k2"]);
        if is_savepoint {
            let other = prepare(&store, &["a"]);
            commit(&store, |tx| {
                assert!(tx.savepoint(|tx| undone(load, tx)).is_err());
                other.commit(tx)
            });
        } else {
            let work = |tx: &mut Transaction<'_>| undone(load, tx);
            assert!(store.heap.transaction(Durability::Buffered, work).is_err());
        }
        assert_eq!(files(), 2, "that of the load, until a sync says that it was undone");
        store.context.delete_obsolete(&store.heap).unwrap();
        assert_eq!((files(), keys(&store)), (1, vec!["a".to_owned()]));
    }
    assert_is_clean(&store);
}

#[test]
fn threads_that_share_a_load_write_what_one_writes() {
    for threads in 1..=5 {
        let store = store(small_options());
        let names: Vec<String> = (0..7).map(|number| format!("k{number}")).collect();
        let pairs = pairs(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let load = store.tree.prepare_load(&pairs, threads).unwrap().unwrap();
        commit(&store, |tx| load.commit(tx));
        assert_eq!(keys(&store), names);
        let tables: usize = store.tree.levels().iter().map(Vec::len).sum();
        assert_eq!(tables, 7_usize.div_ceil(7_usize.div_ceil(threads)), "{threads} threads");
        assert_is_clean(&store);
    }
}
