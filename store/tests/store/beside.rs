//! Readers beside a writer, as other processes have them: each sees the store after one commit.

use std::collections::BTreeMap;
use std::path::Path;

use adamant::{Engine, Error, Store};

use crate::small::{keyspace, options};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A reader and what it must see.
struct Reader {
    store: Store,
    models: [Model; 2],
}

const ENGINES: [Engine; 2] = [Engine::Bplus, Engine::Lsm];

impl Reader {
    fn open(path: &Path, models: &[Model; 2]) -> Self {
        Self { store: Store::open_beside(path).unwrap(), models: models.clone() }
    }

    fn check(&self, random: &mut fastrand::Rng) {
        for (engine, model) in ENGINES.into_iter().zip(&self.models) {
            let Ok(keyspace) = self.store.open_keyspace(engine.name()) else {
                assert!(model.is_empty());
                continue;
            };
            for _ in 0..20 {
                let key = format!("{:05}", random.u32(..3000)).into_bytes();
                let found = keyspace.get(&key).unwrap();
                assert_eq!(found.as_deref(), model.get(&key).map(Vec::as_slice), "{engine:?}");
            }
        }
    }

    fn check_all(&self) {
        for (engine, model) in ENGINES.into_iter().zip(&self.models) {
            let Ok(keyspace) = self.store.open_keyspace(engine.name()) else { continue };
            let mut expected = model.iter();
            for entry in keyspace.iter() {
                let (key, value) = entry.unwrap();
                let (expected_key, expected_value) = expected.next().expect("no more entries");
                assert!(key == expected_key[..] && value == expected_value[..], "{engine:?}");
            }
            assert!(expected.next().is_none(), "{engine:?}");
        }
        assert!(self.store.check().unwrap().is_clean());
    }
}

/// Writes, merges, shrinks, closes and begins anew, while readers come and go.
#[test]
fn readers_see_the_commit_that_they_opened_at() {
    for seed in 0..4 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let mut store = Store::open_with(&path, options()).unwrap();
        let mut models: [Model; 2] = Default::default();
        let mut readers: Vec<Reader> = Vec::new();
        for _ in 0..150 {
            match random.u32(..20) {
                0 => {
                    store.close().unwrap();
                    store = Store::open_with(&path, options()).unwrap();
                }
                1 => store.compact().unwrap(),
                2 => {
                    store.shrink().unwrap();
                }
                3 => store.drop_keyspace(Engine::Lsm.name()).map_or((), |_| models[1].clear()),
                4..7 => readers.push(Reader::open(&path, &models)),
                7 if !readers.is_empty() => {
                    readers.swap_remove(random.usize(..readers.len()));
                }
                8..11 if !readers.is_empty() => {
                    let at = random.usize(..readers.len());
                    let reader = &mut readers[at];
                    let held = (random.u8(..4) == 0).then(|| Reader {
                        store: reader.store.clone(),
                        models: reader.models.clone(),
                    });
                    reader.store.refresh().unwrap();
                    reader.models = models.clone();
                    // A handle that was made before shows what it showed.
                    held.inspect(Reader::check_all);
                }
                _ => {
                    let mut batch = store.batch();
                    for (engine, model) in ENGINES.into_iter().zip(&mut models) {
                        let keyspace = keyspace(&store, engine);
                        for _ in 0..random.usize(..400) {
                            let key = format!("{:05}", random.u32(..3000)).into_bytes();
                            if random.u8(..4) == 0 {
                                batch.delete(&keyspace, &key).unwrap();
                                model.remove(&key);
                                continue;
                            }
                            let len = if random.u8(..20) == 0 { 2000 } else { random.usize(..200) };
                            let value = vec![random.u8(..); len];
                            batch.put(&keyspace, &key, &value).unwrap();
                            model.insert(key, value);
                        }
                    }
                    batch.commit().unwrap();
                }
            }
            readers.iter().for_each(|reader| reader.check(&mut random));
            if readers.len() > 5 {
                readers.remove(0).check_all();
            }
        }
        readers.iter().for_each(Reader::check_all);
    }
}

/// Handles that are left keep what they show.
#[test]
fn a_reader_follows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    // No thread commits beside the test.
    let options = || options().background(false);
    let mut writer = Store::open_with(&path, options()).unwrap();
    assert!(!writer.refresh().unwrap());
    let towns = ENGINES.map(|engine| keyspace(&writer, engine));
    let put = |value: &str| towns.iter().for_each(|towns| towns.put("Bern", value).unwrap());
    put("1");
    let mut reader = Store::open_beside(&path).unwrap();
    let of = |reader: &Store| {
        let all = ENGINES.map(|engine| {
            let towns = reader.open_keyspace(engine.name()).unwrap();
            String::from_utf8(towns.get("Bern").unwrap().unwrap().to_vec()).unwrap()
        });
        assert_eq!(all[0], all[1]);
        all[0].clone()
    };
    assert_eq!(of(&reader), "1");
    put("2");
    assert!(reader.refresh().unwrap());
    assert_eq!(of(&reader), "2");
    let held = reader.open_keyspace(ENGINES[0].name()).unwrap();
    assert!(!reader.refresh().unwrap());
    put("3");
    assert!(reader.refresh().unwrap());
    assert_eq!(held.get("Bern").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(of(&reader), "3");
    // A value that is lent.
    let value = reader.open_keyspace(ENGINES[0].name()).unwrap().get("Bern").unwrap();
    let snapshot = reader.snapshot().unwrap();
    put("4");
    assert!(reader.refresh().unwrap());
    assert_eq!(value.as_deref(), Some(&b"3"[..]));
    assert!(snapshot.get(&held, "Bern").is_err(), "of an earlier store");
    assert_eq!(of(&reader), "4");
    // The writer ends, and another one begins.
    drop(snapshot);
    put("5");
    drop(towns);
    writer.close().unwrap();
    let writer = Store::open_with(&path, options()).unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!(of(&reader), "5");
    keyspace(&writer, ENGINES[1]).put("Bern", "6").unwrap();
    keyspace(&writer, ENGINES[0]).put("Bern", "6").unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!(of(&reader), "6");
    writer.drop_keyspace(ENGINES[0].name()).unwrap();
    writer.create_keyspace("new").unwrap();
    assert!(reader.refresh().unwrap());
    assert!(reader.open_keyspace(ENGINES[0].name()).is_err());
    assert!(reader.open_keyspace("new").unwrap().is_empty().unwrap());
    assert!(reader.check().unwrap().is_clean());
}

/// What is kept for readers has a bound: a reader that needs more gets errors, and no other value.
#[test]
#[cfg_attr(windows, ignore = "files that are open stay there")]
fn a_reader_that_needs_too_much_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, options().reader_bytes_max(1 << 20)).unwrap();
    let fill = |round: u8| {
        for engine in ENGINES {
            let keyspace = keyspace(&store, engine);
            let mut batch = store.batch();
            for number in 0..5000_u32 {
                batch.put(&keyspace, format!("{number:05}"), [round; 500]).unwrap();
            }
            batch.commit().unwrap();
        }
    };
    let files =
        || ["tables", "blobs"].map(|name| std::fs::read_dir(path.join(name)).unwrap().count());
    fill(0);
    store.compact().unwrap();
    let reader = Store::open_beside(&path).unwrap();
    let keyspaces = ENGINES.map(|engine| reader.open_keyspace(engine.name()).unwrap());
    for round in 1..8 {
        fill(round);
        store.compact().unwrap();
    }
    assert!(files()[0] < 200, "{:?} files are kept", files());
    for (engine, keyspace) in ENGINES.into_iter().zip(keyspaces) {
        let mut told = 0;
        for number in 0..5000_u32 {
            match keyspace.get(format!("{number:05}")) {
                Ok(found) => assert_eq!(found.unwrap()[0], 0, "{engine:?}"),
                Err(_) => told += 1,
            }
        }
        assert!(told > 0, "{engine:?}");
    }
}

#[test]
fn a_reader_keeps_no_writer_out_and_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    assert!(matches!(Store::open_beside(&path), Err(Error::Missing { .. })));
    let store = Store::open_with(&path, options()).unwrap();
    store.keyspace("towns").unwrap().put("Bern", "134,000").unwrap();
    store.close().unwrap();
    let reader = Store::open_beside(&path).unwrap();
    let store = Store::open_with(&path, options()).unwrap();
    store.keyspace("towns").unwrap().put("Bern", "0").unwrap();
    assert!(matches!(Store::open_read_only(&path), Err(Error::Locked { .. })));
    let towns = reader.open_keyspace("towns").unwrap();
    assert_eq!(towns.get("Bern").unwrap().as_deref(), Some(&b"134,000"[..]));
    assert!(towns.put("Bern", "1").unwrap_err().is_read_only());
    // A backup is of that moment, too.
    reader.backup(directory.path().join("copy")).unwrap();
    let copy = Store::open_read_only(directory.path().join("copy")).unwrap();
    let found = copy.open_keyspace("towns").unwrap().get("Bern").unwrap();
    assert_eq!(found.as_deref(), Some(&b"134,000"[..]));
    drop(towns);
    reader.close().unwrap();
    assert!(std::fs::read_dir(path.join("readers")).unwrap().next().is_none());
}

/// A store that is made anew under the same path is followed: no reader stays with files that are
/// removed.
#[test]
#[cfg_attr(windows, ignore = "what a reader has open is not renamed there")]
fn readers_follow_a_store_that_is_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    for is_closed in [true, false] {
        let store = Store::open(&path).unwrap();
        let towns = store.keyspace("towns").unwrap();
        store.record_changes(Some(1 << 20)).unwrap();
        towns.put("Bern", "1").unwrap();
        let last = store.last_change().unwrap();
        drop(towns);
        let open = (!is_closed).then_some(store);
        let mut readers =
            [false, true].map(|is_held| (is_held, Store::open_beside(&path).unwrap()));
        let mut changes = readers[0].1.changes(last).unwrap();
        drop(open);
        adamant::compact(&path).unwrap();
        let store = Store::open(&path).unwrap();
        store.keyspace("towns").unwrap().put("Bern", "2").unwrap();
        for (is_held, reader) in &mut readers {
            let held = is_held.then(|| reader.keyspace("towns").unwrap());
            assert!(reader.wait_for_change(std::time::Duration::from_secs(10)).unwrap());
            assert!(reader.refresh().unwrap(), "{is_closed} {is_held}");
            let found = reader.keyspace("towns").unwrap().get("Bern").unwrap();
            assert_eq!(found, Some("2".into()), "{is_closed} {is_held}");
            drop(held);
        }
        let commit = changes.next_within(std::time::Duration::from_secs(10)).unwrap().unwrap();
        assert_eq!(commit.number, last + 1);
    }
}
