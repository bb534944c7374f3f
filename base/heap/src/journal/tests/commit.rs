//! Commits of many threads, their waits, and failures that end writing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;

use super::disk::Disk;
use super::model::{Model, create, open, options, small_log};
use crate::durability::Durability;
use crate::error::Error;
use crate::journal::{Journal, JournalOptions, RecordBuilder};

fn background(log_bytes_max: u64) -> JournalOptions {
    JournalOptions { background: true, log_bytes_max, deferred_ms_max: 5, ..options() }
}

#[test]
fn eight_threads_share_syncs() {
    let disk = Disk::new();
    // So large that there is room enough, and nothing is written because of its age.
    let options = JournalOptions { deferred_ms_max: 600_000, ..background(64 << 20) };
    let journal = create(&disk, options);
    disk.faults().sync_us.store(300, Ordering::Relaxed);
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(10));
    let mut append = |record: &mut RecordBuilder| {
        model.change(&mut rng, record, 60);
        journal.append(record).expect("append")
    };
    // The first to come syncs for all that were appended, however slowly threads run.
    let syncs = journal.stats().syncs;
    for _ in 0..20 {
        let mut record = RecordBuilder::new();
        journal.wait_for_space().expect("space");
        let sequences: Vec<_> = (0..8).map(|_| append(&mut record)).collect();
        std::thread::scope(|scope| {
            for &sequence in &sequences {
                let journal = &journal;
                scope.spawn(move || journal.finish(sequence, Durability::Sync).expect("finish"));
            }
        });
        assert!(journal.stats().durable_sequence >= sequences[7]);
    }
    // One for all eight, and one more for each file of the log that they began among them.
    assert_eq!(journal.stats().syncs - syncs, 20 + 2, "{:?}", journal.stats());
    let append = Mutex::new(append);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut record = RecordBuilder::new();
                for _ in 0..20 {
                    journal.wait_for_space().expect("space");
                    let sequence = (append.lock())(&mut record);
                    journal.finish(sequence, Durability::Sync).expect("finish");
                    assert!(journal.stats().durable_sequence >= sequence);
                }
            });
        }
    });
    assert_eq!(journal.last_sequence(), 320);
    let copy = disk.copy();
    let (opened, recovery) = open(&copy).expect("open");
    assert_eq!(recovery.last_sequence, 320);
    model.assert_pool(&copy, &opened, 320);
    journal.close().expect("close");
    model.assert_pool(&disk, &journal, 320);
}

#[test]
fn a_deferred_commit_becomes_durable_without_another() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(11));
    let journal = create(&disk, background(4 << 20));
    for round in 1..4 {
        model.commit(&mut rng, &journal, 3, Durability::Deferred);
        let waited = (0..2000).find(|_| {
            std::thread::sleep(Duration::from_millis(1));
            journal.stats().durable_sequence == round
        });
        assert!(waited.is_some(), "never durable");
    }
}

#[test]
fn deferred_commits_are_written_when_they_are_many() {
    let disk = Disk::new();
    let journal = create(&disk, JournalOptions { deferred_bytes_max: 10_000, ..options() });
    let mut record = RecordBuilder::new();
    record.bytes(0, &[1; 1000]);
    let syncs = disk.faults().syncs.load(Ordering::Relaxed);
    for _ in 0..100 {
        let sequence = journal.append(&record).expect("append");
        journal.finish(sequence, Durability::Deferred).expect("finish");
    }
    let written = open(&disk.copy()).expect("open").1.last_sequence;
    assert!((85..=100).contains(&written), "{written}");
    // Three syncs start the log; none follows.
    assert_eq!(disk.faults().syncs.load(Ordering::Relaxed), syncs + 3);
}

#[test]
fn a_failed_sync_ends_writing() {
    for background_too in [false, true] {
        let disk = Disk::new();
        let (mut model, mut rng) = (Model::new(), Rng::with_seed(12));
        let options = JournalOptions { background: background_too, ..small_log() };
        let journal = create(&disk, options);
        model.commit(&mut rng, &journal, 3, Durability::Sync);
        disk.faults().fail_sync.store(true, Ordering::Relaxed);
        let mut record = RecordBuilder::new();
        record.bytes(5, b"five");
        let sequence = journal.append(&record).expect("append");
        let error = journal.finish(sequence, Durability::Sync).expect_err("the sync fails");
        // The record is visible already: the medium's error alone would say that nothing changed.
        assert!(matches!(error, Error::Poisoned { .. }), "{error}");
        assert!(error.to_string().contains("the test says so"), "{error}");
        disk.faults().fail_sync.store(false, Ordering::Relaxed);
        for _ in 0..2 {
            let poisoned = |result: crate::error::Result<()>| {
                assert!(matches!(result, Err(Error::Poisoned { .. })), "{result:?}");
            };
            poisoned(journal.append(&record).map(|_| ()));
            poisoned(journal.finish(sequence, Durability::Sync));
            poisoned(journal.finish(sequence, Durability::Deferred));
            poisoned(journal.wait_for_space());
            poisoned(journal.checkpoint());
            poisoned(journal.sync());
            poisoned(journal.grow(1000));
        }
        assert!(matches!(journal.close(), Err(Error::Poisoned { .. })));
        let (_, recovery) = open(&disk).expect("open");
        assert!(recovery.last_sequence >= 1);
    }
}

#[test]
fn a_failed_write_ends_writing_for_all_who_wait() {
    let disk = Disk::new();
    let journal = create(&disk, options());
    let mut record = RecordBuilder::new();
    record.bytes(5, b"five");
    let first = journal.append(&record).expect("append");
    journal.finish(first, Durability::Sync).expect("finish");
    disk.faults().fail_write.store(true, Ordering::Relaxed);
    let sequences = (0..6).map(|_| journal.append(&record).expect("append")).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        for &sequence in &sequences {
            let journal = &journal;
            scope.spawn(move || {
                journal.finish(sequence, Durability::Sync).expect_err("nothing can be written");
            });
        }
    });
    assert_eq!(journal.stats().durable_sequence, first);
    journal.finish(first, Durability::Sync).expect("that one is durable");
}

#[test]
fn checkpoints_and_commits_run_side_by_side() {
    let disk = Disk::new();
    let journal: Arc<Journal> = Arc::new(create(&disk, background(4 << 20)));
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(13));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                journal.checkpoint().expect("checkpoint");
            }
        });
        for _ in 0..150 {
            let changes = rng.usize(1..200);
            model.commit(&mut rng, &journal, changes, Durability::Deferred);
        }
        done.store(true, Ordering::Relaxed);
    });
    journal.checkpoint().expect("checkpoint");
    model.assert_pool(&disk, &journal, 150);
}
