//! Verbs for entries and keyspaces.

pub(crate) mod get;
pub(crate) mod set;
pub(crate) mod del;
pub(crate) mod rename;
pub(crate) mod scan;
pub(crate) mod keyspace;
