//! Blob files: blob pointers round-trip, the stream returns values in order, and no other pointer
//! or key resolves.

use crate::common::*;
use adamant_lsm::{
    Blob, BlobFile, BlobMeta, BlobOptions, BlobPointer, BlobStream, BlobWriter, Cache,
    CacheOptions, Compression, Error, Identity, file_name,
};
use adamant_medium::storage::Directory;
use adamant_slice::Slice;
use std::sync::Arc;

fn written(
    directory: &Arc<dyn Directory>,
    compression: Compression,
    pairs: &[(Vec<u8>, Vec<u8>)],
) -> (BlobMeta, Vec<BlobPointer>) {
    let options = BlobOptions { compression };
    let mut writer = BlobWriter::create(directory, identity(5), options).unwrap();
    let pointers = pairs.iter().map(|(key, value)| writer.add(key, value).unwrap()).collect();
    (writer.finish().unwrap(), pointers)
}

fn pairs(random: &mut fastrand::Rng, count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pair = |index: usize| {
        // Some larger than a read or write chunk, and some larger than what is read together with
        // its key.
        let bytes = match index % 40 {
            7 => 300_000,
            19 => 1_200_000,
            _ => random.usize(0..3000),
        };
        let value = if random.bool() {
            vec![random.u8(..); bytes]
        } else {
            std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
        };
        (key(random), value)
    };
    (0..count).map(&mut pair).collect()
}

#[test]
fn values_come_back() {
    let mut random = fastrand::Rng::with_seed(21);
    for compression in compressions() {
        let (directory, pairs) = (directory(), pairs(&mut random, 200));
        let (meta, pointers) = written(&directory, compression, &pairs);
        assert_eq!((meta.number, meta.values), (5, 200));
        assert_eq!(meta.file_bytes, bytes_of(&directory, &file_name(5)).len() as u64);
        let stored: u64 = pointers.iter().map(|pointer| u64::from(pointer.stored_bytes)).sum();
        assert_eq!(meta.stored_bytes, stored);
        let plain: usize = pairs.iter().map(|(_, value)| value.len()).sum();
        assert_eq!(stored < plain as u64, compression != Compression::None);
        let file = BlobFile::open(&directory, identity(5), &cache(), &Arc::default()).unwrap();
        for _ in 0..2 {
            for (pointer, (key, value)) in pointers.iter().zip(&pairs) {
                assert_eq!(file.get(pointer, key).unwrap(), *value);
                assert_eq!(file.get_uncached(pointer, key).unwrap(), *value);
            }
        }
        let expected = pointers.iter().zip(&pairs).map(|(&pointer, (key, value))| Blob {
            key: Slice::new(key),
            pointer,
            value: Slice::new(value),
        });
        let stream = BlobStream::open(&directory, identity(5)).unwrap();
        assert!(stream.map(Result::unwrap).eq(expected));
    }
}

#[test]
fn a_value_that_was_read_is_shared() {
    let directory = directory();
    let (_, pointers) = written(&directory, Compression::None, &[(b"a".into(), vec![1; 70_000])]);
    let file = BlobFile::open(&directory, identity(5), &cache(), &Arc::default()).unwrap();
    let [first, again] = [0, 1].map(|_| file.get(&pointers[0], b"a").unwrap());
    assert_eq!(first.as_ptr(), again.as_ptr());
    // A cache without capacity is no error.
    let cache =
        Arc::new(Cache::new(CacheOptions { block_bytes: 0, pinned_bytes: 0, file_count: 0 }));
    let file = BlobFile::open(&directory, identity(5), &cache, &Arc::default()).unwrap();
    assert_eq!(file.get(&pointers[0], b"a").unwrap(), first);
    assert_eq!((cache.block_bytes(), cache.file_count()), (0, 1));
}

#[test]
fn a_pointer_that_leads_elsewhere_is_an_error() {
    let directory = directory();
    let pairs = [(b"a".to_vec(), vec![1; 50]), (b"b".to_vec(), vec![2; 50])];
    let (meta, pointers) = written(&directory, Compression::None, &pairs);
    let file = BlobFile::open(&directory, identity(5), &cache(), &Arc::default()).unwrap();
    let refused = |pointer: BlobPointer, key: &[u8]| {
        let error = file.get_uncached(&pointer, key).unwrap_err();
        assert!(error.is_damage(), "{error}");
    };
    let first = pointers[0];
    refused(first, b"b");
    refused(first, b"aa");
    refused(BlobPointer { file: 6, ..first }, b"a");
    for stored_bytes in [0, 49, 51, u32::MAX] {
        refused(BlobPointer { stored_bytes, ..first }, b"a");
    }
    for offset in (0..meta.file_bytes + 10).chain([u64::MAX, u64::MAX - 60]) {
        if pointers.iter().all(|pointer| pointer.offset != offset) {
            refused(BlobPointer { offset, ..first }, b"a");
        }
    }
}

#[test]
fn an_empty_file_and_keys_that_are_none() {
    let directory = directory();
    let mut writer = BlobWriter::create(&directory, identity(5), BlobOptions::default()).unwrap();
    assert!(matches!(writer.add(&[1; 65_536], b"value"), Err(Error::KeyTooLong { .. })));
    assert_eq!(writer.finish().unwrap().values, 0);
    assert_eq!(BlobStream::open(&directory, identity(5)).unwrap().count(), 0);
    let other = Identity { uuid: [3; 16], number: 5 };
    let error = BlobFile::open(&directory, other, &cache(), &Arc::default()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}
