//! The undo journal: how a commit becomes durable where memory is the medium.
//!
//! A lane is a ring of entries in a mapped file; each thread that commits has one to itself while
//! it does. A commit is one entry and one fence (`append`): it is applied to memory only after
//! that, so what is visible is durable. What was written in place before its commit is saved by
//! undo entries first. A lane starts over once a watermark says that nothing in it is needed
//! (`advance`). Opening replays and rolls back what lies beyond the watermark (`recover`,
//! `replay`); `salvage` does so in memory, with what is left of damaged ones. See
//! `docs/format/lanes.md`.

mod layout;
mod entry;
mod mapped;
mod lanes_file;
mod large;
mod order;
mod lane;
mod shared;
mod advance;
mod append;
mod scan;
mod recover;
mod replay;
mod salvage;
mod handle;
#[cfg(test)]
mod tests;

pub(crate) use append::{Appended, Fresh, Undo};
pub(crate) use handle::Lanes;
pub(crate) use salvage::{identity, lay_over};
