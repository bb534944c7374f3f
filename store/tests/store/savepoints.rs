//! Persistent savepoints: each shows the commit that it was made at, whatever comes later.

use std::collections::BTreeMap;
use std::path::Path;

use adamant::{Engine, Error, Keyspace, SavepointState, Store};

use crate::small::{keyspace, options};

pub(crate) type Model = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

const ENGINES: [Engine; 2] = [Engine::Bplus, Engine::Lsm];

/// Panics unless a store has exactly what a model has.
#[track_caller]
pub(crate) fn verify(store: &Store, models: &Model, how: &str) {
    verify_entries(store, models, how);
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{how}: {:?}", report.findings);
}

#[track_caller]
fn verify_entries(store: &Store, models: &Model, how: &str) {
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
}

pub(crate) fn change(store: &Store, models: &mut Model, random: &mut fastrand::Rng) {
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

pub(crate) fn open(path: &Path) -> Store {
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

/// Keys and values.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads all that a savepoint shows; an error if a part of it cannot be read.
fn read(store: &Store, name: &str) -> Result<Pairs, Error> {
    let savepoint = store.open_savepoint(name)?;
    let mut found = Vec::new();
    for engine in ENGINES {
        for entry in savepoint.open_keyspace(engine.name())?.iter() {
            let (key, value) = entry?;
            found.push((key.to_vec(), value.to_vec()));
        }
    }
    Ok(found)
}

/// A flipped bit anywhere in what a savepoint has is an error, or shows nothing else; and the store
/// goes on, with it or without.
#[test]
fn damage_is_never_a_wrong_value() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    let (mut models, mut random) = (Model::default(), fastrand::Rng::with_seed(3));
    (0..12).for_each(|_| change(&store, &mut models, &mut random));
    store.create_savepoint("one").unwrap();
    let expected = read(&store, "one").unwrap();
    (0..30).for_each(|_| change(&store, &mut models, &mut random));
    store.shrink().unwrap();
    store.close().unwrap();
    let (mut refused, mut same) = (0, 0);
    let files: Vec<_> = path.join("savepoints").read_dir().unwrap().collect();
    assert!(files.len() >= 2, "a savepoint and its pages");
    for file in files {
        let file = file.unwrap().path();
        let whole = std::fs::read(&file).unwrap();
        let ends = [0..120, 4090..4300].into_iter().flatten();
        let others = (0..whole.len()).step_by(whole.len() / 40 + 1);
        for at in ends.chain(others).filter(|at| *at < whole.len()) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&file, &bytes).unwrap();
            let store = Store::open_read_only(&path).unwrap();
            match read(&store, "one") {
                Ok(found) => {
                    assert!(found == expected, "byte {at} of {file:?}");
                    same += 1;
                }
                Err(_) => refused += 1,
            }
        }
        // One that is cut, and one that is not there.
        for len in [0, 100, 5000, whole.len() - 1] {
            std::fs::write(&file, &whole[..len]).unwrap();
            let store = Store::open_read_only(&path).unwrap();
            assert!(read(&store, "one").is_err(), "{len} bytes of {file:?}");
        }
        std::fs::remove_file(&file).unwrap();
        let store = Store::open_read_only(&path).unwrap();
        let found = read(&store, "one");
        assert!(found.is_err() || found.is_ok_and(|found| found == expected), "without {file:?}");
        drop(store);
        std::fs::write(&file, &whole).unwrap();
    }
    println!("{refused} refused, {same} the same");
    assert!(refused > 200, "{refused}");
    // A damaged one is listed, does not keep the store from working, and can be deleted.
    let name = path.join("savepoints").read_dir().unwrap().map(|it| it.unwrap().path());
    let file = name.into_iter().find(|it| it.extension().is_some_and(|it| it == "savepoint"));
    let file = file.unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let store = open(&path);
    let found = store.savepoints().unwrap();
    assert_eq!((found.len(), found[0].state), (1, SavepointState::Damaged));
    (0..5).for_each(|_| change(&store, &mut models, &mut random));
    store.compact().unwrap();
    verify_entries(&store, &models, "beside a damaged savepoint");
    let findings = store.check().unwrap().findings;
    assert!(findings.len() == 1 && findings[0].place.contains(".savepoint"), "{findings:?}");
    assert!(store.delete_savepoint(&found[0].name).unwrap());
    assert_eq!(path.join("savepoints").read_dir().unwrap().count(), 0);
    verify(&store, &models, "without it");
}

/// A version of this program that knows no savepoints overwrites pages and keeps nothing: that is
/// noticed when they are read.
#[test]
fn pages_that_nobody_kept_are_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    let tree = keyspace(&store, Engine::Bplus);
    keyspace(&store, Engine::Lsm);
    let fill = |byte: u8| {
        tree.extend((0..500).map(|n| (format!("{n:05}"), vec![byte; 300]))).unwrap();
    };
    fill(1);
    store.create_savepoint("one").unwrap();
    let hidden = directory.path().join("hidden");
    store.close().unwrap();
    std::fs::rename(path.join("savepoints"), &hidden).unwrap();
    let store = open(&path);
    let again = keyspace(&store, Engine::Bplus);
    again.extend((0..500).map(|n| (format!("{n:05}"), vec![2; 300]))).unwrap();
    store.close().unwrap();
    std::fs::rename(hidden, path.join("savepoints")).unwrap();
    let store = open(&path);
    assert!(read(&store, "one").is_err());
    assert!(store.delete_savepoint("one").unwrap());
}

/// Back to before there was an LSM tree, and on with a new one: its files get numbers that no file
/// has that a savepoint needs.
#[test]
fn files_of_later_savepoints_are_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    let mut models = Model::default();
    keyspace(&store, Engine::Bplus).put("a", "1").unwrap();
    models[0].insert(b"a".into(), b"1".into());
    store.create_savepoint("before").unwrap();
    let before = models.clone();
    let mut random = fastrand::Rng::with_seed(5);
    (0..60).for_each(|_| change(&store, &mut models, &mut random));
    store.compact().unwrap();
    store.create_savepoint("after").unwrap();
    store.close().unwrap();
    adamant::go_back_with(&path, "before", options()).unwrap();
    let store = open(&path);
    verify(&store, &before, "gone back");
    let mut others = before.clone();
    (0..60).for_each(|_| change(&store, &mut others, &mut random));
    store.compact().unwrap();
    verify(&store, &others, "went on");
    verify(&store.open_savepoint("after").unwrap(), &models, "after");
    verify(&store.open_savepoint("before").unwrap(), &before, "before");
    // And forward again.
    store.close().unwrap();
    adamant::go_back_with(&path, "after", options()).unwrap();
    let store = open(&path);
    verify(&store, &models, "forward");
    for name in ["before", "after"] {
        assert!(store.delete_savepoint(name).unwrap());
    }
    verify(&store, &models, "without savepoints");
}

#[cfg(feature = "encryption")]
#[test]
fn savepoints_of_encrypted_stores() {
    use adamant::EncryptionKey;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let [one, two] = [1, 2].map(|byte| EncryptionKey::from_bytes(&[byte; 32]));
    let with = |key: &EncryptionKey| options().encryption_key(key.clone());
    let store = Store::open_with(&path, with(&one)).unwrap();
    let (mut models, mut random) = (Model::default(), fastrand::Rng::with_seed(4));
    let word = "a word that is told nobody";
    keyspace(&store, Engine::Bplus).put("word", word).unwrap();
    models[0].insert(b"word".into(), word.into());
    (0..20).for_each(|_| change(&store, &mut models, &mut random));
    let old = models.clone();
    store.create_savepoint("a name").unwrap();
    (0..20).for_each(|_| change(&store, &mut models, &mut random));
    keyspace(&store, Engine::Bplus).delete("word").unwrap();
    store.shrink().unwrap();
    store.rekey(&two).unwrap();
    let savepoint = store.open_savepoint("a name").unwrap();
    verify(&savepoint, &old, "another key");
    savepoint.backup(directory.path().join("copy")).unwrap();
    drop(savepoint);
    store.close().unwrap();
    for file in path.join("savepoints").read_dir().unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for text in [word, "a name"] {
            assert!(!bytes.windows(text.len()).any(|it| it == text.as_bytes()), "{text}");
        }
    }
    let copy = Store::open_with(directory.path().join("copy"), with(&two)).unwrap();
    verify(&copy, &old, "copy");
    assert!(adamant::go_back_with(&path, "a name", with(&one)).is_err());
    match adamant::encrypt(&path, with(&two), with(&one)) {
        Err(Error::HasSavepoints { .. }) => {}
        other => panic!("{other:?}"),
    }
    adamant::go_back_with(&path, "a name", with(&two)).unwrap();
    verify(&Store::open_with(&path, with(&two)).unwrap(), &old, "gone back");
}
