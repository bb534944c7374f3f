//! Stores that format 1 wrote open, hold what they held, and can be written to.

use std::fs;

use adamant::{Engine, Error, KeyspaceKind, Slice, Store};
use adamant_golden::{Set, content, image};

use crate::images::{stored, unpacked};

/// Names and engines of the keyspaces, in the order of their names.
fn expected_keyspaces(set: Set) -> Vec<(&'static str, Engine)> {
    match set {
        Set::First => {
            let names = ["empty", "many", "sizes / .. \u{e9}"];
            names.map(|name| (name, Engine::Bplus)).into()
        }
        Set::Engines | Set::Tagged => {
            let mut all = content::TREES.map(|engine| (engine.name(), engine)).to_vec();
            all.push(("converted", Engine::Redblack));
            all.sort_unstable_by_key(|(name, _)| *name);
            all
        }
        Set::Lsm | Set::Encrypted => vec![
            ("blobs", Engine::Lsm),
            ("empty", Engine::Lsm),
            ("log", Engine::Lsm),
            ("tree", Engine::Bplus),
        ],
        Set::Multimaps => {
            vec![("bplus", Engine::Bplus), ("bytes", Engine::Bplus), ("lsm", Engine::Lsm)]
        }
        Set::Operands => unreachable!("its test is operands.rs"),
        Set::Values => {
            let mut all = content::VALUES.map(|(name, engine, ..)| (name, engine)).to_vec();
            all.sort_unstable_by_key(|(name, _)| *name);
            all
        }
    }
}

fn opens_and_holds_what_it_held(set: Set, name: &str) {
    let expected = stored(&set.folder().join("content.txt"));
    assert!(expected.lines().count() > 200, "the list of entries was cut off");
    let (_directory, path) = unpacked(&set.folder().join(name));

    // First by one who only reads, and leaves it as it was.
    let packed = image::pack(&path).unwrap();
    let store = Store::open_with(&path, set.options().read_only(true)).unwrap();
    assert!(content::describe(&store).unwrap() == expected, "{name} shows readers something else");
    assert!(store.check().unwrap().is_clean());
    store.close().unwrap();
    assert!(image::pack(&path).unwrap() == packed, "{name} was changed by a reader");

    let store = Store::open_with(&path, set.options()).unwrap();
    // Not by `assert_eq`: the texts are long.
    assert!(content::describe(&store).unwrap() == expected, "{name} holds something else");
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    let infos = store.keyspaces().unwrap();
    let found: Vec<_> = infos.iter().map(|info| (&info.name[..], info.engine)).collect();
    assert_eq!(found, expected_keyspaces(set));

    // Every tree still takes changes: enough of them for nodes to split and to merge.
    for (name, _) in expected_keyspaces(set) {
        let keyspace = store.open_keyspace(name).unwrap();
        for number in 0..100 {
            keyspace.insert(format!("new {number}"), vec![b'n'; 60 * number]).unwrap();
        }
        for number in 0..150 {
            keyspace.remove(format!("key {number:03}")).unwrap();
        }
    }
    // Nothing is said of types; whoever knows them says so.
    for info in store.keyspaces().unwrap() {
        let keyspace = store.open_keyspace(&info.name).unwrap();
        assert!(info.types.is_none() && keyspace.typed::<Slice, Slice>().is_ok());
        keyspace.retype::<Slice, Slice>().unwrap();
        assert!(keyspace.typed::<Slice, u32>().is_err());
    }
    store.keyspace("new").unwrap().insert("k", "v").unwrap();
    store.close().unwrap();
    let store = Store::open_with(&path, set.options()).unwrap();
    assert_eq!(store.open_keyspace("new").unwrap().get("k").unwrap(), Some("v".into()));
    for (name, _) in expected_keyspaces(set) {
        let value = store.open_keyspace(name).unwrap().get("new 99").unwrap();
        assert_eq!(value, Some(vec![b'n'; 60 * 99].into()), "{name}");
    }
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn closed() {
    opens_and_holds_what_it_held(Set::First, "clean.runs");
}

#[test]
fn crashed() {
    opens_and_holds_what_it_held(Set::First, "crashed.runs");
}

#[test]
fn every_engine_closed() {
    opens_and_holds_what_it_held(Set::Engines, "clean.runs");
}

#[test]
fn every_engine_crashed() {
    opens_and_holds_what_it_held(Set::Engines, "crashed.runs");
}

#[test]
fn lsm_closed() {
    opens_and_holds_what_it_held(Set::Lsm, "clean.runs");
}

#[test]
fn lsm_crashed() {
    opens_and_holds_what_it_held(Set::Lsm, "crashed.runs");
}

#[test]
fn encrypted_closed() {
    opens_and_holds_what_it_held(Set::Encrypted, "clean.runs");
}

#[test]
fn encrypted_crashed() {
    opens_and_holds_what_it_held(Set::Encrypted, "crashed.runs");
}

#[test]
fn compressed_values_closed() {
    opens_and_holds_what_it_held(Set::Values, "clean.runs");
}

#[test]
fn compressed_values_crashed() {
    opens_and_holds_what_it_held(Set::Values, "crashed.runs");
}

/// They are multimaps of the types that were recorded, are read as they were, and written to.
#[test]
fn multimaps_are_as_they_were() {
    let set = Set::Multimaps;
    let expected = stored(&set.folder().join("content.txt"));
    assert!(expected.lines().count() > 200, "the list of entries was cut off");
    for name in ["clean.runs", "crashed.runs"] {
        let (_directory, path) = unpacked(&set.folder().join(name));
        let store = Store::open_with(&path, set.options()).unwrap();
        assert!(content::describe(&store).unwrap() == expected, "{name} holds something else");
        let infos = store.keyspaces().unwrap();
        assert!(infos.iter().all(|info| info.kind == KeyspaceKind::Multimap));
        let found: Vec<_> = infos.iter().map(|info| (&info.name[..], info.engine)).collect();
        assert_eq!(found, expected_keyspaces(set));

        let bytes = store.open_multimap("bytes").unwrap();
        let keys: Vec<_> = bytes.keys(..).map(Result::unwrap).collect();
        let expected = [&b""[..], &[0], &[0, 0], b"a", b"a\0", b"a\0b", b"ab", &[255]];
        assert_eq!(keys, expected.map(Slice::from));
        assert_eq!((bytes.count(b"a").unwrap(), bytes.count(b"ab").unwrap()), (5, 4));
        assert!(bytes.contains(b"a\0b", b"").unwrap() && !bytes.contains(b"ab", b"").unwrap());
        for name in ["bplus", "lsm"] {
            let numbers = store.open_multimap(name).unwrap();
            assert!(numbers.typed::<String, u64>().is_err(), "other types");
            let numbers = numbers.typed::<String, i64>().unwrap();
            assert_eq!(numbers.keys(..).count(), 39);
            assert!(numbers.insert("key 07", &-1).unwrap());
            assert_eq!(numbers.first_value("key 07").unwrap(), Some(-1));
        }
        assert!(store.check().unwrap().is_clean());
    }
}

/// The options are those that were recorded.
#[test]
fn values_are_compressed_as_they_were() {
    for name in ["clean.runs", "crashed.runs"] {
        let (_directory, path) = unpacked(&Set::Values.folder().join(name));
        let store = Store::open_with(&path, Set::Values.options().read_only(true)).unwrap();
        for info in store.keyspaces().unwrap() {
            let found = content::VALUES.iter().find(|(name, ..)| *name == info.name).unwrap();
            let values = info.values.unwrap();
            assert_eq!((values.compression(), values.bytes_min()), (found.2, 64));
            assert_eq!(info.dictionary_bytes as usize, found.3.map_or(0, <[u8]>::len));
        }
    }
}

/// The images show what they are for: several levels, blob files of which part is stale, tombstones
/// in tables, entries in a memtable.
#[test]
fn lsm_images_show_all_of_its_parts() {
    for name in ["clean.runs", "crashed.runs"] {
        let (_directory, path) = unpacked(&Set::Lsm.folder().join(name));
        let store = Store::open_with(&path, Set::Lsm.options().read_only(true)).unwrap();
        let stats = |name| store.open_keyspace(name).unwrap().lsm().unwrap().stats().unwrap();
        let (log, blobs) = (stats("log"), stats("blobs"));
        assert!(log.levels.iter().filter(|level| level.tables > 0).count() >= 3, "{log:?}");
        assert!(log.levels.iter().any(|level| level.tombstones > 0), "{log:?}");
        assert!(blobs.blobs.files >= 2 && blobs.blobs.stale_values > 0, "{blobs:?}");
        assert!(log.levels.iter().any(|level| level.range_tombstones > 0), "{log:?}");
        assert!(log.memtables[0].entries > 0 && blobs.memtables[0].entries > 0, "{log:?}");
    }
}

/// What the engine lsm wrote by version 1 of its format is refused, and the rest of the store is
/// read.
#[test]
fn lsm_of_version_1_is_refused() {
    for name in ["clean.runs", "crashed.runs"] {
        let (_directory, path) = unpacked(&Set::First.folder().join("lsm").join(name));
        let store = Store::open_with(&path, Set::Lsm.options()).unwrap();
        for name in ["blobs", "empty", "log"] {
            match store.open_keyspace(name).map(drop) {
                Err(Error::UnknownEngine { name: named, format: 1, .. }) => assert_eq!(named, name),
                other => panic!("{name}: {other:?}"),
            }
        }
        let tree = store.open_keyspace("tree").unwrap();
        assert_eq!(tree.iter().count(), 300);
        tree.insert("k", "v").unwrap();
        let report = store.check().unwrap();
        assert!(!report.is_clean(), "a check says what it cannot read");
        store.close().unwrap();
        for shelf in ["tables", "blobs"] {
            assert!(fs::read_dir(path.join(shelf)).unwrap().count() > 0, "files stay");
        }
    }
}

/// Pools of the undo journal, which there was beside the log, say so, and how to bring along what
/// they hold; nothing becomes of them.
#[test]
fn a_store_of_the_undo_journal_is_refused() {
    for name in ["clean.runs", "crashed.runs"] {
        let (_directory, path) = unpacked(&Set::First.folder().join("undo").join(name));
        // The first file is the lock, which names who has it.
        let packed = || {
            let image = image::pack(&path).unwrap();
            image.split_once("file log").expect("there are lanes").1.to_owned()
        };
        let before = packed();
        let outcomes = [
            Store::open(&path).map(drop),
            Store::open_read_only(&path).map(drop),
            adamant::repair(&path).map(drop),
        ];
        for outcome in outcomes {
            let error = outcome.expect_err("there is one journal");
            assert!(error.is_unsupported(), "{name}: {error}");
            let text = error.to_string();
            assert!(text.contains("undo") && text.contains("export"), "{name}: {text}");
        }
        assert!(packed() == before, "{name} was changed");
    }
}

/// What writes golden stores today and what reads them agree; also before there are any.
#[test]
fn a_store_written_now() {
    for set in Set::ALL {
        let directory = tempfile::tempdir().unwrap();
        let (path, copy) = (directory.path().join("store"), directory.path().join("copy"));
        let store = Store::open_with(&path, set.options()).unwrap();
        set.fill(&store).unwrap();
        let expected = content::describe(&store).unwrap();
        store.close().unwrap();
        let packed = image::pack(&path).unwrap();
        image::unpack(&packed, &copy).unwrap();
        assert!(image::pack(&copy).unwrap() == packed);
        let store = Store::open_with(&copy, set.options()).unwrap();
        assert!(content::describe(&store).unwrap() == expected);
    }
}

#[test]
fn a_broken_image_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    for image in
        ["00 11", "file a x", "file a 1\n00 11 22", "file a 1\nzz 11", "file a 99999999999"]
    {
        assert!(image::unpack(image, directory.path()).is_err(), "{image}");
    }
}
