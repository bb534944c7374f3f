//! Buffers: what a memtable holds, on the heap.
//!
//! Purpose: appends what commits write, and reads it back when the tree is opened: see
//! `docs/format/lsm.md`. Commits make it durable as they do everything on the heap, so the tree has no
//! journal of its own.
//! Invariants: bytes before the end of a chunk never change; beyond it they are nobody's.
//! Thread safety: as of the heap: a view reads, a transaction writes.

use adamant_heap::access::{Read, Write};
use adamant_heap::ptr::Ptr;
use adamant_wire::varint;
use zerocopy::FromZeros;

use crate::error::{Error, Result};
use crate::key::{EntryKind, KEY_BYTES_MAX, SEQUENCE_MAX};
use crate::layout::{
    BUFFER_CHUNKS, BUFFER_CHUNKS_AT, BUFFER_END_AT, BUFFER_MAGIC, Buffer, END_BYTES_BITS,
};

/// Bytes of the first chunk: a tree that is hardly used takes no more.
const CHUNK_BYTES_MIN: u64 = 64 << 10;
/// Bytes of a chunk at most, but for one that an entry needs for itself.
const CHUNK_BYTES_MAX: u64 = 256 << 20;
/// What is in place of a kind where a chunk ends before its last byte.
const NO_MORE: u8 = 0;
/// What a record of a range begins with; kinds of entries are 1 higher than their numbers.
const RANGE: u8 = 9;
/// Bytes of a record before key and value at most.
const RECORD_HEAD_BYTES_MAX: usize = 1 + 3 + 10 + 10;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// An entry of that kind.
    Entry(EntryKind),
    /// That a range is empty: the key is its start, the value its end.
    Range,
}

/// Where the value of a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValuePlace {
    pub(crate) chunk: u32,
    pub(crate) at: u32,
    pub(crate) len: u32,
}

/// A record that was read back.
pub(crate) struct Record<'b> {
    pub(crate) said: Said,
    pub(crate) sequence: u64,
    pub(crate) key: &'b [u8],
    pub(crate) value: ValuePlace,
}

/// Makes an empty buffer. Returns its heap offset.
pub(crate) fn create<W: Write>(heap: &mut W, older: u64) -> Result<u64> {
    let block = heap.reserve(size_of::<Buffer>() as u64)?;
    // What is in tables before the log is full is never written to the pool.
    let chunk = heap.reserve_held(CHUNK_BYTES_MIN)?;
    let mut buffer = Buffer::new_zeroed();
    buffer.magic = BUFFER_MAGIC;
    buffer.older = older.into();
    buffer.end = (1 << END_BYTES_BITS).into();
    buffer.chunks[0] = chunk.into();
    *heap.write_as(Ptr::new(block))? = buffer;
    Ok(block)
}

/// The buffer at a heap offset, if one is there.
pub(crate) fn open<R: Read>(heap: &R, block: u64) -> Result<&Buffer> {
    let buffer = heap.read(Ptr::<Buffer>::new(block))?;
    let (chunks, _) = end_of(buffer);
    if buffer.magic != BUFFER_MAGIC || chunks == 0 || chunks > BUFFER_CHUNKS {
        return Err(Error::Heap(adamant_heap::Error::InvalidPointer {
            offset: block,
            what: "is no buffer of a log-structured merge tree",
        }));
    }
    Ok(buffer)
}

/// Chunks of a buffer, and bytes used of the last one.
fn end_of(buffer: &Buffer) -> (usize, u64) {
    let end = buffer.end.get();
    ((end >> END_BYTES_BITS) as usize, end & ((1 << END_BYTES_BITS) - 1))
}

/// Appends a record. Returns where its value lies, and a chunk that was added for it.
pub(crate) fn append<W: Write>(
    heap: &mut W,
    block: u64,
    said: Said,
    sequence: u64,
    (key, value): (&[u8], &[u8]),
) -> Result<(ValuePlace, Option<u64>)> {
    let mut head = [0; RECORD_HEAD_BYTES_MAX];
    head[0] = match said {
        Said::Entry(kind) => 1 + kind as u8,
        Said::Range => RANGE,
    };
    let mut at = varint::put_in(&mut head, 1, key.len() as u64);
    at = varint::put_in(&mut head, at, value.len() as u64);
    let head_len = varint::put_in(&mut head, at, sequence);
    let len = head_len + key.len() + value.len();

    let (chunks, used, chunk) = {
        let buffer = open(heap, block)?;
        let (chunks, used) = end_of(buffer);
        (chunks, used as usize, buffer.chunks[chunks - 1].get())
    };
    let capacity = heap.block(chunk)?.len();
    // Where a value lies is kept in 32 bits: only the first of a chunk may end behind that.
    let end_max = capacity.min(u32::MAX as usize);
    let is_room = used.checked_add(len).is_some_and(|end| end <= end_max);
    let (index, chunk, start, added) = if is_room {
        (chunks - 1, chunk, used, None)
    } else {
        if used < capacity {
            heap.write_unused(chunk, used, 1)?.fill(NO_MORE);
        }
        let added = add_chunk(heap, block, chunks, len as u64)?;
        (chunks, added, 0, Some(added))
    };
    // Behind what is in use: nobody has to have back what is there.
    let bytes = heap.write_unused(chunk, start, len)?;
    let (to_head, rest) = bytes.split_at_mut(head_len);
    let (to_key, to_value) = rest.split_at_mut(key.len());
    to_head.copy_from_slice(&head[..head_len]);
    to_key.copy_from_slice(key);
    to_value.copy_from_slice(value);
    let end = (index as u64 + 1) << END_BYTES_BITS | (start + len) as u64;
    heap.update_u64(block, BUFFER_END_AT, end)?;
    let value_at = (start + head_len + key.len()) as u32;
    let place = ValuePlace { chunk: index as u32, at: value_at, len: value.len() as u32 };
    Ok((place, added))
}

fn add_chunk<W: Write>(heap: &mut W, block: u64, chunks: usize, bytes_min: u64) -> Result<u64> {
    if chunks == BUFFER_CHUNKS {
        return Err(Error::TransactionTooLarge);
    }
    let mut held = 0;
    for chunk in &open(heap, block)?.chunks[..chunks] {
        held += heap.block(chunk.get())?.len() as u64;
    }
    let bytes = (held / 4).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX).max(bytes_min);
    let chunk = heap.reserve_held(bytes)?;
    heap.update_u64(block, BUFFER_CHUNKS_AT + 8 * chunks, chunk)?;
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
    let buffer = open(heap, block)?;
    let (chunks, _) = end_of(buffer);
    Ok(buffer.chunks[..chunks].iter().map(|chunk| chunk.get()).collect())
}

/// How many blocks a buffer has, and how many records are in it. Reads all of it.
pub(crate) fn blocks<R: Read>(heap: &R, block: u64) -> Result<(u64, u64)> {
    let mut records = 0;
    read(heap, block, |_| {
        records += 1;
        Ok(())
    })?;
    Ok((1 + chunks(heap, block)?.len() as u64, records))
}

/// Reads all records back, in the order in which they were appended.
pub(crate) fn read<R: Read>(
    heap: &R,
    block: u64,
    mut each: impl FnMut(Record<'_>) -> Result<()>,
) -> Result<()> {
    let buffer = open(heap, block)?;
    let (chunks, used) = end_of(buffer);
    for (index, chunk) in buffer.chunks[..chunks].iter().enumerate() {
        let bytes = heap.block(chunk.get())?;
        let is_last = index + 1 == chunks;
        let wrong = |at: usize| {
            let offset = chunk.get() + at as u64;
            let what = "is no record of a buffer";
            Error::Heap(adamant_heap::Error::InvalidPointer { offset, what })
        };
        let end = if is_last { used as usize } else { bytes.len() };
        let mut rest = bytes.get(..end).ok_or_else(|| wrong(bytes.len()))?;
        while rest.first().is_some_and(|kind| *kind != NO_MORE || is_last) {
            let at = end - rest.len();
            each(take(&mut rest, index, end).ok_or_else(|| wrong(at))?)?;
        }
    }
    Ok(())
}

/// Takes a record off the front of a chunk's bytes, which end at `end`.
fn take<'b>(rest: &mut &'b [u8], chunk: usize, end: usize) -> Option<Record<'b>> {
    let (kind, behind) = rest.split_first()?;
    *rest = behind;
    let said = match *kind {
        RANGE => Said::Range,
        // Values go to blob files when they are written to tables, not before.
        kind => match EntryKind::from_number(u64::from(kind).checked_sub(1)?)? {
            EntryKind::Blob => return None,
            kind => Said::Entry(kind),
        },
    };
    let key_len = usize::try_from(varint::take(rest)?).ok()?;
    let value_len = u32::try_from(varint::take(rest)?).ok()?;
    let sequence = varint::take(rest)?;
    let (key, behind) = rest.split_at_checked(key_len)?;
    let at = u32::try_from(end - behind.len()).ok()?;
    let (end_of_range, behind) = behind.split_at_checked(value_len as usize)?;
    *rest = behind;
    let is_key = (1..=KEY_BYTES_MAX).contains(&key_len) && (1..=SEQUENCE_MAX).contains(&sequence);
    let is_range = key < end_of_range && end_of_range.len() <= KEY_BYTES_MAX;
    let is_key = is_key && (is_range || said != Said::Range);
    let value = ValuePlace { chunk: chunk as u32, at, len: value_len };
    is_key.then_some(Record { said, sequence, key, value })
}
