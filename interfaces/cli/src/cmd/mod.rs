//! The subcommands, one per file.

pub(crate) mod import;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod put;
pub(crate) mod delete;
pub(crate) mod rename;
pub(crate) mod scan;
pub(crate) mod keyspace;
pub(crate) mod stat;
pub(crate) mod check;
pub(crate) mod backup;
pub(crate) mod restore;
pub(crate) mod compact;
pub(crate) mod copy;
pub(crate) mod repair;
pub(crate) mod completions;
pub(crate) mod heap_map;
pub(crate) mod heap;
pub(crate) mod lsm_map;
pub(crate) mod lsm;
pub(crate) mod demo_child;
pub(crate) mod demo;
