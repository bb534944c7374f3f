//! Visits of a whole tree: to free it, to account for its blocks, or to salvage it.
//!
//! Invariants: freeing ends in a damaged tree, since freeing twice is an error; the others visit
//! each block once.

use std::collections::HashSet;

use adamant_heap::access::{Read, Write};

use crate::bplus::Salvaged;
use crate::error::{Error, Result};
use crate::kind::{Kind, Link, damaged, head};
use crate::parts::{Part, Parts};
use crate::slot::{Entry, KeyHash, Slot, free_entry};
use crate::words::WORD_BYTES;

/// Frees every block but the head. Memory: the references of one path's nodes. O(n).
pub(crate) fn free_all<K: Kind, W: Write>(tx: &mut W, tree: u64) -> Result<()> {
    let head = *head(tx, tree, K::LABEL)?;
    let mut waiting: Vec<Link> = K::root(&head).into_iter().collect();
    while let Some(link) = waiting.pop() {
        match link {
            Link::Entry(slot) => free_entry(tx, slot.entry())?,
            Link::Words { .. } => {}
            Link::Node { block, level } => {
                K::links(tx, &head, (block, level), &mut waiting)?;
                tx.free(block)?;
            }
        }
    }
    Ok(())
}

/// Hands out every block but the head, and every value. O(n); 8 bytes and bookkeeping per block.
pub(crate) fn parts<'r, K: Kind, R: Read>(
    read: &'r R,
    tree: u64,
    each: &mut dyn FnMut(Part<'r>),
) -> Result<()> {
    let head = head(read, tree, K::LABEL)?;
    let mut parts = Parts::new(each);
    let mut waiting: Vec<Link> = K::root(head).into_iter().collect();
    while let Some(link) = waiting.pop() {
        match link {
            Link::Entry(slot) => parts.entry(read, slot.entry())?,
            Link::Words { block, value_at, .. } => parts.value(word_at(read, block, value_at)?),
            Link::Node { block, level } => {
                parts.block(block)?;
                K::links(read, head, (block, level), &mut waiting)?;
            }
        }
    }
    Ok(())
}

/// Hands out what can be read of the tree with this head, in no order. O(n); 8 bytes and
/// bookkeeping per block.
pub(crate) fn salvage<'r, K: Kind, R: Read>(
    read: &'r R,
    tree: u64,
    each: &mut dyn FnMut(Salvaged<'r>),
) {
    let lost_node = |why| Salvaged::LostNode { lower: None, upper: None, why };
    let head = match head(read, tree, K::LABEL) {
        Ok(head) => head,
        Err(why) => return each(lost_node(why)),
    };
    let mut seen = HashSet::new();
    let mut waiting: Vec<Link> = K::root(head).into_iter().collect();
    while let Some(link) = waiting.pop() {
        match link {
            Link::Node { block, level } => {
                let links = waiting.len();
                let result = once(&mut seen, block)
                    .and_then(|()| K::links(read, head, (block, level), &mut waiting));
                if let Err(why) = result {
                    waiting.truncate(links);
                    each(lost_node(why));
                }
            }
            Link::Words { block, key_at, value_at } => {
                let pair = word_at(read, block, key_at)
                    .and_then(|key| Ok((key, word_at(read, block, value_at)?)));
                each(match pair {
                    Ok(pair) => Salvaged::Pair(pair),
                    Err(why) => Salvaged::LostEntry { lower: None, upper: None, why },
                });
            }
            Link::Entry(slot) => {
                let result = once(&mut seen, slot.entry()).and_then(|()| entry(read, slot));
                each(match result {
                    Err(why) => Salvaged::LostEntry { lower: None, upper: None, why },
                    Ok(entry) => match entry.value(read) {
                        Ok(value) => Salvaged::Pair((entry.key, value)),
                        Err(why) => Salvaged::LostValue { key: entry.key, why },
                    },
                });
            }
        }
    }
}

/// The 8 bytes of a key or a value in a node.
fn word_at<R: Read>(read: &R, block: u64, at: usize) -> Result<&[u8]> {
    match read.block(block)?.get(at..at + WORD_BYTES) {
        Some(word) => Ok(word),
        None => damaged(block, "is too small for a node"),
    }
}

/// Notes that a block belongs to the tree.
pub(crate) fn once(seen: &mut HashSet<u64>, block: u64) -> Result<()> {
    if seen.insert(block) { Ok(()) } else { damaged(block, "is referred to twice by the tree") }
}

/// The entry of a slot, verified by the hash of its key.
pub(crate) fn entry<R: Read>(read: &R, slot: Slot) -> Result<Entry<'_>> {
    let entry = Entry::read(read, slot.entry())?;
    if !slot.admits(KeyHash::of(entry.key)) {
        let what = "has a key that is not the one its slot was made for";
        return Err(Error::Damaged { block: slot.entry(), what });
    }
    Ok(entry)
}
