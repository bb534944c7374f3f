//! A process with a thousand open stores, one for each tenant.

use std::sync::{Mutex, PoisonError};

use adamant::{Engine, KeyspaceOptions, Options, Store};

/// Held by each test: descriptors of one would be counted by another.
static ALONE: Mutex<()> = Mutex::new(());

const STORES: usize = 1_000;
/// How many of these are written to.
const WRITTEN: usize = 40;

/// A figure of this process, from the system.
#[cfg(target_os = "linux")]
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The 127th store of a process silently got fewer addresses, and the 149th accepted 256 MiB and
/// then failed with an error that was not one of space; each had three idle threads.
#[test]
#[cfg(target_os = "linux")]
fn a_thousand_stores() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let threads = status("Threads:");
    let first = descriptors();
    let open = |number: usize| {
        let path = directory.path().join(number.to_string());
        let store = Store::open_with(&path, Options::new().log_bytes_max(4 << 20)).unwrap();
        store.keyspace("main").unwrap().insert("tenant", number.to_string()).unwrap();
        store
    };
    let mut stores = vec![open(0)];
    let each = descriptors() - first;
    // Each has some MiB of files; of stores that are only read there are as many as the system
    // allows to be open.
    stores.extend((1..WRITTEN).map(open));
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let limit = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let limit: usize = limit.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX);
    let room = (limit - descriptors()) / each - 10;
    let mut shown = directory.path().join("shown");
    drop(Store::open(&shown).unwrap());
    shown = std::fs::canonicalize(shown).unwrap();
    let read_only = || Store::open_read_only(&shown).unwrap();
    stores.extend((WRITTEN..STORES.min(WRITTEN + room)).map(|_| read_only()));
    let count = stores.len();
    let log = stores[0].keyspace_with("log", KeyspaceOptions::new().engine(Engine::Lsm)).unwrap();
    log.insert("idle", "too").unwrap();
    let addresses: Vec<u64> =
        stores.iter().map(|store| store.stats().unwrap().heap.address_bytes).collect();
    println!(
        "{count} stores: {each} descriptors each, {} threads more, {} KiB resident, \
         {} addresses each",
        status("Threads:").saturating_sub(threads),
        status("VmRSS:"),
        addresses[count - 1],
    );
    assert!(addresses.iter().all(|bytes| *bytes == addresses[0]), "no store gets less");
    // Threads of other tests come and go.
    assert!(status("Threads:") < threads + 10, "nobody has anything to do in the background");
    for (number, store) in stores.iter().enumerate().take(WRITTEN) {
        let found = store.open_keyspace("main").unwrap().get("tenant").unwrap();
        assert_eq!(found, Some(number.to_string().into()));
    }
}

/// A pool that has used up its addresses returns an error with advice.
#[test]
fn a_store_without_addresses_left() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let options = || Options::new().address_bytes_max(1 << 20);
    let store = Store::open_with(directory.path(), options()).unwrap();
    let bytes = store.stats().unwrap().heap.address_bytes;
    let error = store.reserve(bytes as usize).unwrap_err();
    assert!(error.is_out_of_space() && !error.is_poisoned(), "{error}");
    assert!(error.to_string().contains("address_bytes_max"), "{error}");
    store.keyspace("main").unwrap().insert("still", "there").unwrap();
    assert!(store.check().unwrap().is_clean());
}
