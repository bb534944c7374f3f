//! Log files: switching, recycling, large records, full disks.

use std::sync::atomic::Ordering;

use fastrand::Rng;

use super::disk::Disk;
use super::model::{Model, create, open, open_with, options, small_log};
use crate::durability::Durability;
use crate::error::Error;
use crate::journal::RecordBuilder;
use crate::layout::{PAGE_BYTES, file_offset};

#[test]
fn a_small_log_is_recycled_and_stays_small() {
    for seed in 0..4 {
        let disk = Disk::new();
        let (mut model, mut rng) = (Model::new(), Rng::with_seed(seed));
        let mut journal = create(&disk, small_log());
        for round in 0..120 {
            let changes = rng.usize(1..300);
            model.commit(&mut rng, &journal, changes, Durability::Buffered);
            if rng.u8(..20) == 0 {
                journal.sync().expect("sync");
                let copy = disk.copy();
                let (opened, recovery) = open(&copy).expect("open");
                assert_eq!(recovery.last_sequence, model.last_sequence(), "{seed}, {round}");
                model.assert_pool(&copy, &opened, recovery.last_sequence);
            }
            if rng.u8(..40) == 0 {
                drop(journal);
                journal = open_with(&disk, small_log()).expect("open").0;
            }
        }
        let stats = journal.stats();
        assert!(stats.log_allocated_bytes <= 4 << 20, "{stats:?}");
        assert!(stats.checkpoints > 2, "{stats:?}");
        journal.close().expect("close");
        model.assert_pool(&disk, &journal, model.last_sequence());
    }
}

#[test]
fn who_waits_for_room_waits_for_one_checkpoint() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(3));
    let journal = create(&disk, small_log());
    let mut waited = 0;
    for _ in 0..4000 {
        let before = journal.stats();
        model.commit(&mut rng, &journal, 200, Durability::Buffered);
        let after = journal.stats();
        if after.applied_sequence > before.applied_sequence {
            waited += 1;
            assert_eq!(after.checkpoints, before.checkpoints + 1);
            assert_eq!(after.applied_sequence, before.last_sequence);
            assert!(before.log_used_bytes > 1 << 20, "{before:?}");
        }
    }
    assert!(waited > 2, "{:?}", journal.stats());
    // A requested checkpoint applies everything.
    journal.checkpoint().expect("checkpoint");
    let stats = journal.stats();
    assert_eq!(stats.applied_sequence, stats.last_sequence);
    journal.close().expect("close");
    model.assert_pool(&disk, &journal, model.last_sequence());
}

#[test]
fn a_record_may_be_larger_than_the_log() {
    let disk = Disk::new();
    let journal = create(&disk, small_log());
    let pages = 1500;
    journal.grow(pages).expect("grow");
    let mut rng = Rng::with_seed(1);
    let bytes = std::iter::repeat_with(|| rng.u8(..)).take(5 << 20).collect::<Vec<_>>();
    let mut record = RecordBuilder::new();
    record.bytes(10_000, b"small");
    let first = journal.append(&record).expect("append");
    record.clear();
    record.bytes(20_000, &bytes);
    record.set_bits(1 << 46, 1);
    journal.wait_for_space().expect("space");
    let sequence = journal.append(&record).expect("append");
    assert_eq!(sequence, first + 1);
    journal.finish(sequence, Durability::Sync).expect("finish");
    assert!(journal.stats().log_allocated_bytes > 5 << 20);

    // As a whole or not at all: without its last frame it does not count.
    let copy = disk.copy();
    let (opened, recovery) = open(&copy).expect("open");
    assert_eq!(recovery.last_sequence, sequence);
    let pool = copy.bytes("pool");
    assert!(pool[file_offset(20_000) as usize..].starts_with(&bytes));
    opened.verify(&mut |error| panic!("{error}")).expect("verify");
    let copy = disk.copy();
    let last =
        copy.names().into_iter().filter(|name| name.starts_with("log/")).max_by_key(|name| {
            let log = copy.bytes(name);
            u64::from_le_bytes(log[36..44].try_into().expect("the ordinal"))
        });
    copy.change(&last.expect("a log"), |log| {
        let end = log.iter().rposition(|&byte| byte != 0).expect("not empty");
        log[end] ^= 1;
    });
    let (_, recovery) = open(&copy).expect("open");
    assert_eq!(recovery.last_sequence, first);
    let pool = copy.bytes("pool");
    assert!(pool[file_offset(20_000) as usize..][..100].iter().all(|&byte| byte == 0));

    // In the pool, the log shrinks to its limit again.
    journal.checkpoint().expect("checkpoint");
    journal.checkpoint().expect("checkpoint");
    record.clear();
    record.bytes(1, b"1");
    journal.append(&record).expect("append");
    journal.close().expect("close");
    assert!(journal.stats().log_allocated_bytes <= 4 << 20);
    assert!(disk.bytes("pool")[file_offset(20_000) as usize..].starts_with(&bytes));
}

/// A large record is written while it is encoded into frames, before it is visible: if that fails
/// nothing was committed, and the written part of it is a tail.
#[test]
fn a_large_record_that_cannot_be_written_is_none() {
    let disk = Disk::new();
    let journal = create(&disk, options());
    journal.grow(1500).expect("grow");
    let mut record = RecordBuilder::new();
    record.bytes(10_000, b"small");
    let first = journal.append(&record).expect("append");
    // In memory still: it is written with the first part of the large one.
    journal.finish(first, Durability::Deferred).expect("finish");
    record.clear();
    record.bytes(20_000, &vec![7; 5 << 20]);
    let mut record_bytes = disk.faults().writes_left.swap(1, Ordering::Relaxed);
    assert_eq!(record_bytes, u64::MAX, "no write is bound to fail");
    journal.append(&record).expect_err("the second part cannot be written");
    record_bytes = disk.faults().writes_left.swap(u64::MAX, Ordering::Relaxed);
    assert_eq!(record_bytes, 0);
    journal.append(&record).expect_err("nothing follows what failed");
    journal.finish(first, Durability::Sync).expect_err("nobody knows what the file holds");
    assert_eq!(journal.last_sequence(), first);

    let (_, recovery) = open(&disk.copy()).expect("open");
    assert_eq!(recovery.last_sequence, first, "the small one was written, the large one in part");
    assert!(disk.bytes("pool").len() > 5 << 20);
}

#[test]
fn recovery_makes_a_pool_longer_that_lost_its_growth() {
    let disk = Disk::new();
    let journal = create(&disk, options());
    let len = disk.bytes("pool").len();
    // Beyond the first zone, so that the second one's tables are lost too.
    let pages = crate::layout::ZONE_PAGES + 10;
    journal.grow(pages).expect("grow");
    let offset = (pages - 1) * PAGE_BYTES + 1;
    let mut record = RecordBuilder::new();
    record.bytes(offset, b"far away");
    record.set_bits(crate::layout::descriptor_offset(pages - 1), 5);
    let sequence = journal.append(&record).expect("append");
    journal.finish(sequence, Durability::Sync).expect("finish");
    disk.change("pool", |pool| pool.truncate(len));
    let (opened, _) = open(&disk).expect("open");
    assert_eq!(opened.pool().pages_backed(), pages);
    assert!(disk.bytes("pool")[file_offset(offset) as usize..].starts_with(b"far away"));
    opened.verify(&mut |error| panic!("{error}")).expect("verify");
}

#[test]
fn a_full_disk_stops_large_records_and_not_small_ones() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(9));
    let journal = create(&disk, options());
    model.commit(&mut rng, &journal, 3, Durability::Sync);
    disk.faults().free_bytes.store(3 << 19, Ordering::Relaxed);
    let names = disk.names();
    assert!(journal.grow(10_000).expect_err("full").is_out_of_space());
    let mut large = RecordBuilder::new();
    for _ in 0..60 {
        large.bytes(0, &[1; 100_000]);
    }
    for _ in 0..3 {
        let error = journal.append(&large).expect_err("full");
        assert!(error.is_out_of_space(), "{error}");
    }
    assert!(disk.names().len() <= names.len() + 1);
    disk.faults().free_bytes.store(0, Ordering::Relaxed);
    for _ in 0..200 {
        model.commit(&mut rng, &journal, 100, Durability::Buffered);
    }
    journal.sync().expect("sync");
    let copy = disk.copy();
    let (opened, recovery) = open(&copy).expect("open");
    assert_eq!(recovery.last_sequence, model.last_sequence());
    model.assert_pool(&copy, &opened, recovery.last_sequence);
    disk.faults().free_bytes.store(64 << 20, Ordering::Relaxed);
    assert!(journal.append(&large).is_ok());
    journal.close().expect("close");
}

#[test]
fn a_pool_that_cannot_grow_stays_as_it_was() {
    let disk = Disk::new();
    let journal = create(&disk, options());
    let (pages, len) = (journal.pool().pages_backed(), disk.bytes("pool").len());
    disk.faults().free_bytes.store(100_000, Ordering::Relaxed);
    assert!(journal.grow(pages + 100).expect_err("full").is_out_of_space());
    assert_eq!((journal.pool().pages_backed(), disk.bytes("pool").len()), (pages, len));
    assert!(matches!(journal.grow(1 << 60), Err(Error::TooLarge { .. })));
    journal.grow(pages + 10).expect("that much fits");
    assert_eq!(journal.pool().pages_backed(), pages + 10);
}

#[test]
fn a_lost_header_of_a_log_file_is_damage() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(14));
    let journal = create(&disk, options());
    let starts_used = |name: &str| disk.bytes(name)[..512].iter().any(|&byte| byte != 0);
    while !starts_used("log/0002") {
        model.commit(&mut rng, &journal, 50, Durability::Sync);
    }
    model.commit(&mut rng, &journal, 50, Durability::Sync);
    model.commit(&mut rng, &journal, 50, Durability::Sync);
    assert_eq!(open(&disk.copy()).expect("open").1.last_sequence, model.last_sequence());
    for name in ["log/0001", "log/0002"] {
        let (flipped, zeroed) = (disk.copy(), disk.copy());
        flipped.change(name, |log| log[40] ^= 1);
        zeroed.change(name, |log| log[..512].fill(0));
        assert!(matches!(open(&flipped), Err(Error::Damaged { .. })), "{name}");
        assert!(matches!(open(&zeroed), Err(Error::Damaged { .. })), "{name}");
    }
}
