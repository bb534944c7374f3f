//! Range tombstones of a table: kept beside the entries, found by key, and part of the bounds.

use crate::common::*;
use adamant_lsm::{EntryKind, Error, RangeTombstone, TableWriter, check_table};
use adamant_slice::Slice;

fn range(start: &[u8], end: &[u8], sequence: u64) -> RangeTombstone {
    RangeTombstone { start: Slice::new(start), end: Slice::new(end), sequence }
}

#[test]
fn the_newest_that_is_visible_covers_a_key() {
    let mut random = fastrand::Rng::with_seed(5);
    for (number, options) in options().into_iter().enumerate() {
        let (directory, number) = (directory(), number as u64);
        let mut writer = TableWriter::create(&directory, identity(number), options).unwrap();
        let model = model(&mut random, 100);
        for item in &model {
            writer.add(&entry(item)).unwrap();
        }
        // Enough for several blocks of them.
        let mut ranges = Vec::new();
        for _ in 0..3000 {
            let (start, end) = (key(&mut random), key(&mut random));
            let added = range(&start, &end, random.u64(0..1000));
            if start < end {
                ranges.push(added.clone());
                writer.add_range_tombstone(added).unwrap();
            } else {
                assert!(matches!(writer.add_range_tombstone(added), Err(Error::RangeEmpty)));
            }
        }
        let meta = writer.finish().unwrap();
        let table = open(&directory, number).unwrap();
        assert_eq!(*table.meta(), meta);
        assert_eq!(check_table(&directory, identity(number)).unwrap(), meta);
        for _ in 0..500 {
            let (key, sequence_max) = (key(&mut random), random.u64(0..1100));
            let over = ranges.iter().filter(|range| range.contains(&key));
            let newest = over.map(|range| range.sequence).filter(|&s| s <= sequence_max).max();
            let found = table.range_over(&key, sequence_max);
            assert_eq!(found.map(|range| range.sequence), newest);
            assert_eq!(table.get(&key, 2000).unwrap(), newest_of(&model, &key));
        }
        let starts = ranges.iter().map(|range| &range.start);
        let first = entry(model.iter().next().unwrap());
        assert_eq!(Some(&meta.key_min), starts.min().min(Some(&first.key)));
        assert_eq!(meta.range_tombstones, table.range_tombstones().len() as u64);
        for kept in table.range_tombstones() {
            assert!(ranges.contains(kept));
        }
    }
}

fn newest_of(model: &Model, key: &[u8]) -> Option<adamant_lsm::Version> {
    newest(model, key, u64::MAX)
}

#[test]
fn a_table_may_hold_range_tombstones_only() {
    let directory = directory();
    let mut writer = TableWriter::create(&directory, identity(1), Default::default()).unwrap();
    writer.add_range_tombstone(range(b"b", b"d", 9)).unwrap();
    // Of the same commit and start; the longer one stays.
    writer.add_range_tombstone(range(b"b", b"m", 9)).unwrap();
    writer.add_range_tombstone(range(b"b", b"c", 9)).unwrap();
    let meta = writer.finish().unwrap();
    assert_eq!((meta.entries, meta.range_tombstones), (0, 1));
    assert_eq!((&*meta.key_min, &*meta.key_max), (&b"b"[..], &b"m"[..]));
    assert!(meta.key_max_is_exclusive && !meta.covers_key(b"m") && meta.covers_key(b"l"));
    assert_eq!((meta.sequence_min, meta.sequence_max), (9, 9));
    let table = open(&directory, 1).unwrap();
    assert_eq!(table.get(b"c", 10).unwrap(), None);
    let over = |at| table.range_over(b"l", at).map(|range| range.sequence);
    assert_eq!((over(9), over(8)), (Some(9), None));
    assert!(table.range(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded).next().is_none());
}

#[test]
fn an_entry_at_the_end_of_a_range_makes_the_bound_inclusive() {
    let directory = directory();
    let mut writer = TableWriter::create(&directory, identity(1), Default::default()).unwrap();
    writer.add_range_tombstone(range(b"b", b"d", 9)).unwrap();
    writer.add_parts(b"c", 3, EntryKind::Value, b"").unwrap();
    writer.add_parts(b"d", 3, EntryKind::Tombstone, b"").unwrap();
    let meta = writer.finish().unwrap();
    assert_eq!((&*meta.key_min, &*meta.key_max), (&b"b"[..], &b"d"[..]));
    assert!(!meta.key_max_is_exclusive);
    assert_eq!((meta.sequence_min, meta.sequence_max), (3, 9));
}
