//! Recovery yields a prefix of the records with all durable ones, and never takes damage for a
//! tail.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fastrand::Rng;

use super::disk::Disk;
use super::model::{Model, create, open, options, small_log};
use crate::durability::Durability;
use crate::error::Error;
use crate::image::pool_file::PoolFile;
use crate::journal::RecordBuilder;
use crate::journal::records::layout::LOG_HEAD_BYTES;
use crate::layout::{CHECKPOINT_OFFSETS, Checkpoint};

/// The log file in use while there is only one.
const LOG: &str = "log/0001";

fn used_bytes(log: &[u8]) -> usize {
    log.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
}

#[test]
fn a_closed_store_opens_with_nothing_to_do() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(2));
    for round in 0..5 {
        let journal = if round == 0 {
            create(&disk, options())
        } else {
            let (journal, recovery) = open(&disk).expect("open");
            assert!(recovery.was_closed);
            assert_eq!((recovery.records, recovery.last_sequence), (0, model.last_sequence()));
            journal
        };
        model.assert_pool(&disk, &journal, model.last_sequence());
        for _ in 0..20 {
            model.commit(&mut rng, &journal, 6, Durability::Sync);
        }
        journal.checkpoint().expect("checkpoint");
        model.assert_pool(&disk, &journal, model.last_sequence());
        model.commit(&mut rng, &journal, 6, Durability::Deferred);
        journal.close().expect("close");
        assert!(journal.append(&RecordBuilder::new()).is_err(), "closed");
    }
}

#[test]
fn a_store_that_is_only_opened_is_not_changed() {
    let disk = Disk::new();
    create(&disk, options()).close().expect("close");
    let before = disk.names().iter().map(|name| disk.bytes(name)).collect::<Vec<_>>();
    let (journal, _) = open(&disk).expect("open");
    journal.checkpoint().expect("checkpoint");
    journal.close().expect("close");
    let after = disk.names().iter().map(|name| disk.bytes(name)).collect::<Vec<_>>();
    assert!(before == after);
    assert!(before.iter().map(Vec::len).sum::<usize>() <= 4 << 20);
}

#[test]
fn a_log_cut_anywhere_gives_a_prefix() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(3));
    let journal = create(&disk, options());
    let mut ends = vec![LOG_HEAD_BYTES as usize];
    let mut record = RecordBuilder::new();
    for _ in 0..6 {
        // None knows any other to be durable: all are buffered.
        model.change(&mut rng, &mut record, 3);
        let sequence = journal.append(&record).expect("append");
        journal.finish(sequence, Durability::Buffered).expect("finish");
        ends.push(used_bytes(&disk.bytes(LOG)).next_multiple_of(4));
    }
    let last = *ends.last().expect("not empty");
    for cut in (LOG_HEAD_BYTES as usize..=last).filter(|cut| last < 1500 || cut % 7 == 0) {
        let copy = disk.copy();
        copy.change(LOG, |log| log[cut..].fill(0));
        let whole = ends.iter().filter(|&&end| end <= cut).count() as u64 - 1;
        let (opened, recovery) = open(&copy).expect("open");
        let found = recovery.last_sequence;
        // The last bytes of a record may be zeros anyway.
        assert!(found == whole || found == whole + 1, "cut at {cut}: {found}, not {whole}");
        model.assert_pool(&copy, &opened, found);
        let again = copy.copy();
        assert_eq!(open(&again).expect("again").1.last_sequence, found);
    }
}

#[test]
fn damage_in_what_was_durable_is_an_error() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(4));
    let journal = create(&disk, options());
    let mut ends = vec![];
    for _ in 0..8 {
        model.commit(&mut rng, &journal, 3, Durability::Sync);
        ends.push(used_bytes(&disk.bytes(LOG)).next_multiple_of(4));
    }
    // No record says that the last one was durable, nor that the one before is the last.
    for at in LOG_HEAD_BYTES as usize..ends[6] {
        if ends[6] > 3000 && at % 11 != 0 {
            continue;
        }
        let copy = disk.copy();
        copy.change(LOG, |log| log[at] ^= 1 << (at % 8));
        match open(&copy) {
            Err(Error::Damaged { file, offset, .. }) => {
                assert!(file.ends_with("0001"));
                assert!(offset as usize <= at, "{offset} of {at}");
            }
            other => panic!("byte {at}: {:?}", other.map(|(_, recovery)| recovery)),
        }
    }
    let copy = disk.copy();
    copy.change(LOG, |log| log[ends[7] - 6] ^= 4);
    assert_eq!(open(&copy).expect("open").1.last_sequence, 7);
}

#[test]
fn a_torn_record_before_a_whole_one_is_a_tail() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(5));
    let journal = create(&disk, options());
    model.commit(&mut rng, &journal, 3, Durability::Sync);
    let end = used_bytes(&disk.bytes(LOG)).next_multiple_of(4);
    for _ in 0..4 {
        model.commit(&mut rng, &journal, 3, Durability::Buffered);
    }
    disk.change(LOG, |log| log[end + 9] ^= 1);
    let copy = disk.copy();
    let (opened, recovery) = open(&copy).expect("open");
    assert_eq!(recovery.last_sequence, 1);
    model.assert_pool(&copy, &opened, 1);
    // A dropped record never comes back, whatever is appended and lost.
    let mut other = RecordBuilder::new();
    other.bytes(0, b"other");
    assert_eq!(opened.append(&other).expect("append"), 2);
    opened.finish(2, Durability::Sync).expect("finish");
    let (_, recovery) = open(&copy.copy()).expect("open");
    assert_eq!((recovery.records, recovery.last_sequence), (1, 2));
}

#[test]
fn lost_checkpoints_are_noticed_or_harmless() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(6));
    let mut journal = create(&disk, small_log());
    let mut refused = 0;
    for round in 0..60 {
        model.commit(&mut rng, &journal, 40, Durability::Sync);
        match rng.u8(..8) {
            0 => journal.checkpoint().expect("checkpoint"),
            1 => {
                journal.close().expect("close");
                journal = open(&disk).expect("open").0;
            }
            2 => journal = open(&disk).expect("open").0,
            _ => {}
        }
        for slot in CHECKPOINT_OFFSETS {
            let copy = disk.copy();
            copy.change("pool", |pool| pool[slot as usize + 20] ^= 0x10);
            match open(&copy) {
                Ok((opened, recovery)) => {
                    assert_eq!(recovery.last_sequence, model.last_sequence(), "round {round}");
                    model.assert_pool(&copy, &opened, recovery.last_sequence);
                }
                Err(Error::Damaged { .. }) => refused += 1,
                Err(error) => panic!("round {round}: {error}"),
            }
        }
    }
    assert!(refused > 0);
}

#[test]
fn both_checkpoints_or_the_log_lost_is_damage() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(7));
    let journal = create(&disk, options());
    model.commit(&mut rng, &journal, 3, Durability::Sync);
    let copy = disk.copy();
    for slot in CHECKPOINT_OFFSETS {
        copy.change("pool", |pool| pool[slot as usize + 3] ^= 1);
    }
    assert!(matches!(open(&copy), Err(Error::Damaged { .. })));
    let copy = disk.copy();
    copy.remove(LOG);
    assert!(matches!(open(&copy), Err(Error::Damaged { .. })));
    let copy = disk.copy();
    copy.change(LOG, |log| log[13] ^= 1);
    assert!(matches!(open(&copy), Err(Error::Damaged { .. })));
    let copy = disk.copy();
    copy.change(LOG, |log| log.truncate(4096));
    assert!(matches!(open(&copy), Err(Error::Damaged { .. })));
    // Another pool's log must be neither replayed nor reused.
    let copy = disk.copy();
    copy.change("log/0002", |log| {
        log[..512].copy_from_slice(&disk.bytes(LOG)[..512]);
        log[12] ^= 1;
        let checksum = adamant_wire::checksum::crc32c(0, &log[..56]);
        log[56..60].copy_from_slice(&checksum.to_le_bytes());
    });
    assert!(matches!(open(&copy), Err(Error::Unsupported { .. })));
    // If the pool is gone, its log must not be reused.
    let copy = disk.copy();
    copy.remove("pool");
    let created = crate::journal::Journal::create(&copy.root(), options(), &[], 4);
    assert!(matches!(created, Err(Error::Unsupported { .. })));
}

/// A reader that looks in between must not go back to the checkpoint before.
#[test]
fn a_pool_that_is_retired_loses_its_newest_checkpoint_last() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(3));
    let journal = create(&disk, options());
    model.commit(&mut rng, &journal, 5, Durability::Sync);
    journal.close().expect("close");
    for later in 1..5 {
        let disk = disk.copy();
        let pool = PoolFile::open_in(disk.root().as_ref()).expect("a pool");
        let newest = || pool.newest_checkpoint().expect("read");
        let closed = newest().expect("a checkpoint");
        for number in closed.number.get()..closed.number.get() + later {
            let next = Checkpoint { number: (number + 1).into(), ..closed };
            pool.write_checkpoint(next).expect("written");
        }
        let number = || newest().map(|newest| newest.number.get());
        let last = number();
        disk.faults().writes_left.store(1, Ordering::Relaxed);
        assert!(pool.retire().is_err() && last.is_some());
        assert_eq!(number(), last, "{later} checkpoints later");
        disk.faults().writes_left.store(u64::MAX, Ordering::Relaxed);
        pool.retire().expect("retired");
        assert_eq!(number(), None);
    }
}

#[test]
fn every_flipped_bit_of_the_header_and_other_files_are_errors() {
    let disk = Disk::new();
    create(&disk, options()).close().expect("close");
    for bit in 0..60 * 8 {
        let copy = disk.copy();
        copy.change("pool", |pool| pool[bit / 8] ^= 1 << (bit % 8));
        assert!(matches!(open(&copy), Err(Error::Damaged { .. })), "bit {bit}");
    }
    for bytes in [vec![], vec![0; 100], b"#!/bin/sh\n".repeat(20_000)] {
        let copy = disk.copy();
        copy.put("pool", bytes);
        assert!(matches!(open(&copy), Err(Error::Unsupported { .. })));
    }
    let copy = disk.copy();
    copy.change("pool", |pool| pool.truncate(pool.len() - 4096));
    assert!(matches!(open(&copy), Err(Error::Damaged { .. })));
}

/// Tears the pages that a checkpoint wrote, by sectors; `unfinish` turns the head, given the pool
/// before, into that of an unfinished checkpoint.
fn try_torn_pools(unfinish: impl Fn(&Arc<Disk>, &[u8])) {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(8));
    let journal = create(&disk, options());
    for _ in 0..30 {
        model.commit(&mut rng, &journal, 10, Durability::Sync);
    }
    let before = disk.bytes("pool");
    journal.checkpoint().expect("checkpoint");
    let after = disk.bytes("pool");
    for round in 0..20 {
        let copy = disk.copy();
        unfinish(&copy, &before);
        copy.change("pool", |pool| {
            for at in (65_536..pool.len()).step_by(512) {
                let source = if rng.bool() { &before } else { &after };
                pool[at..at + 512].copy_from_slice(&source[at..at + 512]);
            }
        });
        let (opened, recovery) = open(&copy).expect("open");
        assert_eq!(recovery.records, 30, "round {round}");
        model.assert_pool(&copy, &opened, 30);
    }
}

/// All before the pool's sync: the newest checkpoint is not there yet, its table is.
fn take_newest_back(disk: &Disk, before: &[u8]) {
    disk.change("pool", |pool| {
        let newest = CHECKPOINT_OFFSETS.into_iter().max_by_key(|&slot| pool[slot as usize]);
        let newest = newest.expect("two slots") as usize;
        pool[newest..newest + 512].copy_from_slice(&before[newest..newest + 512]);
    });
}

#[test]
fn a_pool_torn_by_a_checkpoint_is_made_whole() {
    try_torn_pools(|disk, before| take_newest_back(disk, before));
}

/// As earlier versions left it, without tables: the checkpoint says that pages were being written,
/// but not which.
#[test]
fn a_pool_torn_by_an_earlier_version_is_made_whole() {
    try_torn_pools(|disk, before| {
        disk.change("pool", |pool| pool[..65_536].copy_from_slice(&before[..65_536]));
        let file = disk.root().open("pool").expect("a disk").expect("a pool");
        let pool = PoolFile::open(file).expect("a pool");
        let newest = pool.read_checkpoint(&mut Err).expect("read").expect("one is there");
        let number = (newest.number.get() + 1).into();
        let applying = Checkpoint { number, applying: 1.into(), ..newest };
        pool.write_checkpoint(applying).expect("written");
    });
}

/// Pages show durable records only, and the table that names them says up to which: if the end of
/// the log is lost after that, nothing in the log itself could tell it from a tail.
#[test]
fn a_log_shorter_than_its_checkpoint_knew_is_damage() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(9));
    let journal = create(&disk, options());
    let mut ends = Vec::new();
    for _ in 0..8 {
        model.commit(&mut rng, &journal, 4, Durability::Sync);
        ends.push(used_bytes(&disk.bytes(LOG)).next_multiple_of(4));
    }
    let before = disk.bytes("pool");
    journal.checkpoint().expect("checkpoint");
    let applying = disk.copy();
    take_newest_back(&applying, &before);
    assert_eq!(open(&applying.copy()).expect("open").1.records, 8);
    for kept in 0..8 {
        let cut = applying.copy();
        let end = if kept == 0 { LOG_HEAD_BYTES as usize } else { ends[kept - 1] };
        cut.change(LOG, |log| log[end..].fill(0));
        let opened = open(&cut).map(|(_, recovery)| recovery);
        assert!(matches!(opened, Err(Error::Damaged { .. })), "{kept} records: {opened:?}");
    }
}
