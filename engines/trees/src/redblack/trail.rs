//! From a pair to its neighbours.

use std::cmp::Ordering;

use adamant_heap::access::Read;

use super::find::{Path, descend, path_to, root};
use super::layout::Node;
use crate::error::Result;
use crate::kind::Trail;
use crate::slot::Slot;

/// The way to a pair, about 1.5 KiB: a scan allocates nothing.
#[derive(Clone)]
pub struct RedblackTrail {
    path: Path,
}

impl Trail for RedblackTrail {
    const NEW: Self = Self { path: Path::EMPTY };

    fn end<R: Read>(&mut self, read: &R, tree: u64, last: bool) -> Result<Option<Slot>> {
        self.path.truncate(0);
        let root = root(read, tree)?;
        descend(read, &mut self.path, root, last)
    }

    fn near<R: Read>(
        &mut self,
        read: &R,
        tree: u64,
        key: &[u8],
    ) -> Result<Option<(Slot, Ordering)>> {
        let found = path_to(read, tree, key, &mut self.path)?;
        Ok(found.map(|(slot, order)| (slot, order.reverse())))
    }

    fn step<R: Read>(&mut self, read: &R, forward: bool) -> Result<Option<Slot>> {
        let Some((block, _)) = self.path.last() else { return Ok(None) };
        let child = Node::at(read, block)?.child(forward);
        if child != 0 {
            self.path.turn(forward);
            return descend(read, &mut self.path, child, !forward);
        }
        // Up to the first node that lies in that direction; the sides of the last node do not
        // count, since nothing was taken from it.
        let above = &self.path.steps()[..self.path.steps().len() - 1];
        let Some(depth) = above.iter().rposition(|(_, higher)| *higher != forward) else {
            return Ok(None);
        };
        self.path.truncate(depth + 1);
        let (block, _) = self.path.steps()[depth];
        Ok(Some(Node::at(read, block)?.slot()))
    }
}
