//! Batches: changes that become one commit. Made by the store, and by deletes of many entries of a
//! keyspace; typed keyspaces add to them.

pub(crate) mod builder;
pub(crate) mod commit;
pub(crate) mod retain;
pub(crate) mod delete_range;
