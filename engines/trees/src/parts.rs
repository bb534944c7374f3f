//! The parts of a tree: its blocks and values.
//!
//! Purpose: hands out every block of a tree and every value in it to a caller that accounts for
//! blocks.
//! Invariants: each block is handed out once, so that a walk ends in a damaged tree, too.

use std::collections::HashSet;

use adamant_heap::access::Read;

use crate::error::{Error, Result};
use crate::slot::Entry;

/// A part of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part<'r> {
    /// A block, by its heap offset.
    Block(u64),
    /// The bytes of a value, which are in one of the blocks.
    Value(&'r [u8]),
}

/// Hands out parts.
pub(crate) struct Parts<'e, 'r> {
    seen: HashSet<u64>,
    each: &'e mut dyn FnMut(Part<'r>),
}

impl<'e, 'r> Parts<'e, 'r> {
    pub(crate) fn new(each: &'e mut dyn FnMut(Part<'r>)) -> Self {
        Self { seen: HashSet::new(), each }
    }

    /// Hands out a node, or a block that belongs to one.
    pub(crate) fn block(&mut self, block: u64) -> Result<()> {
        if !self.seen.insert(block) {
            return Err(Error::Damaged { block, what: "is referred to twice by the tree" });
        }
        (self.each)(Part::Block(block));
        Ok(())
    }

    /// Hands out a value that lies in a node.
    pub(crate) fn value(&mut self, value: &'r [u8]) {
        (self.each)(Part::Value(value));
    }

    /// Hands out an entry, its value, and the value's block if it has one.
    pub(crate) fn entry<R: Read>(&mut self, read: &'r R, offset: u64) -> Result<()> {
        self.block(offset)?;
        let entry = Entry::read(read, offset)?;
        if let Some(block) = entry.value_block() {
            self.block(block)?;
        }
        let value = entry.value(read)?;
        (self.each)(Part::Value(value));
        Ok(())
    }
}
