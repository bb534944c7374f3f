//! Merge operands that earlier code wrote and did not fold open, read as what they stand for, and
//! take more; so do the savepoints between them, the multimap and the expiring keyspace beside.

use std::fs;
use std::path::Path;

use adamant::{Deadline, Error, KeyspaceKind, LsmError, Options, SavepointState, Store};
use adamant_golden::operands::{self, KEYSPACES, Model, ROUNDS, SAVEPOINTS, merged, model};
use adamant_golden::{Set, content, image};

use crate::images::{stored, unpacked};

const SET: Set = Set::Operands;
const IMAGES: [&str; 2] = ["clean.runs", "crashed.runs"];

fn open(path: &Path) -> Store {
    Store::open_with(path, SET.options()).unwrap()
}

/// Panics unless each keyspace with an operator holds what the model tells.
#[track_caller]
fn verify(store: &Store, model: &Model, how: &str) {
    for (name, entries) in model {
        let keyspace = store.open_keyspace(name).unwrap();
        for (key, value) in entries {
            let found = keyspace.get(key).unwrap();
            assert_eq!(found.as_deref(), Some(&value[..]), "{how}, {name}: {key:?}");
        }
        let found: Vec<_> = keyspace.iter().map(Result::unwrap).collect();
        let is_equal = found.iter().map(|(key, value)| (&key[..], &value[..]));
        assert!(is_equal.eq(entries.iter().map(|(key, value)| (&key[..], &value[..]))), "{how}");
    }
}

#[track_caller]
fn verify_savepoints(store: &Store, how: &str) {
    let found = store.savepoints().unwrap();
    let names: Vec<_> = found.iter().map(|savepoint| &savepoint.name[..]).collect();
    assert_eq!(names, SAVEPOINTS.map(|(name, _)| name), "{how}");
    assert!(found.iter().all(|savepoint| savepoint.state == SavepointState::Whole), "{how}");
    for (name, rounds) in SAVEPOINTS {
        let savepoint = store.open_savepoint(name).unwrap();
        verify(&savepoint, &model(rounds), &format!("{how}, {name}"));
        assert!(savepoint.check().unwrap().is_clean(), "{how}, {name}");
    }
}

/// One merge to every key that there is, and to one that there is not.
fn merge_further(store: &Store, model: &mut Model) {
    for (name, _, operator) in KEYSPACES {
        let keyspace = store.open_keyspace(name).unwrap();
        let operand = if operator == "add" { 7_u64.to_le_bytes().to_vec() } else { b"7".to_vec() };
        let entries = model.get_mut(name).unwrap();
        for (key, value) in &mut *entries {
            keyspace.merge(key, &operand).unwrap();
            *value = merged(operator, value, &operand);
        }
        keyspace.merge("new", &operand).unwrap();
        entries.insert(b"new".to_vec(), operand);
    }
}

/// Read, merged further, checked, backed up, folded, and opened again.
#[test]
fn operands_are_merged_as_they_were() {
    let expected = stored(&SET.folder().join("content.txt"));
    assert!(expected.lines().count() > 400, "the list of entries was cut off");
    for name in IMAGES {
        let (directory, path) = unpacked(&SET.folder().join(name));
        let packed = image::pack(&path).unwrap();
        let store = Store::open_with(&path, SET.options().read_only(true)).unwrap();
        assert!(content::describe(&store).unwrap() == expected, "{name}: readers see another");
        verify(&store, &model(ROUNDS), name);
        assert!(store.check().unwrap().is_clean());
        store.close().unwrap();
        assert!(image::pack(&path).unwrap() == packed, "{name} was changed by a reader");

        let store = open(&path);
        assert!(content::describe(&store).unwrap() == expected, "{name} holds something else");
        for (name, engine, operator) in KEYSPACES {
            let infos = store.keyspaces().unwrap();
            let info = infos.into_iter().find(|info| info.name == name).unwrap();
            assert_eq!((info.engine, info.merge_operator.as_deref()), (engine, Some(operator)));
        }
        let mut model = model(ROUNDS);
        merge_further(&store, &mut model);
        verify(&store, &model, name);
        let report = store.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.findings);

        let backup = directory.path().join("backup");
        store.backup(&backup).unwrap();
        let entries = content::entries(&store).unwrap();
        let copy = open(&backup);
        assert!(content::entries(&copy).unwrap() == entries, "{name}: the backup is another");
        assert!(copy.savepoints().unwrap().is_empty(), "a backup has none");
        merge_further(&copy, &mut model.clone());
        assert!(copy.check().unwrap().is_clean());

        for (name, ..) in KEYSPACES {
            store.open_keyspace(name).unwrap().compact().unwrap();
        }
        verify(&store, &model, name);
        verify_savepoints(&store, name);
        store.close().unwrap();
        let store = open(&path);
        verify(&store, &model, name);
        verify_savepoints(&store, name);
        assert!(store.check().unwrap().is_clean());
    }
}

/// One goes back to the earlier savepoint, merges, and forward again.
#[test]
fn savepoints_are_gone_back_to() {
    for name in IMAGES {
        let (_directory, path) = unpacked(&SET.folder().join(name));
        verify_savepoints(&open(&path), name);
        for (savepoint, rounds) in SAVEPOINTS {
            adamant::go_back_with(&path, savepoint, SET.options()).unwrap();
            let store = open(&path);
            let mut model = model(rounds);
            verify(&store, &model, savepoint);
            merge_further(&store, &mut model);
            verify(&store, &model, savepoint);
            verify_savepoints(&store, savepoint);
            assert!(store.check().unwrap().is_clean());
            store.close().unwrap();
        }
    }
}

/// The images show what they are for: the head of format 6, operands that no table and no memtable
/// has folded, tables on several levels, a blob below operands, pages that were kept.
#[test]
fn images_show_operands_that_are_not_folded() {
    for name in IMAGES {
        let (_directory, path) = unpacked(&SET.folder().join(name));
        let kept = fs::read_dir(path.join("savepoints")).unwrap();
        let kept = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let is_pages = |file: &String| Path::new(file).extension().is_some_and(|it| it == "pages");
        assert!(kept.filter(is_pages).count() > 0, "{name}");

        // Without its operator nothing is folded, not even for a reader.
        let unregistered = Options::new().read_only(true);
        let store = Store::open_with(&path, unregistered).unwrap();
        let refused = |name: &str| {
            let keyspace = store.open_keyspace(name).unwrap();
            let keys: Vec<_> = keyspace.iter().keys().map(Result::unwrap).collect();
            let is_refused = |key: &&adamant::Slice| match keyspace.get(key) {
                Ok(value) => value.is_none(),
                Err(Error::Lsm { error: LsmError::NoOperator { .. }, .. }) => true,
                Err(other) => panic!("{other}"),
            };
            (keys.iter().filter(is_refused).count(), keys.len())
        };
        assert_eq!(refused("tree joined").0, 0, "{name}: trees merge at once");
        let (operands, keys) = refused("joined");
        assert!(operands >= 15 && operands <= keys, "{name}: {operands} of {keys}");
        drop(store);

        let store = Store::open_with(&path, SET.options().read_only(true)).unwrap();
        for keyspace in ["counters", "joined", "lists"] {
            let keyspace = store.open_keyspace(keyspace).unwrap();
            let stats = keyspace.lsm().unwrap().stats().unwrap();
            assert!(stats.memtables[0].entries > 0, "{name}: {stats:?}");
            let levels = stats.levels.iter().filter(|level| level.tables > 0).count();
            assert!(levels >= 2, "{name}: {stats:?}");
        }
        let lists = store.open_keyspace("lists").unwrap().lsm().unwrap().stats().unwrap();
        assert!(lists.blobs.files > 0, "{name}: {lists:?}");
    }
    let (_directory, path) = unpacked(&SET.folder().join("clean.runs"));
    let pool = fs::read(path.join("pool")).unwrap();
    let head = pool.windows(12).find(|bytes| bytes.starts_with(b"AdamStor")).unwrap();
    assert_eq!(head[8..], [6, 0, 0, 0], "the format of the store's head");
}

/// The multimap and the expiring keyspace beside them are what they were.
#[test]
fn pairs_and_leases_are_as_they_were() {
    for name in IMAGES {
        let (_directory, path) = unpacked(&SET.folder().join(name));
        let store = open(&path);
        let rounds_of = store.open_multimap(operands::ROUNDS_OF).unwrap();
        assert!(rounds_of.typed::<String, i64>().is_err(), "other types were recorded");
        let rounds_of = rounds_of.typed::<String, u32>().unwrap();
        assert_eq!(rounds_of.len().unwrap(), u64::from(ROUNDS * 6));
        let rounds: Vec<u32> = rounds_of.get("key 00").map(Result::unwrap).collect();
        let is_one = |round: &u32| (0..6).any(|step| (round * 5 + step * 7).is_multiple_of(24));
        assert_eq!(rounds, (0..ROUNDS).filter(is_one).collect::<Vec<_>>());
        assert!(rounds_of.insert("key 00", &ROUNDS).unwrap());

        let leases = store.open_expiring(operands::LEASES).unwrap();
        assert_eq!(leases.with_clock(|| 0).len().unwrap(), operands::LEASE_COUNT - 1);
        let now = leases.with_clock(|| 1_500);
        for number in 0..operands::LEASE_COUNT {
            let key = format!("lease {number:02}");
            let ends = if number == 6 { Some(1_500) } else { operands::lease_ends(number) };
            let is_there = number != 4 && ends.is_none_or(|millis| millis > 1_500);
            let holder = format!("holder {number}");
            let expected = is_there.then(|| (holder.into(), ends.map(Deadline::from_millis)));
            assert_eq!(now.get_with_deadline(&key).unwrap(), expected, "{name}: {key}");
        }
        assert_eq!(now.remove_expired(1_000).unwrap(), 10, "nine of 1970, and lease 06");
        assert!(store.check().unwrap().is_clean());
        let infos = store.keyspaces().unwrap();
        let of = |kind| infos.iter().filter(|info| info.kind == kind).count();
        assert_eq!((of(KeyspaceKind::Multimap), of(KeyspaceKind::Expiring)), (1, 1));
    }
}
