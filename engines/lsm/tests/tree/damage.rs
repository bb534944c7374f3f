//! Files of a tree with a flipped bit, truncated, or missing: errors name the file, the rest stays
//! readable, removed keys do not come back, and a check finds each fault.

use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;

use adamant_heap::{Directory, Durability, MemoryDirectory};
use adamant_lsm::{Error, NEWEST, TableMeta};

use crate::store::{Model, Store, small_options};

fn key(number: u32) -> Vec<u8> {
    format!("k{number:03}").into_bytes()
}

/// A store with tables on two levels, some with range tombstones, and blob files.
fn fill(directory: &Arc<dyn Directory>) -> Model {
    let mut options = small_options();
    // So that only the test causes merges.
    options.level0_tables_max = 100;
    let store = Store::open(directory, options).unwrap();
    let mut model = Model::new();
    let seen = || Ok(store.context.sequences().visible());
    for round in 0..4_u32 {
        let done = store.heap.transaction(Durability::Sync, |transaction| {
            for at in (round..150).step_by(3) {
                let value = vec![round as u8; if at % 7 == 0 { 90 } else { 20 }];
                store.tree.write(transaction, [(&key(at)[..], Some(&value[..]))])?;
                model.insert(key(at), value);
            }
            if round > 0 {
                let (start, end) = (key(30 * round), key(30 * round + 10));
                store.tree.remove_range(transaction, &start, &end)?;
                model.retain(|key, _| *key < start || *key >= end);
            }
            Ok::<(), Error>(())
        });
        done.unwrap();
        store.tree.rotate(&store.heap).unwrap();
        while store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap() {}
        if round == 0 {
            store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
        }
    }
    store.heap.close().unwrap();
    model
}

/// Opens the store with one file damaged. Returns the number of keys for which it gave an error.
fn verify(
    directory: &Arc<dyn Directory>,
    model: &Model,
    (shelf, name): (&str, &str),
    bounds: &RangeInclusive<Vec<u8>>,
    of: &str,
) -> u32 {
    let store = Store::open(directory, small_options()).unwrap();
    let names_it = |error: &Error| {
        let text = error.to_string();
        assert!(text.contains(shelf) && text.contains(name), "{of}: {text}");
        assert!(error.is_damage(), "{of}: {text}");
    };
    let mut unknown = 0;
    for number in 0..160 {
        let key = key(number);
        match store.get(&key, NEWEST) {
            Ok(found) => assert_eq!(found.as_ref().map(|v| v.to_vec()), model.get(&key).cloned()),
            Err(error) => {
                assert!(bounds.contains(&key), "{of}: {key:?} is elsewhere: {error}");
                names_it(&error);
                unknown += 1;
            }
        }
    }
    for forward in [true, false] {
        let all = (Bound::Unbounded, Bound::Unbounded);
        match store.scan(all, forward, NEWEST, 1000) {
            Ok(mut found) => {
                if !forward {
                    found.reverse();
                }
                assert!(found.into_iter().eq(model.clone()), "{of}");
            }
            Err(error) => names_it(&error),
        }
    }
    let report = store.check();
    assert!(!report.is_clean(), "{of}: not found by the check");
    report.findings.iter().for_each(names_it);
    let seen = || Ok(store.context.sequences().visible());
    if let Err(error) = store.tree.compact_all(&store.heap, &seen, &|_| Ok(())) {
        names_it(&error);
    }
    unknown
}

/// The key range of a table, or of the tables that point into a blob file.
fn bounds_of(metas: &[TableMeta]) -> RangeInclusive<Vec<u8>> {
    let low = metas.iter().map(|meta| meta.key_min.to_vec()).min().unwrap();
    let high = metas.iter().map(|meta| meta.key_max.to_vec()).max().unwrap();
    low..=high
}

#[test]
fn damaged_files_are_named_and_the_rest_is_readable() {
    let listed = |directory: &Arc<dyn Directory>| {
        Store::open(directory, small_options()).unwrap().tree.levels().concat()
    };
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    fill(&directory);
    let metas = listed(&directory);
    let mut files: Vec<(&str, String, RangeInclusive<Vec<u8>>, bool)> = Vec::new();
    for meta in &metas {
        let bounds = bounds_of(std::slice::from_ref(meta));
        files.push(("tables", format!("{:04}", meta.number), bounds, meta.range_tombstones > 0));
    }
    for name in directory.subdirectory("blobs").unwrap().list().unwrap() {
        let number: u64 = name.parse().unwrap();
        let points = |meta: &&TableMeta| meta.blob_references.iter().any(|r| r.file == number);
        let pointing: Vec<_> = metas.iter().filter(points).cloned().collect();
        files.push(("blobs", name, bounds_of(&pointing), false));
    }
    let with_ranges = files.iter().filter(|file| file.3).count();
    assert!(with_ranges >= 3 && files.len() > 7, "{with_ranges} of {}", files.len());
    let mut unknown = 0;
    for (shelf, name, bounds, has_ranges) in &files {
        let file = directory.subdirectory(shelf).unwrap().open(name).unwrap().unwrap();
        let len = file.len().unwrap();
        for place in 0..14 {
            // A new store each time: the verified code tries to merge it.
            let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
            let model = fill(&directory);
            let shelf_directory = directory.subdirectory(shelf).unwrap();
            let file = shelf_directory.open(name).unwrap().unwrap();
            let of = format!("{shelf}/{name} of {len} bytes, place {place}");
            match place {
                0 => shelf_directory.remove(name).unwrap(),
                1 => file.set_len(len / 2).unwrap(),
                2 => file.set_len(0).unwrap(),
                _ => {
                    let (mut byte, at) = ([0], (place - 3) * (len - 1) / 10);
                    file.read_at(&mut byte, at).unwrap();
                    byte[0] ^= 1 << (place % 8);
                    file.write_at(&byte, at).unwrap();
                }
            }
            drop(file);
            let keys = verify(&directory, &model, (shelf, name), bounds, &of);
            assert!(place > 2 || keys > 0, "{of}: nothing was missed");
            unknown += keys;
            if *has_ranges && place < 3 {
                // Every key that the range tombstones may cover gives an error.
                let (low, high) = (bounds.start(), bounds.end());
                let within = (0..160).map(key).filter(|key| low <= key && key < high).count();
                assert!(keys as usize >= within, "{of}: {keys} of {within}");
            }
        }
    }
    println!("{} files, {unknown} keys of which nothing could be said", files.len());
}

#[test]
fn what_is_absent_stays_absent_when_a_table_can_be_read_only_later() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let model = fill(&directory);
    let tables = directory.subdirectory("tables").unwrap();
    let metas = Store::open(&directory, small_options()).unwrap().tree.levels().concat();
    let away: Vec<String> = metas
        .iter()
        .filter(|meta| meta.range_tombstones > 0)
        .map(|meta| format!("{:04}", meta.number))
        .collect();
    for name in &away {
        tables.rename(name, &format!("{name}.away")).unwrap();
    }
    let store = Store::open(&directory, small_options()).unwrap();
    assert!(matches!(store.get(&key(31), NEWEST), Err(Error::Missing { .. })));
    for name in &away {
        tables.rename(&format!("{name}.away"), name).unwrap();
    }
    for number in 0..160 {
        let found = store.get(&key(number), NEWEST).unwrap();
        assert_eq!(found.map(|value| value.to_vec()), model.get(&key(number)).cloned());
    }
    let all = (Bound::Unbounded, Bound::Unbounded);
    assert!(store.scan(all, true, NEWEST, 1000).unwrap().into_iter().eq(model));
    assert!(store.check().is_clean());
}

/// A table that a merge cannot read is left alone. Other merges go on; the table is reported, and
/// merged when it is intact again and the tree is compacted by hand.
#[test]
fn a_damaged_table_holds_no_other_merge_up() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let store = Store::open(&directory, small_options()).unwrap();
    let seen = || Ok(store.context.sequences().visible());
    let mut model = Model::new();
    let write = |model: &mut Model, round: u32, numbers: std::ops::Range<u32>| {
        // Noise, which LZ4 does not shrink.
        let mut random = fastrand::Rng::with_seed(round.into());
        let mut value = || (0..40).map(|_| random.u8(..)).collect::<Vec<u8>>();
        let pairs: Vec<_> = numbers.map(|at| (key(at), value())).collect();
        let done = store.heap.transaction(Durability::Sync, |tx| {
            store.tree.write(tx, pairs.iter().map(|(key, value)| (&key[..], Some(&value[..]))))
        });
        done.unwrap();
        model.extend(pairs);
        store.tree.rotate(&store.heap).unwrap();
        while store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap() {}
    };
    write(&mut model, 0, 0..400);
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    let metas = store.tree.levels().concat();
    assert!(metas.len() > 4);
    let damaged = format!("{:04}", metas[1].number);
    let tables = directory.subdirectory("tables").unwrap();
    tables.rename(&damaged, &format!("{damaged}.away")).unwrap();
    let mut failures = 0;
    for round in 1..30 {
        // Each time over all keys, including the damaged table's.
        write(&mut model, round, 0..400);
        for _ in 0..100 {
            match store.tree.compact_once(&store.heap, &seen, &|_| Ok(())) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    assert!(error.is_damage() && error.to_string().contains(&damaged), "{error}");
                    failures += 1;
                }
            }
        }
        let stats = store.tree.stats();
        assert!(stats.levels[0].tables <= 4 && stats.debt < 1.0, "round {round}: {stats:?}");
    }
    assert_eq!(failures, 1, "it is not tried again and again");
    let stats = store.tree.stats();
    assert_eq!(stats.damaged_tables, [metas[1].number]);
    assert!(stats.compactions > 10);
    assert!(!store.check().is_clean());
    tables.rename(&format!("{damaged}.away"), &damaged).unwrap();
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    assert!(store.tree.stats().damaged_tables.is_empty());
    let all = (Bound::Unbounded, Bound::Unbounded);
    assert!(store.scan(all, true, NEWEST, 1000).unwrap().into_iter().eq(model));
    assert!(store.check().is_clean());
}
