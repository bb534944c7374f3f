//! The trail of the crit-bit tree: from a pair to its neighbours. Nodes have no parent links, so it
//! keeps the path.

use std::cmp::Ordering;

use adamant_heap::access::Read;

use super::find::{Descent, Position, difference, most_like};
use super::layout::{Node, Word, place};
use crate::error::Result;
use crate::kind::{Trail, damaged};
use crate::slot::Entry;

/// The path to a pair: 16 bytes for each node above it.
#[derive(Clone)]
pub struct CritbitTrail {
    /// Nodes from the root down, and the side that was taken.
    steps: Vec<(u64, bool)>,
}

impl CritbitTrail {
    /// Descends from a word to the lowest or highest pair below it.
    fn descend<'r, R: Read>(
        &mut self,
        read: &'r R,
        mut word: Word,
        last: bool,
    ) -> Result<Entry<'r>> {
        let mut descent = Descent::default();
        loop {
            if let Some(slot) = word.slot() {
                return Entry::read(read, slot.entry());
            }
            let node = descent.enter(read, word.0)?;
            self.steps.push((word.0, last));
            word = node.child(last);
        }
    }
}

impl Trail for CritbitTrail {
    const NEW: Self = Self { steps: Vec::new() };

    fn end<'r, R: Read>(
        &mut self,
        read: &'r R,
        tree: u64,
        last: bool,
    ) -> Result<Option<Entry<'r>>> {
        self.steps.clear();
        match Position::root(read, tree)?.word {
            Word::NONE => Ok(None),
            root => self.descend(read, root, last).map(Some),
        }
    }

    fn near<'r, R: Read>(
        &mut self,
        read: &'r R,
        tree: u64,
        key: &[u8],
    ) -> Result<Option<(Entry<'r>, Ordering)>> {
        self.steps.clear();
        let Some(like) = most_like(read, tree, key)? else { return Ok(None) };
        let like = Entry::read(read, like.entry())?;
        let other = like.key;
        // A key that cannot be stored may differ at a place that no node can name.
        let difference = difference(key, other);
        let limit = difference.map_or(u32::MAX, |found| place(found.byte, found.mask));
        let mut word = Position::root(read, tree)?.word;
        let mut descent = Descent::default();
        while word.slot().is_none() {
            let node = descent.enter(read, word.0)?;
            if node.place() >= limit {
                break;
            }
            let side = node.side(key);
            self.steps.push((word.0, side));
            word = node.child(side);
        }
        // All keys below that word lie on the same side of the key.
        match other.cmp(key) {
            Ordering::Equal => Ok(Some((like, Ordering::Equal))),
            order => Ok(Some((self.descend(read, word, order == Ordering::Less)?, order))),
        }
    }

    fn step<'r, R: Read>(&mut self, read: &'r R, forward: bool) -> Result<Option<Entry<'r>>> {
        let Some(depth) = self.steps.iter().rposition(|(_, side)| *side != forward) else {
            return Ok(None);
        };
        let (block, _) = self.steps[depth];
        self.steps.truncate(depth);
        self.steps.push((block, forward));
        let word = Node::at(read, block)?.child(forward);
        if word == Word::NONE {
            return damaged(block, "refers to nothing");
        }
        self.descend(read, word, !forward).map(Some)
    }
}
