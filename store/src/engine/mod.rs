//! Storage engines of keyspaces: the four trees and the LSM tree behind one interface. Called by
//! the catalogue, keyspaces, batches and care.

pub(crate) mod scan_batch;
pub(crate) mod tree;
pub(crate) mod value_codec;
pub(crate) mod tree_map;
pub(crate) mod write_stall;
pub(crate) mod held_files;
pub(crate) mod lsm_trees;
pub(crate) mod scan;
pub(crate) mod lsm_keyspace;
pub(crate) mod map;
pub(crate) mod map_changes;
