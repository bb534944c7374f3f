//! Objects that are not as they were written: right data or an error, never other data, and an end.
//!
//! S3 keeps what it was given, and a file system may not. Each object of a store is changed at places all along it,
//! cut, emptied, exchanged for another of its kind and removed; then the store is opened and read.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use adamant_remote::object_store::memory::InMemory;
use adamant_remote::object_store::path::Path;
use adamant_remote::object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use adamant_remote::{Options, Store};
use fastrand::Rng;
use futures::TryStreamExt;
use futures::executor::block_on;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Places in an object that are changed.
const PLACES: usize = 12;

fn options() -> Options {
    Options::new().flush_ms(1).memtable_bytes_max(4 << 10).wait_ms_max(5_000)
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
            batch.insert(&keyspace, &key, &value).unwrap();
            map.insert(key, value);
        }
        batch.commit().unwrap();
    }
    let left = objects.fork();
    store.close().unwrap();
    (if is_closed { objects.fork() } else { left }, map)
}

fn names(objects: &InMemory) -> Vec<Path> {
    let listed: Vec<_> = block_on(objects.list(None).try_collect()).unwrap();
    listed.into_iter().map(|object| object.location).collect()
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

/// Reads all there is. An entry that is there has the value that it was given last, or the one of a commit before
/// if its log ends there.
fn read(objects: InMemory, is_reader: bool) -> Result<Map, String> {
    let work = || -> adamant_remote::Result<Map> {
        let options = options().read_only(is_reader);
        let store = Store::open_objects(Arc::new(objects), "store", options)?;
        let keyspace = store.open_keyspace("main")?;
        let mut map = Map::new();
        for entry in keyspace.iter() {
            let (key, value) = entry?;
            map.insert(key.to_vec(), value.to_vec());
        }
        Ok(map)
    };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(found) => found.map_err(|error| error.to_string()),
        Err(_) => Err("a panic".to_owned()),
    }
}

#[test]
fn a_changed_object_is_an_error_or_changes_nothing() {
    let mut random = Rng::with_seed(1);
    let mut by_outcome: BTreeMap<String, u64> = BTreeMap::new();
    for is_closed in [true, false] {
        let (objects, map) = make(7, is_closed);
        for name in names(&objects) {
            let bytes = bytes_of(&objects, &name);
            for (what, changed) in damages(&bytes, &mut random) {
                if changed == bytes {
                    continue;
                }
                let objects = objects.fork();
                block_on(objects.put(&name, PutPayload::from(changed))).unwrap();
                let begin = std::time::Instant::now();
                let found = read(objects, random.bool());
                let kind = name.as_ref().split('/').nth(1).unwrap_or_default().to_owned();
                let outcome = match &found {
                    Ok(found) if *found == map => "right",
                    Ok(_) => "OTHER",
                    Err(words) if words.contains("panic") => "PANIC",
                    Err(_) => "error",
                };
                let secs = if begin.elapsed().as_secs() > 2 { " slow" } else { "" };
                if outcome == "OTHER" || outcome == "PANIC" || !secs.is_empty() {
                    println!(
                        "{name} of {} bytes, {what}: {outcome}{secs} {:?}",
                        bytes.len(),
                        found.err()
                    );
                }
                *by_outcome.entry(format!("{kind} {outcome}{secs}")).or_default() += 1;
            }
        }
    }
    println!("{by_outcome:#?}");
}
