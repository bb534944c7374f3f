//! The plan of a change: copies of nodes, stored at the end.
//!
//! Purpose: rotations and changes of colour touch the same nodes several times. They do so in
//! copies, and at the end each word that differs is stored once.

use adamant_heap::access::{Read, Write};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use super::find::root;
use super::layout::{NODE_BYTES, Node};
use crate::error::Result;
use crate::kind::damaged;
use crate::layout::HEAD_ROOT_AT;

/// Nodes that a plan holds without an allocation: more than most changes touch.
const NODES_INLINE: usize = 8;

/// A node before and after the change.
#[derive(Clone, Copy)]
struct Planned {
    block: u64,
    before: Node,
    after: Node,
}

const NO_NODE: Node = Node { slot: U64::ZERO, head: U64::ZERO, children: [U64::ZERO; 2] };

/// The planned changes of some nodes and of the root.
pub(super) struct Plan {
    tree: u64,
    root_before: u64,
    root: u64,
    few: [Planned; NODES_INLINE],
    few_len: usize,
    more: Vec<Planned>,
}

impl Plan {
    /// An empty plan.
    pub(super) fn new<R: Read>(read: &R, tree: u64) -> Result<Self> {
        let (root, _) = root(read, tree)?;
        let none = Planned { block: 0, before: NO_NODE, after: NO_NODE };
        Ok(Self {
            tree,
            root_before: root,
            root,
            few: [none; NODES_INLINE],
            few_len: 0,
            more: Vec::new(),
        })
    }

    /// The planned state of a node, to be changed.
    pub(super) fn node<R: Read>(&mut self, read: &R, block: u64) -> Result<&mut Node> {
        if let Some(at) = self.few[..self.few_len].iter().position(|node| node.block == block) {
            return Ok(&mut self.few[at].after);
        }
        if let Some(at) = self.more.iter().position(|node| node.block == block) {
            return Ok(&mut self.more[at].after);
        }
        if block == 0 {
            return damaged(self.tree, "lacks a node that its colours ask for");
        }
        let before = *Node::at(read, block)?;
        let planned = Planned { block, before, after: before };
        if self.few_len < NODES_INLINE {
            self.few[self.few_len] = planned;
            self.few_len += 1;
            return Ok(&mut self.few[self.few_len - 1].after);
        }
        self.more.push(planned);
        let last = self.more.len() - 1;
        Ok(&mut self.more[last].after)
    }

    /// The child of a node on a side.
    pub(super) fn child<R: Read>(&mut self, read: &R, block: u64, higher: bool) -> Result<u64> {
        Ok(self.node(read, block)?.child(higher))
    }

    /// Whether a node exists and is red.
    pub(super) fn is_red<R: Read>(&mut self, read: &R, block: u64) -> Result<bool> {
        if block == 0 { Ok(false) } else { Ok(self.node(read, block)?.is_red()) }
    }

    /// Links a node below the last step of a path, or makes it the root.
    pub(super) fn link<R: Read>(
        &mut self,
        read: &R,
        above: &[(u64, bool)],
        child: u64,
    ) -> Result<()> {
        match above.last() {
            Some((parent, higher)) => self.node(read, *parent)?.set_child(*higher, child),
            None => self.root = child,
        }
        Ok(())
    }

    /// Rotates: the child of `block` on the side that is not `higher` moves above it, and `block`
    /// goes down on the side `higher`. Returns the child; the caller links it to the node above.
    pub(super) fn rotate<R: Read>(&mut self, read: &R, block: u64, higher: bool) -> Result<u64> {
        let lifted = self.child(read, block, !higher)?;
        let moved = self.child(read, lifted, higher)?;
        self.node(read, block)?.set_child(!higher, moved);
        self.node(read, lifted)?.set_child(higher, block);
        Ok(lifted)
    }

    /// Stores the words that differ.
    pub(super) fn publish<W: Write>(self, tx: &mut W) -> Result<()> {
        for Planned { block, before, after } in
            self.few[..self.few_len].iter().chain(self.more.iter())
        {
            let words = |node: &Node| [node.slot, node.head, node.children[0], node.children[1]];
            for (index, (old, new)) in words(before).into_iter().zip(words(after)).enumerate() {
                if old != new {
                    tx.update_u64(*block, 8 * index, new.get())?;
                }
            }
        }
        if self.root != self.root_before {
            tx.update_u64(self.tree, HEAD_ROOT_AT, self.root)?;
        }
        Ok(())
    }
}

/// Writes a new red node without children.
pub(super) fn new_node<W: Write>(tx: &mut W, slot: U64, head: U64) -> Result<u64> {
    let mut node = Node { slot, head, ..NO_NODE };
    node.set_red(true);
    let block = tx.reserve(NODE_BYTES as u64)?;
    tx.write(block, 0, NODE_BYTES)?.copy_from_slice(node.as_bytes());
    Ok(block)
}
