//! Batches: changes that become one commit. Made by the store; loads and typed keyspaces add to
//! them.

pub(crate) mod builder;
pub(crate) mod commit;
