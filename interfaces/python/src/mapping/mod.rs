//! Reading a mapping: the map behind it, the state that it reads, cursors. Used by the classes for
//! keyspaces, snapshots and transactions.

pub(crate) mod scan_batch;
pub(crate) mod map;
pub(crate) mod place;
pub(crate) mod cursor;
pub(crate) mod reader;
