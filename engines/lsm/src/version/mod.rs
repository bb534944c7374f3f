//! Versions: which memtables, tables and blob files a tree consists of at one moment, and how that
//! changes. Used by reads, compactions and the tree.

pub(crate) mod gaps;
pub(crate) mod manifest;
pub(crate) mod context;
pub(crate) mod tree_version;
pub(crate) mod later;
pub(crate) mod edit;
