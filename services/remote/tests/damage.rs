//! Objects that are not as they were written: right data or an error, never other data, and an end.
//!
//! S3 keeps what it was given, and a file system may not. Each object of a store is changed at
//! places all along it, cut and emptied; then the store is opened and read. Manifests of SlateDB
//! 0.17 have no checksum, and a change of one may give other data: of those only an end is asked.
//! So may an object of the log without a byte, which SlateDB takes for the mark of a writer that
//! has taken over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adamant_remote::object_store::memory::InMemory;
use adamant_remote::object_store::path::Path;
use adamant_remote::object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use adamant_remote::{Options, Store};
use fastrand::Rng;
use futures::TryStreamExt;
use futures::executor::block_on;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Places in an object that are changed.
const PLACES: usize = 4;
/// Objects of a kind that are changed: the others are alike.
const OBJECTS: usize = 8;
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn options() -> Options {
    Options::new().flush_ms(1).memtable_bytes_max(4 << 10).wait_ms_max(500)
}

/// A store with tables, a log and manifests, closed or left as a killed process leaves it.
fn make(seed: u64, is_closed: bool) -> (InMemory, Map) {
    let objects = Arc::new(InMemory::new());
    let shared: Arc<dyn ObjectStore> = Arc::clone(&objects) as Arc<dyn ObjectStore>;
    let store = Store::open_objects(shared, "store", options()).unwrap();
    let (keyspace, mut random) = (store.keyspace("main").unwrap(), Rng::with_seed(seed));
    let mut map = Map::new();
    for _ in 0..60 {
        let mut batch = store.batch();
        for _ in 0..4 {
            let key = format!("key {:03}", random.u16(..200)).into_bytes();
            let value = vec![random.u8(..); random.usize(1..200)];
            batch.put(&keyspace, &key, &value).unwrap();
            map.insert(key, value);
        }
        batch.commit().unwrap();
    }
    let left = objects.fork();
    store.close().unwrap();
    (if is_closed { objects.fork() } else { left }, map)
}

/// Some names of each kind, with the kinds.
fn names(objects: &InMemory, random: &mut Rng) -> Vec<(String, Path)> {
    let listed: Vec<_> = block_on(objects.list(None).try_collect()).unwrap();
    let mut by_kind: BTreeMap<String, Vec<Path>> = BTreeMap::new();
    for object in listed {
        let kind = object.location.as_ref().split('/').nth(1).unwrap_or_default().to_owned();
        by_kind.entry(kind).or_default().push(object.location);
    }
    // The newest ones are what is read, by the order of their names; of the others, some.
    let some = |(kind, mut names): (String, Vec<Path>)| {
        names.sort();
        let newest = names.split_off(names.len().saturating_sub(OBJECTS / 2));
        let others = random.choose_multiple(names, OBJECTS / 2);
        newest.into_iter().chain(others).map(|name| (kind.clone(), name)).collect::<Vec<_>>()
    };
    by_kind.into_iter().flat_map(some).collect()
}

fn bytes_of(objects: &InMemory, name: &Path) -> Vec<u8> {
    block_on(async { objects.get(name).await.unwrap().bytes().await.unwrap() }).to_vec()
}

/// What is done to the bytes of an object.
fn damages(bytes: &[u8], random: &mut Rng) -> Vec<(String, Vec<u8>)> {
    let mut damages = vec![("emptied".to_owned(), Vec::new())];
    let mut add = |what: String, change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = bytes.to_vec();
        change(&mut changed);
        damages.push((what, changed));
    };
    for _ in 0..PLACES.min(bytes.len()) {
        let (at, bit) = (random.usize(..bytes.len()), random.u8(..8));
        add(format!("bit {bit} of byte {at}"), &|bytes| bytes[at] ^= 1 << bit);
        let at = random.usize(..bytes.len());
        add(format!("cut at {at}"), &|bytes| bytes.truncate(at));
        let (at, len) = (random.usize(..bytes.len()), random.usize(1..64));
        add(format!("zeros at {at}"), &|bytes| {
            let end = (at + len).min(bytes.len());
            bytes[at..end].fill(0);
        });
    }
    damages
}

/// Reads all there is.
fn read(objects: InMemory, is_reader: bool) -> adamant_remote::Result<Map> {
    let options = options().read_only(is_reader);
    let store = Store::open_objects(Arc::new(objects), "store", options)?;
    let keyspace = store.open_keyspace("main")?;
    let mut map = Map::new();
    for entry in keyspace.iter() {
        let (key, value) = entry?;
        map.insert(key.to_vec(), value.to_vec());
    }
    Ok(map)
}

/// How often reading gave the right data, an error, and other data.
#[derive(Debug, Default)]
struct Outcomes {
    right: u64,
    errors: u64,
    other: u64,
}

#[test]
fn a_changed_object_is_an_error_or_changes_nothing() {
    let seed = 1;
    let mut random = Rng::with_seed(seed);
    let mut outcomes: BTreeMap<String, Outcomes> = BTreeMap::new();
    for is_closed in [true, false] {
        let (objects, map) = make(7, is_closed);
        for (kind, name) in names(&objects, &mut random) {
            let bytes = bytes_of(&objects, &name);
            for (what, changed) in damages(&bytes, &mut random) {
                if changed == bytes {
                    continue;
                }
                let is_trusted = kind != "manifest" && !(kind == "wal" && changed.is_empty());
                let objects = objects.fork();
                block_on(objects.put(&name, PutPayload::from(changed))).unwrap();
                let begin = Instant::now();
                // A panic would be one of this test.
                let found = read(objects, random.bool());
                let context = format!("seed {seed}, {name}, {what}: {:?}", found.as_ref().err());
                assert!(begin.elapsed() < PATIENCE, "{context}");
                let outcomes = outcomes.entry(kind.clone()).or_default();
                match found {
                    Ok(found) if found == map => outcomes.right += 1,
                    Ok(_) if !is_trusted => outcomes.other += 1,
                    Ok(_) => panic!("{context}: other data"),
                    Err(_) => outcomes.errors += 1,
                }
            }
        }
    }
    println!("{outcomes:#?}");
    for kind in ["compacted", "wal", "manifest"] {
        assert!(outcomes[kind].errors > 0, "{kind}: {outcomes:#?}");
    }
}
