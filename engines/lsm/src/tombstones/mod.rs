//! Range tombstones: keys that a removed range hides. Used by memtables, tables and reads.

pub(crate) mod fragments;
pub(crate) mod range_tombstones;
