//! One array of slots, each with everything that belongs to a pair.
//!
//! ```text
//! leaf  u64 next | 48 slots at 64
//! slot  u32 key len | u32 value len | hash, 7 spare | u64 block, which holds key and value
//! ```

use adamant_heap::{Read, Write};

use super::strategy::{
    LEAF_SLOTS, Pair, SLOTS_AT, Strategy, block_bytes, bytes_at, len_of, new_block, word_of,
};
use crate::harness::error::Result;

/// Bytes of a slot: as in the report, except for a pointer of 8 bytes.
const SLOT_BYTES: usize = 24;

const VALUE_LEN_AT: usize = 4;
const HASH_AT: usize = 8;
const BLOCK_AT: usize = 16;

/// Slots are swapped: neither key nor value is read.
#[derive(Clone, Copy, Debug)]
pub struct Slots;

fn slot_at(slot: usize) -> usize {
    SLOTS_AT + slot * SLOT_BYTES
}

fn slot_of(leaf: &[u8], slot: usize) -> Result<[u8; SLOT_BYTES]> {
    let bytes = bytes_at(leaf, slot_at(slot), SLOT_BYTES)?;
    Ok(*bytes.first_chunk().ok_or("a leaf is too short for its slots")?)
}

/// Key and value of a slot, concatenated, and the start of the value.
fn content<'r, R: Read>(read: &'r R, leaf: &[u8], slot: usize) -> Result<(&'r [u8], usize)> {
    let slot = &slot_of(leaf, slot)?;
    let key_len = len_of(slot, 0);
    let len =
        key_len.checked_add(len_of(slot, VALUE_LEN_AT)).ok_or("a slot has no such lengths")?;
    Ok((block_bytes(read, word_of(slot, BLOCK_AT), len)?, key_len))
}

/// Stores a slot.
fn store<W: Write>(tx: &mut W, leaf: u64, slot: usize, bytes: &[u8; SLOT_BYTES]) -> Result<u64> {
    tx.write(leaf, slot_at(slot), SLOT_BYTES)?.copy_from_slice(bytes);
    Ok(SLOT_BYTES as u64)
}

impl Strategy for Slots {
    const NAME: &'static str = "slots";
    const LEAF_BYTES: usize = SLOTS_AT + LEAF_SLOTS * SLOT_BYTES;

    fn hash(leaf: &[u8], slot: usize) -> u8 {
        leaf.get(slot_at(slot) + HASH_AT).copied().unwrap_or(0)
    }

    fn key<'r, R: Read>(read: &'r R, leaf: &'r [u8], slot: usize) -> Result<&'r [u8]> {
        content(read, leaf, slot).map(|(bytes, key_len)| &bytes[..key_len])
    }

    fn value<'r, R: Read>(read: &'r R, leaf: &'r [u8], slot: usize) -> Result<&'r [u8]> {
        content(read, leaf, slot).map(|(bytes, key_len)| &bytes[key_len..])
    }

    fn blocks(_leaf: &[u8], _slot: usize) -> Result<u64> {
        Ok(1)
    }

    fn fill<W: Write>(tx: &mut W, leaf: u64, slot: usize, pair: Pair<'_>) -> Result<()> {
        let block = new_block(tx, &[pair.key, pair.value])?;
        let mut bytes = [0; SLOT_BYTES];
        bytes[..4].copy_from_slice(&(pair.key.len() as u32).to_le_bytes());
        let value_len = (pair.value.len() as u32).to_le_bytes();
        bytes[VALUE_LEN_AT..VALUE_LEN_AT + 4].copy_from_slice(&value_len);
        bytes[HASH_AT] = pair.hash;
        bytes[BLOCK_AT..].copy_from_slice(&block.to_le_bytes());
        store(tx, leaf, slot, &bytes)?;
        Ok(())
    }

    fn replace<W: Write>(tx: &mut W, leaf: u64, slot: usize, pair: Pair<'_>) -> Result<()> {
        let old = word_of(&slot_of(tx.block(leaf)?, slot)?, BLOCK_AT);
        Self::fill(tx, leaf, slot, pair)?;
        Ok(tx.free(old)?)
    }

    fn relocate<W: Write>(
        tx: &mut W,
        (source, target): (u64, u64),
        slot: usize,
        _scratch: &mut Vec<u8>,
    ) -> Result<u64> {
        let bytes = slot_of(tx.block(source)?, slot)?;
        Ok(store(tx, target, slot, &bytes)? + store(tx, source, slot, &[0; SLOT_BYTES])?)
    }
}
