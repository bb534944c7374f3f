//! Whole stores: opening, keyspaces, figures.

pub mod store;
pub mod keyspace;
pub mod list;
pub mod inspect;
