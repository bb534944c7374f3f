//! The manifest: the list of a tree's files, on the heap.
//!
//! Purpose: a record for each table and each blob file, and a block that lists the records: see
//! `docs/format/lsm.md`. It changes in heap transactions, so the list changes atomically with
//! everything else in them.
//! Invariants: the record of a table never changes; of a blob file's record only the counters of
//! stale values do. All are verified by their checksums when they are read, and before they are
//! changed.
//! Thread safety: as of the heap: a view reads, a transaction writes.

use adamant_heap::access::{Read, Write};
use adamant_heap::ptr::Ptr;
use adamant_slice::Slice;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::Result;
use crate::head;
use crate::key::SEQUENCE_MAX;
use crate::layout::{
    BLOB_SUM_AT, BlobRecord, BlobUse, HEAD_MANIFEST_AT, MANIFEST_SUM_AT, Manifest, STALE_BYTES_AT,
    STALE_VALUES_AT, Slot, TABLE_SUM_AT, TableRecord,
};
use crate::sum::{damaged, sum_of, update_summed};
use crate::table::{BlobReference, TableMeta};

/// The properties of a blob file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlobInfo {
    pub(crate) file: u64,
    pub(crate) file_bytes: u64,
    pub(crate) values: u64,
    /// Stored bytes of the values.
    pub(crate) stored_bytes: u64,
    pub(crate) stale_values: u64,
    pub(crate) stale_bytes: u64,
}

/// The content of a manifest: level and record of each table, records of blob files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) sequence_max: u64,
    pub(crate) tables: Vec<(u32, u64)>,
    pub(crate) blobs: Vec<u64>,
}

/// Maximum bytes or entries of a file: larger figures are damage, and smaller ones can be added
/// without overflow.
const FIGURE_MAX: u64 = 1 << 44;

/// Whether these are possible figures of a file.
fn are_figures<const COUNT: usize>(figures: [zerocopy::little_endian::U64; COUNT]) -> bool {
    figures.iter().all(|figure| figure.get() <= FIGURE_MAX)
}

/// Decodes an object off the front of bytes.
fn take<'b, T: FromBytes + Immutable + KnownLayout + Unaligned>(
    bytes: &mut &'b [u8],
    block: u64,
) -> Result<&'b T> {
    let short = |_| damaged(block, "is shorter than a manifest or record says");
    let (object, rest) = T::ref_from_prefix(bytes).map_err(short)?;
    *bytes = rest;
    Ok(object)
}

/// Writes bytes as a block of their own, with their checksum.
fn put<W: Write>(heap: &mut W, mut bytes: Vec<u8>, sum_at: usize) -> Result<u64> {
    let block = heap.reserve(bytes.len() as u64)?;
    let sum = sum_of(block, &bytes, sum_at);
    bytes[sum_at..sum_at + size_of::<u64>()].copy_from_slice(&sum.to_le_bytes());
    heap.write(block, 0, bytes.len())?.copy_from_slice(&bytes);
    Ok(block)
}

/// Verifies the checksum of the part of a block that was read, all but `rest`.
fn prove(block: u64, all: &[u8], rest: &[u8], (sum, sum_at): (u64, usize)) -> Result<()> {
    let read = all.len() - rest.len();
    if sum_of(block, &all[..read], sum_at) != sum {
        return Err(damaged(block, "is a manifest or record that has been changed"));
    }
    Ok(())
}

/// Reads the manifest of a head; empty for 0.
pub(crate) fn read<R: Read>(heap: &R, block: u64) -> Result<Listed> {
    let mut listed = Listed::default();
    if block == 0 {
        return Ok(listed);
    }
    let all = heap.block(block)?;
    let mut bytes = all;
    let manifest: &Manifest = take(&mut bytes, block)?;
    listed.sequence_max = manifest.sequence_max.get();
    if listed.sequence_max > SEQUENCE_MAX {
        return Err(damaged(block, "is a manifest with a sequence number that no commit can have"));
    }
    for _ in 0..manifest.tables.get() {
        let slot: &Slot = take(&mut bytes, block)?;
        listed.tables.push((slot.level.get(), slot.record.get()));
    }
    for _ in 0..manifest.blobs.get() {
        listed.blobs.push(take::<zerocopy::little_endian::U64>(&mut bytes, block)?.get());
    }
    prove(block, all, bytes, (manifest.sum.get(), MANIFEST_SUM_AT))?;
    Ok(listed)
}

/// Gives a head a new manifest, and returns its block. Frees the old one, but not its records.
pub(crate) fn write<W: Write>(heap: &mut W, head: u64, old: u64, listed: &Listed) -> Result<u64> {
    let manifest = Manifest {
        sequence_max: listed.sequence_max.into(),
        tables: (listed.tables.len() as u32).into(),
        blobs: (listed.blobs.len() as u32).into(),
        sum: 0.into(),
    };
    let mut bytes = manifest.as_bytes().to_vec();
    for &(level, record) in &listed.tables {
        let slot = Slot { record: record.into(), level: level.into(), reserved: 0.into() };
        bytes.extend_from_slice(slot.as_bytes());
    }
    for record in &listed.blobs {
        bytes.extend_from_slice(&record.to_le_bytes());
    }
    let block = put(heap, bytes, MANIFEST_SUM_AT)?;
    head::set(heap, head, HEAD_MANIFEST_AT, block)?;
    if old != 0 {
        heap.free(old)?;
    }
    Ok(block)
}

/// Writes the record of a table. Returns its heap offset.
pub(crate) fn put_table<W: Write>(heap: &mut W, info: &TableMeta) -> Result<u64> {
    let record = TableRecord {
        file: info.number.into(),
        file_bytes: info.file_bytes.into(),
        entries: info.entries.into(),
        tombstones: info.tombstones.into(),
        range_tombstones: info.range_tombstones.into(),
        sequence_min: info.sequence_min.into(),
        sequence_max: info.sequence_max.into(),
        data_bytes_plain: info.data_bytes_plain.into(),
        data_bytes_stored: info.data_bytes_stored.into(),
        key_min_bytes: (info.key_min.len() as u16).into(),
        key_max_bytes: (info.key_max.len() as u16).into(),
        blob_uses: (info.blob_references.len() as u32).into(),
        key_max_is_exclusive: u64::from(info.key_max_is_exclusive).into(),
        sum: 0.into(),
    };
    let mut bytes = record.as_bytes().to_vec();
    bytes.extend_from_slice(&info.key_min);
    bytes.extend_from_slice(&info.key_max);
    for reference in &info.blob_references {
        let used = BlobUse {
            file: reference.file.into(),
            entries: reference.entries.into(),
            stored_bytes: reference.stored_bytes.into(),
        };
        bytes.extend_from_slice(used.as_bytes());
    }
    put(heap, bytes, TABLE_SUM_AT)
}

/// Reads the record of a table.
pub(crate) fn read_table<R: Read>(heap: &R, block: u64) -> Result<TableMeta> {
    let all = heap.block(block)?;
    let mut bytes = all;
    let record: &TableRecord = take(&mut bytes, block)?;
    let mut key = |len: u16| match bytes.split_at_checked(len.into()) {
        Some((key, rest)) => {
            bytes = rest;
            Ok(Slice::new(key))
        }
        None => Err(damaged(block, "is shorter than the keys that it says it has")),
    };
    let (key_min, key_max) = (key(record.key_min_bytes.get())?, key(record.key_max_bytes.get())?);
    if key_min > key_max {
        return Err(damaged(block, "is the record of a table whose keys are in no order"));
    }
    let mut are_whole = are_figures([
        record.file_bytes,
        record.entries,
        record.tombstones,
        record.range_tombstones,
        record.data_bytes_plain,
        record.data_bytes_stored,
    ]);
    are_whole &= record.tombstones.get() <= record.entries.get();
    are_whole &= record.sequence_min.get() <= record.sequence_max.get();
    are_whole &= record.sequence_max.get() <= SEQUENCE_MAX;
    let mut blob_references = Vec::new();
    for _ in 0..record.blob_uses.get() {
        let used: &BlobUse = take(&mut bytes, block)?;
        are_whole &= are_figures([used.entries, used.stored_bytes]);
        blob_references.push(BlobReference {
            file: used.file.get(),
            entries: used.entries.get(),
            stored_bytes: used.stored_bytes.get(),
        });
    }
    prove(block, all, bytes, (record.sum.get(), TABLE_SUM_AT))?;
    if !are_whole {
        return Err(damaged(block, "is the record of a table with figures that none can have"));
    }
    Ok(TableMeta {
        number: record.file.get(),
        file_bytes: record.file_bytes.get(),
        entries: record.entries.get(),
        tombstones: record.tombstones.get(),
        range_tombstones: record.range_tombstones.get(),
        key_min,
        key_max,
        key_max_is_exclusive: record.key_max_is_exclusive.get() != 0,
        sequence_min: record.sequence_min.get(),
        sequence_max: record.sequence_max.get(),
        data_bytes_plain: record.data_bytes_plain.get(),
        data_bytes_stored: record.data_bytes_stored.get(),
        blob_references,
    })
}

/// Writes the record of a blob file. Returns its heap offset.
pub(crate) fn put_blob<W: Write>(heap: &mut W, info: &BlobInfo) -> Result<u64> {
    let record = BlobRecord {
        file: info.file.into(),
        file_bytes: info.file_bytes.into(),
        values: info.values.into(),
        stored_bytes: info.stored_bytes.into(),
        stale_values: info.stale_values.into(),
        stale_bytes: info.stale_bytes.into(),
        sum: 0.into(),
    };
    put(heap, record.as_bytes().to_vec(), BLOB_SUM_AT)
}

/// Reads the record of a blob file.
pub(crate) fn read_blob<R: Read>(heap: &R, block: u64) -> Result<BlobInfo> {
    let record = heap.read(Ptr::<BlobRecord>::new(block))?;
    prove(block, record.as_bytes(), &[], (record.sum.get(), BLOB_SUM_AT))?;
    let are_whole = are_figures([record.file_bytes, record.values, record.stored_bytes])
        && record.stale_values.get() <= record.values.get()
        && record.stale_bytes.get() <= record.stored_bytes.get();
    if !are_whole {
        return Err(damaged(block, "is the record of a blob file with figures that none can have"));
    }
    Ok(BlobInfo {
        file: record.file.get(),
        file_bytes: record.file_bytes.get(),
        values: record.values.get(),
        stored_bytes: record.stored_bytes.get(),
        stale_values: record.stale_values.get(),
        stale_bytes: record.stale_bytes.get(),
    })
}

/// Sets the counters of stale values of a blob file.
pub(crate) fn set_stale<W: Write>(heap: &mut W, block: u64, info: &BlobInfo) -> Result<()> {
    read_blob(heap, block)?;
    let words = [(STALE_VALUES_AT, info.stale_values), (STALE_BYTES_AT, info.stale_bytes)];
    update_summed(heap, block, (size_of::<BlobRecord>(), BLOB_SUM_AT), &words)
}
