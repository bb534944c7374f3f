//! A model of the heap's contents after each record.

use std::sync::Arc;

use adamant_medium::storage::Directory;
use fastrand::Rng;

use super::disk::Disk;
use super::mirror::mirrored;
use crate::durability::Durability;
use crate::journal::{Journal, JournalOptions, RecordBuilder, Recovery};
use crate::layout::{PAGE_BYTES, TABLE_BASE, file_offset};

/// Pages of the heap in these tests.
pub(super) const PAGES: u64 = 40;
const DATA_BYTES: usize = (PAGES * PAGE_BYTES) as usize;
const TABLE_BYTES: usize = PAGES as usize * 8;

pub(super) fn options() -> JournalOptions {
    JournalOptions { background: false, ..JournalOptions::default() }
}

pub(super) fn small_log() -> JournalOptions {
    JournalOptions { log_bytes_max: 4 << 20, ..options() }
}

pub(super) fn create(disk: &Arc<Disk>, options: JournalOptions) -> Journal {
    mirrored(create_bare(disk, options))
}

/// The same, without a source of pages.
pub(super) fn create_bare(disk: &Arc<Disk>, options: JournalOptions) -> Journal {
    let root: Arc<dyn Directory> = disk.root();
    let page = vec![7; PAGE_BYTES as usize];
    let table = vec![9; PAGE_BYTES as usize];
    let initial = [(0, &page[..]), (TABLE_BASE, &table[..])];
    Journal::create(&root, options, &initial, PAGES).expect("creation")
}

pub(super) fn open(disk: &Arc<Disk>) -> crate::error::Result<(Journal, Recovery)> {
    open_with(disk, options())
}

pub(super) fn open_with(
    disk: &Arc<Disk>,
    options: JournalOptions,
) -> crate::error::Result<(Journal, Recovery)> {
    let (journal, recovery) = Journal::open(&disk.root(), options)?;
    Ok((mirrored(journal), recovery))
}

/// Data pages and descriptors, after each record.
#[derive(Clone)]
pub(super) struct Model {
    states: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Model {
    pub(super) fn new() -> Self {
        let mut data = vec![0; DATA_BYTES];
        data[..PAGE_BYTES as usize].fill(7);
        Self { states: vec![(data, vec![9; TABLE_BYTES])] }
    }

    /// The last state only, as after a record of that number.
    pub(super) fn last_sequence(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    /// Fills the builder with some changes and remembers their result.
    pub(super) fn change(&mut self, rng: &mut Rng, record: &mut RecordBuilder, changes: usize) {
        let (mut data, mut table) = self.states.last().expect("never empty").clone();
        record.clear();
        for _ in 0..changes {
            match rng.u8(..4) {
                0 | 1 => {
                    let len = if rng.u8(..16) == 0 { rng.usize(..20_000) } else { rng.usize(..40) };
                    let at = rng.usize(..DATA_BYTES - len);
                    let bytes = std::iter::repeat_with(|| rng.u8(..)).take(len).collect::<Vec<_>>();
                    record.bytes(at as u64, &bytes);
                    data[at..at + len].copy_from_slice(&bytes);
                }
                kind => {
                    let word = rng.usize(..PAGES as usize) * 8;
                    let mask = if rng.bool() { 1 << rng.u8(..64) } else { rng.u64(..) };
                    let old = u64::from_le_bytes(table[word..word + 8].try_into().expect("eight"));
                    let new = if kind == 2 { old | mask } else { old & !mask };
                    table[word..word + 8].copy_from_slice(&new.to_le_bytes());
                    match kind {
                        2 => record.set_bits(TABLE_BASE + word as u64, mask),
                        _ => record.clear_bits(TABLE_BASE + word as u64, mask),
                    }
                }
            }
        }
        self.states.push((data, table));
    }

    /// Appends a record of some changes and finishes it.
    pub(super) fn commit(
        &mut self,
        rng: &mut Rng,
        journal: &Journal,
        changes: usize,
        durability: Durability,
    ) {
        let mut record = RecordBuilder::new();
        self.change(rng, &mut record, changes);
        journal.wait_for_space().expect("space");
        let sequence = journal.append(&record).expect("append");
        assert_eq!(sequence, self.last_sequence());
        journal.finish(sequence, durability).expect("finish");
    }

    /// The pool file must hold the state after that record, with true checksums.
    pub(super) fn assert_pool(&self, disk: &Disk, journal: &Journal, sequence: u64) {
        let (data, table) = &self.states[sequence as usize];
        let pool = disk.bytes("pool");
        let found = &pool[file_offset(0) as usize..][..DATA_BYTES];
        let different = found.iter().zip(data).position(|(one, other)| one != other);
        assert_eq!(different, None, "first different byte after record {sequence}");
        let found = &pool[file_offset(TABLE_BASE) as usize..][..TABLE_BYTES];
        assert_eq!(found, table, "descriptors after record {sequence}");
        journal.verify(&mut |error| panic!("{error}")).expect("verify");
    }
}
