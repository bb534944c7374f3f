//! Files of one store from different moments: opening reports that, or has the newest state.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fastrand::Rng;

use super::disk::Disk;
use super::model::{Model, create, open, open_with, small_log};
use crate::durability::Durability;
use crate::error::Error;
use crate::image::pool_file::PoolFile;
use crate::journal::validate;
use crate::journal::{Journal, RecordBuilder};
use crate::layout::CHECKPOINT_OFFSETS;

/// A moment of a store: its files, the numbers that identify them, and the last commit.
struct Moment {
    disk: Arc<Disk>,
    pool: u64,
    log: u64,
    last: u64,
}

impl Moment {
    fn of(disk: &Disk, last: u64) -> Self {
        let sum_of = |names: &[String]| {
            let mut checksum = DefaultHasher::new();
            names.iter().for_each(|name| (name, disk.bytes(name)).hash(&mut checksum));
            checksum.finish()
        };
        let (pool, log) = (sum_of(&["pool".into()]), sum_of(&log_names(disk)));
        Self { disk: disk.copy(), pool, log, last }
    }
}

fn log_names(disk: &Disk) -> Vec<String> {
    disk.names().into_iter().filter(|name| name.starts_with("log/")).collect()
}

/// The pool of one moment beside the log of another.
fn mixed(pool: &Disk, log: &Disk) -> Arc<Disk> {
    let mixed = log.copy();
    mixed.put("pool", pool.bytes("pool"));
    mixed
}

/// The result of reading without writing: the last record that is proved, and the findings.
fn salvaged(disk: &Arc<Disk>) -> (u64, Vec<String>) {
    let pool = PoolFile::open(disk.root().open("pool").expect("a disk").expect("a pool"));
    let log = disk.root().subdirectory("log").expect("a log");
    let mut findings = Vec::new();
    let validated = validate(&pool.expect("a pool"), Some(log.as_ref()), &mut |error| {
        findings.push(error.to_string());
        Ok(())
    });
    let validated = validated.expect("no failing device");
    let applied = validated.newest.map_or(0, |newest| newest.applied.get());
    (validated.tails.last().map_or(applied, |tail| tail.last_sequence()), findings)
}

/// Opens a store in both ways: the last record, or the error. Then salvage has to report a finding.
fn opened(disk: &Arc<Disk>) -> Result<(Journal, u64), String> {
    let (found, findings) = salvaged(disk);
    match open(disk) {
        Ok((journal, recovery)) => {
            assert!(findings.is_empty(), "opened, with findings: {findings:?}");
            assert_eq!(recovery.last_sequence, found);
            Ok((journal, found))
        }
        Err(error) => {
            assert_eq!(findings.first(), Some(&error.to_string()), "one verdict for all");
            Err(error.to_string())
        }
    }
}

/// Of equal moments the last one.
fn distinct(moments: &[Moment], what: impl Fn(&Moment) -> u64) -> Vec<&Moment> {
    let is_last =
        |at: usize| !moments[at + 1..].iter().any(|later| what(later) == what(&moments[at]));
    (0..moments.len()).filter(|at| is_last(*at)).map(|at| &moments[at]).collect()
}

/// A store's history: commits, checkpoints, closes, deaths, starts without a commit.
fn life(seed: u64) -> (Model, Vec<Moment>) {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(seed));
    let mut journal = create(&disk, small_log());
    let mut moments = Vec::new();
    for _ in 0..24 {
        match rng.u8(..9) {
            0 => journal.checkpoint().expect("checkpoint"),
            1 => {
                journal.close().expect("close");
                moments.push(Moment::of(&disk, model.last_sequence()));
                journal = open(&disk).expect("open").0;
            }
            2 => journal = open(&disk).expect("open").0,
            3 => assert!(gives_log_back(&journal)),
            _ => model.commit(&mut rng, &journal, 6, Durability::Sync),
        }
        moments.push(Moment::of(&disk, model.last_sequence()));
    }
    (model, moments)
}

/// How many mixtures of pools and logs of these moments are refused, and how many are right; each
/// has to be one of the two.
fn try_mixtures(moments: &[Moment], of: &str, model: Option<&Model>) -> (usize, usize) {
    let (mut refused, mut right) = (0, 0);
    for pool in distinct(moments, |moment| moment.pool) {
        for log in distinct(moments, |moment| moment.log) {
            let disk = mixed(&pool.disk, &log.disk);
            // A combination that the store had at some moment is no mixture.
            let is_like = |other: &&Moment| (other.pool, other.log) == (pool.pool, log.log);
            let like = moments.iter().rfind(is_like);
            let newest = like.map_or(pool.last.max(log.last), |moment| moment.last);
            match opened(&disk) {
                Ok((journal, last)) => {
                    let place = |of: &Moment| moments.iter().position(|one| std::ptr::eq(one, of));
                    let (pool, log) = (place(pool), place(log));
                    let of = format!("{of}, pool {pool:?}, log {log:?}");
                    assert_eq!(last, newest, "{of}: opened in silence, and too old");
                    if let Some(model) = model {
                        model.assert_pool(&disk, &journal, last);
                    }
                    right += 1;
                }
                Err(error) => {
                    assert!(like.is_none(), "{of}: a state that a kill leaves: {error}");
                    refused += 1;
                }
            }
        }
    }
    (refused, right)
}

fn gives_log_back(journal: &Journal) -> bool {
    let mut checkpoints = journal.hold_checkpoints().expect("nobody else makes any");
    journal.lend_log_space(&mut checkpoints).is_ok()
}

#[test]
fn a_pool_beside_another_log_is_an_error_or_the_newest_state() {
    let (mut refused, mut right) = (0, 0);
    for seed in 0..4 {
        let (model, moments) = life(seed);
        let (more_refused, more_right) =
            try_mixtures(&moments, &format!("seed {seed}"), Some(&model));
        (refused, right) = (refused + more_refused, right + more_right);
    }
    assert!(refused > 50 && right > 50, "{refused} refused, {right} right");
}

/// A closed store whose log then grew large: its newest header is in a large file.
fn with_a_large_log(disk: &Arc<Disk>) -> (Journal, Moment) {
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(34));
    let journal = create(disk, small_log());
    model.commit(&mut rng, &journal, 3, Durability::Sync);
    journal.close().expect("close");
    let closed = Moment::of(disk, 1);
    let journal = open_with(disk, small_log()).expect("open").0;
    journal.grow(2200).expect("grow");
    let bytes = vec![3; 8 << 20];
    append(&journal, &bytes);
    (journal, closed)
}

fn append(journal: &Journal, bytes: &[u8]) {
    let mut record = RecordBuilder::new();
    record.bytes(20_000, bytes);
    journal.wait_for_space().expect("space");
    let sequence = journal.append(&record).expect("append");
    journal.finish(sequence, Durability::Sync).expect("finish");
}

/// The log is given back, and that stops after each change of a file: all moments before it are
/// found beside a log of then, and no pool of an earlier moment is taken for the one of this log.
#[test]
fn a_log_that_is_given_back_has_a_newest_header_at_each_moment() {
    let counted = Disk::new();
    let (journal, closed) = with_a_large_log(&counted);
    let (before, log_bytes) = (&counted.faults().changes, journal.stats().log_allocated_bytes);
    let start = before.load(Ordering::Relaxed);
    assert!(gives_log_back(&journal));
    let changes = before.load(Ordering::Relaxed) - start;
    let left_bytes = journal.stats().log_allocated_bytes;
    assert!(log_bytes > 8 << 20 && left_bytes == 2 << 20, "{log_bytes}, then {left_bytes}");

    let mut moments = vec![closed];
    for number in 1..=changes {
        let disk = Disk::new();
        let (journal, _) = with_a_large_log(&disk);
        if number == 1 {
            moments.push(Moment::of(&disk, 2));
        }
        disk.faults().changes_max.store(start + number, Ordering::Relaxed);
        // After the last change nothing fails.
        assert_eq!(gives_log_back(&journal), number == changes, "after change {number}");
        moments.push(Moment::of(&disk, 2));
    }
    // Later ones, of the log that has restarted.
    append(&journal, b"more");
    moments.push(Moment::of(&counted, 3));
    assert!(gives_log_back(&journal));
    moments.push(Moment::of(&counted, 3));
    let (refused, right) = try_mixtures(&moments, "a log that is given back", None);
    assert!(refused > 20 && right > 10, "{refused} refused, {right} right");
}

/// A store that died after 26 synced commits loses a checkpoint, or its log: no open hides that,
/// and the log's records are proved to follow where they do.
#[test]
fn a_lost_checkpoint_is_found_by_all_and_its_records_are_saved() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(31));
    let journal = create(&disk, small_log());
    (0..26).for_each(|_| model.commit(&mut rng, &journal, 3, Durability::Sync));
    let pool = disk.bytes("pool");
    let number = |slot: &u64| pool[*slot as usize..][..8].to_vec();
    let newest = CHECKPOINT_OFFSETS.into_iter().max_by_key(number).expect("two slots");
    let damaged = disk.copy();
    damaged.change("pool", |pool| pool[newest as usize + 16] ^= 1);
    let error = opened(&damaged).expect_err("a checkpoint is lost");
    assert!(error.contains("records 1 to 26"), "{error}");
    assert_eq!(salvaged(&damaged).0, 26);

    let lost = disk.copy();
    lost.remove("log/0001");
    let error = opened(&lost).expect_err("the log is lost");
    assert!(error.contains("record 0 is missing"), "{error}");

    // A second generation, and the log of the first.
    let first = disk.copy();
    let journal = open(&disk).expect("open").0;
    (0..4).for_each(|_| model.commit(&mut rng, &journal, 3, Durability::Sync));
    let older = mixed(&disk, &first);
    let error = opened(&older).expect_err("a log of an earlier moment");
    assert!(error.contains("record 26 is missing"), "{error}");
    // Pool and checkpoint of the first, and the log of the second, which begins behind its own end.
    let newer = mixed(&first, &disk);
    let (saved, findings) = salvaged(&newer);
    assert!(!findings.is_empty());
    assert!(saved == 30 || findings.iter().any(|text| text.contains("missing")), "{findings:?}");
}

/// A closed pool, put back beside the log of a store that was opened and closed since, where all
/// records of then are in the current pool and the log begins a generation.
#[test]
fn a_closed_pool_of_an_earlier_moment_is_found() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(32));
    let journal = create(&disk, small_log());
    model.commit(&mut rng, &journal, 3, Durability::Sync);
    journal.close().expect("close");
    let closed = disk.copy();
    // A generation is begun twice: once with a record, once without.
    let journal = open(&disk).expect("open").0;
    model.commit(&mut rng, &journal, 3, Durability::Sync);
    journal.close().expect("close");
    let log_1 = disk.copy();
    let journal = open(&disk).expect("open").0;
    journal.append(&RecordBuilder::new()).expect("an empty record");
    drop(journal);
    for log in [&log_1, &disk] {
        // The first frames are lost, too.
        for erased in [false, true] {
            let copy = mixed(&closed, log);
            if erased && Arc::ptr_eq(log, &disk) {
                for name in log_names(&copy) {
                    copy.change(&name, |log| log[512..].fill(0));
                }
            }
            assert!(opened(&copy).is_err(), "erased: {erased}");
        }
    }
}

/// A commit too large for the log makes it longer, and closing makes it shorter again: the file
/// whose header tells an older pool from the one that belongs to it is never removed.
#[test]
fn a_log_that_is_made_shorter_keeps_its_newest_header() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(33));
    let journal = create(&disk, small_log());
    model.commit(&mut rng, &journal, 3, Durability::Sync);
    journal.close().expect("close");
    let closed = disk.copy();
    let journal = open_with(&disk, small_log()).expect("open").0;
    let mut large = RecordBuilder::new();
    let bytes = std::iter::repeat_with(|| rng.u8(..)).take(8 << 20).collect::<Vec<_>>();
    journal.grow(2200).expect("grow");
    large.bytes(20_000, &bytes);
    journal.wait_for_space().expect("space");
    let sequence = journal.append(&large).expect("append");
    journal.finish(sequence, Durability::Sync).expect("finish");
    let files = log_names(&disk).len();
    journal.close().expect("close");
    assert!(log_names(&disk).len() < files, "{files} files were too many");
    let refused = |disk: &Arc<Disk>| {
        let opened = open(&mixed(&closed, disk)).map(|(_, recovery)| recovery);
        assert!(matches!(opened, Err(Error::Damaged { .. })), "{opened:?}");
    };
    refused(&disk);
    // The headers alone say it, too: a file with a predecessor is not the first of its generation.
    for name in log_names(&disk) {
        disk.change(&name, |log| log[512..].fill(0));
    }
    refused(&disk);
}
