//! Backups of LSM trees. A backup pins the files that it is about to copy: the copied heap refers
//! to them, whatever becomes of them in the store meanwhile. Otherwise a merge or a dropped
//! keyspace at the wrong moment would leave a backup that opens and cannot be read.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adamant::{Directory, Durability, Engine, KeyspaceOptions, LsmOptions, Options, Store};
use adamant_medium::memory::MemoryDirectory;
use adamant_sim::{Call, Hooked};

const KEYS: u32 = 3_000;

fn options() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 32 << 10;
    lsm.table_bytes_max = 32 << 10;
    lsm.base_bytes_min = 64 << 10;
    lsm.level0_tables_max = 4;
    lsm.blob_bytes_min = Some(300);
    Options::new().durability(Durability::Buffered).lsm(lsm)
}

fn value(number: u32) -> Vec<u8> {
    vec![number as u8; if number.is_multiple_of(10) { 400 } else { 60 }]
}

fn files(directory: &dyn Directory) -> usize {
    let names = |name| directory.subdirectory(name).unwrap().list().unwrap().len();
    names("tables") + names("blobs")
}

#[test]
fn files_that_are_let_go_while_they_are_copied_are_in_the_copy() {
    let source: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    // All work within calls: with a concurrent merge, files would be deleted later, maybe after the
    // copy.
    let options = || options().background(false);
    let store = Arc::new(Store::open_directory(Arc::clone(&source), options()).unwrap());
    let lsm = KeyspaceOptions::new().engine(Engine::Lsm);
    let data = store.keyspace_with("data", lsm).unwrap();
    for number in 0..KEYS {
        data.insert(format!("{number:05}"), value(number)).unwrap();
    }
    let before = files(source.as_ref());
    assert!(before > 3, "{before} files");
    // Before the files of tables are copied; the heap is there by then.
    let (dropping, is_done) = (Arc::clone(&store), AtomicBool::new(false));
    let drops = move |call, path: &Path| {
        let is_tables = call == Call::Create && path.ends_with("tables");
        if is_tables && !is_done.swap(true, Ordering::Relaxed) {
            assert!(dropping.drop_keyspace("data").unwrap());
        }
        Ok(())
    };
    let target: Arc<dyn Directory> = Arc::new(Hooked::new(MemoryDirectory::new(), drops));
    drop(data);
    store.backup_into(&target).unwrap();
    assert_eq!(files(source.as_ref()), 0, "they go when the copy is made");

    let copy = Store::open_directory(target, options()).unwrap();
    assert!(copy.check().unwrap().is_clean());
    let data = copy.open_keyspace("data").unwrap();
    assert_eq!(data.len().unwrap(), u64::from(KEYS));
    for number in 0..KEYS {
        let found = data.get(format!("{number:05}")).unwrap();
        assert_eq!(found.as_deref(), Some(&value(number)[..]));
    }
}

/// Files of both stores are the same as long as both need them; each store goes its own way.
#[test]
fn a_linked_backup_shares_files_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let store = Store::open_with(path("store"), options().background(false)).unwrap();
    let lsm = KeyspaceOptions::new().engine(Engine::Lsm);
    let data = store.keyspace_with("data", lsm).unwrap();
    for number in 0..KEYS {
        data.insert(format!("{number:05}"), value(number)).unwrap();
    }
    let links_of = |name: &str, folder: &str| {
        let files = std::fs::read_dir(path(name).join(folder)).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().nlink()).collect::<Vec<_>>()
    };
    let links = |name: &str| [links_of(name, "tables"), links_of(name, "blobs")].concat();
    store.backup(path("copied")).unwrap();
    store.backup_linked(path("linked")).unwrap();
    assert!(links("copied").iter().all(|links| *links == 1) && links("linked").len() > 3);
    assert!(links("store").iter().chain(&links("linked")).all(|links| *links == 2));

    let copy = Store::open_with(path("linked"), options().background(false)).unwrap();
    let copied = copy.open_keyspace("data").unwrap();
    copied.put("00001", "changed").unwrap();
    copied.compact().unwrap();
    let tables = links_of("linked", "tables");
    assert!(tables.iter().all(|links| *links == 1), "merges write files of their own");
    assert!(store.drop_keyspace("data").unwrap());
    assert_eq!(links("store").len(), 0);
    assert!(copy.check().unwrap().is_clean());
    assert_eq!(copied.get("00001").unwrap().as_deref(), Some(&b"changed"[..]));
    for number in (0..KEYS).filter(|number| *number != 1) {
        let found = copied.get(format!("{number:05}")).unwrap();
        assert_eq!(found.as_deref(), Some(&value(number)[..]));
    }
    let taken = store.backup_linked(path("linked")).unwrap_err();
    assert!(matches!(taken, adamant::Error::TargetExists { .. }), "{taken}");
    let within = store.backup_linked(path("store/within")).unwrap_err();
    assert!(matches!(within, adamant::Error::TargetInside { .. }), "{within}");
}

/// Where there are no links files are copied.
#[test]
fn a_linked_backup_to_another_medium_is_a_copy() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_with(directory.path().join("store"), options()).unwrap();
    let lsm = KeyspaceOptions::new().engine(Engine::Lsm);
    let data = store.keyspace_with("data", lsm).unwrap();
    for number in 0..KEYS {
        data.put(format!("{number:05}"), value(number)).unwrap();
    }
    let shared = std::path::Path::new("/dev/shm");
    if !shared.is_dir() {
        return println!("skipped: there is no /dev/shm");
    }
    let other = tempfile::tempdir_in(shared).unwrap();
    store.backup_linked(other.path().join("copy")).unwrap();
    let copy = Store::open_with(other.path().join("copy"), options()).unwrap();
    assert!(copy.check().unwrap().is_clean());
    assert_eq!(copy.open_keyspace("data").unwrap().len().unwrap(), u64::from(KEYS));
}
