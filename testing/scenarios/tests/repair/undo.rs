//! Damaged stores of the undo journal, on tmpfs: no page has a checksum, so a damaged value may be
//! saved, and repair says that it may. Every key is proved, and no pair is lost in silence.

use std::fs;
use std::path::{Path, PathBuf};

use adamant::{Engine, Flushing, JournalKind, Options, RepairReport, Store};
use adamant_scenarios::files::copy_directory;
use tempfile::TempDir;

use crate::support::{
    Model, Outcome, PAIRS, flip, flip_behind, killed_store, memtables, repair_and_look, write_at,
};

fn options() -> Options {
    Options::new().journal(JournalKind::Undo).flushing(Flushing::Volatile)
}

/// A killed store; `None` where there is no tmpfs, and so nothing to see.
fn store_by(engine: Engine, seed: u64) -> Option<(TempDir, PathBuf, Model)> {
    // Most Linux systems have one there.
    Path::new("/dev/shm").is_dir().then(|| {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let (path, model) = killed_store(directory.path(), &options(), engine, seed);
        (directory, path, model)
    })
}

fn store(seed: u64) -> Option<(TempDir, PathBuf, Model)> {
    store_by(Engine::Bplus, seed)
}

fn told(report: &RepairReport) -> u64 {
    report.keyspaces.iter().map(|keyspace| keyspace.loss_count).sum()
}

/// Repairs; whatever was done is said.
fn repair_and_judge(path: &Path, model: &Model) -> Outcome {
    let outcome = repair_and_look(path, model);
    let report = &outcome.report;
    if report.damaged_path.is_some() {
        assert!(!report.findings.is_empty() && report.values_unproved);
        assert_eq!(report.journal, JournalKind::Undo);
    }
    assert!(outcome.lost == 0 || told(report) > 0, "{} pairs lost in silence", outcome.lost);
    outcome
}

#[test]
fn a_whole_store_is_left_alone() {
    let Some((_directory, path, model)) = store(1) else { return };
    let outcome = repair_and_judge(&path, &model);
    assert_eq!((outcome.lost, outcome.wrong_values), (0, 0));
    assert!(outcome.report.findings.is_empty() && outcome.report.damaged_path.is_none());
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 2);
}

fn flip_three(path: &Path, seed: u64) {
    let pool = path.join("pool");
    let len = fs::metadata(&pool).unwrap().len();
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..3 {
        flip(&pool, random.u64(..len));
    }
}

#[test]
fn a_flipped_bit_costs_no_more_than_what_it_leads_to() {
    let (mut lost_all, mut wrong_all) = (0, 0);
    for seed in 0..24 {
        println!("seed {seed}");
        let Some((_directory, path, model)) = store(seed) else { return };
        flip_three(&path, seed);
        let Outcome { lost, wrong_values, .. } = repair_and_judge(&path, &model);
        // A bit of a bitmap leads to a leaf of 48 pairs; the leaves of an inner node are adopted.
        assert!(lost <= 3 * 512, "{lost} pairs lost");
        assert!(wrong_values <= 3, "{wrong_values} values are not what was committed");
        lost_all += lost;
        wrong_all += wrong_values;
    }
    println!(
        "24 stores, 3 flips each: {lost_all} pairs lost, {wrong_all} values changed of {}",
        24 * 2 * PAIRS
    );
    assert!(lost_all + wrong_all > 0, "the flips hit something");
}

#[test]
fn flipped_bits_of_other_engines() {
    let others = Engine::ALL.into_iter().filter(|engine| *engine != Engine::Bplus);
    for (engine, seed) in others.flat_map(|engine| (0..8).map(move |seed| (engine, seed))) {
        println!("{engine}, seed {seed}");
        let Some((_directory, path, model)) = store_by(engine, seed) else { return };
        flip_three(&path, seed);
        let outcome = repair_and_judge(&path, &model);
        // All that lies in memtables of the engine lsm has a checksum.
        let wrong_max = if engine == Engine::Lsm { 0 } else { 3 };
        assert!(outcome.wrong_values <= wrong_max, "{} values changed", outcome.wrong_values);
        let store = Store::open_with(&path, options()).unwrap();
        for info in store.keyspaces().unwrap() {
            assert_eq!(info.engine, engine, "keyspace {:?}", info.name);
        }
    }
}

#[test]
fn a_damaged_record_of_a_memtable_costs_itself() {
    for seed in 0..6 {
        if !Path::new("/dev/shm").is_dir() {
            return;
        }
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = directory.path().join("store");
        let (model, damaged) = memtables(&path, &options(), seed);
        flip_behind(&path.join("pool"), &damaged);
        let outcome = repair_and_judge(&path, &model);
        assert_eq!((outcome.lost, outcome.wrong_values), (1, 0), "seed {seed}");
    }
}

#[test]
fn a_part_of_every_page_may_be_lost_one_at_a_time() {
    let Some((directory, path, model)) = store(7) else { return };
    let pool = fs::metadata(path.join("pool")).unwrap().len();
    // Head, descriptors, then data: every part, in steps that share no factor.
    for (round, offset) in (0..pool).step_by(4096 * 37).enumerate() {
        println!("offset {offset}");
        let folder = directory.path().join(format!("round-{round}"));
        fs::create_dir(&folder).unwrap();
        let copy = folder.join("store");
        copy_directory(&path, &copy);
        write_at(&copy.join("pool"), offset, &[0xa5; 512]);
        let Outcome { lost, wrong_values, .. } = repair_and_judge(&copy, &model);
        assert!(lost <= 1024, "{lost} pairs lost");
        // Of an entry that begins on the page before, or of two with blocks of their own.
        assert!(wrong_values <= 2, "{wrong_values} values are not what was committed");
        fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn damaged_lanes_cost_nothing_that_memory_has() {
    let Some((_directory, path, model)) = store(3) else { return };
    let lanes = path.join("log").join("lanes");
    let bytes = fs::read(&lanes).unwrap();
    // The first entry of each lane that has any.
    for lane in (4096..bytes.len()).step_by(64 << 10).filter(|lane| bytes[lane + 15] != 0) {
        flip(&lanes, lane as u64);
    }
    let refused = Store::open_with(&path, options()).map(drop);
    assert!(refused.is_err_and(|error| error.is_damaged()), "entries behind it prove it");
    let outcome = repair_and_judge(&path, &model);
    assert_eq!((outcome.lost, outcome.wrong_values), (0, 0));
    assert!(outcome.report.damaged_path.is_some());
}

#[test]
fn without_header_or_lanes_the_pool_is_enough() {
    let Some((_directory, path, model)) = store(4) else { return };
    flip(&path.join("pool"), 40);
    assert!(Store::open_with(&path, options()).is_err());
    let outcome = repair_and_judge(&path, &model);
    assert_eq!((outcome.lost, outcome.wrong_values), (0, 0), "lanes know whose they are");

    let Some((_directory, path, model)) = store(5) else { return };
    fs::remove_file(path.join("log").join("lanes")).unwrap();
    let outcome = repair_and_judge(&path, &model);
    assert_eq!((outcome.lost, outcome.wrong_values), (0, 0));
    assert!(outcome.report.damaged_path.is_some());

    let Some((_directory, path, model)) = store(5) else { return };
    fs::remove_dir_all(path.join("log")).unwrap();
    fs::create_dir(path.join("log")).unwrap();
    let outcome = repair_and_judge(&path, &model);
    assert_eq!((outcome.lost, outcome.wrong_values), (0, 0));
}

#[test]
fn a_pool_that_was_cut_gives_what_is_left() {
    let Some((_directory, path, model)) = store(6) else { return };
    let pool = fs::OpenOptions::new().write(true).open(path.join("pool")).unwrap();
    let len = pool.metadata().unwrap().len();
    pool.set_len(len / 2 / 4096 * 4096).unwrap();
    drop(pool);
    let outcome = repair_and_judge(&path, &model);
    assert!(outcome.lost > 0 && outcome.lost < 2 * PAIRS as u64, "{} lost", outcome.lost);
    assert_eq!(outcome.wrong_values, 0);
}

/// A store that was copied to a disk cannot be opened there; repair makes one of the redo journal.
#[test]
fn where_files_are_no_memory_the_new_store_has_the_redo_journal() {
    let Some((_directory, path, model)) = store(8) else { return };
    let disk = tempfile::tempdir().unwrap();
    let copy = disk.path().join("store");
    copy_directory(&path, &copy);
    match Store::open_with(&copy, options()) {
        Err(error) => assert!(error.is_not_direct(), "{error}"),
        // Temporary files are on memory here.
        Ok(_) => return,
    }
    let Outcome { lost, wrong_values, report } = repair_and_look(&copy, &model);
    assert_eq!((lost, wrong_values), (0, 0));
    assert_eq!(report.journal, JournalKind::Redo);
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert_eq!(Store::journal_at(&copy).unwrap(), Some(JournalKind::Redo));
}
