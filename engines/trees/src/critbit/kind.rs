//! The crit-bit tree as a kind of tree.

use adamant_heap::access::{Read, Write};

use super::change::{insert_entry, take};
use super::check::check;
use super::find::most_like;
use super::layout::{LABEL, Node, Word};
use super::trail::CritbitTrail;
use crate::checking::Checking;
use crate::error::Result;
use crate::kind::{Kind, Label, Link, damaged};
use crate::layout::Head;
use crate::slot::{Entry, KeyHash};
use crate::words::{Item, New, Old};

/// The crit-bit tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CritbitKind;

fn link(word: Word) -> Option<Link> {
    match word.slot() {
        Some(slot) => Some(Link::Entry(slot)),
        None if word == Word::NONE => None,
        None => Some(Link::Node { block: word.0, level: 0 }),
    }
}

impl Kind for CritbitKind {
    const LABEL: Label = LABEL;
    const ORDER: u64 = 0;
    type Trail = CritbitTrail;

    fn find<'r, R: Read>(read: &'r R, tree: u64, key: &[u8]) -> Result<Option<Entry<'r>>> {
        let Some(slot) = most_like(read, tree, key)? else { return Ok(None) };
        if !slot.admits(KeyHash::of(key)) {
            return Ok(None);
        }
        let entry = Entry::read(read, slot.entry())?;
        Ok((entry.key == key).then_some(entry))
    }

    fn insert_entry<W: Write>(tx: &mut W, tree: u64, key: &[u8], new: New<'_>) -> Result<Old> {
        if let New::Item(Item::Word(_)) = new {
            return damaged(tree, "is no tree of words");
        }
        insert_entry(tx, tree, key, new)
    }

    fn take<W: Write>(tx: &mut W, tree: u64, key: &[u8]) -> Result<Option<Item>> {
        Ok(take(tx, tree, key)?.map(Item::Entry))
    }

    fn root(head: &Head) -> Option<Link> {
        link(Word(head.root.get()))
    }

    fn links<R: Read>(
        read: &R,
        _head: &Head,
        (block, _): (u64, usize),
        links: &mut Vec<Link>,
    ) -> Result<()> {
        let node = Node::at(read, block)?;
        for side in [true, false] {
            match link(node.child(side)) {
                Some(link) => links.push(link),
                None => return damaged(block, "refers to nothing"),
            }
        }
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
