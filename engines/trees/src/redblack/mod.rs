//! The red-black tree: one pair a node, balanced by colours.
//!
//! Purpose: there to be compared with, and to show what a transaction makes of a structure that
//! writes a lot: a change is planned over copies of the nodes it needs, then the words that differ
//! are stored, each once.
//! Source: R. Bayer, "Symmetric binary B-trees"; L. J. Guibas, R. Sedgewick, "A dichromatic
//! framework for balanced trees". There are no links to parents: a way down is kept instead.
//! Invariants: see `docs/format/redblack.md`. No way is longer than `HEIGHT_MAX`, so that no damage
//! can make one run on.

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
