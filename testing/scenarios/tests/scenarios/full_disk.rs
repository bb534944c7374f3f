//! Full and read-only disks: file systems of 16 MB in memory.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use adamant::{Deadline, Engine, Error, Expiring, Keyspace, KeyspaceOptions, Options, Store};
use tempfile::TempDir;

/// A tmpfs, unmounted on drop.
struct Mounted {
    directory: TempDir,
}

impl Mounted {
    /// `None` where mounting is not allowed.
    fn new(bytes: u32) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let options = format!("size={bytes}");
        let is_mounted = run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs"], directory.path());
        if !is_mounted {
            eprintln!("skipped: mounting a tmpfs needs the privilege");
        }
        is_mounted.then_some(Self { directory })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run("umount", &[], self.directory.path());
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    let output = Command::new(program).args(arguments).arg(path).output();
    output.is_ok_and(|output| output.status.success())
}

/// Requirements when a disk fills up: the call that fails returns an error, everything acknowledged
/// before is there, reads and removes still work, and after removals inserts work, too.
#[test]
fn a_disk_that_fills_up() {
    let Some(mounted) = Mounted::new(16 << 20) else { return };
    for engine in Engine::ALL {
        for batch_entries in [1, 50] {
            let path = mounted.path().join(format!("{engine} {batch_entries}"));
            fill_and_empty(&path, engine, batch_entries);
            std::fs::remove_dir_all(path).unwrap();
        }
    }
}

/// Concurrent puts share commits: only those that find no room fail, and are not there; the others
/// are.
#[test]
fn a_disk_that_fills_up_under_several_threads() {
    let Some(mounted) = Mounted::new(16 << 20) else { return };
    for engine in Engine::ALL {
        let path = mounted.path().join(format!("{engine}"));
        let store = Store::open_with(&path, Options::new().log_bytes_max(4 << 20)).unwrap();
        let of_engine = KeyspaceOptions::new().engine(engine);
        let keyspace = &store.keyspace_with("main", of_engine).unwrap();
        let all_failures = &AtomicU32::new(0);
        let puts = &|thread: u32| {
            let mut acknowledged = BTreeSet::new();
            let mut failures = 0;
            for number in (0..4_000).map(|number| number * 8 + thread) {
                match keyspace.put(number.to_le_bytes(), value(number)) {
                    Ok(()) => drop(acknowledged.insert(number)),
                    Err(error) => {
                        assert!(error.is_out_of_space() && !error.is_poisoned(), "{error}");
                        failures += 1;
                        // A removal makes room for others.
                        let oldest = acknowledged.pop_first();
                        oldest.map(|oldest| keyspace.remove(oldest.to_le_bytes()).unwrap());
                    }
                }
                if failures > 20 {
                    break;
                }
            }
            all_failures.fetch_add(failures, Ordering::Relaxed);
            acknowledged
        };
        let expected: BTreeSet<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || puts(thread))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let failures = all_failures.load(Ordering::Relaxed);
        assert!(failures > 0, "a disk of 16 MB cannot hold so much");
        assert_eq!(keyspace.len().unwrap(), expected.len() as u64, "{engine}");
        for number in &expected {
            let found = keyspace.get(number.to_le_bytes()).unwrap();
            assert!(found.as_deref() == Some(&value(*number)[..]), "{engine}: entry {number}");
        }
        assert!(store.check().unwrap().is_clean(), "{engine}");
        store.close().unwrap();
        std::fs::remove_dir_all(path).unwrap();
    }
}

/// An incompressible value.
fn value(number: u32) -> Vec<u8> {
    let mut value = vec![0; 700 + number as usize % 600];
    fastrand::Rng::with_seed(number.into()).fill(&mut value);
    value
}

fn fill_and_empty(path: &Path, engine: Engine, batch_entries: u32) {
    let options = || Options::new().log_bytes_max(4 << 20);
    let store = Store::open_with(path, options()).unwrap();
    let of_engine = KeyspaceOptions::new().engine(engine);
    let keyspace = store.keyspace_with("main", of_engine).unwrap();
    let mut acknowledged = BTreeSet::new();
    let error = loop {
        let start = acknowledged.len() as u32;
        let mut batch = store.batch();
        for number in start..start + batch_entries {
            batch.put(&keyspace, number.to_le_bytes(), value(number)).unwrap();
        }
        match batch.commit() {
            Ok(()) => acknowledged.extend(start..start + batch_entries),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 30_000, "a disk of 16 MB cannot hold so much");
    };
    assert!(error.is_out_of_space(), "{error}");
    assert!(!error.is_poisoned(), "{error}");
    assert!(acknowledged.len() > 2_000, "{engine}: only {} entries fit", acknowledged.len());
    let verify = |store: &Store, expected: &BTreeSet<u32>| {
        let keyspace = store.open_keyspace("main").unwrap();
        assert_eq!(keyspace.len().unwrap(), expected.len() as u64);
        for number in expected {
            let found = keyspace.get(number.to_le_bytes()).unwrap();
            assert!(found.as_deref() == Some(&value(*number)[..]), "entry {number}");
        }
    };
    verify(&store, &acknowledged);

    // Removes are commits, too, and there is no space for anything else.
    let removed: Vec<u32> = acknowledged.iter().copied().filter(|number| number % 3 != 0).collect();
    for number in removed {
        assert!(keyspace.remove(number.to_le_bytes()).unwrap());
        acknowledged.remove(&number);
    }
    verify(&store, &acknowledged);
    for number in 0..500_u32 {
        keyspace.insert(number.to_le_bytes(), value(number)).unwrap();
        acknowledged.insert(number);
    }
    verify(&store, &acknowledged);
    assert!(store.check().unwrap().is_clean());
    store.close().unwrap();

    let store = Store::open_with(path, options()).unwrap();
    verify(&store, &acknowledged);
    assert!(store.check().unwrap().is_clean());
    store.close().unwrap();
}

/// Values in reserved room: there is no room for one more, or its commit is refused.
#[test]
fn a_disk_that_fills_up_with_reserved_values() {
    const BYTES: usize = 100_000;
    let Some(mounted) = Mounted::new(16 << 20) else { return };
    let path = mounted.path().join("store");
    let store = Store::open_with(&path, Options::new().log_bytes_max(4 << 20)).unwrap();
    let keyspace = store.keyspace("main").unwrap();
    let insert = |number: u8| {
        let mut room = store.reserve(BYTES)?;
        room.fill(number);
        keyspace.put_reserved([number], room)
    };
    let mut count = 0;
    let error = loop {
        match insert(count) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
        assert!(count < 170, "a disk of 16 MB cannot hold so much");
    };
    assert!(error.is_out_of_space() && !error.is_poisoned(), "{error}");
    assert!(count > 40, "only {count} values fit");
    let verify = |store: &Store, numbers: std::ops::Range<u8>| {
        let keyspace = store.open_keyspace("main").unwrap();
        assert_eq!(keyspace.len().unwrap(), numbers.len() as u64);
        for number in numbers {
            assert!(keyspace.get([number]).unwrap().unwrap() == vec![number; BYTES], "{number}");
        }
        assert!(store.check().unwrap().is_clean());
    };
    verify(&store, 0..count);
    for number in count / 2..count {
        assert!(keyspace.remove([number]).unwrap());
    }
    verify(&store, 0..count / 2);
    (count / 2..count / 2 + 5).for_each(|number| insert(number).unwrap());
    verify(&store, 0..count / 2 + 5);
    store.close().unwrap();
    verify(&Store::open(&path).unwrap(), 0..count / 2 + 5);
}

/// On a disk that is full to the last byte, of which the store has a small part, everything can be
/// removed in any way, the room comes back, and later inserts find room.
#[test]
fn all_is_removed_on_a_disk_that_others_have_filled() {
    let Some(mounted) = Mounted::new(48 << 20) else { return };
    for engine in Engine::ALL {
        for way in [Way::Remove, Way::Range, Way::Retain, Way::Pop] {
            remove_all(mounted.path(), engine, way);
        }
    }
    let ways = [Way::Take, Way::Delete, Way::Swap, Way::Batch, Way::Transaction];
    for way in ways.into_iter().chain([Way::Exclusive, Way::Clear]) {
        remove_all(mounted.path(), Engine::Lsm, way);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Remove,
    Take,
    Delete,
    Swap,
    Batch,
    Transaction,
    Exclusive,
    Range,
    Retain,
    Pop,
    Clear,
}

const RECORDS: u32 = 2_000;

fn key(number: u32) -> String {
    format!("record {number:08}")
}

impl Way {
    fn remove(self, store: &Store, keyspace: &Keyspace, count: u32) {
        match self {
            Self::Remove => (0..count).for_each(|n| assert!(keyspace.remove(key(n)).unwrap())),
            Self::Take => (0..count).for_each(|n| {
                assert!(keyspace.take(key(n)).unwrap().unwrap() == value(n), "record {n}");
            }),
            Self::Delete => (0..count).for_each(|n| keyspace.delete(key(n)).unwrap()),
            Self::Batch => (0..count).step_by(100).for_each(|start| {
                let mut batch = store.batch();
                (start..start + 100).for_each(|n| batch.delete(keyspace, key(n)).unwrap());
                batch.commit().unwrap();
            }),
            Self::Swap => (0..count).for_each(|n| {
                let swapped = keyspace.compare_and_swap(key(n), Some(value(n)), None::<&[u8]>);
                assert_eq!(swapped.unwrap(), Ok(()), "record {n}");
            }),
            Self::Transaction => (0..count).step_by(100).for_each(|start| {
                let removed = store.transaction(|tx| {
                    (start..start + 100).try_for_each(|n| tx.delete(keyspace, key(n)).map(|_| ()))
                });
                removed.unwrap_or_else(|error: Error| panic!("from {start} on: {error}"));
            }),
            // Its reads would be stale after room was made: so it is begun again.
            Self::Exclusive => (0..count).step_by(100).for_each(|start| {
                let remove = || {
                    store.exclusive(|tx| {
                        (start..start + 100)
                            .try_for_each(|n| tx.delete(keyspace, key(n)).map(|_| ()))
                    })
                };
                let removed = remove().or_else(|error: Error| {
                    assert!(error.is_out_of_space(), "from {start} on: {error}");
                    remove()
                });
                removed.unwrap_or_else(|error| panic!("from {start} on: {error}"));
            }),
            Self::Range => keyspace.delete_range("record"..="record 9").unwrap(),
            Self::Retain => {
                assert_eq!(keyspace.retain(.., |_, _| false).unwrap(), u64::from(count));
            }
            Self::Pop => (0..count).for_each(|n| {
                assert_eq!(keyspace.pop_first().unwrap().unwrap().0, *key(n));
            }),
            Self::Clear => keyspace.clear().unwrap(),
        }
    }
}

/// On a full disk removes work as usual, and reclaimed room is reused.
fn remove_all(directory: &Path, engine: Engine, way: Way) {
    let (path, of) = (directory.join("store"), format!("{engine}, {way:?}"));
    let store = Store::open(&path).unwrap();
    let of_engine = KeyspaceOptions::new().engine(engine);
    let keyspace = store.keyspace_with("main", of_engine).unwrap();
    let fill = || {
        (0..RECORDS).for_each(|n| {
            keyspace.insert(key(n), value(n)).unwrap();
        });
    };
    fill();
    let others = directory.join("others");
    fill_up(&others);
    let before = allocated_bytes(&path);
    let mut count = RECORDS;
    if way == Way::Remove {
        let error = loop {
            match keyspace.insert(key(count), value(count)) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
            assert!(count < 20_000, "{of}: there is no room");
        };
        assert!(error.is_out_of_space() && !error.is_poisoned(), "{of}: {error}");
    }
    way.remove(&store, &keyspace, count);
    assert!(keyspace.is_empty().unwrap(), "{of}");
    keyspace.compact().unwrap();
    store.shrink().unwrap();
    let after = allocated_bytes(&path);
    assert!(after + (1 << 20) < before, "{of}: {before} bytes, {after} without the entries");
    fill();
    assert_eq!(keyspace.len().unwrap(), u64::from(RECORDS), "{of}");
    assert!(store.check().unwrap().is_clean(), "{of}");
    way.remove(&store, &keyspace, RECORDS);
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    assert!(store.open_keyspace("main").unwrap().is_empty().unwrap(), "{of}");
    assert!(store.check().unwrap().is_clean(), "{of}");
    drop(store);
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::remove_file(&others).unwrap();
}

/// As [`all_is_removed_on_a_disk_that_others_have_filled`], for expiring entries: removed by calls,
/// or after they have expired.
#[test]
fn entries_that_end_are_removed_on_a_disk_that_others_have_filled() {
    let Some(mounted) = Mounted::new(48 << 20) else { return };
    let remove = |sessions: &Expiring| {
        (0..RECORDS).for_each(|n| assert!(sessions.remove(key(n)).unwrap(), "record {n}"));
    };
    let take = |sessions: &Expiring| {
        (0..RECORDS).for_each(|n| assert!(sessions.take(key(n)).unwrap().is_some(), "record {n}"));
    };
    let clear = |sessions: &Expiring| sessions.clear().unwrap();
    let purge = |sessions: &Expiring| {
        let later = sessions.with_clock(|| 2_000_000);
        (0..RECORDS / 50).for_each(|_| assert_eq!(later.remove_expired(50).unwrap(), 50));
    };
    type Removing<'r> = &'r dyn Fn(&Expiring);
    // The background sweep of a store in which all has expired, by the system's clock.
    let sweep = |path: &Path| {
        let store = Store::open(path).unwrap();
        let sessions = store.open_expiring("sessions").unwrap();
        let begun = std::time::Instant::now();
        while !sessions.keyspaces().1.is_empty().unwrap() {
            assert!(begun.elapsed() < std::time::Duration::from_secs(120), "not swept");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        store.close().unwrap();
    };
    let (remove, take): (Removing<'_>, Removing<'_>) = (&remove, &take);
    let ways = [("remove", remove), ("take", take), ("clear", &clear), ("purge", &purge)];
    let ways = ways.map(|(way, remove)| (way, Some(remove))).into_iter().chain([("sweep", None)]);
    let ways: Vec<(&str, Option<Removing<'_>>)> = ways.collect();
    for engine in [Engine::Lsm, Engine::Bplus] {
        // Clearing creates an empty tree, for which a pool without any room has none.
        let is_tried = |(way, _): &(&str, _)| engine == Engine::Lsm || *way != "clear";
        for (way, remove) in ways.iter().copied().filter(is_tried) {
            let (path, of) = (mounted.path().join("store"), format!("{engine}, {way}"));
            let open = || {
                let quiet = Options::new().sweep_expired(false);
                let store = Store::open_with(&path, quiet).unwrap();
                let of_engine = KeyspaceOptions::new().engine(engine);
                let sessions = store.expiring_with("sessions", of_engine).unwrap();
                (store, sessions.with_clock(|| 1_000_000))
            };
            let insert = |sessions: &Expiring, n: u32| {
                let end = Deadline::from_millis(1_500_000 + u64::from(n));
                sessions.insert(key(n), value(n), Some(end)).map(|_| ())
            };
            let (mut store, mut sessions) = open();
            (0..RECORDS).for_each(|n| insert(&sessions, n).unwrap());
            let others = mounted.path().join("others");
            fill_up(&others);
            let error =
                (RECORDS..20_000).find_map(|n| insert(&sessions, n).err()).expect("no room");
            assert!(error.is_out_of_space() && !error.is_poisoned(), "{of}: {error}");
            match remove {
                Some(remove) => remove(&sessions),
                None => {
                    drop(sessions);
                    store.close().unwrap();
                    sweep(&path);
                    (store, sessions) = open();
                }
            }
            sessions.clear().unwrap();
            assert!(sessions.is_empty().unwrap() && sessions.keyspaces().1.is_empty().unwrap());
            sessions.keyspaces().0.compact().unwrap();
            store.shrink().unwrap();
            (0..RECORDS).for_each(|n| {
                insert(&sessions, n).unwrap_or_else(|error| panic!("{of}: {error}"));
            });
            assert!(store.check().unwrap().is_clean(), "{of}");
            store.close().unwrap();
            std::fs::remove_dir_all(&path).unwrap();
            std::fs::remove_file(&others).unwrap();
        }
    }
}

/// Fills a file system up to the last byte.
fn fill_up(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    let mut piece = vec![7_u8; 1 << 20];
    while !piece.is_empty() {
        if file.write_all(&piece).is_err() {
            piece.truncate(piece.len() / 2);
        }
    }
}

/// Bytes that all files below a directory take.
fn allocated_bytes(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let bytes = entries.map(|entry| match entry.metadata().unwrap() {
        found if found.is_dir() => allocated_bytes(&entry.path()),
        found => found.blocks() * 512,
    });
    bytes.sum()
}

#[test]
fn a_read_only_file_system() {
    let Some(mounted) = Mounted::new(16 << 20) else { return };
    let path = mounted.path().join("store");
    let options = || Options::new().log_bytes_max(4 << 20);
    let store = Store::open_with(&path, options()).unwrap();
    store.keyspace("main").unwrap().insert("k", "v").unwrap();
    store.close().unwrap();
    assert!(run("mount", &["-o", "remount,ro"], mounted.path()));
    let error = Store::open_with(&path, options()).unwrap_err();
    assert!(error.to_string().contains("store"), "{error} should name the path");
    let error = Store::open_with(mounted.path().join("new"), options()).unwrap_err();
    assert!(error.to_string().contains("new"), "{error} should name the path");
    assert!(run("mount", &["-o", "remount,rw"], mounted.path()));
    let store = Store::open_with(&path, options()).unwrap();
    assert_eq!(store.open_keyspace("main").unwrap().get("k").unwrap(), Some("v".into()));
}
