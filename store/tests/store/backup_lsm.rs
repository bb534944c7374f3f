//! A backup pins the LSM files that it is about to copy: the copied heap refers to them, whatever
//! becomes of them in the store meanwhile. Otherwise a merge or a dropped keyspace at the wrong
//! moment would leave a backup that opens and cannot be read.

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
