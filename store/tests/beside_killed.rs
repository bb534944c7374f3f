//! Readers in one process, and a writer in others that are killed at any moment: what readers see
//! was committed, is whole, and is never older than what they saw before.
//!
//! `ADAMANT_BESIDE_KILLS=500 cargo test -p adamant --test beside_killed` runs for longer.
#![cfg(unix)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use adamant::{Durability, Engine, Keyspace, KeyspaceOptions, LsmOptions, Options, Store};

/// Set for a writer: the path of its store.
const WRITER: &str = "ADAMANT_BESIDE_WRITER";
/// Kills; refreshes of a reader for each, and how many of them are openings instead.
const KILLS: &str = "ADAMANT_BESIDE_KILLS";
const KILLS_DEFAULT: u32 = 12;
const REFRESHES: u32 = 40;
const OPENED_PART: u32 = 10;
const KEYS: u32 = 400;
const ENGINES: [Engine; 2] = [Engine::Bplus, Engine::Lsm];

fn options() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 256 << 10;
    lsm.table_bytes_max = 256 << 10;
    lsm.base_bytes_min = 256 << 10;
    Options::new().durability(Durability::Buffered).lsm(lsm).log_bytes_max(8 << 20)
}

fn keyspaces(store: &Store) -> [Keyspace; 2] {
    ENGINES.map(|engine| {
        store.keyspace_with(engine.name(), KeyspaceOptions::new().engine(engine)).unwrap()
    })
}

fn key(number: u32) -> String {
    format!("{number:04}")
}

/// A value of a version: long enough for pages and tables to change with each commit.
fn value(number: u32, version: u64) -> Vec<u8> {
    let mut bytes = version.to_le_bytes().to_vec();
    bytes.resize(8 + (number as usize * 7 + version as usize) % 300, version as u8);
    bytes
}

/// Gives all keys of both keyspaces one version after the other, each by one commit.
fn write(path: &Path) -> ! {
    let store = Store::open_with(path, options()).unwrap();
    let keyspaces = keyspaces(&store);
    let last = keyspaces[0].get(key(0)).unwrap();
    let mut version = last.map_or(0, |value| u64::from_le_bytes(*value.first_chunk().unwrap()));
    // Ends by itself if it is not killed.
    for _ in 0..1_000_000 {
        version += 1;
        let mut batch = store.batch();
        for keyspace in &keyspaces {
            for number in 0..KEYS {
                batch.put(keyspace, key(number), value(number, version)).unwrap();
            }
        }
        batch.commit().unwrap();
        if version.is_multiple_of(50) {
            store.shrink().unwrap();
        }
    }
    std::process::exit(0);
}

/// Reads all of a store; returns its version.
fn read(store: &Store) -> u64 {
    let mut versions = Vec::new();
    for engine in ENGINES {
        let keyspace = store.open_keyspace(engine.name()).unwrap();
        let first = keyspace.get(key(0)).unwrap().expect("is there");
        let version = u64::from_le_bytes(*first.first_chunk().unwrap());
        let mut numbers = 0..KEYS;
        for entry in keyspace.iter() {
            let (found, bytes) = entry.unwrap();
            let number = numbers.next().expect("no more keys");
            assert_eq!(found, key(number), "{engine:?}");
            assert_eq!(bytes, value(number, version)[..], "{engine:?}, key {number}");
        }
        assert!(numbers.next().is_none(), "{engine:?}");
        versions.push(version);
    }
    assert_eq!(versions[0], versions[1], "one commit wrote both");
    versions[0]
}

struct Writer(Child);

impl Writer {
    fn start(path: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "readers_beside_writers_that_are_killed", "--nocapture"]);
        let child = command.env(WRITER, path).stdout(Stdio::null()).spawn().unwrap();
        Self(child)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn readers_beside_writers_that_are_killed() {
    if let Some(path) = std::env::var_os(WRITER) {
        write(path.as_ref());
    }
    let kills = std::env::var(KILLS).ok().and_then(|it| it.parse().ok()).unwrap_or(KILLS_DEFAULT);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, options()).unwrap();
    let mut batch = store.batch();
    for keyspace in &keyspaces(&store) {
        for number in 0..KEYS {
            batch.put(keyspace, key(number), value(number, 0)).unwrap();
        }
    }
    batch.commit().unwrap();
    store.close().unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut reader = Store::open_beside(&path).unwrap();
    let (mut newest, mut moved, mut refreshes) = (0, 0, 0);
    for kill in 0..kills {
        let writer = Writer::start(&path);
        let opened = random.u32(1..=REFRESHES);
        for round in 0..opened {
            match random.u32(..OPENED_PART) {
                0 => reader = Store::open_beside(&path).unwrap(),
                _ => _ = reader.refresh().unwrap(),
            }
            let version = read(&reader);
            assert!(version >= newest, "kill {kill}, round {round}: {version} after {newest}");
            moved += u32::from(version > newest);
            newest = version;
        }
        refreshes += opened;
        std::thread::sleep(Duration::from_millis(random.u64(..30)));
        drop(writer);
        reader.refresh().unwrap();
        let version = read(&reader);
        assert!(version >= newest, "after kill {kill}: {version} after {newest}");
        newest = version;
    }
    assert!(moved > kills / 4, "{moved} of {refreshes} saw something new in {kills} kills");
    println!("{kills} kills, {refreshes} refreshes, version {newest}, {moved} saw something new");
    let store = Store::open_with(&path, options()).unwrap();
    assert!(store.check().unwrap().is_clean());
}
