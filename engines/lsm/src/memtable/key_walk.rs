//! A cursor over the versions of a memtable without their values.
//!
//! Purpose: counts entries. It reads nothing on the heap, so it needs no lock.
//! Invariants: in the list's order, each version that was there all the time exactly once.
//! Thread safety: one thread at a time, beside the writer.

use super::skip_list::{Node, SkipList};
use crate::key::EntryKind;

/// The cursor.
#[derive(Debug)]
pub(crate) struct KeyWalk<'l> {
    list: &'l SkipList,
    node: Option<Node<'l>>,
    is_begun: bool,
    key: Vec<u8>,
}

impl<'l> KeyWalk<'l> {
    pub(super) fn new(list: &'l SkipList) -> Self {
        Self { list, node: None, is_begun: false, key: Vec::new() }
    }

    /// Goes to the next version; false if there is none.
    pub(crate) fn advance(&mut self) -> bool {
        self.node = match &self.node {
            Some(node) => self.list.after(node),
            None if self.is_begun => None,
            None => self.list.first(),
        };
        self.is_begun = true;
        self.key.clear();
        if let Some(node) = &self.node {
            node.key_to(&mut self.key);
        }
        self.node.is_some()
    }

    /// The key of the current version.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Its sequence number and kind.
    pub(crate) fn said(&self) -> (u64, EntryKind) {
        self.node.as_ref().map_or((0, EntryKind::Tombstone), |node| {
            let place = node.place();
            (place.sequence, place.kind)
        })
    }
}
