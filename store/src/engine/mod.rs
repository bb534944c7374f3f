//! Keyspaces as the engines have them: the four trees and the LSM behind one interface. Used by the
//! core.

pub(crate) mod scan_batch;
pub(crate) mod tree;
pub(crate) mod write_stall;
pub(crate) mod lsm_trees;
pub(crate) mod scan;
pub(crate) mod lsm_keyspace;
pub(crate) mod map;
pub(crate) mod map_changes;
