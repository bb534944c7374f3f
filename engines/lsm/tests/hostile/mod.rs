//! Hostile tables: changed bytes with corrected checksums.
//!
//! Whatever their content, reading ends, with entries or with an error; it neither panics nor takes
//! more memory than the file justifies. Used by this crate's tests and by the fuzz targets.

use std::ops::Bound;
use std::sync::Arc;

use adamant_lsm::{
    Cache, CacheOptions, Compression, EntryKind, Identity, RangeTombstone, Table, TableOptions,
    TableStream, TableWriter, check_table, file_name,
};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use adamant_slice::Slice;
use adamant_wire::checksum::crc32c;

const IDENTITY: Identity = Identity { uuid: [7; 16], number: 1 };
const HEADER_BYTES: usize = 40;
const BLOCK_HEADER_BYTES: usize = 14;
const FOOTER_BYTES: usize = 32;
/// Entries of the table that is changed.
const ENTRY_COUNT: u8 = 60;

fn key(number: u8) -> Vec<u8> {
    [b"a prefix".as_slice(), &[number / 16, number]].concat()
}

/// Every second shape is compressed, half of these by zstd if this build has it.
fn compression(shape: u8) -> Compression {
    match shape >> 2 & 1 {
        0 => Compression::None,
        _ if shape & 0x10 != 0 && Compression::zstd().is_built() => Compression::zstd(),
        _ => Compression::Lz4,
    }
}

/// A table of many small blocks; `shape` selects the options.
fn write(directory: &Arc<dyn Directory>, shape: u8) {
    let options = TableOptions {
        block_bytes: 150,
        restart_interval: if shape & 1 == 0 { 4 } else { 1 },
        hash_index: shape & 2 != 0,
        compression: compression(shape),
        filter_bits_per_key: if shape & 8 == 0 { 10 } else { 0 },
        partition_bytes: 90,
    };
    let mut writer = TableWriter::create(directory, IDENTITY, options).unwrap();
    for number in 0..ENTRY_COUNT {
        let (kind, value) = match number {
            _ if number % 5 == 0 => (EntryKind::Tombstone, Vec::new()),
            // An operand of one commit.
            _ if number % 7 == 3 => (EntryKind::Merge, vec![0; usize::from(number % 40) + 1]),
            _ => (EntryKind::Value, vec![number; usize::from(number % 40)]),
        };
        writer.add_parts(&key(number), u64::from(number) * 300, kind, &value).unwrap();
    }
    for number in 0..4 {
        let (start, end) = (Slice::from(key(number)), Slice::from(key(number * 9 + 1)));
        let range = RangeTombstone { start, end, sequence: number.into() };
        writer.add_range_tombstone(range).unwrap();
    }
    writer.finish().unwrap();
}

/// The range of each block of a table.
fn blocks(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let mut start = HEADER_BYTES;
    while start < bytes.len() - FOOTER_BYTES {
        let stored = bytes[start + 4..start + 8].try_into().map(u32::from_le_bytes).unwrap();
        let end = start + BLOCK_HEADER_BYTES + stored as usize;
        blocks.push((start, end));
        start = end;
    }
    blocks
}

/// Corrects all checksums.
fn seal(bytes: &mut [u8], blocks: &[(usize, usize)]) {
    let seed = crc32c(crc32c(0, &IDENTITY.uuid), &IDENTITY.number.to_le_bytes());
    for &(start, end) in blocks {
        let seed = crc32c(seed, &(start as u64).to_le_bytes());
        let checksum = crc32c(seed, &bytes[start + 4..end]);
        bytes[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    }
    let end = bytes.len();
    let checksum = crc32c(seed, &bytes[end - FOOTER_BYTES..end - 4]);
    bytes[end - 4..].copy_from_slice(&checksum.to_le_bytes());
}

/// Reads everything in every way. Returns how many ways gave no error.
fn read(directory: &Arc<dyn Directory>) -> u32 {
    let mut whole = 0;
    whole += u32::from(check_table(directory, IDENTITY).is_ok());
    if let Ok(mut stream) = TableStream::open(directory, IDENTITY) {
        whole += u32::from(stream.all(|entry| entry.is_ok()));
    }
    let cache = Arc::new(Cache::new(CacheOptions {
        block_bytes: 8 << 10,
        pinned_bytes: 1 << 10,
        file_count: 1,
    }));
    let Ok(table) = Table::open(directory, IDENTITY, &cache, &Arc::default()) else { return whole };
    let table = Arc::new(table);
    for number in 0..ENTRY_COUNT + 4 {
        let key = key(number);
        whole += u32::from(table.get(&key, u64::MAX).is_ok());
        whole += u32::from(table.get(&key, u64::from(number) * 300).is_ok());
        whole += u32::from(table.get(&key[..9], u64::MAX).is_ok());
        let _ = table.range_over(&key, 2);
    }
    let (low, high) = (key(5), key(50));
    for (lower, upper) in [
        (Bound::Unbounded, Bound::Unbounded),
        (Bound::Included(&low[..]), Bound::Excluded(&high[..])),
    ] {
        whole += u32::from(table.range(lower, upper).all(|entry| entry.is_ok()));
        whole += u32::from(table.range(lower, upper).rev().all(|entry| entry.is_ok()));
        let mut range = table.range(lower, upper);
        while let (Some(Ok(_)), Some(Ok(_))) = (range.next(), range.next_back()) {}
    }
    whole
}

/// Changes a table as the program says, four bytes a change: block, offset (two bytes), new byte.
/// Returns how much of it could be read without an error.
pub(crate) fn run(program: &[u8]) -> u32 {
    let Some((&shape, changes)) = program.split_first() else { return 0 };
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    write(&directory, shape);
    let file = directory.open(&file_name(IDENTITY.number)).unwrap().unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    let blocks = blocks(&bytes);
    let (changes, _) = changes.as_chunks::<4>();
    for &[block, low, high, byte] in changes {
        // The footer counts as a block, and all bytes of a block but its checksum can change.
        let footer = (bytes.len() - FOOTER_BYTES - 4, bytes.len() - 4);
        let index = usize::from(block) % (blocks.len() + 1);
        let (start, end) = blocks.get(index).copied().unwrap_or(footer);
        let place = usize::from(low) | usize::from(high) << 8;
        bytes[start + 4 + place % (end - start - 4)] = byte;
    }
    seal(&mut bytes, &blocks);
    file.write_at(&bytes, 0).unwrap();
    read(&directory)
}
