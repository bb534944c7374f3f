//! A backup pins the LSM files that it is about to copy: the copied heap refers to them, whatever
//! becomes of them in the store meanwhile. Otherwise a merge or a dropped keyspace at the wrong
//! moment would leave a backup that opens and cannot be read.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adamant::{Directory, Durability, Engine, KeyspaceOptions, LsmOptions, Options, Store};
use adamant_medium::error::Result;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::{File, Lock};

const KEYS: u32 = 3_000;

/// A directory that runs a function before the files of tables are copied into it; the heap is
/// there by then.
struct Target {
    directory: MemoryDirectory,
    before_tables: Box<dyn Fn() + Send + Sync>,
    is_done: AtomicBool,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.directory.fmt(f)
    }
}

impl Directory for Target {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        self.directory.open(name)
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>> {
        self.directory.create(name)
    }

    fn rename(&self, source: &str, target: &str) -> Result<()> {
        self.directory.rename(source, target)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.directory.remove(name)
    }

    fn list(&self) -> Result<Vec<String>> {
        self.directory.list()
    }

    #[track_caller]
    fn sync(&self) -> Result<()> {
        self.directory.sync()
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>> {
        if name == "tables" && !self.is_done.swap(true, Ordering::Relaxed) {
            (self.before_tables)();
        }
        self.directory.subdirectory(name)
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.directory.lock(name)
    }

    fn lock_shared(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.directory.lock_shared(name)
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        self.directory.random(buffer)
    }
}

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
    let dropping = Arc::clone(&store);
    let target: Arc<dyn Directory> = Arc::new(Target {
        directory: MemoryDirectory::new(),
        before_tables: Box::new(move || assert!(dropping.drop_keyspace("data").unwrap())),
        is_done: AtomicBool::new(false),
    });
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
