//! A keyspace: point reads, scans and changes. Used by the store's handles.

pub(crate) mod bounds;
pub(crate) mod ends;
pub(crate) mod view;
pub(crate) mod handle;
pub(crate) mod read;
pub(crate) mod iterate;
pub(crate) mod write;
