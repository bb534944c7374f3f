//! Memtable buffers: the recoverable content of a memtable, on the heap.
//!
//! Purpose: appends what commits write, and reads it back when the tree is opened: see
//! `docs/format/lsm.md`. Commits make it durable like everything on the heap, so the tree has no
//! journal of its own.
//! Invariants: bytes before the end of a chunk never change; bytes beyond it belong to no record.
//! Thread safety: as of the heap: a view reads, a transaction writes.

use adamant_heap::access::{Read, Write};
use adamant_heap::ptr::Ptr;
use adamant_wire::checksum::crc32c;
use zerocopy::{FromZeros, IntoBytes};

use super::index_entry::ValuePlace;
use super::record::{END_BYTES, Record, RecordHead, RecordPlace, Said};
use crate::error::{Error, Result};
use crate::key::EntryKind;
use crate::layout::{
    BUFFER_CHUNKS, BUFFER_CHUNKS_AT, BUFFER_END_AT, BUFFER_MAGIC, BUFFER_OLDER_AT, BUFFER_SUM_AT,
    Buffer, END_BYTES_SHIFT, END_CHUNKS_SHIFT,
};
use crate::sum::{damaged, sum_of};

/// Bytes of the first chunk: a tree that is hardly used takes no more. Each of the next chunks
/// doubles the total until chunks reach [`CHUNK_BYTES_MIN`].
const CHUNK_BYTES_FIRST: u64 = 256;
/// Minimum bytes of a chunk in a buffer that is not small: such chunks are held back.
const CHUNK_BYTES_MIN: u64 = 64 << 10;
/// Maximum bytes of a chunk, except one that a single entry needs.
const CHUNK_BYTES_MAX: u64 = 256 << 20;

/// The part of a chunk that is kept for removals, and its bounds: on a device without room for
/// another chunk about a thousand removals still find room. See also [`add_chunk`].
const KEPT_PART: u64 = 16;
const KEPT_BYTES_MIN: u64 = 4 << 10;
const KEPT_BYTES_MAX: u64 = 64 << 10;

/// Room that a flush takes beyond the bytes of a buffer: for what a table adds to entries, and for
/// pages of the pool that a new buffer and the manifest may need.
const FLUSH_PART: u64 = 8;
const FLUSH_BYTES: u64 = 768 << 10;

/// Maximum room that a flush of `bytes` bytes takes.
pub(super) fn flush_bytes(bytes: u64) -> u64 {
    bytes + bytes / FLUSH_PART + FLUSH_BYTES
}

/// Bytes at the end of a chunk that are kept for removals: a quarter of a small chunk.
fn kept_bytes(capacity: u64) -> u64 {
    (capacity / KEPT_PART).clamp(KEPT_BYTES_MIN, KEPT_BYTES_MAX).min(capacity / 4)
}

/// Creates an empty buffer. Returns its heap offset.
pub(crate) fn create<W: Write>(heap: &mut W, older: u64) -> Result<u64> {
    let block = heap.reserve(size_of::<Buffer>() as u64)?;
    // A chunk whose entries are in tables before the log is full is never written to the pool.
    let chunk = heap.reserve_held(CHUNK_BYTES_FIRST)?;
    let mut buffer = Buffer::new_zeroed();
    buffer.magic = BUFFER_MAGIC;
    buffer.older = older.into();
    buffer.end = end_word(block, 1, 0).into();
    buffer.chunks[0] = chunk.into();
    buffer.sum = sum(block, &buffer).into();
    *heap.write_as(Ptr::new(block))? = buffer;
    Ok(block)
}

/// The checksum of a buffer: of all but its end, which has its own, and changes with every record.
fn sum(block: u64, buffer: &Buffer) -> u64 {
    let mut unchanging = *buffer;
    unchanging.end = 0.into();
    sum_of(block, unchanging.as_bytes(), BUFFER_SUM_AT)
}

/// The buffer at a heap offset, verified except for its records.
pub(crate) fn open<R: Read>(heap: &R, block: u64) -> Result<&Buffer> {
    let buffer = heap.read(Ptr::<Buffer>::new(block))?;
    end_of(block, buffer)?;
    if buffer.sum.get() != sum(block, buffer) {
        return Err(damaged(block, "is a buffer and has been changed"));
    }
    Ok(buffer)
}

/// Encodes the number of chunks of a buffer, and the bytes used of the last one.
fn end_word(block: u64, chunks: usize, used: u64) -> u64 {
    let word = (chunks as u64) << END_CHUNKS_SHIFT | used << END_BYTES_SHIFT;
    let sum = crc32c(crc32c(0, &block.to_le_bytes()), &word.to_le_bytes());
    // The checksum lies beside the bytes that change anyway: the log stores the range of differing
    // bytes.
    word | u64::from(sum as u16)
}

/// Decodes the number of chunks of a buffer, and the bytes used of the last one.
fn end_of(block: u64, buffer: &Buffer) -> Result<(usize, u64)> {
    let end = buffer.end.get();
    let chunks = (end >> END_CHUNKS_SHIFT) as usize;
    let used = (end & ((1 << END_CHUNKS_SHIFT) - 1)) >> END_BYTES_SHIFT;
    let is_sound = end == end_word(block, chunks, used);
    let is_end = is_sound && (1..=BUFFER_CHUNKS).contains(&chunks);
    if buffer.magic != BUFFER_MAGIC || !is_end {
        return Err(damaged(block, "is no buffer of a log-structured merge tree"));
    }
    Ok((chunks, used))
}

/// Removes the link to the older buffer.
pub(crate) fn forget_older<W: Write>(heap: &mut W, block: u64) -> Result<()> {
    change(heap, block, (BUFFER_OLDER_AT, 0))
}

/// Changes a word of a buffer, and its checksum with it.
fn change<W: Write>(heap: &mut W, block: u64, (at, word): (usize, u64)) -> Result<()> {
    open(heap, block)?;
    heap.update_u64(block, at, word)?;
    let sum = sum(block, heap.read(Ptr::<Buffer>::new(block))?);
    Ok(heap.update_u64(block, BUFFER_SUM_AT, sum)?)
}

/// Appends records to a buffer. Its end, which is a word with a checksum, is written once, behind
/// the last of them.
#[derive(Debug)]
pub(crate) struct Appender {
    /// Heap offset of the buffer.
    block: u64,
    chunks: usize,
    /// Heap offset of the last chunk, its capacity, and the bytes used of it.
    chunk: u64,
    capacity: usize,
    used: usize,
}

impl Appender {
    /// Begins to append to the buffer at a heap offset.
    pub(crate) fn open<R: Read>(heap: &R, block: u64) -> Result<Self> {
        let buffer = heap.read(Ptr::<Buffer>::new(block))?;
        let (chunks, used) = end_of(block, buffer)?;
        let chunk = buffer.chunks[chunks - 1].get();
        let capacity = heap.block(chunk)?.len();
        Ok(Self { block, chunks, chunk, capacity, used: used as usize })
    }

    /// Appends a record. Returns the location of its value, and the chunk that was added for it, if
    /// any.
    pub(crate) fn append<W: Write>(
        &mut self,
        heap: &mut W,
        said: Said,
        sequence: u64,
        (key, value): (&[u8], &[u8]),
    ) -> Result<(ValuePlace, Option<u64>)> {
        let mut head = RecordHead::new(said, sequence, key.len(), value.len());
        let head_len = head.len();
        let len = head_len + key.len() + value.len();
        let is_removal = !matches!(said, Said::Entry(EntryKind::Value | EntryKind::Merge));
        let kept = if is_removal { 0 } else { kept_bytes(self.capacity as u64) as usize };
        // Value offsets have 32 bits: only the first record of a chunk may end beyond that.
        let end_max = self.capacity.saturating_sub(kept).min(u32::MAX as usize);
        let is_room = self.used.checked_add(len).is_some_and(|end| end <= end_max);
        let added =
            if is_room { None } else { Some(self.next_chunk(heap, len as u64, is_removal)?) };
        let index = self.chunks - 1;
        // Beyond the bytes in use: no rollback needs to restore what is there.
        let bytes = heap.write_unused(self.chunk, self.used, len)?;
        let (to_head, rest) = bytes.split_at_mut(head_len);
        let (to_key, to_value) = rest.split_at_mut(key.len());
        to_head.copy_from_slice(head.finish(place(self.block, index, self.used), key, value));
        to_key.copy_from_slice(key);
        to_value.copy_from_slice(value);
        let at = (self.used + head_len + key.len()) as u32;
        self.used += len;
        Ok((ValuePlace { chunk: index as u32, at, len: value.len() as u32 }, added))
    }

    /// Ends the last chunk and adds another one.
    fn next_chunk<W: Write>(
        &mut self,
        heap: &mut W,
        bytes_min: u64,
        is_removal: bool,
    ) -> Result<u64> {
        if self.capacity.saturating_sub(self.used) >= END_BYTES {
            let end = place(self.block, self.chunks - 1, self.used).end();
            heap.write_unused(self.chunk, self.used, END_BYTES)?.copy_from_slice(&end);
        }
        let chunk = add_chunk(heap, self.block, self.chunks, bytes_min, is_removal)?;
        let capacity = heap.block(chunk)?.len();
        *self = Self { block: self.block, chunks: self.chunks + 1, chunk, capacity, used: 0 };
        Ok(chunk)
    }

    /// Writes where the buffer ends now. Without this the transaction, or the savepoint, must be
    /// undone.
    pub(crate) fn finish<W: Write>(self, heap: &mut W) -> Result<()> {
        let end = end_word(self.block, self.chunks, self.used as u64);
        Ok(heap.update_u64(self.block, BUFFER_END_AT, end)?)
    }
}

/// The location of a record; no chunk is so large that a record begins beyond 4 GiB.
pub(super) fn place(buffer: u64, chunk: usize, at: usize) -> RecordPlace {
    RecordPlace { buffer, chunk: chunk as u32, at: at as u32 }
}

/// Adds a chunk. The content of a buffer must find room in a table later, even on a device that is
/// full by then. A flush can use the room that the log gives back, so the log must be as large as
/// the buffer before more is written to the buffer. Removals are exempt.
fn add_chunk<W: Write>(
    heap: &mut W,
    block: u64,
    chunks: usize,
    bytes_min: u64,
    is_removal: bool,
) -> Result<u64> {
    if chunks == BUFFER_CHUNKS {
        return Err(Error::TransactionTooLarge);
    }
    let mut held = 0;
    for chunk in &open(heap, block)?.chunks[..chunks] {
        held += heap.block(chunk.get())?.len() as u64;
    }
    // Also for the part of it that is kept for removals.
    let bytes_min = bytes_min + 2 * kept_bytes(bytes_min);
    let bytes = held.min(CHUNK_BYTES_MIN).max(held / 4).min(CHUNK_BYTES_MAX).max(bytes_min);
    if !is_removal {
        heap.keep_log(flush_bytes(held + bytes))?;
    }
    // Not so many small chunks that a large one finds no slot later.
    let least = bytes_min.max(CHUNK_BYTES_MIN);
    let may_be_small = is_removal && bytes > least && chunks < BUFFER_CHUNKS / 2;
    let chunk = match heap.reserve_held(bytes) {
        Err(error) if may_be_small && error.is_out_of_space() => heap.reserve_held(least)?,
        chunk => chunk?,
    };
    change(heap, block, (BUFFER_CHUNKS_AT + 8 * chunks, chunk))?;
    Ok(chunk)
}

/// Frees a buffer.
pub(crate) fn destroy<W: Write>(heap: &mut W, block: u64) -> Result<()> {
    let chunks = chunks(heap, block)?;
    for chunk in chunks {
        heap.free(chunk)?;
    }
    Ok(heap.free(block)?)
}

/// Heap offsets of the chunks.
pub(crate) fn chunks<R: Read>(heap: &R, block: u64) -> Result<Vec<u64>> {
    Ok(chunks_and_end(heap, block)?.0)
}

/// Heap offsets of the chunks, and the bytes used of the last one.
pub(super) fn chunks_and_end<R: Read>(heap: &R, block: u64) -> Result<(Vec<u64>, u64)> {
    let buffer = open(heap, block)?;
    let (chunks, used) = end_of(block, buffer)?;
    Ok((buffer.chunks[..chunks].iter().map(|chunk| chunk.get()).collect(), used))
}

/// The position of a walk through the records of a buffer, which may grow meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BufferWalk {
    chunk: usize,
    /// Offset in that chunk.
    at: usize,
    /// Records so far.
    pub(crate) records: u64,
}

/// Reads all records back, in the order in which they were appended, and verifies each.
pub(crate) fn read<R: Read>(
    heap: &R,
    block: u64,
    mut each: impl FnMut(Record<'_>) -> Result<()>,
) -> Result<()> {
    let each = |record: Record<'_>| each(record).map(|()| true);
    read_on(heap, block, &mut BufferWalk::default(), each).map(drop)
}

/// Continues a walk: reads records back and verifies each, as long as `each` returns true. Returns
/// whether it reached the last one.
pub(crate) fn read_on<R: Read>(
    heap: &R,
    block: u64,
    walk: &mut BufferWalk,
    mut each: impl FnMut(Record<'_>) -> Result<bool>,
) -> Result<bool> {
    let buffer = open(heap, block)?;
    let (chunks, used) = end_of(block, buffer)?;
    while let Some(chunk) = buffer.chunks[..chunks].get(walk.chunk) {
        let bytes = heap.block(chunk.get())?;
        let is_last = walk.chunk + 1 == chunks;
        let end = if is_last { used as usize } else { bytes.len() };
        let is_short = || damaged(chunk.get(), "is a chunk of a buffer that uses more of it");
        let mut rest = bytes.get(walk.at..end).ok_or_else(is_short)?;
        // The bytes after the last record of a chunk may be too few for an end record.
        while !rest.is_empty() && (is_last || rest.len() >= END_BYTES) {
            let place = place(block, walk.chunk, walk.at);
            if !is_last && rest.starts_with(&place.end()) {
                break;
            }
            let offset = chunk.get() + walk.at as u64;
            let wrong =
                || damaged(offset, "is no record of a buffer, or one that has been changed");
            let goes_on = each(place.take(&mut rest).ok_or_else(wrong)?)?;
            (walk.at, walk.records) = (end - rest.len(), walk.records + 1);
            if !goes_on {
                return Ok(false);
            }
        }
        if is_last {
            break;
        }
        (walk.chunk, walk.at) = (walk.chunk + 1, 0);
    }
    Ok(true)
}

/// The value of a record whose other fields are known, if its checksum is correct. `chunk` is the
/// block that holds it.
pub(crate) fn prove<'h, R: Read>(
    heap: &'h R,
    (block, chunk): (u64, u64),
    (said, sequence, key): (Said, u64, &[u8]),
    value: &ValuePlace,
) -> Result<&'h [u8]> {
    let (at, len) = (value.at as usize, value.len as usize);
    let head = RecordHead::new(said, sequence, key.len(), len);
    let bytes = heap.block(chunk)?;
    let proved = || {
        let start = at.checked_sub(head.len() + key.len())?;
        let sum = bytes.get(start..)?.first_chunk()?;
        let found = bytes.get(at..)?.get(..len)?;
        let expected = head.sum(place(block, value.chunk as usize, start), key, found);
        let is_sound = u32::from_le_bytes(*sum) == expected;
        is_sound.then_some(found)
    };
    let what = "is in a record of a buffer that has been changed";
    proved().ok_or_else(|| damaged(chunk + at as u64, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_made_for_a_record_has_room_for_it_beside_what_is_kept() {
        for len in (1..70_000).chain((70_000..3_000_000).step_by(997)) {
            let capacity = len + 2 * kept_bytes(len);
            assert!(capacity - kept_bytes(capacity) >= len, "{len} of {capacity} bytes");
        }
    }
}
