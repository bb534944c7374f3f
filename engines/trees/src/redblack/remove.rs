//! Removal of one pair.

use std::cmp::Ordering;

use adamant_heap::access::Write;

use super::find::{Path, descend, path_to, root};
use super::layout::Node;
use super::plan::Plan;
use crate::error::Result;
use crate::words::Item;

/// Takes the item of a key out of the tree.
pub(super) fn take<W: Write>(tx: &mut W, tree: u64, key: &[u8]) -> Result<Option<Item>> {
    let mut path = Path::EMPTY;
    let (root, form) = root(tx, tree)?;
    let found = path_to(tx, (root, form), key, &mut path)?;
    let (Some((&Node { slot, .. }, Ordering::Equal)), Some((node, _))) = (found, path.last())
    else {
        return Ok(None);
    };
    let mut plan = Plan::new(tx, tree)?;
    let Node { children: [_, higher], .. } = *Node::at(tx, node)?;
    if plan.child(tx, node, false)? != 0 && higher.get() != 0 {
        // The next pair, which has no lower child, takes its place, and that pair's node is
        // removed.
        path.turn(true);
        descend(tx, &mut path, higher.get(), false)?;
        let next = *Node::at(tx, path.last().map_or(0, |(next, _)| next))?;
        let place = plan.node(tx, node)?;
        (place.slot, place.head) = (next.slot, next.head);
    }
    let gone = path.last().map_or(0, |(gone, _)| gone);
    let above = path.steps().len() - 1;
    let leaving = *plan.node(tx, gone)?;
    let child = leaving.child(leaving.child(false) == 0);
    path.truncate(above);
    plan.link(tx, path.steps(), child)?;
    if plan.is_red(tx, child)? {
        plan.node(tx, child)?.set_red(false);
    } else if !leaving.is_red() {
        balance(tx, &mut plan, &mut path)?;
    }
    plan.publish(tx)?;
    tx.free(gone)?;
    Ok(Some(form.item(slot)))
}

/// Restores the black count of the path below the last step, which is one short.
fn balance<W: Write>(tx: &W, plan: &mut Plan, path: &mut Path) -> Result<()> {
    while let Some((parent, side)) = path.last() {
        let above = path.steps().len() - 1;
        let sibling = plan.child(tx, parent, !side)?;
        if plan.is_red(tx, sibling)? {
            // Its children are black; one of them becomes the sibling, one level further down.
            plan.rotate(tx, parent, side)?;
            plan.node(tx, sibling)?.set_red(false);
            plan.node(tx, parent)?.set_red(true);
            path.truncate(above);
            plan.link(tx, path.steps(), sibling)?;
            path.push(sibling, side)?;
            path.push(parent, side)?;
            continue;
        }
        let near = plan.child(tx, sibling, side)?;
        let far = plan.child(tx, sibling, !side)?;
        if plan.is_red(tx, near)? || plan.is_red(tx, far)? {
            path.truncate(above);
            return borrow(tx, plan, path.steps(), (parent, side), (sibling, near, far));
        }
        plan.node(tx, sibling)?.set_red(true);
        let parent = plan.node(tx, parent)?;
        if parent.is_red() {
            parent.set_red(false);
            return Ok(());
        }
        path.truncate(above);
    }
    Ok(())
}

/// Ends the repair by rotations, where a child of the sibling is red.
fn borrow<W: Write>(
    tx: &W,
    plan: &mut Plan,
    above: &[(u64, bool)],
    (parent, side): (u64, bool),
    (mut sibling, near, mut far): (u64, u64, u64),
) -> Result<()> {
    if !plan.is_red(tx, far)? {
        plan.rotate(tx, sibling, !side)?;
        plan.node(tx, near)?.set_red(false);
        plan.node(tx, sibling)?.set_red(true);
        plan.node(tx, parent)?.set_child(!side, near);
        (sibling, far) = (near, sibling);
    }
    let red = plan.node(tx, parent)?.is_red();
    plan.rotate(tx, parent, side)?;
    plan.node(tx, sibling)?.set_red(red);
    plan.node(tx, parent)?.set_red(false);
    plan.node(tx, far)?.set_red(false);
    plan.link(tx, above, sibling)
}
