//! Appends during a checkpoint, between two of its holds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use parking_lot::Mutex;

use super::disk::Disk;
use super::mirror::{BetweenHolds, disturbed};
use super::model::{Model, create, create_bare, open, options};
use crate::durability::Durability;
use crate::journal::{Journal, JournalOptions, RecordBuilder};
use crate::layout::PAGE_BYTES;

/// Checkpoints of a journal to which records may be appended between two holds. After each, the
/// process dies: the reopened state is one that was committed, and no older than what was durable.
fn run(seed: u64) {
    let (disk, between) = (Disk::new(), Arc::new(BetweenHolds::default()));
    let journal: Arc<Journal> = Arc::new(create_bare(&disk, options()));
    disturbed(&journal, Arc::clone(&between));
    let world = Arc::new(Mutex::new((Model::new(), Rng::with_seed(seed))));
    let commit = |journal: &Journal, world: &Mutex<(Model, Rng)>| {
        let (model, rng) = &mut *world.lock();
        let all = [Durability::Sync, Durability::Buffered, Durability::Deferred];
        let (changes, durability) = (rng.usize(1..20), all[rng.usize(..3)]);
        model.commit(rng, journal, changes, durability);
    };
    let (its, its_world) = (Arc::downgrade(&journal), Arc::clone(&world));
    *between.0.lock() = Some(Box::new(move || {
        let is_quiet = its_world.lock().1.u8(..3) == 0;
        if let (Some(journal), false) = (its.upgrade(), is_quiet) {
            commit(&journal, &its_world);
        }
    }));
    for _ in 0..30 {
        let count = world.lock().1.usize(..4);
        for _ in 0..count {
            commit(&journal, &world);
        }
        journal.checkpoint().expect("checkpoint");
        let stats = journal.stats();
        assert!(stats.durable_sequence >= stats.applied_sequence, "{stats:?}");
        let copy = disk.copy();
        let (opened, recovery) = open(&copy).expect("opens");
        assert!(recovery.last_sequence >= stats.durable_sequence, "{recovery:?} {stats:?}");
        world.lock().0.assert_pool(&copy, &opened, recovery.last_sequence);
    }
}

#[test]
fn what_is_appended_beside_a_checkpoint_is_there_after_a_crash() {
    for seed in 0..6 {
        println!("seed {seed}");
        run(seed);
    }
}

/// A free page is not copied; the record that freed it is durable all the same.
#[test]
fn a_checkpoint_passes_durable_records_only() {
    let disk = Disk::new();
    let journal = create(&disk, options());
    let mut record = RecordBuilder::new();
    record.hole(8 * PAGE_BYTES, 2 * PAGE_BYTES);
    let sequence = journal.append(&record).expect("append");
    journal.finish(sequence, Durability::Buffered).expect("finish");
    journal.checkpoint().expect("checkpoint");
    let stats = journal.stats();
    assert_eq!((stats.applied_sequence, stats.durable_sequence), (1, 1), "{stats:?}");
}

/// Of a checkpoint of 3,000 pages one batch counts as done from the start.
#[test]
fn a_caller_that_writes_waits_while_a_checkpoint_is_behind() {
    const PAGES: u64 = 3000;
    let (disk, between) = (Disk::new(), Arc::new(BetweenHolds::default()));
    let options = JournalOptions { log_bytes_max: 8 << 20, ..options() };
    let journal: Arc<Journal> = Arc::new(create_bare(&disk, options));
    disturbed(&journal, Arc::clone(&between));
    journal.grow(PAGES.next_multiple_of(512)).expect("grows");
    for page in 2..PAGES {
        let mut record = RecordBuilder::new();
        record.bytes(page * PAGE_BYTES, &[1]);
        journal.append(&record).expect("append");
    }
    let (its, mut holds) = (Arc::downgrade(&journal), 0);
    let waited = Arc::new(Mutex::new(None));
    let its_waited = Arc::clone(&waited);
    *between.0.lock() = Some(Box::new(move || {
        holds += 1;
        let Some(journal) = its.upgrade().filter(|_| holds == 2) else { return };
        let mut record = RecordBuilder::new();
        record.bytes(2 * PAGE_BYTES, &[2; 64 << 10]);
        // Nearly all of the room, and more than three quarters of it.
        for _ in 0..108 {
            journal.append(&record).expect("append");
        }
        let start = Instant::now();
        journal.wait_for_space().expect("there is room");
        *its_waited.lock() = Some(start.elapsed());
    }));
    journal.checkpoint().expect("checkpoint");
    let waited = waited.lock().take().expect("the checkpoint had two holds");
    // Of 10, as half of the last of the room is used.
    assert!(waited >= Duration::from_millis(5), "{waited:?}");
}
