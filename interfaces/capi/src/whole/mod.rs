//! Whole stores: opening, keyspaces, figures. Called from C; all other handles come from these.

pub mod store;
pub mod encryption;
pub mod keyspace;
pub mod list;
pub mod savepoints;
pub mod inspect;
