//! Batches: a crash may tear the pages that the tables name, and no others.
//!
//! A recovery with memory for 16 pages writes batch after batch. It is cut off at each of its
//! writes, and of the sectors that were written since the last sync some arrive and others do not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fastrand::Rng;

use super::disk::Disk;
use super::model::{Model, PAGES, create, open_with, options};
use crate::durability::Durability;
use crate::error::Error;
use crate::image::pool_file::PoolFile;
use crate::journal::{Doubt, JournalOptions};
use crate::layout::{HEAD_BYTES, PAGE_BYTES, file_offset};

const RECORDS: u64 = 8;
const SECTOR_BYTES: usize = 512;

/// Options with memory for `pages` pages.
fn with_pages(pages: u64) -> JournalOptions {
    JournalOptions { recovery_bytes_max: pages * PAGE_BYTES, ..options() }
}

/// The pool when a recovery is cut off after some write, and as of the last sync before that write.
struct Moment {
    synced: Arc<Vec<u8>>,
    pool: Arc<Vec<u8>>,
}

/// A disk with some records in the log, and the moments of a recovery that brings them into the
/// pool.
fn moments(seed: u64) -> (Arc<Disk>, Model, Vec<Moment>) {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(seed));
    let journal = create(&disk, options());
    for _ in 0..RECORDS {
        model.commit(&mut rng, &journal, 10, Durability::Sync);
    }
    let (mut moments, mut syncs_before) = (Vec::new(), 0);
    let mut pool = Arc::new(disk.bytes("pool"));
    let mut synced = Arc::clone(&pool);
    for changes in 1.. {
        let copy = disk.copy();
        copy.faults().changes_max.store(changes, Ordering::Relaxed);
        let is_done = open_with(&copy, with_pages(16)).is_ok();
        let syncs = copy.faults().syncs.load(Ordering::Relaxed);
        if *pool != copy.bytes("pool") {
            pool = Arc::new(copy.bytes("pool"));
            moments.push(Moment { synced: Arc::clone(&synced), pool: Arc::clone(&pool) });
        }
        if is_done {
            break;
        }
        if syncs > syncs_before {
            synced = Arc::clone(&pool);
        }
        syncs_before = syncs;
    }
    (disk, model, moments)
}

impl Moment {
    /// A disk after a power cut at that moment. The head, where tables and slots are, may have
    /// arrived before all others.
    fn cut_off(&self, disk: &Disk, rng: &mut Rng) -> Arc<Disk> {
        let is_head_there = rng.bool();
        let mut pool = self.pool.to_vec();
        for at in (0..self.synced.len()).step_by(SECTOR_BYTES) {
            let is_there = rng.bool() || (is_head_there && at < HEAD_BYTES as usize);
            if !is_there {
                pool[at..at + SECTOR_BYTES].copy_from_slice(&self.synced[at..at + SECTOR_BYTES]);
            }
        }
        let copy = disk.copy();
        copy.put("pool", pool);
        copy
    }
}

/// Whether tables of an unfinished checkpoint name the page at a heap offset.
fn is_in_doubt(disk: &Arc<Disk>, page: u64) -> bool {
    let file = disk.root().open("pool").expect("a disk").expect("is there");
    let pool = PoolFile::open(file).expect("a pool");
    let newest = pool.read_checkpoint(&mut Err).expect("read").expect("one is there");
    Doubt::read(&pool, newest.number.get()).expect("read").has(page)
}

/// Tables of two batches count: the newer one may arrive in the sync that pages of the older one do
/// not survive.
#[test]
#[cfg_attr(windows, ignore = "takes ten minutes under Wine, on a disk in memory")]
fn pages_of_two_batches_may_be_torn() {
    let mut torn = 0;
    for seed in 0..4 {
        println!("seed {seed}");
        let (disk, model, moments) = moments(seed);
        let mut rng = Rng::with_seed(seed);
        assert!(moments.len() > 20, "{} moments", moments.len());
        for moment in moments {
            let crashed = moment.cut_off(&disk, &mut rng);
            let pages = [16, 32, 1000][rng.usize(..3)];
            let (opened, recovery) = open_with(&crashed, with_pages(pages)).expect("opens");
            torn += recovery.torn_pages;
            assert_eq!(recovery.last_sequence, RECORDS);
            model.assert_pool(&crashed, &opened, RECORDS);
        }
    }
    assert!(torn > 100, "{torn} torn pages");
}

/// A page that no table names was not being written: if its bytes differ, it is damaged, whatever
/// the tail of the log says of it, unless it replaces the whole page.
#[test]
#[cfg_attr(windows, ignore = "takes ten minutes under Wine, on a disk in memory")]
fn damage_beside_batches_is_told() {
    let (mut told, mut replaced) = (0, 0);
    for seed in 4..8 {
        println!("seed {seed}");
        let (disk, model, moments) = moments(seed);
        let mut rng = Rng::with_seed(seed);
        for moment in moments.iter().chain(&moments) {
            let crashed = moment.cut_off(&disk, &mut rng);
            let page = rng.u64(..PAGES) * PAGE_BYTES;
            if is_in_doubt(&crashed, page) {
                continue;
            }
            let at = file_offset(page) as usize + rng.usize(..PAGE_BYTES as usize);
            crashed.change("pool", |pool| pool[at] ^= 1 << rng.u8(..8));
            match open_with(&crashed, with_pages(16)) {
                Err(Error::Damaged { offset, .. }) if offset == file_offset(page) => told += 1,
                Err(error) => panic!("expected damage at {at}, found {error}"),
                Ok((opened, _)) => {
                    let mut is_told = false;
                    opened.verify(&mut |_| is_told = true).expect("verify");
                    if !is_told {
                        replaced += 1;
                        model.assert_pool(&crashed, &opened, RECORDS);
                    }
                }
            }
        }
    }
    assert!(told > 25, "{told} told, {replaced} replaced");
}
