//! The red-black tree as a kind of tree.

use adamant_heap::access::{Read, Write};

use super::check::check;
use super::find::entry_of;
use super::insert::insert_entry;
use super::layout::{HEAD_AT, LABEL, Node, SLOT_AT};
use super::remove::take;
use super::trail::RedblackTrail;
use crate::checking::Checking;
use crate::error::Result;
use crate::kind::{Kind, Label, Link};
use crate::layout::Head;
use crate::slot::{Entry, Slot};
use crate::words::{Form, Item, New, Old};

/// The red-black tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedblackKind;

fn link(block: u64) -> Option<Link> {
    (block != 0).then_some(Link::Node { block, level: 0 })
}

impl Kind for RedblackKind {
    const LABEL: Label = LABEL;
    const ORDER: u64 = 0;
    type Trail = RedblackTrail;

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
        link(head.root.get())
    }

    fn links<R: Read>(
        read: &R,
        head: &Head,
        (block, _): (u64, usize),
        links: &mut Vec<Link>,
    ) -> Result<()> {
        let node = Node::at(read, block)?;
        links.extend(link(node.child(true)));
        links.extend(link(node.child(false)));
        links.push(match Form::of(head) {
            Form::Entries => Link::Entry(Slot(node.slot.get())),
            Form::Words => Link::Words { block, key_at: HEAD_AT, value_at: SLOT_AT },
        });
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
