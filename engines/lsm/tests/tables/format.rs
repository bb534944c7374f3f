//! Golden bytes of the examples in docs/format: existing files stay readable, or get another
//! version.

use crate::common::*;
use adamant_lsm::{
    BlobOptions, BlobPointer, BlobWriter, EntryKind, RangeTombstone, TableOptions, TableWriter,
    file_name,
};
use adamant_slice::Slice;

/// The table of docs/format/table.md.
const TABLE: &[&str] = &[
    // Byte 0: header.
    "4144414d544142010100000074686520706f6f6c277320757569642e07000000000000003dc1d36d",
    // Byte 40: data block.
    "9c2472b42c0000002c000000010000056170706c65140372656405000d02057269636f7410066f72",
    "616e676500000000ffffff01000000050002",
    // Byte 98: its filter.
    "b7580a64410000004100000003000000000000000000000000000010000100200000000000100001",
    "000000000000000000000400000000200000100000000000004000000000100001010000000006",
    // Byte 177: its part of the index.
    "4c2be1e916000000160000000200000761707269636f740002283a000001000000000002",
    // Byte 213: range tombstones.
    "735d2bf50f0000000f0000000400000162180163000001000000000002",
    // Byte 242: top of the index.
    "335385a719000000190000000500000761707269636f740005b10124624f000001000000000002",
    // Byte 281: meta block.
    "47c72a1d630000006300000006000300000000000000010000000000000001000000000000000300",
    "00000000000006000000000000002c000000000000003a00000000000000f2000000000000002700",
    "000001000000d500000000000000050000000100000000000000016170706c6563",
    // Byte 394: footer.
    "4144414d54454e44aa01000000000000190100000000000071000000444c6a94",
];

/// The blob file of docs/format/blob.md.
const BLOB_FILE: &[&str] = &[
    // Byte 0: header.
    "4144414d424c42010100000074686520706f6f6c277320757569642e0900000000000000eec3db91",
    // Byte 40: record.
    "7fdaec280d0000000d0000000500006170706c6561206c617267652076616c7565",
    // Byte 73: footer.
    "4144414d42454e446d0000000000000001000000000000000d00000000000000c83fe517",
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_table_has_the_bytes_of_its_page() {
    let directory = directory();
    let options = TableOptions { filter_bits_per_key: 10, hash_index: true, ..Default::default() };
    let mut writer = TableWriter::create(&directory, identity(7), options).unwrap();
    writer.add_parts(b"apple", 5, EntryKind::Value, b"red").unwrap();
    writer.add_parts(b"apple", 3, EntryKind::Tombstone, b"").unwrap();
    writer.add_parts(b"apricot", 4, EntryKind::Value, b"orange").unwrap();
    let (start, end) = (Slice::new(b"b"), Slice::new(b"c"));
    writer.add_range_tombstone(RangeTombstone { start, end, sequence: 6 }).unwrap();
    writer.finish().unwrap();
    assert_eq!(hex(&bytes_of(&directory, &file_name(7))), TABLE.concat());
}

#[test]
fn a_blob_file_has_the_bytes_of_its_page() {
    let directory = directory();
    let mut writer = BlobWriter::create(&directory, identity(9), BlobOptions::default()).unwrap();
    let pointer = writer.add(b"apple", b"a large value").unwrap();
    writer.finish().unwrap();
    assert_eq!(pointer, BlobPointer { file: 9, offset: 40, stored_bytes: 13 });
    assert_eq!(hex(&pointer.to_bytes()), "090000000000000028000000000000000d000000");
    assert_eq!(hex(&bytes_of(&directory, &file_name(9))), BLOB_FILE.concat());
}
