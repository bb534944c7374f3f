//! The block cache: bounded, whatever is read through it, and shared by concurrent readers.

use std::ops::Bound;
use std::sync::Arc;
use std::thread;

use crate::common::*;
use adamant_lsm::{Cache, CacheOptions, EntryKind, Table, TableOptions, TableWriter, file_name};

#[test]
fn threads_that_read_through_a_cache_too_small_find_what_is_there() {
    let mut random = fastrand::Rng::with_seed(51);
    let directory = directory();
    let model = model(&mut random, 3000);
    let options = TableOptions { block_bytes: 300, ..TableOptions::default() };
    let numbers = [1, 2, 3];
    for number in numbers {
        write(&directory, number, options, &model).unwrap();
    }
    // One descriptor for three tables, and a tenth of their blocks.
    let cache =
        Arc::new(Cache::new(CacheOptions { block_bytes: 30_000, pinned_bytes: 0, file_count: 1 }));
    let open = |number| {
        Arc::new(Table::open(&directory, identity(number), &cache, &Arc::default()).unwrap())
    };
    let tables = numbers.map(open);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (tables, model, cache) = (&tables, &model, &cache);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..4000 {
                    let table = &tables[random.usize(0..3)];
                    let (key, sequence_max) = (key(&mut random), random.u64(0..1100));
                    let found = table.get(&key, sequence_max).unwrap();
                    assert_eq!(found, newest(model, &key, sequence_max), "seed {seed}");
                }
                assert!(cache.file_count() <= 1);
            });
        }
    });
    assert!(cache.block_bytes() <= 40_000, "{} bytes", cache.block_bytes());
}

/// Indexes and filters stay when blocks of data fill the cache, as many as there is room for, and
/// go with their tables.
#[test]
fn what_is_pinned_is_read_once_and_given_back() {
    let mut random = fastrand::Rng::with_seed(52);
    let model = model(&mut random, 3000);
    for (pinned_bytes, pins_all) in [(0, false), (500, false), (1 << 20, true)] {
        let directory = directory();
        let options = TableOptions { block_bytes: 300, ..TableOptions::default() };
        write(&directory, 1, options, &model).unwrap();
        let cache = CacheOptions { block_bytes: 2_000, pinned_bytes, file_count: 1 };
        let cache = Arc::new(Cache::new(cache));
        let table = Table::open(&directory, identity(1), &cache, &Arc::default()).unwrap();
        let opened_bytes = table.memory_bytes();
        for (key, sequence) in model.keys() {
            assert_eq!(table.get(key, sequence.0).unwrap(), newest(&model, key, sequence.0));
        }
        let pinned = cache.pinned_bytes();
        assert_eq!(pinned > 0, pinned_bytes > 0);
        // Pinning begins below the limit, so it may go beyond it by one part.
        assert!(pinned < pinned_bytes + 10_000, "{pinned} of {pinned_bytes}");
        assert_eq!(table.memory_bytes() as u64, opened_bytes as u64 + pinned);

        // What is in memory needs no file.
        let file = directory.open(&file_name(1)).unwrap().unwrap();
        file.write_at(&vec![0; file.len().unwrap() as usize], 0).unwrap();
        let absent = |key: &Vec<u8>| table.get(&[key, &b"?"[..]].concat(), u64::MAX).is_ok();
        let known = model.keys().filter(|(key, _)| absent(key)).count();
        // Filters let some absent keys pass, up to one in ten.
        assert_eq!(known > model.len() * 9 / 10, pins_all, "{known} of {}", model.len());
        drop(table);
        assert_eq!(cache.pinned_bytes(), 0);
    }
}

#[test]
fn a_scan_of_more_than_fits_stays_within_bounds() {
    let directory = directory();
    let mut writer = TableWriter::create(&directory, identity(1), TableOptions::default()).unwrap();
    for number in 0..40_000_u32 {
        let key = format!("key {number:08}");
        writer.add_parts(key.as_bytes(), 1, EntryKind::Value, &[0; 100]).unwrap();
    }
    let meta = writer.finish().unwrap();
    let cache =
        Arc::new(Cache::new(CacheOptions { block_bytes: 1 << 20, pinned_bytes: 0, file_count: 4 }));
    let table = Arc::new(Table::open(&directory, identity(1), &cache, &Arc::default()).unwrap());
    let mut values = table.range(Bound::Unbounded, Bound::Unbounded);
    let kept: Vec<_> =
        values.by_ref().take(100).map(|entry| entry.unwrap().version.value).collect();
    assert_eq!(values.count() as u64, meta.entries - 100);
    assert!(meta.data_bytes_stored > 4 << 20);
    let bytes = cache.block_bytes();
    assert!(bytes < 100_000, "a long scan leaves the cache to others: {bytes} bytes");
    for start in (0..40_000).step_by(100) {
        let key = format!("key {start:08}");
        let some = table.range(Bound::Included(key.as_bytes()), Bound::Unbounded).take(50);
        assert_eq!(some.map(Result::unwrap).count(), 50);
    }
    let bytes = cache.block_bytes();
    assert!(bytes > 1 << 19 && bytes <= 1 << 20, "short ones use it: {bytes} bytes");
    // Values outlive their eviction.
    assert!(kept.iter().all(|value| *value == [0; 100]));
    assert!(table.memory_bytes() < 64 << 10, "{} bytes", table.memory_bytes());
}
