//! Kinds of trees of single pairs.
//!
//! Purpose: the trait behind which `btree`, `critbit` and `redblack` share their handle, their
//! cursor, and everything that visits all of a tree.
//! Invariants: a kind changes nothing but nodes, entries, and root and height of the head; the
//! handle maintains the count of pairs.

use std::cmp::Ordering;

use adamant_heap::access::{Read, Write};
use adamant_heap::ptr::Ptr;

use crate::checking::Checking;
use crate::error::{Error, Result};
use crate::layout::{Head, MAGIC_FORM_AT, MAGIC_WORDS};
use crate::slot::{Entry, Slot};
use crate::words::{Form, Item, New, Old};

/// The identification of a kind of tree.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// First bytes of the head.
    pub magic: [u8; 8],
    /// The name, for messages.
    pub name: &'static str,
    /// Whether the kind has trees of words.
    pub has_words: bool,
}

impl Label {
    /// First bytes of the head of a tree in a form that the kind has.
    pub(crate) fn magic_of(self, form: Form) -> [u8; 8] {
        let mut magic = self.magic;
        if form == Form::Words {
            magic[MAGIC_FORM_AT] = MAGIC_WORDS;
        }
        magic
    }
}

/// A reference from a node.
#[derive(Clone, Copy, Debug)]
pub enum Link {
    /// A node, at a level above the leaves where the kind counts levels.
    Node {
        /// Heap offset.
        block: u64,
        /// Levels above the leaves, or 0.
        level: usize,
    },
    /// An entry.
    Entry(Slot),
    /// A pair in the node itself.
    Words {
        /// Heap offset of the node.
        block: u64,
        /// Offset of the key in it.
        key_at: usize,
        /// Offset of the value in it.
        value_at: usize,
    },
}

/// A path to a pair, and from there to its neighbours.
pub trait Trail: Clone {
    /// A trail without a position.
    const NEW: Self;

    /// Goes to the first or the last pair; `None` in an empty tree. O(log n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    fn end<'r, R: Read>(&mut self, read: &'r R, tree: u64, last: bool)
    -> Result<Option<Entry<'r>>>;

    /// Goes to the pair of a key, or to one next to the gap where it would be, and returns how the
    /// key of that pair compares with it. O(log n).
    ///
    /// # Errors
    /// As [`Trail::end`].
    fn near<'r, R: Read>(
        &mut self,
        read: &'r R,
        tree: u64,
        key: &[u8],
    ) -> Result<Option<(Entry<'r>, Ordering)>>;

    /// Goes to the next or previous pair; stays in place and returns `None` if there is none. O(1)
    /// amortised.
    ///
    /// # Errors
    /// As [`Trail::end`].
    fn step<'r, R: Read>(&mut self, read: &'r R, forward: bool) -> Result<Option<Entry<'r>>>;
}

/// A kind of tree whose nodes hold slots.
pub trait Kind: Copy + 'static {
    /// The label.
    const LABEL: Label;
    /// The default of the head's `order`.
    const ORDER: u64;
    /// The trail type.
    type Trail: Trail;

    /// The entry of a key. O(log n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    fn find<'r, R: Read>(read: &'r R, tree: u64, key: &[u8]) -> Result<Option<Entry<'r>>>;

    /// Puts the new value of a key, which has the tree's form, into the tree; returns what it
    /// replaced. O(log n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    fn insert_entry<W: Write>(tx: &mut W, tree: u64, key: &[u8], new: New<'_>) -> Result<Old>;

    /// Takes the item of a key out of the tree. O(log n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    fn take<W: Write>(tx: &mut W, tree: u64, key: &[u8]) -> Result<Option<Item>>;

    /// The reference to the root.
    fn root(head: &Head) -> Option<Link>;

    /// Appends the references of a node.
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's.
    fn links<R: Read>(
        read: &R,
        head: &Head,
        node: (u64, usize),
        links: &mut Vec<Link>,
    ) -> Result<()>;

    /// Verifies every rule of the structure, in parts: see [`crate::OrderedMap::check_part`].
    ///
    /// # Errors
    /// `Error::Damaged` with the first fault, or the heap's.
    fn check<R: Read>(
        read: &R,
        tree: u64,
        checking: &mut Checking,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<bool>;
}

/// The head of a tree of this kind, verified.
pub(crate) fn head<R: Read>(read: &R, tree: u64, label: Label) -> Result<&Head> {
    let head: &Head = read.read(Ptr::new(tree))?;
    let is_one =
        head.magic == label.magic || label.has_words && head.magic == label.magic_of(Form::Words);
    if !is_one {
        return Err(Error::NotThisTree { head: tree, expected: label.name });
    }
    Ok(head)
}

/// The error of a damaged block.
pub(crate) fn damaged<T>(block: u64, what: &'static str) -> Result<T> {
    Err(Error::Damaged { block, what })
}
