//! Persistent savepoints: each shows the commit that it was made at, whatever comes later.

use std::collections::BTreeMap;
use std::path::Path;

use adamant::{
    Durability, Engine, Error, Keyspace, KeyspaceOptions, LsmOptions, Options, SavepointState,
    Store,
};

type Model = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

const ENGINES: [Engine; 2] = [Engine::Bplus, Engine::Lsm];

fn options() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 64 << 10;
    lsm.table_bytes_max = 64 << 10;
    lsm.base_bytes_min = 128 << 10;
    lsm.level0_tables_max = 3;
    lsm.level_ratio = 4;
    lsm.blob_bytes_min = Some(1000);
    Options::new().durability(Durability::Buffered).lsm(lsm).log_bytes_max(4 << 20)
}

fn keyspace(store: &Store, engine: Engine) -> Keyspace {
    store.keyspace_with(engine.name(), KeyspaceOptions::new().engine(engine)).unwrap()
}

/// Panics unless a store has exactly what a model has.
#[track_caller]
fn verify(store: &Store, models: &Model, how: &str) {
    for (engine, model) in ENGINES.into_iter().zip(models) {
        let Ok(keyspace) = store.open_keyspace(engine.name()) else {
            assert!(model.is_empty(), "{how}: no keyspace {engine:?}");
            continue;
        };
        let mut expected = model.iter();
        for entry in keyspace.iter() {
            let (key, value) = entry.unwrap_or_else(|error| panic!("{how}, {engine:?}: {error}"));
            let (expected_key, expected_value) = expected.next().expect("no more entries");
            assert!(key == expected_key[..] && value == expected_value[..], "{how}: {engine:?}");
        }
        assert!(expected.next().is_none(), "{how}: {engine:?} ends too soon");
    }
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{how}: {:?}", report.findings);
}

fn change(store: &Store, models: &mut Model, random: &mut fastrand::Rng) {
    let engine = random.usize(..2);
    let (keyspace, model) = (keyspace(store, ENGINES[engine]), &mut models[engine]);
    let mut batch = store.batch();
    for _ in 0..random.u32(1..60) {
        let key = format!("{:05}", random.u32(..3000)).into_bytes();
        if random.u8(..4) == 0 {
            batch.delete(&keyspace, &key).unwrap();
            model.remove(&key);
            continue;
        }
        let bytes_max = if random.u8(..9) == 0 { 6000 } else { 200 };
        let value = vec![random.u8(..); random.usize(..bytes_max)];
        batch.put(&keyspace, &key, &value).unwrap();
        model.insert(key, value);
    }
    batch.commit().unwrap();
}

/// What a savepoint must show.
type Made = Vec<(String, Model)>;

fn verify_all(store: &Store, made: &Made, how: &str) {
    let names: Vec<_> = store.savepoints().unwrap().into_iter().map(|it| it.name).collect();
    let expected: Vec<_> = made.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, expected, "{how}");
    for (name, models) in made {
        verify(&store.open_savepoint(name).unwrap(), models, &format!("{how}, {name}"));
    }
}

fn open(path: &Path) -> Store {
    Store::open_with(path, options()).unwrap()
}

/// Random work on both engines, with savepoints that come and go, reopenings, drops without
/// closing, and going back.
#[test]
fn each_savepoint_shows_its_moment() {
    let (mut backs, mut reads) = (0, 0);
    for seed in 0..3 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let mut store = open(&path);
        let (mut models, mut made) = (Model::default(), Made::new());
        for step in 0..120 {
            let how = format!("seed {seed}, step {step}");
            match random.u32(..24) {
                0..3 if made.len() < 5 => {
                    let name = format!("at {step}");
                    store.create_savepoint(&name).unwrap();
                    made.push((name, models.clone()));
                }
                3 if !made.is_empty() => {
                    let (name, _) = made.remove(random.usize(..made.len()));
                    assert!(store.delete_savepoint(&name).unwrap(), "{how}");
                }
                4 => {
                    store.close().unwrap();
                    store = open(&path);
                }
                5 => {
                    drop(store);
                    store = open(&path);
                }
                6 => store.compact().unwrap(),
                7 => drop(store.shrink().unwrap()),
                8 => {
                    store.drop_keyspace(ENGINES[step % 2].name()).unwrap();
                    models[step % 2].clear();
                }
                9 if !made.is_empty() => {
                    let (name, old) = made[random.usize(..made.len())].clone();
                    store.close().unwrap();
                    adamant::go_back_with(&path, &name, options()).unwrap();
                    models = old;
                    store = open(&path);
                    verify(&store, &models, &how);
                    verify_all(&store, &made, &how);
                    backs += 1;
                }
                10 if !made.is_empty() => {
                    let (name, old) = &made[random.usize(..made.len())];
                    verify(&store.open_savepoint(name).unwrap(), old, &how);
                    reads += 1;
                }
                _ => change(&store, &mut models, &mut random),
            }
        }
        verify(&store, &models, "at the end");
        verify_all(&store, &made, "at the end");
        store.close().unwrap();
        let store = Store::open_read_only(&path).unwrap();
        verify_all(&store, &made, "for reading only");
        drop(store);
        // Without them nothing is left.
        let store = open(&path);
        made.iter().for_each(|(name, _)| assert!(store.delete_savepoint(name).unwrap()));
        assert!(store.savepoints().unwrap().is_empty());
        let left: Vec<_> = path.join("savepoints").read_dir().into_iter().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
        verify(&store, &models, "without savepoints");
    }
    assert!(backs > 3 && reads > 5, "{backs} times back, {reads} reads");
}

/// A savepoint that is open stays readable while pages are overwritten, also those that it has not
/// loaded yet.
#[test]
fn a_savepoint_is_read_while_its_store_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    let (mut models, mut random) = (Model::default(), fastrand::Rng::with_seed(1));
    (0..60).for_each(|_| change(&store, &mut models, &mut random));
    store.create_savepoint("one").unwrap();
    let (one, old) = (store.open_savepoint("one").unwrap(), models.clone());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            for _ in 0..20 {
                verify(&store.open_savepoint("one").unwrap(), &old, "beside a writer");
            }
        });
        while !reader.is_finished() {
            change(&store, &mut models, &mut random);
            if random.u8(..20) == 0 {
                store.compact().unwrap();
            }
        }
    });
    verify(&one, &old, "opened before all writes");
    let error = one.keyspace("bplus").unwrap().put("a", "b").unwrap_err();
    assert!(error.is_read_only(), "{error}");
    assert!(store.delete_savepoint("one").is_err(), "it is open");
    one.close().unwrap();
    assert!(store.delete_savepoint("one").unwrap());
    verify(&store, &models, "the store itself");
}

#[test]
fn a_savepoint_is_not_read_behind_its_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    let (mut models, mut random) = (Model::default(), fastrand::Rng::with_seed(2));
    (0..40).for_each(|_| change(&store, &mut models, &mut random));
    store.create_savepoint("one").unwrap();
    let (one, old) = (store.open_savepoint("one").unwrap(), models.clone());
    // Handles of the store may go: it is open as long as its savepoint is.
    drop(store);
    verify(&one, &old, "behind the last handle");
    assert!(matches!(Store::open(&path), Err(Error::Locked { .. })));
    drop(one);
    let store = open(&path);
    let one = store.open_savepoint("one").unwrap();
    store.close().unwrap();
    let store = open(&path);
    change(&store, &mut models, &mut random);
    let failed = ENGINES.iter().any(|engine| match one.open_keyspace(engine.name()) {
        Ok(keyspace) => keyspace.iter().any(|entry| entry.is_err()),
        Err(_) => true,
    });
    assert!(failed, "another one may write the pool");
}

#[test]
fn names_and_refusals() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    assert!(matches!(store.open_savepoint("one"), Err(Error::UnknownSavepoint { .. })));
    assert!(!store.delete_savepoint("one").unwrap());
    assert!(matches!(store.create_savepoint(""), Err(Error::SavepointName { bytes: 0, .. })));
    let long = "x".repeat(256);
    assert!(matches!(store.create_savepoint(&long), Err(Error::SavepointName { .. })));
    store.keyspace("a").unwrap().put("1", "one").unwrap();
    let odd = "../a b/\u{1F600}";
    for name in [odd, &long[1..]] {
        store.create_savepoint(name).unwrap();
        assert!(matches!(store.create_savepoint(name), Err(Error::SavepointExists { .. })));
    }
    let found = store.savepoints().unwrap();
    assert_eq!((found.len(), &found[0].name[..]), (2, odd));
    assert!(found.iter().all(|it| it.state == SavepointState::Whole && it.made.is_some()));
    // A savepoint of a savepoint is none.
    let one = store.open_savepoint(odd).unwrap();
    assert!(one.create_savepoint("two").is_err() && one.savepoints().unwrap().is_empty());
    // It can be copied.
    let copy = directory.path().join("copy");
    one.backup(&copy).unwrap();
    let copy = Store::open(&copy).unwrap();
    assert_eq!(copy.keyspace("a").unwrap().get("1").unwrap(), Some("one".into()));
    assert!(copy.savepoints().unwrap().is_empty(), "a backup has none");
    drop(one);
    // Neither beside a writer, nor where another one would have to write.
    let beside = Store::open_beside(&path).unwrap();
    for error in [beside.savepoints().unwrap_err(), beside.open_savepoint(odd).unwrap_err()] {
        assert!(error.to_string().contains("not beside a writer"), "{error}");
    }
    assert!(matches!(adamant::go_back(&path, odd), Err(Error::Locked { .. })));
    store.close().unwrap();
    let error = adamant::go_back(&path, odd).unwrap_err();
    assert!(error.to_string().contains("end them first"), "{error}");
    drop(beside);
    assert!(matches!(adamant::go_back(&path, "two"), Err(Error::UnknownSavepoint { .. })));
    match adamant::compact(&path) {
        Err(Error::HasSavepoints { names, .. }) => assert_eq!(names.len(), 2),
        other => panic!("{other:?}"),
    }
    let store = Store::open_read_only(&path).unwrap();
    assert!(store.create_savepoint("two").unwrap_err().is_read_only());
    assert!(store.delete_savepoint(odd).unwrap_err().is_read_only());
}

/// What a savepoint holds is told, and given back: pages and files of LSM trees.
#[test]
fn bytes_that_savepoints_hold() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    let [tree, lsm] = ENGINES.map(|engine| keyspace(&store, engine));
    let fill = |keyspace: &Keyspace, byte: u8| {
        keyspace.extend((0..2000).map(|n| (format!("{n:05}"), vec![byte; 500]))).unwrap();
    };
    let bytes = || store.savepoints().unwrap().iter().map(|it| it.bytes).collect::<Vec<_>>();
    fill(&tree, 1);
    fill(&lsm, 1);
    lsm.compact().unwrap();
    store.create_savepoint("one").unwrap();
    let first = bytes()[0];
    assert!(first < 1 << 20, "{first}: nothing but its file");
    fill(&tree, 2);
    store.compact().unwrap();
    let with_pages = bytes()[0];
    assert!(with_pages > first + (300 << 10), "{with_pages}");
    store.create_savepoint("two").unwrap();
    fill(&lsm, 2);
    fill(&tree, 3);
    store.compact().unwrap();
    let both = bytes();
    assert_eq!(both[0], with_pages, "the last one that needs something holds it");
    assert!(both[1] > first + (300 << 10), "{both:?}");
    let held = |folder: &str| path.join(folder).read_dir().unwrap().count();
    let (tables, kept) = (held("tables"), held("savepoints"));
    assert!(store.delete_savepoint("two").unwrap());
    assert_eq!(held("tables"), tables, "the first one has the same files");
    assert!(store.delete_savepoint("one").unwrap());
    assert!(held("tables") < tables && held("savepoints") == 0 && kept > 3);
}
