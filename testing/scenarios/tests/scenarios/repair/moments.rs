//! Stores with files from two moments, or with lost checkpoints: opening for writing and read-only,
//! check, backup and repair all report the same.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use adamant::{Durability, Engine, Options, OsDirectory, RepairReport, Store, repair};
use adamant_heap::{Heap, Salvage};
use adamant_scenarios::files::copy_directory;

use crate::repair::support::flip;

const COMMITS: u64 = 26;
/// Offsets of the two checkpoints of a pool, each with its number first.
const SLOTS: [u64; 2] = [4096, 8192];

fn options() -> Options {
    Options::new().background(false).durability(Durability::Sync)
}

/// A store that was killed after some commits, and its state when it was closed before them.
fn killed(folder: &Path, engine: Engine) {
    let open = folder.join("open");
    let store = Store::open_with(&open, options()).unwrap();
    let keyspace = adamant::KeyspaceOptions::new().engine(engine);
    store.keyspace_with("all", keyspace).unwrap().insert("first", "1").unwrap();
    store.close().unwrap();
    copy_directory(&open, &folder.join("older"));
    let store = Store::open_with(&open, options()).unwrap();
    let all = store.open_keyspace("all").unwrap();
    for number in 0..COMMITS {
        all.insert(format!("key {number}"), "acknowledged").unwrap();
    }
    copy_directory(&open, &folder.join("store"));
}

/// All ways to open refuse it, with the same message, and repair lists a finding.
fn refused(path: &Path) -> RepairReport {
    let writing = Store::open_with(path, options()).expect_err("it is damaged");
    let reading = Store::open_with(path, options().read_only(true)).expect_err("it is damaged");
    assert_eq!(writing.to_string(), reading.to_string(), "one verdict");
    assert!(writing.is_damaged(), "{writing}");
    // Salvage without opening the store also reports that it is incomplete.
    let salvage = Salvage::open(&(Arc::new(OsDirectory::open(path).unwrap()) as _)).unwrap();
    assert!(!salvage.findings().is_empty());
    drop(salvage);
    let report = repair(path).unwrap();
    assert!(!report.findings.is_empty());
    report
}

fn len(path: &Path) -> u64 {
    Store::open(path).unwrap().open_keyspace("all").unwrap().len().unwrap()
}

#[test]
fn nothing_older_is_opened_in_silence_and_what_follows_is_saved() {
    for engine in Engine::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        killed(folder.path(), engine);
        let pool = fs::read(path.join("pool")).unwrap();
        let number =
            |slot: &u64| pool[*slot as usize..][..8].iter().rev().copied().collect::<Vec<_>>();
        let newest = SLOTS.into_iter().max_by_key(number).unwrap();
        flip(&path.join("pool"), newest + 16);
        let report = refused(&path);
        assert_eq!(len(&path), COMMITS + 1, "{engine:?}: {report:?}");

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        killed(folder.path(), engine);
        fs::copy(folder.path().join("older/pool"), path.join("pool")).unwrap();
        let report = refused(&path);
        assert_eq!(len(&path), COMMITS + 1, "{engine:?}: {report:?}");

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        killed(folder.path(), engine);
        fs::remove_file(path.join("log/0001")).unwrap();
        let report = refused(&path);
        assert!(report.findings.iter().any(|finding| finding.what.contains("is missing")));
        assert_eq!(len(&path), 1, "{engine:?}: {report:?}");
    }
}

/// A pool with corrected checksums, or one that a faulty program wrote: a check counts a block too
/// many, and repair reports it, too, instead of renaming the store without a reason.
#[test]
fn a_block_that_nothing_leads_to_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open_with(&path, options()).unwrap();
    store.keyspace("all").unwrap().insert("first", "1").unwrap();
    store.close().unwrap();
    let directory = Arc::new(OsDirectory::open(&path).unwrap());
    let (heap, _) = Heap::open(directory, adamant_heap::Options::default()).unwrap();
    let block = heap.reserve_zeroed(100).unwrap();
    heap.publish(Durability::Sync, [block]).unwrap();
    heap.close().unwrap();

    let salvage = Salvage::open(&(Arc::new(OsDirectory::open(&path).unwrap()) as _)).unwrap();
    let blocks = salvage.allocated_blocks();
    assert!(blocks.is_some(), "blocks are counted where all pages are whole");
    drop(salvage);
    let check = Store::open_read_only(&path).unwrap().check().unwrap();
    let report = repair(&path).unwrap();
    assert_eq!(check.findings.len(), 1);
    assert_eq!(report.findings, check.findings);
    assert_eq!(len(&path), 1);
    assert!(Store::open(&path).unwrap().check().unwrap().is_clean());
}
