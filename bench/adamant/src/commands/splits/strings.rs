//! Separate arrays of hashes, keys and values, which are strings with a buffer for short ones.
//!
//! ```text
//! leaf    u64 next | 48 hashes at 64 | 48 keys | 48 values
//! string  len, as many bytes as there is room for (15 or 23), 8 spare    a short string
//!         255, 3 spare, u32 len, spare, u64 block                        a long one: a block of its own
//! ```
//!
//! [`Copied`] makes a new string of the same bytes in the new leaf and resets the old one;
//! [`Swapped`] copies short strings and swaps the fields of long ones, whose blocks stay in place;
//! [`SwappedWide`] does so with more room.

use adamant_heap::{Read, Write};

use super::strategy::{
    LEAF_SLOTS, Pair, SLOTS_AT, Strategy, block_bytes, bytes_at, len_of, new_block, word_of,
};
use crate::harness::error::Result;

/// The first byte of a string that has a block.
const LONG: u8 = 255;
const LEN_AT: usize = 4;
const KEYS_AT: usize = SLOTS_AT + LEAF_SLOTS.next_multiple_of(8);
/// Bytes of the largest field.
const FIELD_BYTES_MAX: usize = 32;

/// All strings are copied; those of up to 15 bytes need no block.
#[derive(Clone, Copy, Debug)]
pub struct Copied;

/// Short strings are copied, long ones swapped.
#[derive(Clone, Copy, Debug)]
pub struct Swapped;

/// The same with strings of up to 23 bytes as short ones.
#[derive(Clone, Copy, Debug)]
pub struct SwappedWide;

/// The shape of strings.
#[derive(Clone, Copy)]
struct Shape {
    /// Maximum bytes of a string that needs no block.
    room: usize,
}

/// A string's bytes in a leaf; the first of them are in use.
type Field = [u8; FIELD_BYTES_MAX];

/// Source and target of a move.
type Move = (u64, u64);

impl Shape {
    const fn field_bytes(self) -> usize {
        self.room + 1 + size_of::<u64>()
    }

    const fn block_at(self) -> usize {
        self.room + 1
    }

    const fn key_at(self, slot: usize) -> usize {
        KEYS_AT + slot * self.field_bytes()
    }

    const fn value_at(self, slot: usize) -> usize {
        self.key_at(LEAF_SLOTS + slot)
    }

    const fn leaf_bytes(self) -> usize {
        self.value_at(LEAF_SLOTS)
    }

    /// A field of a leaf.
    fn field(self, leaf: &[u8], at: usize) -> Result<Field> {
        let mut field = [0; FIELD_BYTES_MAX];
        let bytes = self.field_bytes();
        field[..bytes].copy_from_slice(bytes_at(leaf, at, bytes)?);
        Ok(field)
    }

    /// The block of a string, if it has one.
    fn block_of(self, field: &Field) -> Option<u64> {
        (field[0] == LONG).then(|| word_of(field, self.block_at()))
    }

    /// The used bytes of a string field.
    fn used(self, field: &Field) -> &[u8] {
        if field[0] == LONG {
            &field[..self.field_bytes()]
        } else {
            &field[..=self.room.min(field[0].into())]
        }
    }

    fn string<'r, R: Read>(self, read: &'r R, leaf: &'r [u8], at: usize) -> Result<&'r [u8]> {
        let field = self.field(leaf, at)?;
        match self.block_of(&field) {
            Some(block) => block_bytes(read, block, len_of(&field, LEN_AT)),
            None => bytes_at(leaf, at + 1, self.room.min(field[0].into())),
        }
    }

    /// The field of a string; allocates a block for a long one.
    fn new_string<W: Write>(self, tx: &mut W, bytes: &[u8]) -> Result<Field> {
        let mut field = [0; FIELD_BYTES_MAX];
        if bytes.len() <= self.room {
            field[0] = bytes.len() as u8;
            field[1..=bytes.len()].copy_from_slice(bytes);
            return Ok(field);
        }
        field[0] = LONG;
        field[LEN_AT..LEN_AT + 4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        let block = new_block(tx, &[bytes])?.to_le_bytes();
        field[self.block_at()..self.field_bytes()].copy_from_slice(&block);
        Ok(field)
    }

    /// Copies a string to another leaf, and empties the old one.
    fn copy<W: Write>(
        self,
        tx: &mut W,
        (source, target): Move,
        at: usize,
        scratch: &mut Vec<u8>,
    ) -> Result<u64> {
        let leaf = tx.block(source)?;
        let old = self.field(leaf, at)?;
        scratch.clear();
        scratch.extend_from_slice(self.string(tx, leaf, at)?);
        let new = self.new_string(tx, scratch)?;
        let mut stored = store(tx, target, at, self.used(&new))?;
        if let Some(block) = self.block_of(&old) {
            stored += scratch.len() as u64;
            tx.free(block)?;
        }
        Ok(stored + store(tx, source, at, &[0; FIELD_BYTES_MAX][..self.used(&old).len()])?)
    }

    /// Copies a short string to another leaf, or swaps the field of a long one with the empty one
    /// there.
    fn copy_or_swap<W: Write>(
        self,
        tx: &mut W,
        (source, target): Move,
        at: usize,
        _scratch: &mut Vec<u8>,
    ) -> Result<u64> {
        let field = self.field(tx.block(source)?, at)?;
        let stored = store(tx, target, at, self.used(&field))?;
        Ok(match self.block_of(&field) {
            Some(_) => stored + store(tx, source, at, &[0; FIELD_BYTES_MAX][..self.field_bytes()])?,
            None => stored,
        })
    }

    fn fill<W: Write>(self, tx: &mut W, leaf: u64, slot: usize, pair: Pair<'_>) -> Result<()> {
        for (at, bytes) in [(self.key_at(slot), pair.key), (self.value_at(slot), pair.value)] {
            let field = self.new_string(tx, bytes)?;
            store(tx, leaf, at, self.used(&field))?;
        }
        store(tx, leaf, SLOTS_AT + slot, &[pair.hash])?;
        Ok(())
    }

    fn replace<W: Write>(self, tx: &mut W, leaf: u64, slot: usize, pair: Pair<'_>) -> Result<()> {
        let old = self.block_of(&self.field(tx.block(leaf)?, self.value_at(slot))?);
        let field = self.new_string(tx, pair.value)?;
        store(tx, leaf, self.value_at(slot), self.used(&field))?;
        Ok(old.map_or(Ok(()), |block| tx.free(block))?)
    }

    fn blocks(self, leaf: &[u8], slot: usize) -> Result<u64> {
        let fields = [self.field(leaf, self.key_at(slot))?, self.field(leaf, self.value_at(slot))?];
        Ok(fields.iter().filter_map(|field| self.block_of(field)).count() as u64)
    }
}

/// Stores bytes of a leaf; returns how many.
fn store<W: Write>(tx: &mut W, leaf: u64, at: usize, bytes: &[u8]) -> Result<u64> {
    tx.write(leaf, at, bytes.len())?.copy_from_slice(bytes);
    Ok(bytes.len() as u64)
}

fn hash_of(leaf: &[u8], slot: usize) -> u8 {
    leaf.get(SLOTS_AT + slot).copied().unwrap_or(0)
}

/// Moves the hash of a slot.
fn move_hash<W: Write>(tx: &mut W, (source, target): Move, slot: usize) -> Result<u64> {
    let hash = hash_of(tx.block(source)?, slot);
    Ok(store(tx, target, SLOTS_AT + slot, &[hash])? + store(tx, source, SLOTS_AT + slot, &[0])?)
}

macro_rules! strategy {
    ($kind:ty, $name:literal, $room:literal, $relocate:ident) => {
        impl $kind {
            const SHAPE: Shape = Shape { room: $room };
        }

        impl Strategy for $kind {
            const NAME: &'static str = $name;
            const LEAF_BYTES: usize = Self::SHAPE.leaf_bytes();

            fn hash(leaf: &[u8], slot: usize) -> u8 {
                hash_of(leaf, slot)
            }

            fn key<'r, R: Read>(read: &'r R, leaf: &'r [u8], slot: usize) -> Result<&'r [u8]> {
                Self::SHAPE.string(read, leaf, Self::SHAPE.key_at(slot))
            }

            fn value<'r, R: Read>(read: &'r R, leaf: &'r [u8], slot: usize) -> Result<&'r [u8]> {
                Self::SHAPE.string(read, leaf, Self::SHAPE.value_at(slot))
            }

            fn blocks(leaf: &[u8], slot: usize) -> Result<u64> {
                Self::SHAPE.blocks(leaf, slot)
            }

            fn fill<W: Write>(tx: &mut W, leaf: u64, slot: usize, pair: Pair<'_>) -> Result<()> {
                Self::SHAPE.fill(tx, leaf, slot, pair)
            }

            fn replace<W: Write>(tx: &mut W, leaf: u64, slot: usize, pair: Pair<'_>) -> Result<()> {
                Self::SHAPE.replace(tx, leaf, slot, pair)
            }

            fn relocate<W: Write>(
                tx: &mut W,
                leaves: (u64, u64),
                slot: usize,
                scratch: &mut Vec<u8>,
            ) -> Result<u64> {
                let mut stored = move_hash(tx, leaves, slot)?;
                for at in [Self::SHAPE.key_at(slot), Self::SHAPE.value_at(slot)] {
                    stored += Self::SHAPE.$relocate(tx, leaves, at, scratch)?;
                }
                Ok(stored)
            }
        }
    };
}

strategy!(Copied, "copied", 15, copy);
strategy!(Swapped, "swapped", 15, copy_or_swap);
strategy!(SwappedWide, "swapped.23", 23, copy_or_swap);
