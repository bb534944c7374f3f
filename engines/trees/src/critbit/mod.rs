//! The crit-bit tree: a node for each pair but one, which names the bit where two groups of keys
//! differ.
//!
//! Purpose: changes the fewest bytes of all trees: an insert is one node, one entry and one 8-byte
//! store that publishes both; a remove is one store.
//! Source: D. J. Bernstein, "Crit-bit trees"; leaves are embedded in the words of nodes.
//! Invariants: see `docs/format/critbit.md`. The places where keys differ only rise on a path down.
//! Every descent checks this, so that it ends in a damaged tree.

mod layout;

mod find;

mod change;
mod check;
mod trail;

mod kind;

pub use kind::CritbitKind;
pub use trail::CritbitTrail;
