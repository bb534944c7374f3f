//! The crit-bit tree: a node for each pair but one, which says where two groups of keys differ.
//!
//! Purpose: the fewest bytes changed of all trees: an insert is one node, one entry and one 8-byte
//! store that publishes both; a remove is one store.
//! Source: D. J. Bernstein, "Crit-bit trees"; leaves are embedded in the words of nodes.
//! Invariants: see `docs/format/critbit.md`. Places where keys differ only rise on a way down,
//! which is checked on the way, so that no damage can make it run on.

mod layout;

mod find;

mod change;
mod check;
mod trail;

mod kind;

pub use kind::CritbitKind;
pub use trail::CritbitTrail;
