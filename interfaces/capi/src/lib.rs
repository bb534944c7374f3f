//! Adamant for C: what `include/adamant.h` declares.
//!
//! The header is made from these sources by `cargo xtask header`; its top has the conventions, numbered, and
//! the documentation of the functions below is written for readers of C. Each exported function is a thin
//! shell: it has its arguments checked by [`border`], calls the store, and makes a code of what comes back.
//! All unsafe code is in [`border`]. No panic leaves a function: it becomes `ADAMANT_PANIC`.
//!
//! Thread safety: handles of stores, keyspaces (of entries that end too), snapshots, values and lists may be used by any number of
//! threads at once; those of options, batches, transactions and cursors by one at a time, and a second
//! one is told `ADAMANT_BUSY`.

#[cfg(not(panic = "unwind"))]
compile_error!("a panic has to become ADAMANT_PANIC: build this crate with panic = \"unwind\"");

pub mod code;
pub mod failure;
pub mod border;
pub mod hold;
pub mod value;
pub mod range;
pub mod options;
pub mod store;
pub mod keyspace;
pub mod list;
pub mod entry;
pub mod expiring;
pub mod batch;
pub mod loan;
pub mod snapshot;
pub mod transaction;
pub mod expiring_views;
pub mod position;
pub mod walk;
pub mod cursor;
pub mod inspect;
