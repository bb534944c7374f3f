//! The B-tree: sorted nodes of up to 64 children, with pairs in all of them.
//!
//! Purpose: the baseline for the other trees. The number of children of a full node is chosen when
//! a tree is created, and kept in its head.
//! Source: R. Bayer, E. McCreight, "Organization and maintenance of large ordered indices".
//! Invariants: see `docs/format/btree.md`. No walk follows more levels than the head's height,
//! which is bounded, so that it ends in a damaged tree.

mod layout;

mod find;
mod write;

mod shift;

mod insert;
mod remove;

mod check;
mod trail;

mod kind;

pub use kind::BtreeKind;
pub use trail::BtreeTrail;
