//! A keyspace: reads, writes, iteration, moves. Called by users; its iterators also by transactions
//! and by expiring and typed keyspaces.

pub(crate) mod list;
pub(crate) mod convert;
pub(crate) mod handle;
pub(crate) mod entry;
pub(crate) mod snapshot;
pub(crate) mod iterate;
pub(crate) mod lend;
pub(crate) mod load;
pub(crate) mod lsm;
pub(crate) mod estimate;
pub(crate) mod stats;
pub(crate) mod compact;
pub(crate) mod moves;
pub(crate) mod read;
pub(crate) mod multi_get;
pub(crate) mod write;
pub(crate) mod pop;
pub(crate) mod atomic;
