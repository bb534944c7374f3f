//! Tables against a sorted map: every way of reading returns what was written, with any options.

use std::ops::Bound;

use crate::common::*;
use adamant_lsm::{
    Entry, EntryKind, TableOptions, TableStream, TableWriter, check_table, file_name,
};

#[test]
fn searches_find_what_the_model_has() {
    let mut random = fastrand::Rng::with_seed(1);
    for (number, options) in options().into_iter().enumerate() {
        let model = model(&mut random, 3000);
        let directory = directory();
        let meta = write(&directory, number as u64, options, &model).unwrap();
        let table = open(&directory, number as u64).unwrap();
        assert_eq!(*table.meta(), meta);
        for _ in 0..10_000 {
            let key = key(&mut random);
            let sequence_max = if random.bool() { u64::MAX } else { random.u64(0..1100) };
            let expected = newest(&model, &key, sequence_max);
            let found = table.get(&key, sequence_max).unwrap();
            assert_eq!(found, expected, "{key:?} up to {sequence_max}, {options:?}");
        }
        for item in &model {
            let entry = entry(item);
            let found = table.get(&entry.key, entry.version.sequence).unwrap();
            assert_eq!(found.as_ref(), Some(&entry.version));
        }
    }
}

#[test]
fn ranges_give_what_the_model_has_from_both_ends() {
    let mut random = fastrand::Rng::with_seed(2);
    for (number, options) in options().into_iter().enumerate() {
        let model = model(&mut random, 800);
        let directory = directory();
        write(&directory, number as u64, options, &model).unwrap();
        let table = open(&directory, number as u64).unwrap();
        for _ in 0..200 {
            let (lower, upper) = (key(&mut random), key(&mut random));
            let (lower, upper) = (bound(&mut random, &lower), bound(&mut random, &upper));
            let expected = between(&model, lower, upper);
            let forward: Vec<Entry> = table.range(lower, upper).map(Result::unwrap).collect();
            assert_eq!(forward, expected, "{lower:?} {upper:?} {options:?}");
            let (mut front, mut back) = (Vec::new(), Vec::new());
            let mut range = table.range(lower, upper);
            // Until one end finds nothing, and then once more.
            loop {
                let is_front = random.bool();
                let step = if is_front { range.next() } else { range.next_back() };
                let Some(entry) = step else { break };
                if is_front { &mut front } else { &mut back }.push(entry.unwrap());
            }
            assert!(range.next().is_none() && range.next_back().is_none());
            front.extend(back.into_iter().rev());
            assert_eq!(front, expected, "{lower:?} {upper:?} {options:?}");
        }
    }
}

#[test]
fn a_stream_gives_all_entries() {
    let mut random = fastrand::Rng::with_seed(4);
    for (number, options) in options().into_iter().enumerate() {
        // More than one read-ahead chunk.
        let mut model = model(&mut random, 4000);
        for (_, value) in model.values_mut().filter(|(kind, _)| *kind == EntryKind::Value) {
            value.extend_from_slice(&[random.u8(..); 150]);
        }
        let directory = directory();
        let meta = write(&directory, number as u64, options, &model).unwrap();
        let stream = TableStream::open(&directory, identity(number as u64)).unwrap();
        let entries: Vec<Entry> = stream.map(Result::unwrap).collect();
        assert_eq!(entries, between(&model, Bound::Unbounded, Bound::Unbounded));
        assert_eq!(check_table(&directory, identity(number as u64)).unwrap(), meta);
    }
}

#[test]
fn a_table_says_what_is_in_it() {
    let mut random = fastrand::Rng::with_seed(3);
    let model = model(&mut random, 2000);
    let directory = directory();
    let meta = write(&directory, 7, options()[1], &model).unwrap();
    let entries: Vec<Entry> = model.iter().map(entry).collect();
    assert_eq!(meta.number, 7);
    assert_eq!(meta.file_bytes, bytes_of(&directory, &file_name(7)).len() as u64);
    assert_eq!(meta.entries, entries.len() as u64);
    let tombstones = entries.iter().filter(|entry| entry.version.kind == EntryKind::Tombstone);
    assert_eq!(meta.tombstones, tombstones.count() as u64);
    assert_eq!(meta.key_min, entries[0].key);
    assert_eq!(meta.key_max, entries.last().unwrap().key);
    let sequences = || entries.iter().map(|entry| entry.version.sequence);
    assert_eq!(Some(meta.sequence_min), sequences().min());
    assert_eq!(Some(meta.sequence_max), sequences().max());
    assert!(meta.data_bytes_stored < meta.file_bytes);
    assert!(!meta.key_max_is_exclusive && meta.blob_references.is_empty());
}

/// A value of the maximum size has a block of its own; keys of the maximum size give an index whose
/// parts name one block each.
#[test]
fn the_largest_keys_and_values_fit() {
    let directory = directory();
    let options = options()[2];
    let mut writer = TableWriter::create(&directory, identity(1), options).unwrap();
    let large = vec![b'v'; adamant_lsm::VALUE_BYTES_MAX];
    writer.add_parts(b"a", 1, EntryKind::Value, b"small").unwrap();
    writer.add_parts(b"b", 1, EntryKind::Value, &large).unwrap();
    let keys: Vec<Vec<u8>> = (b'c'..b'z').map(|letter| vec![letter; 65_535]).collect();
    for key in &keys {
        writer.add_parts(key, 1, EntryKind::Value, b"of a long key").unwrap();
    }
    writer.finish().unwrap();
    let table = open(&directory, 1).unwrap();
    assert_eq!(table.get(b"b", 9).unwrap().unwrap().value, large);
    for key in &keys {
        assert_eq!(table.get(key, 9).unwrap().unwrap().value, b"of a long key");
        assert_eq!(table.get(&key[1..], 9).unwrap(), None);
    }
    let all = table.range(Bound::Unbounded, Bound::Unbounded).map(Result::unwrap);
    assert_eq!(all.rev().count(), keys.len() + 2);
}

/// Index blocks share prefixes of separators: among keys of which each is a prefix of the next,
/// with many versions, up to the longest.
#[test]
fn keys_that_are_prefixes_of_each_other_are_found_up_to_the_longest() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut model = Model::new();
    for bytes in [0, 1, 2, 3, 126, 127, 128, 129, 300, 16_383, 16_384, 65_533, 65_534, 65_535] {
        for last in [b'a', 0, 255, b'b'] {
            let mut key = vec![b'a'; bytes];
            if let Some(byte) = key.last_mut() {
                *byte = last;
            }
            for _ in 0..[1, 1, 1, 6][random.usize(..4)] {
                let sequence = std::cmp::Reverse(random.u64(..100));
                model.insert((key.clone(), sequence), (EntryKind::Value, vec![last; 30]));
            }
        }
    }
    let keys: Vec<&[u8]> = model.keys().map(|(key, _)| &key[..]).collect();
    for (compression, partition_bytes) in
        compressions().into_iter().flat_map(|one| [64, 1 << 20].map(|bytes| (one, bytes)))
    {
        let directory = directory();
        let options =
            TableOptions { block_bytes: 64, partition_bytes, compression, ..options()[0] };
        write(&directory, 1, options, &model).unwrap();
        let table = open(&directory, 1).unwrap();
        for key in &keys {
            for near in [key.to_vec(), [key, &[0][..]].concat(), key[..key.len() / 2].to_vec()] {
                for sequence in [u64::MAX, random.u64(..100), 0] {
                    let found = table.get(&near, sequence).unwrap();
                    assert_eq!(found, newest(&model, &near, sequence), "{} bytes", near.len());
                }
            }
        }
        for _ in 0..60 {
            let [lower, upper] = [0, 1].map(|_| keys[random.usize(..keys.len())]);
            let (lower, upper) = (bound(&mut random, lower), bound(&mut random, upper));
            let expected = between(&model, lower, upper);
            let range = || table.range(lower, upper).map(Result::unwrap);
            assert!(range().eq(expected.iter().cloned()));
            let range = table.range(lower, upper).map(Result::unwrap);
            assert!(range.rev().eq(expected.into_iter().rev()));
        }
        assert_eq!(check_table(&directory, identity(1)).unwrap(), *table.meta());
    }
}

#[test]
fn values_share_the_memory_of_their_block() {
    let directory = directory();
    let mut writer = TableWriter::create(&directory, identity(1), Default::default()).unwrap();
    for number in 0..50_u8 {
        writer.add_parts(&[0, 0, 0, number], 1, EntryKind::Value, &[number; 60]).unwrap();
    }
    writer.finish().unwrap();
    let table = open(&directory, 1).unwrap();
    let [first, again] = [0, 1].map(|_| table.get(&[0, 0, 0, 7], 1).unwrap().unwrap().value);
    assert_eq!(first.as_ptr(), again.as_ptr());
    let next = table.get(&[0, 0, 0, 8], 1).unwrap().unwrap().value;
    assert!(next.as_ptr() > first.as_ptr() && next.as_ptr().addr() - first.as_ptr().addr() < 4096);
    drop(table);
    assert_eq!(first, [7; 60]);
}
