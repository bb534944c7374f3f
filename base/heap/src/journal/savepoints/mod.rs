//! Savepoints: named moments of the pool that survive, to read or to go back to. A savepoint is a
//! file of its own, and copies of the pages that were overwritten since: see
//! `docs/format/savepoints.md`.

pub(crate) mod layout;
mod names;
mod pool_checksums;
mod page_set;
pub(super) mod savepoint_file;
mod kept_file;
mod needed;
pub(super) mod view;
mod state;
pub(super) mod registry;
