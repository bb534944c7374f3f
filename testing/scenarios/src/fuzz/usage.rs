//! A small store with every engine, and its use after its files were damaged.

use std::sync::Arc;

use adamant::{Directory, Engine, Keyspace, KeyspaceOptions, LsmOptions, Options, Store};
use adamant_sim::{SimDirectory, SimDisk};

use crate::crashes::Content;
use crate::fuzz::image::Image;

/// Entries that are inserted into each keyspace.
const ENTRIES: usize = 60;
/// Entries of one commit.
const BATCH: usize = 12;
/// Maximum entries that are read of a keyspace: links between leaves may form circles.
const ENTRIES_MAX: usize = 2_000;
/// Changes to each keyspace of a damaged store.
const WRITES: u8 = 8;

/// A store, with its possible contents.
pub(super) struct Subject {
    pub(super) image: Image,
    /// Its state after half of its commits.
    pub(super) earlier: Image,
    /// The content after each commit that may be the last one found.
    models: Vec<Content>,
}

impl Subject {
    /// A store with a few entries in every engine; closed, or as after a kill, with a log to
    /// replay. Its identity follows from the seed.
    ///
    /// # Panics
    /// If it cannot be created.
    pub(super) fn make(is_closed: bool, seed: u64) -> Self {
        let disk = SimDisk::new(seed).without_history();
        let root: Arc<dyn Directory> = Arc::new(SimDirectory::root(&disk));
        let store = Store::open_directory(root.clone(), options()).unwrap();
        let mut models = vec![Content::default()];
        let mut earlier = Image::of(&root);
        for (number, engine) in Engine::ALL.into_iter().enumerate() {
            if number == Engine::ALL.len() / 2 {
                earlier = Image::of(&root);
            }
            fill(&store, engine, &mut models);
        }
        if is_closed {
            store.clone().close().unwrap();
            models.drain(..models.len() - 1);
        }
        Self { image: Image::of(&root), earlier, models }
    }

    /// Opens the damaged store, reads and writes everywhere. Returns whether it opened. If
    /// `is_verified`, what was read without an error is compared with the expected content.
    ///
    /// # Panics
    /// If wrong data was read without an error.
    pub(super) fn exercise(
        &self,
        root: Arc<dyn Directory>,
        verify: bool,
        is_verified: bool,
    ) -> bool {
        let options = options().verify_first_touch(verify).create(false);
        let store = match Store::open_directory(root, options) {
            Ok(store) => store,
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error that says nothing");
                return false;
            }
        };
        let found = if is_verified { Content::read(&store).ok() } else { None };
        if let Some(found) = found {
            assert!(self.models.contains(&found), "read without an error, and wrong");
        }
        use_up(&store);
        true
    }
}

/// Commits of one keyspace, with the content after each.
fn fill(store: &Store, engine: Engine, models: &mut Vec<Content>) {
    let name = engine.name();
    let keyspace = store.keyspace_with(name, KeyspaceOptions::new().engine(engine)).unwrap();
    let mut content = models.last().cloned().unwrap_or_default();
    content.keyspaces.insert(name.to_owned(), Arc::default());
    models.push(content.clone());
    let numbers: Vec<usize> = (0..ENTRIES).collect();
    let removed: Vec<usize> = (0..ENTRIES).step_by(7).collect();
    for (batch, is_removal) in
        numbers.chunks(BATCH).map(|batch| (batch, false)).chain([(&removed[..], true)])
    {
        let mut changes = store.batch();
        for &number in batch {
            let key = key(number);
            if is_removal {
                content.map(name).remove(key.as_bytes());
                changes.delete(&keyspace, key).unwrap();
            } else {
                let value = vec![number as u8; if number % 20 == 0 { 400 } else { number }];
                content.map(name).insert(key.as_bytes().into(), value.as_slice().into());
                changes.put(&keyspace, key, value).unwrap();
            }
        }
        changes.commit().unwrap();
        models.push(content.clone());
    }
}

fn key(number: usize) -> String {
    format!("key {number:02}")
}

/// Small limits, and no other threads: the same calls in the same order every time.
fn options() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 2 << 10;
    lsm.table_bytes_max = 2 << 10;
    lsm.block_bytes = 512;
    lsm.level0_tables_max = 4;
    lsm.blob_bytes_min = Some(300);
    Options::new().lsm(lsm).background(false).log_bytes_max(1 << 20)
}

/// Reads and writes everywhere; errors are accepted.
fn use_up(store: &Store) {
    for info in store.keyspaces().unwrap_or_default() {
        let Ok(keyspace) = store.open_keyspace(&info.name) else { continue };
        read(&keyspace);
        for number in 0..WRITES {
            drop(keyspace.insert(format!("new {number}"), [number; 90]));
            drop(keyspace.remove(key(number.into())));
        }
    }
    drop(store.check());
    drop(store.clone().close());
}

fn read(keyspace: &Keyspace) {
    let upwards = keyspace.iter().take(ENTRIES_MAX).filter(Result::is_ok).count();
    let downwards = keyspace.iter().rev().take(ENTRIES_MAX).filter(Result::is_ok).count();
    for number in 0..ENTRIES.min(upwards.max(downwards) + 10) {
        drop(keyspace.get(key(number)));
    }
}
