//! Forged logs: every frame has a matching checksum, but no writer wrote the whole: of two
//! histories that diverged, such as a store and a copy of it whose files were mixed up, or
//! assembled by hand. Each check of the reader other than a checksum has its case here: the check
//! before it would let them pass, and the store would open with a commit that never was.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use adamant_wire::frame::{self, Header, Kind, log_seed};
use fastrand::Rng;
use zerocopy::FromBytes;

use super::disk::Disk;
use super::model::{Model, create, open, options};
use crate::durability::Durability;
use crate::error::Error;
use crate::journal::RecordBuilder;
use crate::journal::records::layout::{LOG_HEAD_BYTES, LogHeader};
use crate::journal::records::record::CommitHead;

const LOG: &str = "log/0001";

fn seed_of(log: &[u8]) -> u32 {
    let (header, _) = LogHeader::read_from_prefix(log).expect("a header");
    log_seed(&header.uuid, header.generation.get())
}

/// Frames of a log file: where each begins and ends, and its header.
fn frames(log: &[u8]) -> Vec<(usize, usize, Header)> {
    let seed = seed_of(log);
    let (mut frames, mut at) = (Vec::new(), LOG_HEAD_BYTES as usize);
    while let Ok((header, _, taken)) = frame::parse(seed, &log[at..]) {
        frames.push((at, at + taken, header));
        at += taken;
    }
    frames
}

/// Overwrites bytes with a frame.
fn put_frame(log: &mut [u8], at: usize, header: &Header, sequence: u64, payload: &[u8]) {
    let mut bytes = Vec::new();
    frame::append(&mut bytes, seed_of(log), header.previous, header.kind, sequence, &[payload]);
    log[at..at + bytes.len()].copy_from_slice(&bytes);
}

/// A record that sets eight bytes of a page.
fn small(word: u64) -> RecordBuilder {
    let mut record = RecordBuilder::new();
    record.bytes(4096, &word.to_le_bytes());
    record
}

fn commit(disk: &Arc<Disk>, words: impl IntoIterator<Item = u64>) {
    let (journal, _) = open(disk).expect("open");
    for word in words {
        let sequence = journal.append(&small(word)).expect("append");
        journal.finish(sequence, Durability::Buffered).expect("finish");
    }
    // The process dies here.
}

#[test]
fn records_of_another_history_do_not_follow() {
    let disk = Disk::new();
    create(&disk, options()).close().expect("close");
    // Both continue from the same commit, in the same generation, with records of the same length.
    let other = disk.copy();
    commit(&disk, 100..106);
    commit(&other, 200..206);
    let other = other.bytes(LOG);
    let records = frames(&disk.bytes(LOG));
    assert_eq!((records.len(), frames(&other).len()), (6, 6));
    for (first, _, header) in &records[1..] {
        let mixed = disk.copy();
        mixed.change(LOG, |log| log[*first..].copy_from_slice(&other[*first..]));
        let kept = header.sequence - 1;
        match open(&mixed) {
            Ok((_, recovery)) => assert_eq!(recovery.last_sequence, kept, "a mix of both"),
            Err(Error::Damaged { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_record_of_another_number_does_not_follow() {
    let disk = Disk::new();
    create(&disk, options()).close().expect("close");
    commit(&disk, 1..5);
    let log = disk.bytes(LOG);
    let (at, end, header) = *frames(&log).last().expect("four records");
    for distance in [1, 7, 1 << 20] {
        let forged = disk.copy();
        forged.change(LOG, |log| {
            // As if nothing had been known to be durable: so it proves nothing about the others.
            let number = header.sequence + distance;
            let mut payload = Vec::new();
            CommitHead { lag: number, parts: 0, parts_crc: 0 }.put(&mut payload);
            payload.extend(small(9).frames().flatten());
            log[at..end].fill(0);
            put_frame(log, at, &header, number, &payload);
        });
        let (_, recovery) = open(&forged).expect("a tail");
        assert_eq!(recovery.last_sequence, header.sequence - 1, "{distance} further");
    }
}

#[test]
fn a_commit_frame_that_does_not_fit_its_parts_is_damage() {
    let disk = Disk::new();
    let (mut model, mut rng) = (Model::new(), Rng::with_seed(21));
    let journal = create(&disk, options());
    model.commit(&mut rng, &journal, 3, Durability::Sync);
    let mut large = RecordBuilder::new();
    large.bytes(0, &[3; 100_000]);
    for _ in 0..2 {
        large.bytes(100_000, &[4; 60_000]);
        large.bytes(0, &[5; 60_000]);
    }
    journal.append(&large).expect("append");
    journal.sync().expect("sync");
    assert_eq!(open(&disk.copy()).expect("open").1.last_sequence, 2);
    let log = disk.bytes(LOG);
    let frames = frames(&log);
    let (at, end, header) = *frames.last().expect("frames");
    assert!(frames.len() >= 3 && header.kind == Kind::Commit, "{} frames", frames.len());
    let payload = &log[at + frame::FRAME_HEADER_BYTES..][..header.len as usize];
    let mut rest = payload;
    let head = CommitHead::take(&mut rest).expect("a head");
    let fewer = CommitHead { parts: head.parts - 1, ..head };
    let others = CommitHead { parts_crc: !head.parts_crc, ..head };
    for forged_head in [fewer, others] {
        let forged = disk.copy();
        forged.change(LOG, |log| {
            let mut payload = Vec::new();
            forged_head.put(&mut payload);
            payload.extend_from_slice(rest);
            log[at..end].fill(0);
            put_frame(log, at, &header, header.sequence, &payload);
        });
        let opened = open(&forged).map(|(_, recovery)| recovery);
        assert!(matches!(opened, Err(Error::Damaged { .. })), "{forged_head:?}: {opened:?}");
    }
}

/// A user's value can look like the starts of frames, thousands of them, each of 128 KiB. When
/// recovery searched beyond a torn record, it once summed up each of them, gave up when that became
/// too much, and called it damage: after an ordinary power cut the store did not open again.
#[test]
fn a_torn_record_that_looks_like_frames_is_a_tail() {
    let mut look_alike = vec![0xA5; 8];
    look_alike
        .extend_from_slice(&(0x1_FF00_u32 | u32::from(Kind::Commit as u8) << 24).to_le_bytes());
    look_alike.extend_from_slice(&3_u64.to_le_bytes());
    for shift in 0..4 {
        let disk = Disk::new();
        let (mut model, mut rng) = (Model::new(), Rng::with_seed(33));
        let journal = create(&disk, options());
        model.commit(&mut rng, &journal, 3, Durability::Sync);
        let end = frames(&disk.bytes(LOG)).last().expect("one record").1;
        let mut record = RecordBuilder::new();
        let bytes = [vec![1; shift], look_alike.repeat(5000)].concat();
        record.bytes(4096, &bytes);
        let sequence = journal.append(&record).expect("append");
        journal.finish(sequence, Durability::Buffered).expect("finish");
        assert_eq!(open(&disk.copy()).expect("open").1.last_sequence, 2);
        disk.change(LOG, |log| log[end] ^= 1);
        assert_eq!(open(&disk.copy()).expect("a tail").1.last_sequence, 1, "shifted by {shift}");
    }
}

/// Worst-case bytes: one offset in eight looks like a commit frame, of a length near the largest.
/// Each once took two reads of the file, so that a log of 128 MiB took half a minute.
#[test]
fn places_that_look_like_frames_take_no_reads_of_their_own() {
    const MIB: usize = 1 << 20;
    let disk = Disk::new();
    create(&disk, options()).close().expect("close");
    commit(&disk, 1..5);
    let plain = disk.copy();
    let sound = open(&plain).expect("a tail").1;
    let sound_reads = plain.faults().reads.load(Ordering::Relaxed);
    // Two headers overlap: the kinds of both, then numbers of records that may follow.
    let kind = u32::from(Kind::Commit as u8) << 24;
    let words = |number: u32| [kind | (0xF_0000 + number % 0xF000), kind | 0xF_1234, 1, 1];
    let hostile = (0..16 * MIB as u32 / 16).flat_map(words).flat_map(u32::to_le_bytes);
    disk.put("log/0009", hostile.collect());
    let start = std::time::Instant::now();
    let (_, recovery) = open(&disk).expect("a tail");
    println!("16 MiB took {:?}", start.elapsed());
    assert_eq!(recovery, sound);
    let reads = disk.faults().reads.load(Ordering::Relaxed) - sound_reads;
    assert!(reads < 16 * 4, "{reads} reads of 16 MiB");
}
