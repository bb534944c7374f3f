//! Search: from a key to its node, and the path to it.

use std::cmp::Ordering;

use adamant_heap::access::Read;
use adamant_wire::key::head_of;

use super::layout::{HEIGHT_MAX, LABEL, Node};
use crate::error::Result;
use crate::kind::{damaged, head};
use crate::slot::Entry;
use crate::words::Form;

/// Nodes from the root down, and the side that was taken from each.
#[derive(Clone, Copy)]
pub(super) struct Path {
    steps: [(u64, bool); HEIGHT_MAX],
    len: usize,
}

impl Path {
    /// An empty path.
    pub(super) const EMPTY: Self = Self { steps: [(0, false); HEIGHT_MAX], len: 0 };

    /// Appends a step to a node, and the side taken from it.
    #[inline]
    pub(super) fn push(&mut self, node: u64, higher: bool) -> Result<()> {
        let Some(step) = self.steps.get_mut(self.len) else {
            return damaged(node, "lies deeper than a tree can reach");
        };
        *step = (node, higher);
        self.len += 1;
        Ok(())
    }

    /// The nodes and the sides taken.
    pub(super) fn steps(&self) -> &[(u64, bool)] {
        &self.steps[..self.len]
    }

    /// Its last node, and the side taken there.
    pub(super) fn last(&self) -> Option<(u64, bool)> {
        self.steps().last().copied()
    }

    /// Truncates to the first steps.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Changes the side at the last node.
    pub(super) fn turn(&mut self, higher: bool) {
        if let Some((_, side)) = self.steps[..self.len].last_mut() {
            *side = higher;
        }
    }
}

/// Heap offset of the root, 0 in an empty tree, and the form in which nodes hold pairs.
pub(super) fn root<R: Read>(read: &R, tree: u64) -> Result<(u64, Form)> {
    let head = head(read, tree, LABEL)?;
    Ok((head.root.get(), Form::of(head)))
}

/// How a key compares with that of a node, and the node's entry if the head did not decide.
#[inline]
pub(super) fn compare<'r, R: Read>(
    read: &'r R,
    node: &'r Node,
    form: Form,
    (key, key_head): (&[u8], u64),
) -> Result<(Ordering, Option<Entry<'r>>)> {
    match key_head.cmp(&form.number(node.head)) {
        Ordering::Equal => {
            let entry = node.entry(read, form)?;
            Ok((key.cmp(entry.key), Some(entry)))
        }
        order => Ok((order, None)),
    }
}

/// The entry of a key, without keeping the path.
#[inline]
pub(super) fn entry_of<'r, R: Read>(
    read: &'r R,
    tree: u64,
    key: &[u8],
) -> Result<Option<Entry<'r>>> {
    let key_head = head_of(key, 0);
    let (mut block, form) = root(read, tree)?;
    for _ in 0..HEIGHT_MAX {
        if block == 0 {
            return Ok(None);
        }
        let node = Node::at(read, block)?;
        let (order, entry) = compare(read, node, form, (key, key_head))?;
        if order == Ordering::Equal {
            return Ok(entry);
        }
        block = node.child(order == Ordering::Greater);
    }
    damaged(block, "lies deeper than a tree can reach")
}

/// Goes to the node of a key, or to the one below which it would be. Returns that node, and how the
/// key compares with its key; `None` in an empty tree.
pub(super) fn path_to<'r, R: Read>(
    read: &'r R,
    (mut block, form): (u64, Form),
    key: &[u8],
    path: &mut Path,
) -> Result<Option<(&'r Node, Ordering)>> {
    let key_head = head_of(key, 0);
    path.truncate(0);
    let mut found = None;
    while block != 0 {
        let node = Node::at(read, block)?;
        let (order, _) = compare(read, node, form, (key, key_head))?;
        path.push(block, order == Ordering::Greater)?;
        found = Some((node, order));
        if order == Ordering::Equal {
            break;
        }
        block = node.child(order == Ordering::Greater);
    }
    Ok(found)
}

/// Descends from a block to the lowest or highest node below it; `None` for no block.
pub(super) fn descend<'r, R: Read>(
    read: &'r R,
    path: &mut Path,
    mut block: u64,
    last: bool,
) -> Result<Option<&'r Node>> {
    let mut found = None;
    while block != 0 {
        let node = Node::at(read, block)?;
        path.push(block, last)?;
        found = Some(node);
        block = node.child(last);
    }
    Ok(found)
}
