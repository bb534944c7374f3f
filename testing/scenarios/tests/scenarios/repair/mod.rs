//! Repair of stores that are damaged in every way that a file can be: every saved pair is one that
//! was committed, losses are reported, and the damaged store is kept unchanged.

mod moments;
mod support;

use std::fs;
use std::path::PathBuf;

use adamant::{Compression, Engine, Error, KeyspaceOptions, Store, repair};
use adamant_scenarios::files::copy_directory;
use tempfile::TempDir;

use crate::repair::support::{
    Model, PAIRS, flip, flip_behind, killed_store, killed_store_with, memtables, repair_and_look,
    write_at,
};

/// A store on the disk of temporary files.
fn store(seed: u64) -> (TempDir, PathBuf, Model) {
    store_by(Engine::Bplus, seed)
}

/// As `store`, with another engine.
fn store_by(engine: Engine, seed: u64) -> (TempDir, PathBuf, Model) {
    let directory = tempfile::tempdir().unwrap();
    let (path, model) = killed_store(directory.path(), engine, seed);
    (directory, path, model)
}

#[test]
fn a_whole_store_is_left_alone() {
    let (_directory, path, model) = store(1);
    let (lost, report) = repair_and_look(&path, &model);
    assert_eq!(lost, 0);
    assert!(report.findings.is_empty() && report.damaged_path.is_none());
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        2,
        "nothing is left beside it"
    );
}

/// A keyspace that was dropped while a snapshot saw it does not come back.
#[test]
fn what_a_snapshot_kept_stays_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let (open, path) = (directory.path().join("open"), directory.path().join("store"));
    let store = Store::open(&open).unwrap();
    let fill = |name: &str| {
        let keyspace = store.keyspace(name).unwrap();
        let mut batch = store.batch();
        for number in 0..3000 {
            batch.put(&keyspace, format!("{name} {number:05}"), [7; 90]).unwrap();
        }
        batch.commit().unwrap();
    };
    fill("dropped");
    fill("kept");
    let snapshot = store.snapshot().unwrap();
    store.drop_keyspace("dropped").unwrap();
    assert!(store.check().unwrap().is_clean());
    copy_directory(&open, &path);
    drop(snapshot);
    store.close().unwrap();
    let pool = path.join("pool");
    let len = fs::metadata(&pool).unwrap().len();
    for part in 2..8 {
        flip(&pool, len / 8 * part);
    }
    let report = repair(&path).unwrap();
    assert!(report.damaged_path.is_some(), "something was damaged");
    let store = Store::open(&path).unwrap();
    let names: Vec<_> = store.keyspaces().unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["kept"]);
    assert!(store.keyspace("kept").unwrap().len().unwrap() > 2000);
}

#[test]
fn pages_of_the_pool_cost_no_more_than_what_is_on_them() {
    let mut lost_all = 0;
    for seed in 0..24 {
        let (_directory, path, model) = store(seed);
        let pool = path.join("pool");
        let len = fs::metadata(&pool).unwrap().len();
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..3 {
            flip(&pool, random.u64(..len));
        }
        let (lost, report) = repair_and_look(&path, &model);
        // A page holds at most 512 blocks, or 9 leaves of 48 pairs; an inner node's leaves are
        // recovered as orphans.
        assert!(lost <= 3 * 512, "seed {seed}: {lost} pairs lost");
        let told: u64 = report.keyspaces.iter().map(|keyspace| keyspace.loss_count).sum();
        assert!(lost == 0 || told > 0, "seed {seed}: {lost} pairs lost in silence");
        lost_all += lost;
    }
    println!("24 stores, 3 flips each: {lost_all} pairs lost of {}", 24 * 2 * PAIRS);
    assert!(lost_all > 0, "the flips hit something");
}

/// Engines whose nodes cannot be found again: no loss goes unreported, and saved pairs stay in the
/// same engine.
#[test]
fn pages_of_other_engines() {
    let others = Engine::ALL.into_iter().filter(|engine| *engine != Engine::Bplus);
    for (engine, seed) in others.flat_map(|engine| (0..8).map(move |seed| (engine, seed))) {
        let (_directory, path, model) = store_by(engine, seed);
        let pool = path.join("pool");
        let len = fs::metadata(&pool).unwrap().len();
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..3 {
            flip(&pool, random.u64(..len));
        }
        let (lost, report) = repair_and_look(&path, &model);
        let told: u64 = report.keyspaces.iter().map(|keyspace| keyspace.loss_count).sum();
        assert!(lost == 0 || told > 0, "{engine}, seed {seed}: {lost} pairs lost in silence");
        println!("{engine}, seed {seed}: {lost} pairs lost");
        let store = Store::open(&path).unwrap();
        for info in store.keyspaces().unwrap() {
            assert_eq!(info.engine, engine, "seed {seed}: keyspace {:?}", info.name);
        }
    }
}

/// Values come back plain, or are reported as lost, with the dictionary and the options; also where
/// the dictionary itself is damaged.
#[test]
fn pages_of_compressed_values() {
    let dictionary =
        b"what all values have in common: a town, a river, a bridge over that ".repeat(90);
    for seed in 0..8 {
        let directory = tempfile::tempdir().unwrap();
        let options = KeyspaceOptions::new().value_compression(Compression::Zstd(1));
        let made = (options, Some(&dictionary[..]));
        let (path, model) = killed_store_with(directory.path(), made, seed);
        let pool = path.join("pool");
        if seed % 2 == 0 {
            let len = fs::metadata(&pool).unwrap().len();
            let mut random = fastrand::Rng::with_seed(seed);
            (0..3).for_each(|_| flip(&pool, random.u64(..len)));
        } else {
            // The dictionaries of both keyspaces begin like this, and nothing else does.
            let bytes = fs::read(&pool).unwrap();
            let place = bytes.windows(1000).position(|found| found == &dictionary[..1000]);
            flip(&pool, place.unwrap() as u64 + 4000);
        }
        let (lost, report) = repair_and_look(&path, &model);
        let told: u64 = report.keyspaces.iter().map(|keyspace| keyspace.loss_count).sum();
        let found = report.keyspaces.iter().any(|keyspace| keyspace.name == "lost+found");
        assert!(lost == 0 || told > 0 || found, "seed {seed}: {lost} pairs lost in silence");
        println!("seed {seed}: {lost} pairs lost");
        if seed % 2 == 1 {
            assert!(lost > PAIRS as u64 / 2 && lost < 2 * PAIRS as u64, "seed {seed}: {lost}");
        }
        let store = Store::open(&path).unwrap();
        let infos = store.keyspaces().unwrap();
        let kept = infos.iter().filter(|info| info.dictionary_bytes as usize == dictionary.len());
        assert!(kept.count() >= if seed % 2 == 0 { 2 } else { 1 }, "seed {seed}: {infos:?}");
    }
}

/// One damaged record of a memtable made repair give up the keyspace: the memtable could not be
/// opened, and all content of the tables was lost with it.
#[test]
fn a_damaged_record_of_a_memtable_costs_what_is_on_its_page() {
    for seed in 0..6 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let (model, damaged) = memtables(&path, seed);
        // All of it is in the pool: a page has its checksum there, and is lost as a whole.
        flip_behind(&path.join("pool"), &damaged);
        let (lost, report) = repair_and_look(&path, &model);
        assert!((1..=100).contains(&lost), "seed {seed}: {lost} pairs lost");
        assert!(report.keyspaces[0].losses[0].contains("of memtables"), "{report:?}");
    }
}

#[test]
fn every_page_in_use_may_be_lost_one_at_a_time() {
    let (directory, path, model) = store(7);
    let pool = fs::metadata(path.join("pool")).unwrap().len();
    // Head, checksums, descriptors, then data: every part, in steps that share no factor.
    for (round, offset) in (0..pool).step_by(4096 * 37).enumerate() {
        let copy = directory.path().join(format!("copy-{round}"));
        copy_directory(&path, &copy);
        write_at(&copy.join("pool"), offset, &[0xa5; 512]);
        let (lost, _) = repair_and_look(&copy, &model);
        assert!(lost <= 1024, "offset {offset}: {lost} pairs lost");
        fs::remove_dir_all(&copy).unwrap();
    }
}

#[test]
fn a_damaged_log_costs_its_records() {
    let (_directory, path, model) = store(3);
    // The first record after the checkpoint is damaged, and the second proves that it was there.
    let marker = b"towns-marker";
    for entry in fs::read_dir(path.join("log")).unwrap() {
        let log = entry.unwrap().path();
        let bytes = fs::read(&log).unwrap();
        if let Some(found) = bytes.windows(marker.len()).rposition(|bytes| bytes == marker) {
            flip(&log, found as u64);
        }
    }
    assert!(Store::open(&path).is_err(), "the store says that it is damaged");
    let (lost, report) = repair_and_look(&path, &model);
    assert!((1..=82).contains(&lost), "{lost} pairs lost");
    assert!(!report.findings.is_empty());
}

#[test]
fn without_header_and_without_log_the_pool_is_enough() {
    let (_directory, path, model) = store(4);
    flip(&path.join("pool"), 40);
    assert!(Store::open(&path).is_err());
    let (lost, report) = repair_and_look(&path, &model);
    assert_eq!(lost, 0, "the log knows whose it is: {:?}", report.findings);

    let (_directory, path, model) = store(5);
    fs::remove_dir_all(path.join("log")).unwrap();
    fs::create_dir(path.join("log")).unwrap();
    let (lost, _) = repair_and_look(&path, &model);
    assert!((1..=82).contains(&lost), "{lost} pairs lost");
}

#[test]
fn a_pool_that_was_cut_gives_what_is_left() {
    let (_directory, path, model) = store(6);
    let pool = fs::OpenOptions::new().write(true).open(path.join("pool")).unwrap();
    let len = pool.metadata().unwrap().len();
    pool.set_len(len / 2 / 4096 * 4096).unwrap();
    drop(pool);
    let (lost, report) = repair_and_look(&path, &model);
    assert!(lost > 0 && lost < 2 * PAIRS as u64, "{lost} pairs lost");
    assert!(!report.findings.is_empty());
}

#[test]
fn what_is_no_store_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let missing = repair(directory.path().join("none")).expect_err("nothing is there");
    assert!(matches!(missing, Error::Missing { .. }), "{missing}");
    fs::write(directory.path().join("file"), "text").unwrap();
    assert!(repair(directory.path().join("file")).is_err());
    assert!(repair(directory.path()).is_err(), "a folder with strangers");

    let (_directory, path, _) = store(8);
    let open = Store::open(&path).unwrap();
    let locked = repair(&path).expect_err("it is open");
    assert!(matches!(locked, Error::Locked { .. }), "{locked}");
    drop(open);
    flip(&path.join("pool"), 40);
    let left = path.with_extension("repairing");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("letter"), "text").unwrap();
    let strange = repair(&path).expect_err("something of others is in the way");
    assert!(matches!(strange, Error::NotAStore { .. }), "{strange}");
    fs::remove_file(left.join("letter")).unwrap();
    fs::write(left.join("pool"), "a beginning").unwrap();
    assert!(repair(&path).unwrap().damaged_path.is_some(), "an earlier repair is in nobody's way");
    assert!(!left.exists());
}
