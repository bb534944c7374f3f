//! The B-tree as a kind of tree.

use adamant_heap::access::{Read, Write};

use super::check::check;
use super::find::{Top, entry_of};
use super::insert::adopt;
use super::layout::{LABEL, Node, ORDER_MAX, ORDER_MIN};
use super::remove::take;
use super::trail::BtreeTrail;
use crate::error::Result;
use crate::kind::{Kind, Label, Link, damaged};
use crate::layout::Head;
use crate::map::Tree;
use crate::slot::Entry;
use crate::tree::Report;

/// The B-tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtreeKind;

impl Tree<BtreeKind> {
    /// Creates an empty tree whose full nodes have `order` children: brought to an even number
    /// from 8 to 64. Small orders move less at an insert, large ones miss the cache less often.
    ///
    /// # Errors
    /// The heap's, out of space among them.
    pub fn create_with_order<W: Write>(tx: &mut W, order: usize) -> Result<Self> {
        let order = order.next_multiple_of(2).clamp(ORDER_MIN, ORDER_MAX);
        Self::create_of_order(tx, order as u64)
    }
}

impl Kind for BtreeKind {
    const LABEL: Label = LABEL;
    const ORDER: u64 = 16;
    type Trail = BtreeTrail;

    fn find<'r, R: Read>(read: &'r R, tree: u64, key: &[u8]) -> Result<Option<Entry<'r>>> {
        entry_of(read, tree, key)
    }

    fn adopt<W: Write>(tx: &mut W, tree: u64, key: &[u8], entry: u64) -> Result<Option<u64>> {
        adopt(tx, tree, key, entry)
    }

    fn take<W: Write>(tx: &mut W, tree: u64, key: &[u8]) -> Result<Option<u64>> {
        take(tx, tree, key)
    }

    fn root(head: &Head) -> Option<Link> {
        let (block, level) = (head.root.get(), Top::from(head)?.height);
        (block != 0).then_some(Link::Node { block, level })
    }

    fn links<R: Read>(
        read: &R,
        head: &Head,
        (block, level): (u64, usize),
        links: &mut Vec<Link>,
    ) -> Result<()> {
        let Some(top) = Top::from(head) else { return damaged(block, "has an impossible head") };
        let node = Node::at(read, block, level, top.order)?;
        links.extend(node.pairs.iter().map(|pair| Link::Entry(pair.slot())));
        let child = |child: &zerocopy::little_endian::U64| child.get();
        links.extend(
            node.children.iter().map(child).map(|block| Link::Node { block, level: level - 1 }),
        );
        Ok(())
    }

    fn check<R: Read>(read: &R, tree: u64) -> Result<Report> {
        check(read, tree)
    }
}
