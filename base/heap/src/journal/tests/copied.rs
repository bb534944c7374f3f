//! Backups of a pool that stays in use.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use fastrand::Rng;

use super::disk::Disk;
use super::model::{Model, PAGES, create, open, options, small_log};
use crate::durability::Durability;
use crate::error::Error;
use crate::image::pool_file::PoolFile;
use crate::journal::RecordBuilder;
use crate::layout::{PAGE_BYTES, file_offset};

/// The first page that records change: those before are the heap's own.
const FIRST: usize = 2;

/// Before each piece of the copy more is committed than the log has room for.
#[test]
fn the_log_that_a_copy_needs_is_not_used_again() {
    let seed = 1;
    println!("seed {seed}");
    let (disk, target) = (Disk::new(), Disk::new());
    let journal = create(&disk, small_log());
    let data = vec![0; (PAGES as usize - FIRST) * PAGE_BYTES as usize];
    let world = RefCell::new((data, Rng::with_seed(seed)));
    let commit = |count: u64| {
        let (data, rng) = &mut *world.borrow_mut();
        let mut record = RecordBuilder::new();
        for _ in 0..count {
            let len = rng.usize(1..100_000);
            let at = rng.usize(..data.len() - len);
            rng.fill(&mut data[at..at + len]);
            record.clear();
            let offset = FIRST as u64 * PAGE_BYTES + at as u64;
            record.bytes(offset, &data[at..at + len]);
            journal.wait_for_space().expect("space");
            let sequence = journal.append(&record).expect("append");
            journal.finish(sequence, Durability::Buffered).expect("finish");
        }
    };
    commit(5);
    let pool = pool_in(&target);
    let before = journal.stats();
    let copied = journal.back_up(&pool, &|| {
        commit(90);
        Ok(())
    });
    let sequence = copied.expect("the log is held");
    let stats = journal.stats();
    let appended_bytes = stats.log_appended_bytes - before.log_appended_bytes;
    assert!(appended_bytes > 4 * (4 << 20), "{stats:?}");
    assert!(stats.log_allocated_bytes <= 4 << 20, "it is given back: {stats:?}");
    assert_eq!(sequence, stats.last_sequence);
    let (opened, recovery) = open(&target).expect("opens");
    assert!(recovery.was_closed);
    opened.verify(&mut |error| panic!("{error}")).expect("verify");
    let data = &world.borrow().0;
    let found = &target.bytes("pool")[file_offset(FIRST as u64 * PAGE_BYTES) as usize..];
    assert!(found[..data.len()] == data[..], "the copy is of another moment");
}

/// A backup that begins while the log restarts waits for that: the files that it would hold are
/// going away.
#[test]
fn a_copy_that_begins_while_the_log_begins_anew_waits_for_it() {
    let (disk, target) = (Disk::new(), Disk::new());
    let journal = Arc::new(create(&disk, options()));
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(2));
    model.commit(&mut rng, &journal, 10, Durability::Sync);
    journal.checkpoint().expect("checkpoint");
    let (its, pool) = (Arc::clone(&journal), pool_in(&target));
    let (begun, has_begun) = mpsc::channel();
    let mut copying = Some(move || {
        its.back_up(&pool, &|| {
            let _ = begun.send(());
            Ok(())
        })
    });
    let (started, is_started) = mpsc::channel();
    // The first sync of the restarted log.
    *disk.faults().at_sync.0.lock() = Some(Box::new(move |_: &Path| {
        if let Some(copy) = copying.take() {
            started.send(std::thread::spawn(copy)).expect("somebody waits");
            assert!(has_begun.recv_timeout(Duration::from_millis(50)).is_err(), "it waits");
        }
    }));
    let mut held = journal.hold_checkpoints().expect("no other");
    let given = journal.lend_log_space(&mut held).expect("given back");
    *disk.faults().at_sync.0.lock() = None;
    let copy = is_started.try_recv().expect("the copy was asked for");
    drop((held, given));
    model.commit(&mut rng, &journal, 10, Durability::Sync);
    let copied = copy.join().expect("no panic").expect("copies");
    assert!((1..=model.last_sequence()).contains(&copied), "{copied}");
    let (opened, _) = open(&target).expect("opens");
    model.assert_pool(&target, &opened, copied);
}

/// Giving the log back takes precedence over a running backup.
#[test]
fn a_copy_is_given_up_when_the_log_is_given_back() {
    let (disk, target) = (Disk::new(), Disk::new());
    let journal = create(&disk, options());
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(2));
    model.commit(&mut rng, &journal, 10, Durability::Sync);
    let copied = journal.back_up(&pool_in(&target), &|| {
        let mut held = journal.hold_checkpoints().expect("no other");
        journal.lend_log_space(&mut held).map(drop)
    });
    assert!(copied.as_ref().is_err_and(Error::is_out_of_space), "{copied:?}");
    let again = Disk::new();
    let copied = journal.back_up(&pool_in(&again), &|| Ok(()));
    assert_eq!(copied.expect("copies"), model.last_sequence());
}

fn pool_in(disk: &Arc<Disk>) -> PoolFile {
    let file = disk.root().create("pool").expect("creates");
    PoolFile::begin(file, [9; 16]).expect("begins")
}
