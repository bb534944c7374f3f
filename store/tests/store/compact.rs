//! Compaction while a store is used: it shows nothing but its speed and its size.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adamant::{Durability, Engine, Error, KeyspaceOptions, Options, Store};

use crate::device_bytes;

const ENTRIES: u32 = 6_000;

fn key(number: u32) -> String {
    format!("{:08x}", number.wrapping_mul(0x9e37_79b1))
}

fn value(number: u32) -> Vec<u8> {
    let bytes = if number.is_multiple_of(500) { 5_000 + number as usize * 10 } else { 60 };
    vec![number as u8; bytes]
}

fn options() -> Options {
    Options::new().durability(Durability::Deferred)
}

fn filled(store: &Store, engine: Engine) -> adamant::Keyspace {
    let keyspace = store.keyspace_with("data", KeyspaceOptions::new().engine(engine)).unwrap();
    for number in 0..ENTRIES {
        keyspace.put(key(number), value(number)).unwrap();
    }
    keyspace
}

#[test]
#[cfg_attr(windows, ignore = "files have no holes there")]
fn compaction_gives_back_what_removals_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, options()).unwrap();
    for engine in Engine::ALL.into_iter().filter(|engine| *engine != Engine::Lsm) {
        let options = KeyspaceOptions::new().engine(engine);
        let keyspace = store.keyspace_with(engine.name(), options).unwrap();
        for number in 0..40 * ENTRIES {
            keyspace.put(key(number), [7; 60]).unwrap();
        }
        // One in twenty stays, everywhere.
        let (mut seen, mut kept) = (0, Vec::new());
        keyspace
            .retain(.., |key, _| {
                seen += 1;
                let is_kept = seen % 20 == 0;
                kept.extend(is_kept.then(|| key.to_vec()));
                is_kept
            })
            .unwrap();
        store.shrink().unwrap();
        let before = device_bytes(path.join("pool"));
        store.compact().unwrap();
        let after = device_bytes(path.join("pool"));
        println!("{engine}: {before} bytes, then {after}");
        assert!(after < before / 3, "{engine}: {before} bytes, then {after}");
        assert!(keyspace.iter().keys().map(|key| key.unwrap()).eq(kept.iter().map(|key| &key[..])));
        assert!(store.check().unwrap().is_clean());
        store.drop_keyspace(engine.name()).unwrap();
    }
}

/// A second compaction needs no more space than one chunk at a time.
#[test]
fn what_is_compact_stays_as_small() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, options()).unwrap();
    let keyspace = store.keyspace("data").unwrap();
    for number in 0..20 * ENTRIES {
        keyspace.put(key(number), [7; 60]).unwrap();
    }
    store.compact().unwrap();
    let first = device_bytes(path.join("pool"));
    for _ in 0..3 {
        keyspace.compact().unwrap();
        let grown = device_bytes(path.join("pool"));
        assert!(grown < first + (8 << 20), "{first} bytes grew to {grown}");
        store.shrink().unwrap();
        let again = device_bytes(path.join("pool"));
        assert!(again < first + (1 << 20), "{first} bytes, then {again}");
    }
}

#[test]
fn snapshots_iterators_and_transactions_see_nothing_of_it() {
    for engine in Engine::ALL {
        let store = Store::in_memory().unwrap();
        let keyspace = filled(&store, engine);
        let all: Vec<_> = keyspace.iter().map(|entry| entry.unwrap()).collect();
        let snapshot = store.snapshot().unwrap();
        let mut transaction = store.begin().unwrap();
        let first = transaction.first(&keyspace).unwrap();
        assert_eq!(first.as_ref(), Some(&all[0]));
        let mut iter = keyspace.iter();
        let mut seen: Vec<_> = iter.by_ref().take(700).map(|entry| entry.unwrap()).collect();
        let borrowed = keyspace.get(key(500)).unwrap().unwrap();

        keyspace.compact().unwrap();
        assert_eq!(borrowed, value(500), "{engine}");
        seen.extend(iter.map(|entry| entry.unwrap()));
        assert_eq!(seen, all, "{engine}");
        assert!(snapshot.iter(&keyspace).map(|entry| entry.unwrap()).eq(all.iter().cloned()));
        transaction.put(&keyspace, "new", "value").unwrap();
        assert!(transaction.commit().is_ok(), "{engine}: compaction is no conflict");

        keyspace.delete(key(7)).unwrap();
        keyspace.compact().unwrap();
        assert_eq!(snapshot.get(&keyspace, key(7)).unwrap().unwrap(), value(7), "{engine}");
        assert_eq!(keyspace.len().unwrap(), u64::from(ENTRIES), "{engine}");
        assert!(store.check().unwrap().is_clean(), "{engine}");
    }
}

/// One thread compacts all the time, one writes and compares with a map, one scans.
#[test]
fn writers_and_readers_go_on() {
    for engine in Engine::ALL {
        let store = Store::in_memory().unwrap();
        let keyspace = filled(&store, engine);
        let mut map: BTreeMap<_, _> =
            (0..ENTRIES).map(|number| (key(number), value(number))).collect();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    keyspace.compact().unwrap();
                }
            });
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let keys: Vec<_> = keyspace.iter().keys().map(|key| key.unwrap()).collect();
                    assert!(keys.is_sorted() && keys.len() > ENTRIES as usize / 2);
                }
            });
            let mut random = fastrand::Rng::with_seed(9);
            for _ in 0..8_000 {
                let number = random.u32(..ENTRIES * 2);
                if random.bool() {
                    keyspace.put(key(number), value(number + 1)).unwrap();
                    map.insert(key(number), value(number + 1));
                } else if map.len() > ENTRIES as usize * 3 / 4 {
                    assert_eq!(
                        keyspace.remove(key(number)).unwrap(),
                        map.remove(&key(number)).is_some()
                    );
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let found: Vec<_> = keyspace.iter().map(|entry| entry.unwrap()).collect();
        assert!(
            found
                .iter()
                .map(|(key, value)| (&key[..], &value[..]))
                .eq(map.iter().map(|(key, value)| (key.as_bytes(), &value[..]))),
            "{engine}"
        );
        assert!(store.check().unwrap().is_clean(), "{engine}");
    }
}

/// Threads that append faster than it compacts do not keep it busy.
#[test]
fn it_ends_where_the_keyspace_ended() {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace("data").unwrap();
    let key = |number: u64| number.swap_bytes().to_le_bytes();
    keyspace.extend((0..2_000).map(|number| (key(number), [0; 20]))).unwrap();
    let (is_over, next) = (AtomicBool::new(false), AtomicU64::new(10_000));
    let is_late = || next.load(Ordering::Relaxed) > 20_000_000;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) && !is_late() {
                    let start = next.fetch_add(2_000, Ordering::Relaxed);
                    let mut batch = store.batch();
                    for number in start..start + 2_000 {
                        batch.put(&keyspace, key(number), [0; 20]).unwrap();
                    }
                    batch.commit().unwrap();
                }
            });
        }
        keyspace.compact().unwrap();
        is_over.store(true, Ordering::Relaxed);
        assert!(!is_late(), "it went on to the end of what came in");
    });
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn what_is_not_there_is_refused() {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace("data").unwrap();
    keyspace.compact().unwrap();
    store.compact().unwrap();
    let mut transaction = store.begin().unwrap();
    transaction.put(&keyspace, "key", "value").unwrap();
    keyspace.compact().unwrap();
    transaction.commit().unwrap();
    store.drop_keyspace("data").unwrap();
    assert!(matches!(keyspace.compact(), Err(adamant::Error::KeyspaceDropped { .. })));
    store.expiring("sessions").unwrap().put("42", "ada", None).unwrap();
    store.compact().unwrap();
    let inner = store.open_stored("sessions").unwrap();
    inner.compact().unwrap();
    store.close().unwrap();
    assert!(matches!(inner.compact(), Err(Error::Closed)));
}

/// What opens the store at a path.
type Door = fn(&Path);
/// A path that names what another one does.
type Way = fn(&Path) -> PathBuf;

/// A directory with a store that has lost its name; the path that it had.
fn lost_store() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path).unwrap();
    store.keyspace("data").unwrap().put("key", "value").unwrap();
    store.close().unwrap();
    std::fs::rename(&path, directory.path().join("store.being-replaced")).unwrap();
    (directory, path)
}

/// A process that ended while it replaced a store by steps left it under another name.
#[test]
fn a_store_that_lost_its_name_gets_it_back() {
    let doors: [(&str, Door); 4] = [
        ("open", |path| drop(Store::open(path).unwrap())),
        ("open, not create", |path| {
            drop(Store::open_with(path, Options::new().create(false)).unwrap());
        }),
        ("compact", |path| _ = adamant::compact(path).unwrap()),
        ("repair", |path| assert!(adamant::repair(path).unwrap().findings.is_empty())),
    ];
    let ways: [(&str, Way); 4] = [
        ("the path", Path::to_path_buf),
        ("with a separator", |path| path.join("")),
        ("with a point", |path| path.join(".")),
        ("where a directory was made for it", |path| {
            std::fs::create_dir(path).unwrap();
            path.to_path_buf()
        }),
    ];
    for ((name, door), (way, path_by)) in
        doors.into_iter().flat_map(|door| ways.map(|way| (door, way)))
    {
        let (directory, path) = lost_store();
        let read = Store::open_with(&path, Options::new().read_only(true)).unwrap_err();
        assert!(matches!(read, Error::Missing { .. }), "reading changes no name");
        assert!(read.to_string().contains("for more than reading"), "{read}");
        door(&path_by(&path));
        let store = Store::open_with(&path, Options::new().create(false)).unwrap();
        let value = store.keyspace("data").unwrap().get("key").unwrap();
        assert_eq!(value, Some("value".into()), "{name}, {way}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "{name}, {way}");
    }
}

/// It is that of the store whatever the case of its letters.
#[cfg(windows)]
#[test]
fn a_store_that_lost_its_name_gets_it_back_in_capitals() {
    let (directory, path) = lost_store();
    let store = Store::open(directory.path().join("STORE")).unwrap();
    assert_eq!(store.keyspace("data").unwrap().get("key").unwrap(), Some("value".into()));
    store.close().unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    Store::open_with(&path, Options::new().create(false)).unwrap();
}

/// It lost the name that links lead to.
#[cfg(unix)]
#[test]
fn a_store_that_lost_its_name_gets_it_back_through_links() {
    use std::os::unix::fs::symlink;
    let doors: [Door; 3] = [
        |path| drop(Store::open(path).unwrap()),
        |path| drop(Store::open_with(path, Options::new().create(false)).unwrap()),
        |path| _ = adamant::compact(path).unwrap(),
    ];
    for door in doors {
        let (directory, path) = lost_store();
        let (one, other) = (directory.path().join("one"), directory.path().join("other"));
        symlink("store", &one).unwrap();
        symlink(&one, &other).unwrap();
        door(&other);
        let store = Store::open_with(&path, Options::new().create(false)).unwrap();
        assert_eq!(store.keyspace("data").unwrap().get("key").unwrap(), Some("value".into()));
        assert!(one.is_symlink() && other.is_symlink());
    }
}

/// No empty store is made where it cannot be said whether one lost its name.
#[cfg(unix)]
#[test]
fn no_store_is_made_in_place_of_what_cannot_be_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    let (path, lost) =
        (directory.path().join("store"), directory.path().join("store.being-replaced"));
    std::fs::create_dir(&lost).unwrap();
    std::os::unix::fs::symlink("pool", lost.join("pool")).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(error.to_string().contains("being-replaced"), "{error}");
    assert!(!path.exists());
}

/// The process that replaces it has its lock meanwhile, where what is open can be renamed.
#[cfg(not(windows))]
#[test]
fn no_name_is_given_back_while_a_store_is_being_replaced() {
    let (directory, path) = lost_store();
    let lost = directory.path().join("store.being-replaced");
    let holder = Store::open(&lost).unwrap();
    assert!(matches!(Store::open(&path), Err(Error::Locked { .. })));
    assert!(lost.exists() && !path.exists());
    holder.close().unwrap();
    Store::open(&path).unwrap();
    assert!(!lost.exists());
}

/// What is left beside a store that took the place of another one is nothing to it, but is in the
/// way of the next one: for it would be taken for that if the store is removed.
#[test]
fn what_a_replacement_left_stays_until_it_is_taken_away() {
    let (directory, path) = lost_store();
    let lost = directory.path().join("store.being-replaced");
    let backup = directory.path().join("backup");
    Store::open(&lost).unwrap().backup(&backup).unwrap();
    let restored = adamant::restore(&backup, &path);
    assert!(matches!(restored, Err(Error::TargetExists { path }) if path == lost));
    std::fs::rename(&backup, &path).unwrap();
    drop(Store::open(&path).unwrap());
    assert!(lost.join("pool").exists());
    assert!(matches!(adamant::compact(&path), Err(Error::TargetExists { path }) if path == lost));
    std::fs::remove_dir_all(&lost).unwrap();
    adamant::compact(&path).unwrap();
}

/// A directory of that name that is no store is somebody else's.
#[test]
fn only_a_store_gets_a_name_back() {
    let directory = tempfile::tempdir().unwrap();
    let other = directory.path().join("store.being-replaced");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("letter"), "text").unwrap();
    let store = Store::open(directory.path().join("store")).unwrap();
    assert!(store.keyspaces().unwrap().is_empty());
    assert!(other.join("letter").exists());
}
