//! Verbs for entries and keyspaces.

pub(crate) mod get;
pub(crate) mod put;
pub(crate) mod merge;
pub(crate) mod delete;
pub(crate) mod rename;
pub(crate) mod scan;
pub(crate) mod keyspace;
