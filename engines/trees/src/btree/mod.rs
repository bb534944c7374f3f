//! The B-tree: sorted nodes of up to 64 children, with pairs in all of them.
//!
//! Purpose: the tree that the others are compared with. How many children a full node has is
//! chosen when a tree is created, and kept in its head.
//! Source: R. Bayer, E. McCreight, "Organization and maintenance of large ordered indices".
//! Invariants: see `docs/format/btree.md`. Nothing follows more levels than the head's height,
//! which is bounded, so that no damage can make it run on.

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
