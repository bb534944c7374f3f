//! Killed stores for the tests of repair, and the verification of its results.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use adamant::{
    Compression, Durability, Engine, KeyspaceOptions, Options, RepairReport, Store, repair,
};
use adamant_scenarios::files::copy_directory;
use adamant_wire::checksum::crc32c;

/// The committed pairs, by keyspace.
pub(crate) type Model = BTreeMap<&'static str, BTreeMap<Vec<u8>, Vec<u8>>>;

const KEYSPACES: [&str; 2] = ["towns", "rivers"];
/// Pairs of each, except for a few.
pub(crate) const PAIRS: usize = 6000;

/// A store with two keyspaces in a folder, as after a kill: most of it in the pool, the last
/// commits only in the log.
pub(crate) fn killed_store(folder: &Path, engine: Engine, seed: u64) -> (PathBuf, Model) {
    killed_store_with(folder, (KeyspaceOptions::new().engine(engine), None), seed)
}

/// The same with options, and with a dictionary for zstd.
pub(crate) fn killed_store_with(
    folder: &Path,
    (options, dictionary): (KeyspaceOptions, Option<&[u8]>),
    seed: u64,
) -> (PathBuf, Model) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (path, copy) = (folder.join("open"), folder.join("store"));
    let store = Store::open_with(&path, Options::new().background(false)).unwrap();
    let mut model = Model::new();
    for round in 0..2 {
        for name in KEYSPACES {
            let keyspace = store.keyspace_with(name, options).unwrap();
            if let Some(bytes) = dictionary.filter(|_| round == 0) {
                store.compress_values(name, Compression::Zstd(1), Some(bytes)).unwrap();
            }
            let mut batch = store.batch();
            batch.durability(Durability::Sync);
            let pairs = if round == 0 { PAIRS } else { 40 };
            for _ in 0..pairs {
                let key = format!("{name}-{:08x}", random.u32(..)).into_bytes();
                let len = if random.u8(..) == 0 { 9000 } else { random.usize(..160) };
                let mut value: Vec<u8> =
                    std::iter::repeat_with(|| random.u8(..)).take(len).collect();
                if let Some(bytes) = dictionary {
                    // Something that the dictionary has, and noise.
                    value = [bytes, &value[..len / 4], bytes].concat();
                }
                batch.put(&keyspace, &key, &value).unwrap();
                model.entry(name).or_default().insert(key, value);
            }
            if round == 1 {
                let key = format!("{name}-marker").into_bytes();
                batch.put(&keyspace, &key, "last").unwrap();
                model.entry(name).or_default().insert(key, b"last".to_vec());
            }
            batch.commit().unwrap();
        }
        if round == 0 {
            // The check brings everything to the pool first.
            assert!(store.check().unwrap().is_clean());
        }
    }
    copy_directory(&path, &copy);
    store.close().unwrap();
    (copy, model)
}

/// A closed store with a keyspace of the engine `lsm`, in tables and a memtable; and a key that is
/// only in the memtable.
pub(crate) fn memtables(path: &Path, seed: u64) -> (Model, Vec<u8>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let options = Options::new().background(false).durability(Durability::Buffered);
    let store = Store::open_with(path, options).unwrap();
    let engine = KeyspaceOptions::new().engine(Engine::Lsm);
    let keyspace = store.keyspace_with(KEYSPACES[0], engine).unwrap();
    let (mut pairs, mut key) = (BTreeMap::new(), Vec::new());
    let damaged = random.usize(1000..2000);
    for number in 0..2000 {
        if number == 1000 {
            keyspace.compact().unwrap();
        }
        let value: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(150).collect();
        let next = format!("town-{number:04}-{:08x}", random.u32(..)).into_bytes();
        keyspace.put(&next, &value).unwrap();
        pairs.insert(next.clone(), value);
        if number == damaged {
            key = next;
        }
    }
    drop(keyspace);
    store.close().unwrap();
    (Model::from([(KEYSPACES[0], pairs)]), key)
}

/// Flips a bit after the only occurrence of these bytes in a file.
pub(crate) fn flip_behind(file: &Path, found: &[u8]) {
    let bytes = fs::read(file).unwrap();
    let places = bytes.windows(found.len()).enumerate().filter(|(_, window)| *window == found);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    assert_eq!(places.len(), 1, "{places:?}");
    flip(file, (places[0] + found.len() + 7) as u64);
}

pub(crate) fn write_at(file: &Path, offset: u64, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

pub(crate) fn flip(file: &Path, offset: u64) {
    let mut byte = [0];
    fs::File::open(file).unwrap().read_exact_at(&mut byte, offset).unwrap();
    write_at(file, offset, &[byte[0] ^ 0x10]);
}

/// Repairs a store and verifies the result. Whatever was damaged, the damaged store is unchanged,
/// and the new one is valid and holds only pairs that were committed, each in its keyspace. Returns
/// the number of lost pairs, and the report.
pub(crate) fn repair_and_look(path: &Path, model: &Model) -> (u64, RepairReport) {
    let before = files_of(path);
    let report = repair(path).unwrap();
    if let Some(kept) = &report.damaged_path {
        assert!(files_of(kept) == before, "the damaged store is as it was");
    }
    let store = Store::open_with(path, Options::new().create(false)).unwrap();
    let check = store.check().unwrap();
    assert!(check.is_clean(), "{:?}", check.findings);
    let mut saved = BTreeSet::new();
    for info in store.keyspaces().unwrap() {
        let keyspace = store.keyspace(&info.name).unwrap();
        for pair in keyspace.iter() {
            let (key, value) = pair.unwrap();
            let committed = model.values().find_map(|pairs| pairs.get(&key[..]));
            let committed = committed.unwrap_or_else(|| panic!("{key:?} was never committed"));
            assert!(committed[..] == value[..], "{key:?} has a wrong value: pages prove values");
            if let Some(pairs) = model.get(&info.name[..]) {
                assert!(pairs.contains_key(&key[..]), "{key:?} is in the wrong keyspace");
            }
            saved.insert(key.to_vec());
        }
    }
    store.close().unwrap();
    let committed: usize = model.values().map(BTreeMap::len).sum();
    ((committed - saved.len()) as u64, report)
}

/// Names and checksums of all files but the lock, which names its holder.
fn files_of(path: &Path) -> BTreeMap<PathBuf, u32> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(path.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                waiting.push(name);
            } else if entry.file_name() != "lock" {
                files.insert(name, crc32c(0, &fs::read(entry.path()).unwrap()));
            }
        }
    }
    files
}
