//! Detached entries: entries that no tree refers to.
//!
//! Purpose: the state between taking an entry out of one tree and putting it into another: the
//! block stays in place, and with it the value.
//! Invariants: the holder of a detached entry owns it: within the same transaction it must be
//! inserted into a tree or freed, or its blocks leak.

use adamant_heap::access::{Read, Write};

use crate::error::Result;
use crate::slot::{Entry, free_entry, write_body, write_entry};

/// An entry in no tree, between [`OrderedMap::take`](crate::OrderedMap::take) and
/// [`OrderedMap::insert_entry`](crate::OrderedMap::insert_entry). It is only the heap offset of its
/// block, or a pair of words, and valid only for the transaction and the heap that it comes from.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an entry that no tree adopts and nobody frees is lost"]
pub struct DetachedEntry(Place);

/// The location of a detached entry.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// In a block.
    Block(u64),
    /// In no block: it comes from a tree that holds pairs of words.
    Words { key: [u8; 8], value: [u8; 8] },
}

impl DetachedEntry {
    /// The entry in a block.
    pub(crate) fn at(block: u64) -> Self {
        Self(Place::Block(block))
    }

    /// A pair that was in a node.
    pub(crate) fn of_words(key: [u8; 8], value: [u8; 8]) -> Self {
        Self(Place::Words { key, value })
    }

    /// Heap offset of its block, which is written if there is none.
    ///
    /// # Errors
    /// The heap's, out of space among them.
    pub(crate) fn into_block<W: Write>(self, tx: &mut W) -> Result<u64> {
        match self.0 {
            Place::Block(block) => Ok(block),
            Place::Words { key, value } => write_entry(tx, &key, &value),
        }
    }

    /// Its key and value. O(1).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    pub fn read<'r, R: Read>(&'r self, read: &'r R) -> Result<Entry<'r>> {
        match &self.0 {
            Place::Block(block) => Entry::read(read, *block),
            Place::Words { key, value } => Ok(Entry::of_words(key, value)),
        }
    }

    /// The same value under another key. A small new entry takes over the block of a value of more
    /// than 4 KiB; a shorter value, which lies in its entry, is copied. O(key.len()).
    ///
    /// # Errors
    /// `Error::KeyTooLong`, or the heap's, out of space among them.
    pub fn with_key<W: Write>(self, tx: &mut W, key: &[u8]) -> Result<Self> {
        let entry = self.read(tx)?;
        if entry.key == key {
            return Ok(self);
        }
        let body = entry.body();
        let block = write_body(tx, key, &body)?;
        self.free_without_value(tx)?;
        Ok(Self::at(block))
    }

    /// Frees it and its value. O(1).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    pub fn free<W: Write>(self, tx: &mut W) -> Result<()> {
        match self.0 {
            Place::Block(block) => free_entry(tx, block),
            Place::Words { .. } => Ok(()),
        }
    }

    /// Frees it, but not the block of its value, which another entry has taken over.
    pub(crate) fn free_without_value<W: Write>(self, tx: &mut W) -> Result<()> {
        match self.0 {
            Place::Block(block) => Ok(tx.free(block)?),
            Place::Words { .. } => Ok(()),
        }
    }
}
