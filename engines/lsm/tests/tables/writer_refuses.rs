//! Refusals of the table writer: it returns an error, and continues with valid entries.

use crate::common::*;
use adamant_lsm::{EntryKind, Error, SEQUENCE_MAX, TableWriter, VALUE_BYTES_MAX, check_table};

#[test]
fn what_is_no_entry_or_not_behind_the_last_one() {
    let directory = directory();
    let mut writer = TableWriter::create(&directory, identity(1), Default::default()).unwrap();
    let value = EntryKind::Value;
    assert!(writer.is_empty());
    writer.add_parts(b"b", 5, value, b"").unwrap();
    assert!(!writer.is_empty());
    for (key, sequence) in [(&b"a"[..], 9), (b"b", 5), (b"b", 6)] {
        let refused = writer.add_parts(key, sequence, value, b"");
        assert!(matches!(refused, Err(Error::NotAscending { position: 1, .. })), "{refused:?}");
    }
    let key = [b'c'; 65_536];
    assert!(matches!(writer.add_parts(&key, 5, value, b""), Err(Error::KeyTooLong { .. })));
    let refused = writer.add_parts(b"c", SEQUENCE_MAX + 1, value, b"");
    assert!(matches!(refused, Err(Error::SequenceTooLarge { .. })));
    let refused = writer.add_parts(b"c", 5, value, &vec![0; VALUE_BYTES_MAX + 1]);
    assert!(matches!(refused, Err(Error::ValueTooLong { .. })));
    let refused = writer.add_parts(b"c", 5, EntryKind::Tombstone, b"x");
    assert!(matches!(refused, Err(Error::ValueTooLong { bytes: 1, bytes_max: 0 })));
    let refused = writer.add_parts(b"c", 5, EntryKind::Blob, &[0; 19]);
    assert!(matches!(refused, Err(Error::NotPointer { bytes: 19 })));
    writer.add_parts(b"b", 4, EntryKind::Blob, &[1; 20]).unwrap();
    writer.add_parts(b"c", SEQUENCE_MAX, value, b"last").unwrap();
    let meta = writer.finish().unwrap();
    assert_eq!((meta.entries, meta.sequence_max), (3, SEQUENCE_MAX));
    assert_eq!(meta.blob_references.len(), 1);
    assert_eq!(check_table(&directory, identity(1)).unwrap(), meta);
}

#[test]
fn a_table_of_nothing() {
    let directory = directory();
    let writer = TableWriter::create(&directory, identity(1), Default::default()).unwrap();
    assert!(matches!(writer.finish(), Err(Error::TableEmpty)));
    assert!(directory.list().unwrap().is_empty());
}
