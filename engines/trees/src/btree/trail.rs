//! The trail of the B-tree: from a pair to its neighbours.

use std::cmp::Ordering;

use adamant_heap::access::Read;

use super::find::{Path, Top, path_to};
use super::layout::Node;
use crate::error::Result;
use crate::kind::Trail;
use crate::slot::Entry;

/// The path to a pair, some 400 bytes: a scan allocates nothing.
#[derive(Clone)]
pub struct BtreeTrail {
    top: Option<Top>,
    path: Path,
}

impl BtreeTrail {
    fn start<R: Read>(&mut self, read: &R, tree: u64) -> Result<Top> {
        self.path.len = 0;
        let top = Top::of(read, tree)?;
        self.top = Some(top);
        Ok(top)
    }

    /// Goes from the edge of a leaf up to the next pair, the first on the way up that lies in that
    /// direction.
    fn upwards<'r, R: Read>(
        &mut self,
        read: &'r R,
        top: Top,
        forward: bool,
    ) -> Result<Option<Entry<'r>>> {
        for depth in (0..self.path.len - 1).rev() {
            let step = self.path.steps()[depth];
            let position = if forward { Some(step.position) } else { step.position.checked_sub(1) };
            let node = Node::at(read, step.node, top.level(depth), top.order)?;
            if let Some((position, pair)) = position.and_then(|at| Some((at, node.pairs.get(at)?)))
            {
                self.path.len = depth + 1;
                self.path.turn(position);
                return top.entry(read, pair).map(Some);
            }
        }
        Ok(None)
    }
}

impl Trail for BtreeTrail {
    const NEW: Self = Self { top: None, path: Path::EMPTY };

    fn end<'r, R: Read>(
        &mut self,
        read: &'r R,
        tree: u64,
        last: bool,
    ) -> Result<Option<Entry<'r>>> {
        let top = self.start(read, tree)?;
        if top.root == 0 {
            return Ok(None);
        }
        let pair = self.path.descend(read, (top.root, top.height), top.order, last)?;
        top.entry(read, pair).map(Some)
    }

    fn near<'r, R: Read>(
        &mut self,
        read: &'r R,
        tree: u64,
        key: &[u8],
    ) -> Result<Option<(Entry<'r>, Ordering)>> {
        let top = self.start(read, tree)?;
        if let Some(pair) = path_to(read, top, key, &mut self.path)? {
            return Ok(Some((top.entry(read, pair)?, Ordering::Equal)));
        }
        let Some(step) = self.path.steps().last() else { return Ok(None) };
        let leaf = Node::at(read, step.node, 0, top.order)?;
        if let Some(pair) = leaf.pairs.get(step.position) {
            return Ok(Some((top.entry(read, pair)?, Ordering::Greater)));
        }
        let last = leaf.pairs.len() - 1;
        self.path.turn(last);
        Ok(Some((top.entry(read, &leaf.pairs[last])?, Ordering::Less)))
    }

    fn step<'r, R: Read>(&mut self, read: &'r R, forward: bool) -> Result<Option<Entry<'r>>> {
        let (Some(top), Some(last)) = (self.top, self.path.steps().last().copied()) else {
            return Ok(None);
        };
        let level = top.level(self.path.len - 1);
        if level > 0 {
            // The neighbours of an inner node's pair lie below it.
            let position = last.position + usize::from(forward);
            let child = Node::at(read, last.node, level, top.order)?.child(position);
            self.path.turn(position);
            let start = (child, level - 1);
            let pair = self.path.descend(read, start, top.order, !forward)?;
            return top.entry(read, pair).map(Some);
        }
        let leaf = Node::at(read, last.node, 0, top.order)?;
        let position = last.position.wrapping_add_signed(if forward { 1 } else { -1 });
        if let Some(pair) = leaf.pairs.get(position) {
            self.path.turn(position);
            return top.entry(read, pair).map(Some);
        }
        self.upwards(read, top, forward)
    }
}
