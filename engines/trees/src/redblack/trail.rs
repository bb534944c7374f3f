//! The trail of the red-black tree: from a pair to its neighbours.

use std::cmp::Ordering;

use adamant_heap::access::Read;

use super::find::{Path, descend, path_to, root};
use super::layout::Node;
use crate::error::Result;
use crate::kind::Trail;
use crate::slot::Entry;
use crate::words::Form;

/// The path to a pair, about 1.5 KiB: a scan allocates nothing.
#[derive(Clone)]
pub struct RedblackTrail {
    path: Path,
    form: Form,
}

impl Trail for RedblackTrail {
    const NEW: Self = Self { path: Path::EMPTY, form: Form::Entries };

    fn end<'r, R: Read>(
        &mut self,
        read: &'r R,
        tree: u64,
        last: bool,
    ) -> Result<Option<Entry<'r>>> {
        self.path.truncate(0);
        let (root, form) = root(read, tree)?;
        self.form = form;
        let node = descend(read, &mut self.path, root, last)?;
        node.map(|node| node.entry(read, form)).transpose()
    }

    fn near<'r, R: Read>(
        &mut self,
        read: &'r R,
        tree: u64,
        key: &[u8],
    ) -> Result<Option<(Entry<'r>, Ordering)>> {
        let (root, form) = root(read, tree)?;
        self.form = form;
        match path_to(read, (root, form), key, &mut self.path)? {
            Some((node, order)) => Ok(Some((node.entry(read, form)?, order.reverse()))),
            None => Ok(None),
        }
    }

    fn step<'r, R: Read>(&mut self, read: &'r R, forward: bool) -> Result<Option<Entry<'r>>> {
        let Some((block, _)) = self.path.last() else { return Ok(None) };
        let child = Node::at(read, block)?.child(forward);
        if child != 0 {
            self.path.turn(forward);
            let node = descend(read, &mut self.path, child, !forward)?;
            return node.map(|node| node.entry(read, self.form)).transpose();
        }
        // Up to the first node that lies in that direction; the last node's side does not count,
        // since no child was taken from it.
        let above = &self.path.steps()[..self.path.steps().len() - 1];
        let Some(depth) = above.iter().rposition(|(_, higher)| *higher != forward) else {
            return Ok(None);
        };
        self.path.truncate(depth + 1);
        let (block, _) = self.path.steps()[depth];
        Node::at(read, block)?.entry(read, self.form).map(Some)
    }
}
