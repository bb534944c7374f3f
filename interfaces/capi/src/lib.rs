//! Adamant for C: the functions that `include/adamant.h` declares.
//!
//! `cargo xtask header` generates the header from these sources. Its top has the conventions,
//! numbered, and the documentation of the functions below is written for readers of C. Each
//! exported function is a thin shell: [`border`] checks its arguments, the function calls the
//! store, and its result becomes a code. All unsafe code is in [`border`]. No panic leaves a
//! function: it becomes `ADAMANT_PANIC`.
//!
//! Thread safety: handles of stores, keyspaces (expiring ones too), multimaps, snapshots, values
//! and lists may be used by any number of threads at once; those of options, batches, transactions,
//! cursors and feeds of changes by one at a time, and a second one gets `ADAMANT_BUSY`.

#[cfg(not(panic = "unwind"))]
compile_error!("a panic has to become ADAMANT_PANIC: build this crate with panic = \"unwind\"");

pub mod border;
pub mod whole;
pub mod entry;
pub mod expiring;
pub mod multimap;
pub mod batch;
pub mod views;
pub mod changes;
