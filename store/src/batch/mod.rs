//! Batches: changes that become one commit.

pub(crate) mod builder;
pub(crate) mod commit;
