//! Serializable transactions.

pub(crate) mod handle;
pub(crate) mod iterate;
