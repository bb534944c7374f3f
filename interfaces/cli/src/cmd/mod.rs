//! The subcommands, one per file.

pub(crate) mod transfer;
pub(crate) mod entries;
pub(crate) mod inspect;
pub(crate) mod follow;
pub(crate) mod encryption;
pub(crate) mod compact;
pub(crate) mod repair;
pub(crate) mod savepoint;
pub(crate) mod completions;
pub(crate) mod demo_child;
pub(crate) mod demo;
