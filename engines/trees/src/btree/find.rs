//! Search: from a key to its pair, and the path to it.

use std::cmp::Ordering;

use adamant_heap::access::Read;
use adamant_wire::key::head_of;
use zerocopy::IntoBytes;

use super::layout::{HEIGHT_MAX, LABEL, Node, ORDER_MAX, ORDER_MIN, Pair};
use crate::error::Result;
use crate::kind::{damaged, head};
use crate::layout::Head;
use crate::slot::Entry;
use crate::words::{Form, WORD_BYTES};

/// The node parameters in the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Top {
    /// The root; 0 in an empty tree.
    pub(super) root: u64,
    /// Levels above the leaves.
    pub(super) height: usize,
    /// Children of a full node.
    pub(super) order: usize,
    /// The form in which nodes hold pairs.
    pub(super) form: Form,
}

impl Top {
    /// Those of the tree with this head.
    #[inline]
    pub(super) fn of<R: Read>(read: &R, tree: u64) -> Result<Self> {
        match Self::from(head(read, tree, LABEL)?) {
            Some(top) => Ok(top),
            None => damaged(tree, "has an order or a height that no tree has"),
        }
    }

    /// Those of a head, if they are possible.
    #[inline]
    pub(super) fn from(head: &Head) -> Option<Self> {
        let height = usize::try_from(head.height.get()).ok()?;
        let order = usize::try_from(head.order.get()).ok()?;
        let is_possible =
            (ORDER_MIN..=ORDER_MAX).contains(&order) && order % 2 == 0 && height <= HEIGHT_MAX;
        is_possible.then_some(Self { root: head.root.get(), height, order, form: Form::of(head) })
    }

    /// A pair of a node.
    #[inline]
    pub(super) fn entry<'r, R: Read>(&self, read: &'r R, pair: &'r Pair) -> Result<Entry<'r>> {
        self.form.pair(read, &pair.head, &pair.slot)
    }

    /// Level of the node at a step of a path.
    pub(super) fn level(&self, depth: usize) -> usize {
        self.height.saturating_sub(depth)
    }

    /// Minimum pairs of every node but the root.
    pub(super) fn pairs_min(&self) -> usize {
        self.order / 2 - 1
    }
}

/// A node of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    /// The node.
    pub(super) node: u64,
    /// Position of the child taken, or, at the end of a path, of the pair.
    pub(super) position: usize,
}

/// Nodes from the root down.
#[derive(Clone, Copy)]
pub(super) struct Path {
    steps: [Step; HEIGHT_MAX + 1],
    pub(super) len: usize,
}

impl Path {
    /// An empty path.
    pub(super) const EMPTY: Self =
        Self { steps: [Step { node: 0, position: 0 }; HEIGHT_MAX + 1], len: 0 };

    /// Appends a step to a node.
    #[inline]
    pub(super) fn push(&mut self, node: u64, position: usize) -> Result<()> {
        let Some(step) = self.steps.get_mut(self.len) else {
            return damaged(node, "lies deeper than a tree can reach");
        };
        *step = Step { node, position };
        self.len += 1;
        Ok(())
    }

    /// The steps.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    /// Changes the position at the last node.
    pub(super) fn turn(&mut self, position: usize) {
        if let Some(step) = self.steps[..self.len].last_mut() {
            step.position = position;
        }
    }

    /// Descends from a node at a level to the first or last pair below it.
    pub(super) fn descend<'r, R: Read>(
        &mut self,
        read: &'r R,
        (mut block, level): (u64, usize),
        order: usize,
        last: bool,
    ) -> Result<&'r Pair> {
        for level in (1..=level).rev() {
            let node = Node::at(read, block, level, order)?;
            let position = if last { node.pairs.len() } else { 0 };
            self.push(block, position)?;
            block = node.child(position);
        }
        let leaf = Node::at(read, block, 0, order)?;
        let position = if last { leaf.pairs.len() - 1 } else { 0 };
        self.push(block, position)?;
        Ok(&leaf.pairs[position])
    }
}

/// Number of pairs of a node below a key, and the entry of the key if it is there.
///
/// Heads decide; only keys whose head ties are compared in full, since a head cannot tell a string
/// from the same string followed by zeros, nor see beyond its 8 bytes.
#[inline]
pub(super) fn search<'r, R: Read>(
    read: &'r R,
    node: &Node<'r>,
    form: Form,
    key: &[u8],
    key_head: u64,
) -> Result<(usize, Option<Entry<'r>>)> {
    if form == Form::Words {
        return Ok(search_words(node, key, key_head));
    }
    // Counted without a branch: a binary search mispredicts at every other step.
    let below = |pair: &&Pair| pair.head.get() < key_head;
    let mut low = node.pairs.iter().filter(below).count();
    let ties = node.pairs[low..].iter().take_while(|pair| pair.head.get() == key_head).count();
    let mut high = low + ties;
    while low < high {
        let middle = low + (high - low) / 2;
        let pair = &node.pairs[middle];
        let entry = form.pair(read, &pair.head, &pair.slot)?;
        match entry.key.cmp(key) {
            Ordering::Less => low = middle + 1,
            Ordering::Equal => return Ok((middle, Some(entry))),
            Ordering::Greater => high = middle,
        }
    }
    Ok((low, None))
}

/// The same in a node of words, where only the node is read.
#[inline]
fn search_words<'r>(node: &Node<'r>, key: &[u8], key_head: u64) -> (usize, Option<Entry<'r>>) {
    let number = |pair: &Pair| Form::Words.number(pair.head);
    let low = node.pairs.iter().filter(|pair| number(pair) < key_head).count();
    let Some(pair) = node.pairs.get(low).filter(|pair| number(pair) == key_head) else {
        return (low, None);
    };
    // Keys of other lengths are never there, but may bound a range.
    match key.len().cmp(&WORD_BYTES) {
        Ordering::Less => (low, None),
        Ordering::Equal => (low, Some(Entry::of_words(pair.head.as_bytes(), pair.slot.as_bytes()))),
        Ordering::Greater => (low + 1, None),
    }
}

/// The entry of a key, without keeping the path.
#[inline]
pub(super) fn entry_of<'r, R: Read>(
    read: &'r R,
    tree: u64,
    key: &[u8],
) -> Result<Option<Entry<'r>>> {
    let top = Top::of(read, tree)?;
    if top.root == 0 {
        return Ok(None);
    }
    let key_head = head_of(key, 0);
    let mut block = top.root;
    for level in (0..=top.height).rev() {
        let node = Node::at(read, block, level, top.order)?;
        let (position, entry) = search(read, &node, top.form, key, key_head)?;
        if entry.is_some() || level == 0 {
            return Ok(entry);
        }
        block = node.child(position);
    }
    Ok(None)
}

/// Goes to the pair of a key, or to the position in a leaf where it would be. Returns the pair if
/// it is there.
pub(super) fn path_to<'r, R: Read>(
    read: &'r R,
    top: Top,
    key: &[u8],
    path: &mut Path,
) -> Result<Option<&'r Pair>> {
    let key_head = head_of(key, 0);
    path.len = 0;
    let mut block = top.root;
    if block == 0 {
        return Ok(None);
    }
    for level in (0..=top.height).rev() {
        let node = Node::at(read, block, level, top.order)?;
        let (position, entry) = search(read, &node, top.form, key, key_head)?;
        path.push(block, position)?;
        if entry.is_some() {
            return Ok(Some(&node.pairs[position]));
        }
        block = node.child(position);
    }
    Ok(None)
}
