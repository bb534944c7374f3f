//! Serializable transactions. Made by the store; expiring and typed keyspaces work within them.

pub(crate) mod writes;
pub(crate) mod popping;
pub(crate) mod merged;

pub(crate) mod handle;
pub(crate) mod iterate;
pub(crate) mod remove;
pub(crate) mod shared;
