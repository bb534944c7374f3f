//! Entries and the slots that refer to them.
//!
//! Purpose: one pair of a tree, in a block of its own, and the 8-byte word by which a node refers
//! to it. Moving an entry between nodes is moving that word. See `docs/format/bplus.md`.
//! Invariants: in a published entry only the bytes of an inline value change, to others of the same
//! length, and only while no slice of its block is borrowed (S2); an external value block is owned
//! by exactly one entry.
//!
//! ```text
//! entry block   varint key_len | varint value_len << 1 | external | key | value
//!                                                                       | u64 value block
//! slot          bits 48..64 upper 16 bits of the key's hash, bits 0..48 heap offset of the entry
//! ```

use adamant_heap::access::{Read, Write};
use adamant_wire::varint;

use crate::error::{Error, Result};

/// Maximum bytes of a key. The empty key is valid, and below all others.
pub const KEY_BYTES_MAX: usize = 65_535;
/// Maximum bytes of a value.
pub const VALUE_BYTES_MAX: u64 = u32::MAX as u64;
/// Maximum bytes of a value that lies in its entry block: one page, so that a rewrite of a larger
/// value's key never copies more than the key.
pub const VALUE_INLINE_BYTES_MAX: usize = 4096;

/// Maximum bytes of a value that compaction moves: larger ones have pages of their own, so they lie
/// neither among others nor in a run that is half empty.
pub(crate) const VALUE_MOVED_BYTES_MAX: usize = 40 << 10;

/// In the word of a value's length: the value has a block of its own.
const EXTERNAL: u64 = 1;
const OFFSET_BITS: u32 = 48;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const FINISHER: u64 = 0xd1b5_4a32_d192_ed03;

/// A 64-bit hash of a key, part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(u64);

impl KeyHash {
    /// The hash of a key: a folded multiplication per 8 bytes. The pieces are those at 0, 8, 16..
    /// that end before the key's end, then the key's last 8 bytes; of a key shorter than 8 bytes
    /// one piece, padded by zeros. O(key.len()), about 2 ns for 20 bytes.
    #[inline]
    pub fn of(key: &[u8]) -> Self {
        let mut state = (key.len() as u64).wrapping_mul(FINISHER);
        if let Some(last) = key.last_chunk::<8>() {
            let (pieces, _) = key[..key.len() - 1].as_chunks::<8>();
            for piece in pieces {
                state = fold(state ^ u64::from_le_bytes(*piece), MULTIPLIER);
            }
            state = fold(state ^ u64::from_le_bytes(*last), MULTIPLIER);
        } else {
            let piece = key.iter().rev().fold(0, |piece, byte| piece << 8 | u64::from(*byte));
            state = fold(state ^ piece, MULTIPLIER);
        }
        Self(fold(state ^ MULTIPLIER, FINISHER))
    }

    /// The byte that the search of a leaf compares first.
    #[inline]
    pub fn fingerprint(self) -> u8 {
        self.0 as u8
    }

    /// The upper 16 bits.
    #[inline]
    pub fn tag(self) -> u16 {
        (self.0 >> OFFSET_BITS) as u16
    }
}

fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

/// A reference to an entry, with a tag of 16 bits: those of its key's hash, or, in leaves of the B+
/// tree, bits of the key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u64);

impl Slot {
    /// The slot of the entry at a heap offset below 2^48.
    #[inline]
    pub fn new(hash: KeyHash, entry: u64) -> Self {
        Self::tagged(hash.tag(), entry)
    }

    /// The slot with this tag of the entry at a heap offset below 2^48.
    #[inline]
    pub fn tagged(tag: u16, entry: u64) -> Self {
        debug_assert!(entry >> OFFSET_BITS == 0, "heap offsets have 48 bits");
        Self(u64::from(tag) << OFFSET_BITS | entry)
    }

    /// The tag.
    #[inline]
    pub fn tag(self) -> u16 {
        (self.0 >> OFFSET_BITS) as u16
    }

    /// Heap offset of the entry.
    #[inline]
    pub fn entry(self) -> u64 {
        self.0 & ((1 << OFFSET_BITS) - 1)
    }

    /// Whether a key with this hash may be the one of the entry.
    #[inline]
    pub fn admits(self, hash: KeyHash) -> bool {
        self.tag() == hash.tag()
    }
}

/// A decoded pair.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'r> {
    /// The key.
    pub key: &'r [u8],
    value: Value<'r>,
}

#[derive(Clone, Copy, Debug)]
enum Value<'r> {
    Inline(&'r [u8]),
    External { block: u64, len: usize },
}

impl<'r> Entry<'r> {
    /// No entry: the initial content of arrays.
    pub const NONE: Self = Self { key: &[], value: Value::Inline(&[]) };

    /// A pair that lies in a node.
    #[inline]
    pub(crate) fn of_words(key: &'r [u8], value: &'r [u8]) -> Self {
        Self { key, value: Value::Inline(value) }
    }

    /// Reads the entry at a heap offset. O(1).
    ///
    /// # Errors
    /// `Error::Damaged` when the lengths in it are impossible.
    #[inline(always)] // Else each entry of a scan is built twice, and moved once.
    pub fn read<R: Read>(read: &'r R, offset: u64) -> Result<Self> {
        let bytes = read.block(offset)?;
        // Nearly all entries have a key shorter than 128 bytes, and a value shorter than 8 KiB.
        if let [key_len @ ..0x80, low, high, ..] = *bytes {
            let (word, start) = match (low, high) {
                (..0x80, _) => (u16::from(low), 2),
                (_, ..0x80) => (u16::from(low & 0x7f) | u16::from(high) << 7, 3),
                _ => return Self::read_long(bytes, offset),
            };
            let key_end = start + usize::from(key_len);
            let end = key_end + usize::from(word >> 1);
            if word & 1 == 0
                && let Some(key) = bytes.get(start..key_end)
                && let Some(value) = bytes.get(key_end..end)
            {
                return Ok(Self { key, value: Value::Inline(value) });
            }
        }
        Self::read_long(bytes, offset)
    }

    /// Reads an entry with long lengths or an external value, or finds its fault.
    #[cold]
    fn read_long(bytes: &'r [u8], offset: u64) -> Result<Self> {
        let mut rest = bytes;
        let damaged = |what| Error::Damaged { block: offset, what };
        let key_len = varint::take(&mut rest).ok_or(damaged("has no length of the key"))?;
        let word = varint::take(&mut rest).ok_or(damaged("has no length of the value"))?;
        let value_len = word >> 1;
        if key_len > KEY_BYTES_MAX as u64 || value_len > VALUE_BYTES_MAX {
            return Err(damaged("has an entry whose lengths are out of range"));
        }
        let (key_len, value_len) = (key_len as usize, value_len as usize);
        let (key, rest) =
            rest.split_at_checked(key_len).ok_or(damaged("is shorter than its key"))?;
        let value = if word & EXTERNAL == 0 {
            Value::Inline(rest.get(..value_len).ok_or(damaged("is shorter than its value"))?)
        } else {
            let pointer = rest.first_chunk().ok_or(damaged("is shorter than its pointer"))?;
            Value::External { block: u64::from_le_bytes(*pointer), len: value_len }
        };
        Ok(Self { key, value })
    }

    /// The value. O(1).
    ///
    /// # Errors
    /// `Error::Damaged` when its block is shorter than the value.
    #[inline(always)] // Nearly always a plain copy of a slice.
    pub fn value<R: Read>(&self, read: &'r R) -> Result<&'r [u8]> {
        match self.value {
            Value::Inline(value) => Ok(value),
            Value::External { block, len } => external_value(read, block, len),
        }
    }

    /// Bytes of the value.
    pub fn value_len(&self) -> usize {
        match self.value {
            Value::Inline(value) => value.len(),
            Value::External { len, .. } => len,
        }
    }

    /// The value apart from its entry: a copy of an inline one, or the location of an external one.
    pub(crate) fn body(&self) -> Body {
        match self.value {
            Value::Inline(value) => Body::Inline(value.to_vec()),
            Value::External { block, len } => Body::External { block, len },
        }
    }

    /// Heap offset of the value's own block, if it has one.
    pub fn value_block(&self) -> Option<u64> {
        match self.value {
            Value::Inline(_) => None,
            Value::External { block, .. } => Some(block),
        }
    }
}

#[cold]
fn external_value<R: Read>(read: &R, block: u64, len: usize) -> Result<&[u8]> {
    let what = "is shorter than the value it holds";
    read.block(block)?.get(..len).ok_or(Error::Damaged { block, what })
}

/// Refuses a key that cannot be stored.
///
/// # Errors
/// `Error::KeyTooLong`.
pub fn validate_key(key: &[u8]) -> Result<()> {
    match key.len() {
        ..=KEY_BYTES_MAX => Ok(()),
        bytes => Err(Error::KeyTooLong { bytes, bytes_max: KEY_BYTES_MAX }),
    }
}

/// Writes a new entry and returns its heap offset. O(key.len() + value.len()).
///
/// # Errors
/// `Error::KeyTooLong`, `Error::ValueTooLong`, or the heap's, out of space among them.
pub fn write_entry<W: Write>(tx: &mut W, key: &[u8], value: &[u8]) -> Result<u64> {
    validate_key(key)?;
    if value.len() as u64 > VALUE_BYTES_MAX {
        return Err(Error::ValueTooLong { bytes: value.len(), bytes_max: VALUE_BYTES_MAX });
    }
    let word = (value.len() as u64) << 1;
    if value.len() > VALUE_INLINE_BYTES_MAX {
        let block = tx.reserve(value.len() as u64)?;
        tx.write(block, 0, value.len())?.copy_from_slice(value);
        return write_block(tx, key, word | EXTERNAL, &block.to_le_bytes());
    }
    write_block(tx, key, word, value)
}

/// Overwrites the value of the entry at a heap offset in place, if it is inline and not borrowed,
/// and a new entry would take a block of the same length. Returns whether it did; if not, nothing
/// was changed. O(value.len()).
///
/// # Errors
/// The heap's. A damaged entry is not overwritten.
pub(crate) fn overwrite<W: Write>(tx: &mut W, block: u64, value: &[u8]) -> Result<bool> {
    let bytes = tx.block(block)?;
    let mut rest = bytes;
    let key_len = varint::take(&mut rest).and_then(|len| usize::try_from(len).ok());
    let word_at = bytes.len() - rest.len();
    let (Some(key_len), Some(old)) = (key_len, varint::take(&mut rest)) else { return Ok(false) };
    let fits = rest.get(key_len..).is_some_and(|rest| rest.len() >= value.len());
    let (word_end, word) = (bytes.len() - rest.len(), (value.len() as u64) << 1);
    let at = word_end + key_len;
    let stays = word == old
        || old & EXTERNAL == 0
            && value.len() <= VALUE_INLINE_BYTES_MAX
            && varint::len(word) == word_end - word_at
            && tx.reserved_bytes((at + value.len()) as u64) == bytes.len() as u64;
    if !fits || !stays {
        return Ok(false);
    }
    let Some(target) = tx.overwrite(block, at, value.len())? else { return Ok(false) };
    target.copy_from_slice(value);
    if word != old {
        varint::put_in(tx.write(block, word_at, word_end - word_at)?, 0, word);
    }
    Ok(true)
}

/// A value that moves to another entry.
pub(crate) enum Body {
    /// Its bytes, at most a page.
    Inline(Vec<u8>),
    /// Its block, which the new entry takes over.
    External { block: u64, len: usize },
}

/// Writes a new entry for a value of another entry, and returns its heap offset. An external value
/// is not read. O(key.len()), and a copy of an inline value.
///
/// # Errors
/// `Error::KeyTooLong`, or the heap's, out of space among them.
pub(crate) fn write_body<W: Write>(tx: &mut W, key: &[u8], body: &Body) -> Result<u64> {
    validate_key(key)?;
    match body {
        Body::Inline(value) => write_block(tx, key, (value.len() as u64) << 1, value),
        Body::External { block, len } => {
            write_block(tx, key, (*len as u64) << 1 | EXTERNAL, &block.to_le_bytes())
        }
    }
}

/// Writes the block of an entry; `word` is the length of its value and whether that is external.
#[inline]
fn write_block<W: Write>(tx: &mut W, key: &[u8], word: u64, body: &[u8]) -> Result<u64> {
    let key_len = key.len() as u64;
    let bytes = varint::len(key_len) + varint::len(word) + key.len() + body.len();
    let block = tx.reserve(bytes as u64)?;
    let entry = tx.write(block, 0, bytes)?;
    let entry = put_varint(entry, key_len);
    let entry = put_varint(entry, word);
    let (key_bytes, body_bytes) = entry.split_at_mut(key.len());
    key_bytes.copy_from_slice(key);
    body_bytes.copy_from_slice(body);
    Ok(block)
}

/// Copies an entry to another block, and its value up to [`VALUE_MOVED_BYTES_MAX`]; frees the old
/// blocks. Returns its new heap offset. O(key + copied value).
///
/// # Errors
/// `Error::Damaged` when it is no entry; the heap's, out of space among them.
pub(crate) fn move_entry<W: Write>(tx: &mut W, offset: u64, scratch: &mut Vec<u8>) -> Result<u64> {
    let entry = Entry::read(tx, offset)?;
    scratch.clear();
    scratch.extend_from_slice(entry.key);
    let key_len = scratch.len();
    if entry.value_len() > VALUE_MOVED_BYTES_MAX {
        let moved = write_body(tx, scratch, &entry.body())?;
        tx.free(offset)?;
        return Ok(moved);
    }
    scratch.extend_from_slice(entry.value(tx)?);
    let (key, value) = scratch.split_at(key_len);
    let moved = write_entry(tx, key, value)?;
    free_entry(tx, offset)?;
    Ok(moved)
}

/// Frees an entry and the value block that it owns. O(1).
///
/// # Errors
/// `Error::Damaged` when it is no entry; the heap's.
pub fn free_entry<W: Write>(tx: &mut W, offset: u64) -> Result<()> {
    let value_block = Entry::read(tx, offset)?.value_block();
    if let Some(block) = value_block {
        tx.free(block)?;
    }
    Ok(tx.free(offset)?)
}

/// Encodes a varint in place, so that an entry needs no buffer first; returns the rest.
pub(crate) fn put_varint(mut bytes: &mut [u8], mut value: u64) -> &mut [u8] {
    loop {
        let (first, rest) = bytes.split_first_mut().expect("the block was sized for it");
        bytes = rest;
        if value < 0x80 {
            *first = value as u8;
            return bytes;
        }
        *first = value as u8 | 0x80;
        value >>= 7;
    }
}
