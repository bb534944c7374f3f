//! Engine adapters: one file for each engine.

pub mod adamant;
pub mod btree_map;
