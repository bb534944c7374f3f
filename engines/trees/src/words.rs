//! The two forms of pairs in nodes: references to entries, or the pairs themselves.
//!
//! Purpose: a tree whose keys and values have 8 bytes each, such as a typed map from numbers to
//! numbers or pointers, needs no entries: its nodes hold both. A lookup has one cache miss less,
//! and an insert or a remove allocates and frees only nodes.
//! Invariants: the head of a tree holds its form, which never changes. Bytes of such pairs move
//! with their nodes, so they are borrowed only until the next write, and never longer (S2).

use adamant_heap::access::{Read, Write};
use adamant_wire::key::head_of;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use crate::error::{Error, Result};
use crate::layout::{Head, MAGIC_FORM_AT, MAGIC_WORDS};
use crate::loose::DetachedEntry;
use crate::slot::{Entry, KeyHash, Slot, overwrite, write_entry};

/// Bytes of a key, and of a value, that a node can hold.
pub(crate) const WORD_BYTES: usize = 8;

/// The form in which nodes hold a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The slot of an entry, and the start of its key as a big-endian number.
    Entries,
    /// The 8 bytes of the value, and the 8 bytes of the key, unchanged.
    Words,
}

impl Form {
    /// The form of the tree with this head.
    #[inline]
    pub(crate) fn of(head: &Head) -> Self {
        if head.magic[MAGIC_FORM_AT] == MAGIC_WORDS { Self::Words } else { Self::Entries }
    }

    /// The start of a key as the number by which keys are ordered.
    #[inline]
    pub(crate) fn number(self, head: U64) -> u64 {
        match self {
            Self::Entries => head.get(),
            Self::Words => head.get().swap_bytes(),
        }
    }

    /// The pair of a node.
    #[inline]
    pub(crate) fn pair<'r, R: Read>(
        self,
        read: &'r R,
        head: &'r U64,
        slot: &'r U64,
    ) -> Result<Entry<'r>> {
        match self {
            Self::Entries => Entry::read(read, Slot(slot.get()).entry()),
            Self::Words => Ok(Entry::of_words(head.as_bytes(), slot.as_bytes())),
        }
    }

    /// The item of a node's slot.
    pub(crate) fn item(self, slot: U64) -> Item {
        match self {
            Self::Entries => Item::Entry(Slot(slot.get()).entry()),
            Self::Words => Item::Word(slot.get()),
        }
    }

    /// The head and the slot of a pair in a node. The key of a word has 8 bytes.
    pub(crate) fn words(key: &[u8], item: Item) -> (U64, U64) {
        match item {
            Item::Entry(entry) => {
                let slot = Slot::new(KeyHash::of(key), entry);
                (U64::new(head_of(key, 0)), U64::new(slot.0))
            }
            Item::Word(value) => (U64::new(head_of(key, 0).swap_bytes()), U64::new(value)),
        }
    }
}

/// The value of a key in a tree, as it is inserted or taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Heap offset of the pair's entry.
    Entry(u64),
    /// The 8 bytes of the value, as a little-endian number.
    Word(u64),
}

impl Item {
    /// The value of a pair as a word.
    ///
    /// # Errors
    /// `Error::NotWords` unless key and value have 8 bytes.
    pub(crate) fn word(key: &[u8], value: &[u8]) -> Result<Self> {
        match <&[u8; WORD_BYTES]>::try_from(value).ok() {
            Some(value) if key.len() == WORD_BYTES => Ok(Self::Word(u64::from_le_bytes(*value))),
            _ => Err(Error::NotWords { key_bytes: key.len(), value_bytes: value.len() }),
        }
    }

    /// The detached pair.
    pub(crate) fn loose(self, key: &[u8]) -> DetachedEntry {
        match self {
            Self::Entry(block) => DetachedEntry::at(block),
            Self::Word(value) => DetachedEntry::of_words(
                head_of(key, 0).swap_bytes().to_le_bytes(),
                value.to_le_bytes(),
            ),
        }
    }
}

/// The new value of a key: an existing item, or a value without an item yet.
#[derive(Clone, Copy, Debug)]
pub enum New<'v> {
    /// In a tree's form.
    Item(Item),
    /// To be written over the existing value, or to a new entry.
    Value(&'v [u8]),
}

impl New<'_> {
    /// Whether it was written over the existing value, which stays the same item then.
    #[inline]
    pub(crate) fn overwrites<W: Write>(self, tx: &mut W, old: Item) -> Result<bool> {
        match (self, old) {
            (Self::Value(value), Item::Entry(block)) => overwrite(tx, block, value),
            _ => Ok(false),
        }
    }

    /// As an item; an entry is written if there is none.
    #[inline]
    pub(crate) fn item<W: Write>(self, tx: &mut W, key: &[u8]) -> Result<Item> {
        match self {
            Self::Item(item) => Ok(item),
            Self::Value(value) => write_entry(tx, key, value).map(Item::Entry),
        }
    }
}

/// The previous value of a key that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    /// Nothing.
    None,
    /// This item, which is in no tree now.
    Replaced(Item),
    /// A value, which was overwritten in place.
    Overwritten,
}
