//! Damage of tables and blob files: after any bit flip or truncation, reads give an error or the
//! written data, and nothing else. A store that gets an error knows that data is lost; a wrong
//! value would go unnoticed.

use std::ops::Bound;
use std::sync::Arc;

use crate::common::*;
use adamant_lsm::{
    Blob, BlobFile, BlobOptions, BlobStream, BlobWriter, Cache, CacheOptions, Compression, Entry,
    EntryKind, Error, Identity, RangeTombstone, Result, Table, TableOptions, TableStream,
    TableWriter, check_blob_file, check_table, file_name,
};
use adamant_medium::storage::Directory;
use adamant_slice::Slice;

const NUMBER: u64 = 3;

fn small_cache() -> Arc<Cache> {
    Arc::new(Cache::new(CacheOptions { block_bytes: 32 << 10, pinned_bytes: 0, file_count: 2 }))
}

/// The expected content of a table of few entries, with blocks of every kind.
struct Written {
    model: Model,
    ranges: Vec<RangeTombstone>,
}

fn small_table(directory: &Arc<dyn Directory>, options: TableOptions) -> Written {
    let mut random = fastrand::Rng::with_seed(31);
    let mut model = Model::new();
    for number in 0..24_u8 {
        let kind = if number % 7 == 3 { EntryKind::Tombstone } else { EntryKind::Value };
        let bytes = if kind == EntryKind::Tombstone { 0 } else { random.usize(1..30) };
        let key = [b"key/".as_slice(), &[number / 2]].concat();
        model.insert((key, std::cmp::Reverse(random.u64(0..99))), (kind, vec![number; bytes]));
    }
    let mut ranges = Vec::new();
    let mut writer = TableWriter::create(directory, identity(NUMBER), options).unwrap();
    for item in &model {
        writer.add(&entry(item)).unwrap();
    }
    for (start, end, sequence) in [(b"a", b"k", 4), (b"b", b"z", 200)] {
        let (start, end) = (Slice::new(start), Slice::new(end));
        ranges.push(RangeTombstone { start, end, sequence });
        writer.add_range_tombstone(ranges[ranges.len() - 1].clone()).unwrap();
    }
    writer.finish().unwrap();
    Written { model, ranges }
}

/// Entries that were read before an error are a prefix of the expected entries.
fn verify_run(found: impl Iterator<Item = Result<Entry>>, expected: &[Entry], at: &str) -> bool {
    let mut count = 0;
    for entry in found {
        match entry {
            Ok(entry) => assert_eq!(Some(&entry), expected.get(count), "{at}"),
            Err(error) => {
                assert!(error.is_damage(), "{at}: {error}");
                return false;
            }
        }
        count += 1;
    }
    assert_eq!(count, expected.len(), "{at}: entries are missing, and nobody says so");
    true
}

/// Reads everything in all ways; false if there was an error.
fn verify(directory: &Arc<dyn Directory>, written: &Written, at: &str) -> bool {
    let mut entries = between(&written.model, Bound::Unbounded, Bound::Unbounded);
    let mut is_whole = match TableStream::open(directory, identity(NUMBER)) {
        Ok(stream) => verify_run(stream, &entries, at),
        Err(error) => {
            assert!(error.is_damage(), "{at}: {error}");
            false
        }
    };
    let table = match Table::open(directory, identity(NUMBER), &small_cache(), &Arc::default()) {
        Ok(table) => Arc::new(table),
        Err(error) => {
            assert!(error.is_damage(), "{at}: {error}");
            return false;
        }
    };
    assert_eq!(table.range_tombstones(), written.ranges, "{at}");
    for wanted in
        entries.iter().flat_map(|entry| [entry.version.sequence, u64::MAX].map(|s| (entry, s)))
    {
        let (entry, sequence_max) = wanted;
        match table.get(&entry.key, sequence_max) {
            Ok(found) => {
                assert_eq!(found, newest(&written.model, &entry.key, sequence_max), "{at}")
            }
            Err(error) => {
                assert!(error.is_damage(), "{at}: {error}");
                is_whole = false;
            }
        }
    }
    let all = || table.range(Bound::Unbounded, Bound::Unbounded);
    is_whole &= verify_run(all(), &entries, at);
    entries.reverse();
    is_whole & verify_run(all().rev(), &entries, at)
}

fn small_options() -> Vec<TableOptions> {
    let plain = TableOptions {
        block_bytes: 120,
        restart_interval: 3,
        partition_bytes: 100,
        ..TableOptions::default()
    };
    let indexed = TableOptions { hash_index: true, compression: Compression::Lz4, ..plain };
    let smallest = compressions().pop().unwrap_or_default();
    let smallest = TableOptions { compression: smallest, block_bytes: 600, ..plain };
    vec![plain, indexed, TableOptions { filter_bits_per_key: 0, ..plain }, smallest]
}

#[test]
fn a_flipped_bit_of_a_table_never_shows_other_data() {
    for options in small_options() {
        let directory = directory();
        let written = small_table(&directory, options);
        assert!(verify(&directory, &written, "whole"));
        check_table(&directory, identity(NUMBER)).unwrap();
        let file = directory.open(&file_name(NUMBER)).unwrap().unwrap();
        let bytes = bytes_of(&directory, &file_name(NUMBER));
        let mut read_count = 0;
        for bit in 0..bytes.len() * 8 {
            let at = format!("bit {bit} of {}", bytes.len() * 8);
            let byte = bytes[bit / 8];
            file.write_at(&[byte ^ 1 << (bit % 8)], bit as u64 / 8).unwrap();
            read_count += usize::from(verify(&directory, &written, &at));
            let found = check_table(&directory, identity(NUMBER)).expect_err(&at);
            assert!(found.is_damage(), "{at}: {found}");
            assert!(found.to_string().contains(&file_name(NUMBER)), "{found}");
            file.write_at(&[byte], bit as u64 / 8).unwrap();
        }
        assert_eq!(read_count, 0, "every bit of the file is looked at by the stream");
        assert!(verify(&directory, &written, "whole again"));
    }
}

#[test]
fn a_table_that_is_cut_or_longer_is_refused() {
    let directory = directory();
    small_table(&directory, small_options()[0]);
    let bytes = bytes_of(&directory, &file_name(NUMBER));
    let longer = [&bytes[..], &[0]].concat();
    let twice = [&bytes[..], &bytes[..]].concat();
    let cuts = (0..bytes.len()).map(|length| &bytes[..length]);
    for other in cuts.chain([&longer[..], &twice[..]]) {
        let directory = directory_with(&file_name(NUMBER), other);
        for found in [
            Table::open(&directory, identity(NUMBER), &small_cache(), &Arc::default()).map(drop),
            TableStream::open(&directory, identity(NUMBER)).map(drop),
            check_table(&directory, identity(NUMBER)).map(drop),
        ] {
            let error = found.expect_err("a file of another length");
            assert!(error.is_damage(), "{} bytes: {error}", other.len());
        }
    }
}

/// A scan reads ahead, and the file may end within what it reads too much of.
#[test]
fn of_a_table_that_is_cut_while_it_is_open_a_scan_shows_what_is_left() {
    for options in small_options() {
        let directory = directory();
        let written = small_table(&directory, options);
        let mut entries = between(&written.model, Bound::Unbounded, Bound::Unbounded);
        let table = Arc::new(
            Table::open(&directory, identity(NUMBER), &small_cache(), &Arc::default()).unwrap(),
        );
        let file = directory.open(&file_name(NUMBER)).unwrap().unwrap();
        let bytes = bytes_of(&directory, &file_name(NUMBER));
        for len in (0..bytes.len()).rev().step_by(37) {
            file.set_len(len as u64).unwrap();
            for forward in [true, false] {
                // Key by key, from the same end.
                let is_there = |entry: &Entry| {
                    table.get(&entry.key, entry.version.sequence).is_ok_and(|found| found.is_some())
                };
                let left = entries.iter().take_while(|entry| is_there(entry)).count();
                let range = table.range(Bound::Unbounded, Bound::Unbounded);
                let found: Vec<_> = if forward {
                    range.map_while(Result::ok).collect()
                } else {
                    range.rev().map_while(Result::ok).collect()
                };
                assert!(found.len() >= left, "{} of {left} at {len}, {forward}", found.len());
                assert_eq!(found, entries[..found.len()], "at {len}, {forward}");
                entries.reverse();
            }
        }
    }
}

#[test]
fn files_of_others_and_none_are_refused() {
    let directory = directory();
    small_table(&directory, small_options()[0]);
    let open =
        |identity| Table::open(&directory, identity, &small_cache(), &Arc::default()).unwrap_err();
    let other_pool = open(Identity { uuid: [1; 16], number: NUMBER });
    assert!(matches!(other_pool, Error::Unsupported { .. }), "{other_pool}");
    assert!(matches!(open(identity(4)), Error::Missing { .. }));
    directory.rename(&file_name(NUMBER), &file_name(4)).unwrap();
    let other_number = open(identity(4));
    assert!(matches!(other_number, Error::Unsupported { .. }), "{other_number}");
    // A blob file in place of a table.
    let mut writer = BlobWriter::create(&directory, identity(5), BlobOptions::default()).unwrap();
    writer.add(b"key", b"value").unwrap();
    writer.finish().unwrap();
    assert!(matches!(open(identity(5)), Error::Damaged { offset: 0, .. }));
}

/// An intact block from another place of the same file, or from another file, is refused.
#[test]
fn a_table_of_parts_of_another_is_refused() {
    let [one, other] = [directory(), directory()];
    let written = small_table(&one, small_options()[0]);
    let mut writer = TableWriter::create(&other, identity(4), small_options()[0]).unwrap();
    for item in &written.model {
        writer.add(&entry(item)).unwrap();
    }
    for range in &written.ranges {
        writer.add_range_tombstone(range.clone()).unwrap();
    }
    writer.finish().unwrap();
    let mut bytes = bytes_of(&one, &file_name(NUMBER));
    let foreign = bytes_of(&other, &file_name(4));
    assert_eq!(bytes.len(), foreign.len());
    let end = bytes.len() - 32;
    bytes[40..end].copy_from_slice(&foreign[40..end]);
    let mixed = directory_with(&file_name(NUMBER), &bytes);
    assert!(!verify(&mixed, &written, "blocks of another table"));
    assert!(check_table(&mixed, identity(NUMBER)).is_err());
}

/// Values of a blob file, with their locations.
fn small_blob_file(directory: &Arc<dyn Directory>, compression: Compression) -> Vec<Blob> {
    let options = BlobOptions { compression };
    let mut writer = BlobWriter::create(directory, identity(NUMBER), options).unwrap();
    let mut blobs = Vec::new();
    for number in 0..4_u8 {
        let (key, value) = (vec![b'k', number], vec![number; 40 * usize::from(number)]);
        let pointer = writer.add(&key, &value).unwrap();
        blobs.push(Blob { key: Slice::from(key), pointer, value: Slice::from(value) });
    }
    writer.finish().unwrap();
    blobs
}

fn verify_blobs(directory: &Arc<dyn Directory>, blobs: &[Blob], at: &str) -> bool {
    let verify = |error: Error| assert!(error.is_damage(), "{at}: {error}");
    let mut is_whole = check_blob_file(directory, identity(NUMBER)).map_err(verify).is_ok();
    match BlobStream::open(directory, identity(NUMBER)) {
        Ok(stream) => {
            for (count, blob) in stream.enumerate() {
                match blob {
                    Ok(blob) => assert_eq!(Some(&blob), blobs.get(count), "{at}"),
                    Err(error) => verify(error),
                }
            }
        }
        Err(error) => verify(error),
    }
    let file = match BlobFile::open(directory, identity(NUMBER), &small_cache(), &Arc::default()) {
        Ok(file) => file,
        Err(error) => {
            verify(error);
            return false;
        }
    };
    for blob in blobs {
        match file.get(&blob.pointer, &blob.key) {
            Ok(value) => assert_eq!(value, blob.value, "{at}"),
            Err(error) => {
                verify(error);
                is_whole = false;
            }
        }
    }
    is_whole
}

#[test]
fn a_flipped_bit_of_a_blob_file_never_shows_another_value() {
    for compression in compressions() {
        let directory = directory();
        let blobs = small_blob_file(&directory, compression);
        assert!(verify_blobs(&directory, &blobs, "whole"));
        let file = directory.open(&file_name(NUMBER)).unwrap().unwrap();
        let bytes = bytes_of(&directory, &file_name(NUMBER));
        for bit in 0..bytes.len() * 8 {
            let byte = bytes[bit / 8];
            file.write_at(&[byte ^ 1 << (bit % 8)], bit as u64 / 8).unwrap();
            assert!(!verify_blobs(&directory, &blobs, &format!("bit {bit}")), "bit {bit}");
            file.write_at(&[byte], bit as u64 / 8).unwrap();
        }
    }
}

#[test]
fn a_blob_file_that_is_cut_or_longer_is_refused() {
    let directory = directory();
    small_blob_file(&directory, Compression::None);
    let bytes = bytes_of(&directory, &file_name(NUMBER));
    let longer = [&bytes[..], &[0]].concat();
    for other in (0..bytes.len()).map(|length| &bytes[..length]).chain([&longer[..]]) {
        let directory = directory_with(&file_name(NUMBER), other);
        let open = BlobFile::open(&directory, identity(NUMBER), &small_cache(), &Arc::default())
            .unwrap_err();
        let stream = BlobStream::open(&directory, identity(NUMBER)).unwrap_err();
        assert!(open.is_damage() && stream.is_damage(), "{} bytes: {open}", other.len());
    }
}
