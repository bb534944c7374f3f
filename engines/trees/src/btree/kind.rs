//! The B-tree as a kind of tree.

use adamant_heap::access::{Read, Write};

use super::check::check;
use super::find::{Top, entry_of};
use super::insert::insert_entry;
use super::layout::{HEAD_AT, LABEL, Node, ORDER_MAX, ORDER_MIN, PAIR_BYTES, PAIRS_AT, SLOT_AT};
use super::remove::take;
use super::trail::BtreeTrail;
use crate::checking::Checking;
use crate::error::Result;
use crate::kind::{Kind, Label, Link, damaged};
use crate::layout::Head;
use crate::map::Tree;
use crate::slot::{Entry, Slot};
use crate::words::{Form, Item, New, Old};

/// The B-tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtreeKind;

impl Tree<BtreeKind> {
    /// Creates an empty tree whose full nodes have `order` children, rounded to an even number from
    /// 8 to 64. Small orders move less at an insert, large ones miss the cache less often.
    ///
    /// # Errors
    /// The heap's, out of space among them.
    pub fn create_with_order<W: Write>(tx: &mut W, order: usize) -> Result<Self> {
        Self::create_of(tx, Form::Entries, even(order))
    }

    /// The same, for words only: see [`OrderedMap::create_of_words`](crate::OrderedMap).
    ///
    /// # Errors
    /// The heap's, out of space among them.
    pub fn create_of_words_with_order<W: Write>(tx: &mut W, order: usize) -> Result<Self> {
        Self::create_of(tx, Form::Words, even(order))
    }
}

/// The order of a tree for which this order was requested.
fn even(order: usize) -> u64 {
    order.next_multiple_of(2).clamp(ORDER_MIN, ORDER_MAX) as u64
}

impl Kind for BtreeKind {
    const LABEL: Label = LABEL;
    const ORDER: u64 = 16;
    type Trail = BtreeTrail;

    fn find<'r, R: Read>(read: &'r R, tree: u64, key: &[u8]) -> Result<Option<Entry<'r>>> {
        entry_of(read, tree, key)
    }

    fn insert_entry<W: Write>(tx: &mut W, tree: u64, key: &[u8], new: New<'_>) -> Result<Old> {
        insert_entry(tx, tree, key, new)
    }

    fn take<W: Write>(tx: &mut W, tree: u64, key: &[u8]) -> Result<Option<Item>> {
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
        links.extend(node.pairs.iter().enumerate().map(|(position, pair)| match top.form {
            Form::Entries => Link::Entry(Slot(pair.slot.get())),
            Form::Words => {
                let at = PAIRS_AT + PAIR_BYTES * position;
                Link::Words { block, key_at: at + HEAD_AT, value_at: at + SLOT_AT }
            }
        }));
        let child = |child: &zerocopy::little_endian::U64| child.get();
        links.extend(
            node.children.iter().map(child).map(|block| Link::Node { block, level: level - 1 }),
        );
        Ok(())
    }

    fn check<R: Read>(
        read: &R,
        tree: u64,
        checking: &mut Checking,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<bool> {
        check(read, tree, checking, is_wanted)
    }
}
