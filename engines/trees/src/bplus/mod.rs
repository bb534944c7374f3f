//! The B+ tree: unsorted leaves with fingerprints, splits that move slots, wide inner nodes.
//!
//! Purpose: the default engine of a keyspace. A get reads one leaf and, thanks to its fingerprints,
//! almost always at most one entry; an insert logs its entry and some 25 bytes of its leaf.
//! Invariants: see `docs/format/bplus.md` for the bytes. Inner nodes change only when nodes below
//! split or merge. Separators are written once. Nodes change only under the heap's exclusive lock
//! (S1), and so do values in entries, which are not borrowed then (S2).
//! Thread safety: the handle is a number; the heap's `Read` or `Write` carries the locks.

mod tagging;

mod layout;

mod find;
mod sort;
mod write;

mod split;

mod insert;

mod remove;

mod load;

mod batch;
mod compact;
mod check;
mod clear;
mod cursor;
mod estimate;
mod parts;
mod salvage;

mod map;

pub use cursor::BplusCursor;
pub use map::Bplus;
pub use salvage::Salvaged;
