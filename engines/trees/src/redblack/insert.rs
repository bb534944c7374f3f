//! Insertion of one pair.

use std::cmp::Ordering;

use adamant_heap::access::Write;

use super::find::{Path, path_to, root};
use super::layout::{Node, SLOT_AT};
use super::plan::{Plan, new_node};
use crate::error::Result;
use crate::words::{Form, New, Old};

/// Puts the new value of a key into the tree; returns what it replaced.
pub(super) fn insert_entry<W: Write>(
    tx: &mut W,
    tree: u64,
    key: &[u8],
    new: New<'_>,
) -> Result<Old> {
    let mut path = Path::EMPTY;
    let (root, form) = root(tx, tree)?;
    let found = match path_to(tx, (root, form), key, &mut path)? {
        Some((&Node { slot, .. }, Ordering::Equal)) => Some(slot),
        _ => None,
    };
    if let Some(old) = found
        && new.overwrites(tx, form.item(old))?
    {
        return Ok(Old::Overwritten);
    }
    let (head, slot) = Form::words(key, new.item(tx, key)?);
    if let (Some(old), Some((node, _))) = (found, path.last()) {
        tx.update_u64(node, SLOT_AT, slot.get())?;
        return Ok(Old::Replaced(form.item(old)));
    }
    let node = new_node(tx, slot, head)?;
    let mut plan = Plan::new(tx, tree)?;
    plan.link(tx, path.steps(), node)?;
    balance(tx, &mut plan, path.steps(), node)?;
    plan.publish(tx)?;
    Ok(Old::None)
}

/// Resolves two consecutive red nodes, of which the lower one is `node`, below the last step.
fn balance<W: Write>(
    tx: &W,
    plan: &mut Plan,
    mut steps: &[(u64, bool)],
    mut node: u64,
) -> Result<()> {
    while let [above @ .., (parent, higher)] = steps {
        let (mut parent, higher) = (*parent, *higher);
        if !plan.node(tx, parent)?.is_red() {
            return Ok(());
        }
        let [top @ .., (grandparent, side)] = above else { break };
        let (grandparent, side) = (*grandparent, *side);
        let uncle = plan.child(tx, grandparent, !side)?;
        if plan.is_red(tx, uncle)? {
            plan.node(tx, parent)?.set_red(false);
            plan.node(tx, uncle)?.set_red(false);
            plan.node(tx, grandparent)?.set_red(true);
            (node, steps) = (grandparent, top);
            continue;
        }
        if higher != side {
            parent = plan.rotate(tx, parent, side)?;
            plan.node(tx, grandparent)?.set_child(side, parent);
        }
        plan.rotate(tx, grandparent, !side)?;
        plan.node(tx, parent)?.set_red(false);
        plan.node(tx, grandparent)?.set_red(true);
        return plan.link(tx, top, parent);
    }
    // The red node is now the root: it turns black.
    let root = steps.first().map_or(node, |(root, _)| *root);
    plan.node(tx, root)?.set_red(false);
    Ok(())
}
