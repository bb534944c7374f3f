//! Enumeration of every block and value of a tree.

use adamant_heap::access::Read;

use super::find::head;
use super::layout::{CHILDREN_MAX, Inner, Leaf};
use crate::error::{Error, Result};
use crate::parts::{Part, Parts};

/// Hands out all but the head. O(n); 8 bytes and bookkeeping per block.
pub(super) fn parts<'r, R: Read>(
    read: &'r R,
    tree: u64,
    each: &mut dyn FnMut(Part<'r>),
) -> Result<()> {
    let head = head(read, tree)?;
    let mut parts = Parts::new(each);
    let mut waiting = vec![(head.root.get(), head.height.get() as usize)];
    while let Some((block, level)) = waiting.pop() {
        parts.block(block)?;
        if level == 0 {
            let leaf = Leaf::at(read, block)?;
            for index in leaf.indices() {
                parts.entry(read, leaf.slot(index).entry())?;
            }
            continue;
        }
        let inner = Inner::at(read, block, level)?;
        if inner.order[..inner.len()].iter().any(|index| usize::from(*index) >= CHILDREN_MAX) {
            return Err(Error::Damaged { block, what: "has an impossible order" });
        }
        for position in 0..inner.len() {
            waiting.push((inner.child(position), level - 1));
            if position > 0 {
                parts.block(inner.separator(position))?;
            }
        }
    }
    Ok(())
}
