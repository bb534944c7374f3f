//! Records round-trip, and are compact.

use fastrand::Rng;

use crate::journal::RecordBuilder;
use crate::journal::records::record::{CommitHead, Entries, Entry};

fn decode(record: &RecordBuilder) -> Vec<Entry<'_>> {
    record.frames().flat_map(Entries::new).map(|entry| entry.expect("whole entries")).collect()
}

fn len_bytes(record: &RecordBuilder) -> usize {
    record.frames().map(<[u8]>::len).sum()
}

#[test]
fn neighbouring_ranges_become_one() {
    let mut record = RecordBuilder::new();
    let bytes = (0..50_000).map(|value| value as u8).collect::<Vec<u8>>();
    let mut offset = 0;
    let mut rng = Rng::with_seed(1);
    while offset < bytes.len() {
        let len = rng.usize(1..300).min(bytes.len() - offset);
        record.bytes(7000 + offset as u64, &bytes[offset..offset + len]);
        offset += len;
    }
    assert_eq!(decode(&record), [Entry::Bytes { offset: 7000, bytes: &bytes }]);
    assert!(len_bytes(&record) < bytes.len() + 8);
}

#[test]
fn bits_of_one_word_become_one_entry() {
    let mut record = RecordBuilder::new();
    record.bytes(8, b"before");
    for bit in [3, 5, 63] {
        record.set_bits(4096, 1 << bit);
    }
    record.clear_bits(4096, 1 << 5);
    record.clear_bits(4104, 1 << 6);
    let expected = [
        Entry::Bytes { offset: 8, bytes: b"before" },
        Entry::Set { offset: 4096, mask: 1 << 3 | 1 << 5 | 1 << 63 },
        Entry::Clear { offset: 4096, mask: 1 << 5 },
        Entry::Clear { offset: 4104, mask: 1 << 6 },
    ];
    assert_eq!(decode(&record), expected);
    record.clear();
    assert!(record.is_empty() && decode(&record).is_empty());
}

#[test]
fn large_ranges_are_split_over_frames() {
    let mut record = RecordBuilder::new();
    let bytes = vec![42; 1_000_000];
    record.set_bits(0, 1);
    record.bytes(1 << 40, &bytes);
    record.set_bits(1 << 46, u64::MAX);
    assert!(record.frame_count() > 7);
    let mut offset = 1 << 40;
    for entry in &decode(&record)[1..] {
        match *entry {
            Entry::Bytes { offset: found, bytes } => {
                assert_eq!(found, offset);
                assert!(bytes.iter().all(|&byte| byte == 42));
                offset += bytes.len() as u64;
            }
            other => assert_eq!(other, Entry::Set { offset: 1 << 46, mask: u64::MAX }),
        }
    }
    assert_eq!(offset, (1 << 40) + bytes.len() as u64);
}

#[test]
fn a_small_put_takes_little() {
    let mut record = RecordBuilder::new();
    record.bytes(123_456_768, &[1; 8 + 20 + 100]);
    record.set_bits((1 << 46) + 8 * 30_000, 1 << 40);
    record.bytes(987_648, &[2; 9]);
    record.bytes(987_000, &[3; 2]);
    record.set_bits(123_454_464, 1 << 17);
    let bytes = len_bytes(&record) + 20 + 3;
    assert!(bytes <= 190, "{bytes} bytes for {} of data", 128 + 9 + 2);
}

#[test]
fn any_bytes_decode_to_entries_or_an_error() {
    for seed in 0..20_000 {
        let mut rng = Rng::with_seed(seed);
        let len = rng.usize(..60);
        let bytes = std::iter::repeat_with(|| rng.u8(..)).take(len).collect::<Vec<_>>();
        let errors = Entries::new(&bytes).filter(Result::is_err).count();
        assert!(errors <= 1, "seed {seed}: an error ends it");
    }
    // No whole pages: the overlay refuses it.
    let hole = [3, 5];
    assert_eq!(Entries::new(&hole).next(), Some(Ok(Entry::Hole { offset: 0, len: 5 })));
    let beyond = [1, 65];
    assert!(Entries::new(&beyond).next().is_some_and(|entry| entry.is_err()));
}

/// The worked example of docs/format/log.md.
#[test]
fn the_bytes_of_the_worked_example() {
    let mut record = RecordBuilder::new();
    record.bytes(4160, b"hi");
    record.set_bits(crate::layout::descriptor_offset(2), 1 << 5);
    let mut payload = Vec::new();
    CommitHead { lag: 1, parts: 0, parts_crc: 0 }.put(&mut payload);
    payload.extend(record.frames().flatten());
    assert_eq!(payload, b"\x01\x00\x80\x88\x04\x02hi\x85\x02\x05");
}

/// A regression: the memory of the largest record was kept until the last handle was dropped.
#[test]
fn a_large_record_leaves_no_memory_behind() {
    let mut record = RecordBuilder::new();
    let bytes = vec![7; 20 << 20];
    record.bytes(4096, &bytes);
    let (taken, asked) = (record.kept_bytes(), bytes.len() + (64 << 10));
    assert!(taken <= asked, "{taken} bytes for a record of {}", bytes.len());
    record.trim();
    assert_eq!(record.kept_bytes(), 0);
    record.bytes(4096, &bytes[..1000]);
    record.trim();
    assert!(!record.is_empty() && record.kept_bytes() > 0, "small ones keep theirs");
}
