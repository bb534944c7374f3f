//! A disk that fills up, and one that may only be read: file systems of 16 MB in memory.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use adamant::{Options, Store};
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

/// What has to hold when a disk fills up: the call that fails says so, everything acknowledged
/// before is there, reads and removes still work, and once things are removed inserts work too.
#[test]
fn a_disk_that_fills_up() {
    let Some(mounted) = Mounted::new(16 << 20) else {
        eprintln!("skipped: mounting a tmpfs needs the privilege");
        return;
    };
    for batch_entries in [1, 50] {
        fill_and_empty(&mounted.path().join(format!("store {batch_entries}")), batch_entries);
        std::fs::remove_dir_all(mounted.path().join(format!("store {batch_entries}"))).unwrap();
    }
}

fn fill_and_empty(path: &Path, batch_entries: u32) {
    let options = || Options::new().log_bytes_max(4 << 20);
    let store = Store::open_with(path, options()).unwrap();
    let keyspace = store.keyspace("main").unwrap();
    let value = |number: u32| vec![number as u8; 700 + number as usize % 600];
    let mut acknowledged = BTreeSet::new();
    let error = loop {
        let start = acknowledged.len() as u32;
        let mut batch = store.batch();
        for number in start..start + batch_entries {
            batch.insert(&keyspace, number.to_le_bytes(), value(number)).unwrap();
        }
        match batch.commit() {
            Ok(()) => acknowledged.extend(start..start + batch_entries),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 30_000, "a disk of 16 MB cannot hold so much");
    };
    assert!(error.is_out_of_space(), "{error}");
    assert!(!error.is_poisoned(), "{error}");
    assert!(acknowledged.len() > 2_000, "only {} entries fit", acknowledged.len());
    let verify = |store: &Store, expected: &BTreeSet<u32>| {
        let keyspace = store.open_keyspace("main").unwrap();
        assert_eq!(keyspace.len().unwrap(), expected.len() as u64);
        for number in expected {
            let found = keyspace.get(number.to_le_bytes()).unwrap();
            assert!(found.as_deref() == Some(&value(*number)[..]), "entry {number}");
        }
    };
    verify(&store, &acknowledged);

    // Removes are commits too, and there is no space for anything else.
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

/// Values that are written where they will lie: there is no room for one more, or its commit is refused.
#[test]
fn a_disk_that_fills_up_with_reserved_values() {
    const BYTES: usize = 100_000;
    let Some(mounted) = Mounted::new(16 << 20) else {
        eprintln!("skipped: mounting a tmpfs needs the privilege");
        return;
    };
    let path = mounted.path().join("store");
    let store = Store::open_with(&path, Options::new().log_bytes_max(4 << 20)).unwrap();
    let keyspace = store.keyspace("main").unwrap();
    let insert = |number: u8| {
        let mut room = store.reserve(BYTES)?;
        room.fill(number);
        keyspace.insert_reserved([number], room)
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

#[test]
fn a_read_only_file_system() {
    let Some(mounted) = Mounted::new(16 << 20) else {
        eprintln!("skipped: mounting a tmpfs needs the privilege");
        return;
    };
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
