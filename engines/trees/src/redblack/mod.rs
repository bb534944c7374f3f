//! The red-black tree: one pair a node, balanced by colours.
//!
//! Purpose: a baseline, and an example of transactions on a structure that writes a lot: a change
//! is planned on copies of the nodes that it needs, then the words that differ are stored, each
//! once.
//! Source: R. Bayer, "Symmetric binary B-trees"; L. J. Guibas, R. Sedgewick, "A dichromatic
//! framework for balanced trees". There are no parent links: the path down is kept instead.
//! Invariants: see `docs/format/redblack.md`. No path is longer than `HEIGHT_MAX`, so that walks
//! end in a damaged tree.

mod layout;

mod find;
mod plan;

mod insert;
mod remove;

mod check;
mod trail;

mod kind;

pub use kind::RedblackKind;
pub use trail::RedblackTrail;
