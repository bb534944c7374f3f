//! Copies of a pool that goes on being used.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, mpsc};

use fastrand::Rng;

use super::disk::Disk;
use super::model::{Model, PAGES, create, open, options, small_log};
use crate::durability::Durability;
use crate::error::Error;
use crate::journal::RecordBuilder;
use crate::layout::{PAGE_BYTES, file_offset};
use crate::pool_file::PoolFile;

/// The page that records change first: those before are the heap's own.
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
    let file = target.root().create("pool").expect("creates");
    let pool = PoolFile::begin(file, [9; 16]).expect("begins");
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

/// The log begins anew, and before it says so a copy begins, of a log that is no more: who gives the log
/// back goes before who copies. Such a copy said that the log was damaged.
#[test]
fn a_copy_of_a_log_that_begins_anew_is_given_up() {
    let (disk, target) = (Disk::new(), Disk::new());
    let journal = Arc::new(create(&disk, options()));
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(2));
    model.commit(&mut rng, &journal, 10, Durability::Sync);
    journal.checkpoint().expect("checkpoint");
    let file = target.root().create("pool").expect("creates");
    let (begun, has_begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let its = Arc::clone(&journal);
    let mut copying = Some(move || {
        let pool = PoolFile::begin(file, [9; 16]).expect("begins");
        its.back_up(&pool, &|| {
            let _ = begun.send(());
            let _ = goes_on.recv();
            Ok(())
        })
    });
    let (started, is_started) = mpsc::channel();
    let mut pool_syncs = 0;
    // Those of a checkpoint and its slot, and that of the slot that names the new log.
    *disk.faults().at_sync.0.lock() = Some(Box::new(move |path: &Path| {
        pool_syncs += u32::from(!path.starts_with("log"));
        if pool_syncs == 3
            && let Some(copy) = copying.take()
        {
            started.send(std::thread::spawn(copy)).expect("somebody waits");
            has_begun.recv().expect("it begins");
        }
    }));
    let mut held = journal.hold_checkpoints().expect("no other");
    drop(journal.give_back_log(&mut held).expect("given back"));
    drop(held);
    *disk.faults().at_sync.0.lock() = None;
    let copy = is_started.try_recv().expect("the copy began");
    model.commit(&mut rng, &journal, 10, Durability::Sync);
    drop(go_on);
    let copied = copy.join().expect("no panic");
    assert!(copied.as_ref().is_err_and(Error::is_out_of_space), "{copied:?}");
    let again = Disk::new();
    let file = again.root().create("pool").expect("creates");
    let pool = PoolFile::begin(file, [9; 16]).expect("begins");
    assert_eq!(journal.back_up(&pool, &|| Ok(())).expect("copies"), model.last_sequence());
}
