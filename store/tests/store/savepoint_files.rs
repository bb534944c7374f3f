//! Files of LSM trees and persistent savepoints: none is lost, overwritten, or left for good.

use std::path::{Path, PathBuf};

use adamant::{Durability, Engine, Keyspace, KeyspaceOptions, LsmOptions, Options, Result, Store};

fn options() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 64 << 10;
    lsm.table_bytes_max = 64 << 10;
    Options::new().durability(Durability::Buffered).lsm(lsm).log_bytes_max(4 << 20)
}

fn open(path: &Path) -> Store {
    Store::open_with(path, options()).unwrap()
}

/// Gives a keyspace new contents, in new files.
fn try_fill(store: &Store, name: &str, byte: u8) -> Result<()> {
    let options = KeyspaceOptions::new().engine(Engine::Lsm);
    let keyspace: Keyspace = store.keyspace_with(name, options)?;
    keyspace.extend((0..1000).map(|number| (format!("{number:05}"), vec![byte; 200])))?;
    keyspace.compact()
}

fn fill(store: &Store, name: &str, byte: u8) {
    try_fill(store, name, byte).unwrap();
}

#[track_caller]
fn verify(store: &Store, name: &str, byte: u8) {
    let keyspace = store.open_keyspace(name).unwrap();
    let entries: Vec<_> = keyspace.iter().map(|entry| entry.unwrap().1).collect();
    assert!(entries.len() == 1000 && entries.iter().all(|value| value == &[byte; 200][..]));
}

fn tables(path: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> =
        path.join("tables").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

/// Back to before there was a tree, a new first tree, and forward: the files of the branch that is
/// left behind go.
#[test]
fn files_of_a_branch_that_is_left_go() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    store.keyspace("other").unwrap().put("a", "1").unwrap();
    store.create_savepoint("before").unwrap();
    fill(&store, "data", 1);
    let own = tables(&path);
    store.create_savepoint("after").unwrap();
    store.close().unwrap();
    for round in 2..4 {
        adamant::go_back_with(&path, "before", options()).unwrap();
        let store = open(&path);
        fill(&store, "data", round);
        assert!(tables(&path).len() > own.len(), "those of both");
        verify(&store.open_savepoint("after").unwrap(), "data", 1);
        store.close().unwrap();
        adamant::go_back_with(&path, "after", options()).unwrap();
        let store = open(&path);
        assert_eq!(tables(&path), own, "round {round}");
        verify(&store, "data", 1);
        store.close().unwrap();
    }
    // And those that only a savepoint has, with it, in the process that has the first tree again.
    adamant::go_back_with(&path, "before", options()).unwrap();
    let store = open(&path);
    fill(&store, "data", 4);
    assert!(store.delete_savepoint("after").unwrap());
    assert!(tables(&path).iter().all(|file| !own.contains(file)));
    verify(&store, "data", 4);
}

#[test]
fn going_back_needs_all_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path);
    fill(&store, "data", 1);
    let files = tables(&path);
    store.create_savepoint("one").unwrap();
    fill(&store, "data", 2);
    store.close().unwrap();
    let hidden = directory.path().join("hidden");
    std::fs::rename(&files[0], &hidden).unwrap();
    let error = adamant::go_back_with(&path, "one", options()).unwrap_err();
    assert!(error.is_damaged() && error.to_string().contains("put the file back"), "{error}");
    let store = open(&path);
    verify(&store, "data", 2);
    store.close().unwrap();
    std::fs::rename(&hidden, &files[0]).unwrap();
    adamant::go_back_with(&path, "one", options()).unwrap();
    verify(&open(&path), "data", 1);
}

#[test]
fn a_backup_leaves_out_files_that_only_savepoints_need() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut store = open(&path);
    for byte in 1..5 {
        fill(&store, "data", byte);
        store.create_savepoint(&format!("{byte}")).unwrap();
    }
    let of_one = tables(&path).len() / 4;
    for name in ["first", "second"] {
        let copy = directory.path().join(name);
        store.backup(&copy).unwrap();
        assert_eq!(tables(&copy).len(), of_one, "{name}");
        verify(&open(&copy), "data", 4);
        // What only savepoints need is known after an opening, too.
        store.close().unwrap();
        store = open(&path);
    }
    // Nor is what no tree has, of a store that is only read.
    let beside = Store::open_beside(&path).unwrap();
    fill(&store, "data", 5);
    for (name, reader, byte) in
        [("beside", beside, 4), ("still", Store::open_beside(&path).unwrap(), 5)]
    {
        let copy = directory.path().join(name);
        reader.backup(&copy).unwrap();
        assert_eq!(tables(&copy).len(), of_one, "{name}");
        verify(&open(&copy), "data", byte);
    }
    store.close().unwrap();
    let (copy, linked) = (directory.path().join("read only"), directory.path().join("linked"));
    let reader = Store::open_read_only(&path).unwrap();
    reader.backup(&copy).unwrap();
    reader.backup_linked(&linked).unwrap();
    drop(reader);
    for copy in [copy, linked] {
        assert_eq!(tables(&copy).len(), of_one, "{copy:?}");
        verify(&open(&copy), "data", 5);
    }
    store = open(&path);
    fill(&store, "data", 4);
    let of_savepoint = directory.path().join("of savepoint");
    store.open_savepoint("2").unwrap().backup(&of_savepoint).unwrap();
    assert_eq!(tables(&of_savepoint).len(), of_one);
    let increment = directory.path().join("increment");
    let made = store.backup_since(&of_savepoint, &increment).unwrap();
    assert_eq!(made.store_files as usize, of_one);
    verify(&Store::open_read_only(&increment).unwrap(), "data", 4);
    verify(&open(&of_savepoint), "data", 2);
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap().map(|entry| entry.unwrap()) {
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// Damages the first page of a copy of a store that keeps only the keyspace "damaged" from being
/// opened; returns it, with new contents in the keyspace "data", and the offset of the damage.
fn damaged(path: &Path, scratch: &Path) -> (Store, usize) {
    let pool = std::fs::read(path.join("pool")).unwrap();
    for (page, bytes) in pool.chunks(4096).enumerate() {
        let at = page * 4096 + 100;
        if bytes.iter().all(|byte| *byte == 0) {
            continue;
        }
        let _ = std::fs::remove_dir_all(scratch);
        copy(path, scratch);
        flip(scratch, at);
        let Ok(store) = Store::open_with(scratch, options()) else { continue };
        if store.open_keyspace("damaged").is_err() && try_fill(&store, "data", 3).is_ok() {
            return (store, at);
        }
    }
    panic!("no page does that");
}

fn flip(path: &Path, at: usize) {
    let mut pool = std::fs::read(path.join("pool")).unwrap();
    pool[at] ^= 1;
    std::fs::write(path.join("pool"), pool).unwrap();
}

/// A tree that cannot be opened: which files it has is not known, so none is taken for free, and a
/// savepoint keeps all.
#[test]
fn files_beside_a_tree_that_cannot_be_opened() {
    let directory = tempfile::tempdir().unwrap();
    let [path, scratch] = ["store", "scratch"].map(|name| directory.path().join(name));
    let store = open(&path);
    fill(&store, "damaged", 1);
    // A tree reads its memtable when it is opened.
    let again = (0..150).map(|number| (format!("{number:05}"), vec![1; 200]));
    store.open_keyspace("damaged").unwrap().extend(again).unwrap();
    fill(&store, "data", 1);
    store.create_savepoint("before").unwrap();
    fill(&store, "data", 2);
    store.create_savepoint("after").unwrap();
    store.close().unwrap();
    adamant::go_back_with(&path, "before", options()).unwrap();
    let (store, at) = damaged(&path, &scratch);
    // New files did not get the numbers of those that "after" needs.
    verify(&store.open_savepoint("after").unwrap(), "data", 2);
    store.create_savepoint("later").unwrap();
    store.close().unwrap();
    flip(&scratch, at);
    let store = open(&scratch);
    fill(&store, "damaged", 4);
    fill(&store, "data", 4);
    let later = store.open_savepoint("later").unwrap();
    verify(&later, "damaged", 1);
    verify(&later, "data", 3);
    drop(later);
    verify(&store.open_savepoint("after").unwrap(), "data", 2);
    for name in ["before", "after", "later"] {
        assert!(store.delete_savepoint(name).unwrap());
    }
    verify(&store, "damaged", 4);
    verify(&store, "data", 4);
}
