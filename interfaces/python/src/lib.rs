//! The native half of Adamant's Python package: `adamant._native`.
//!
//! It contains the path of every read and write. The interface for Python programmers, with
//! mappings, views, context managers and the tree of exceptions, is Python: `python/adamant`.
//!
//! Rules for all of this crate:
//! - Calls that can wait, for a lock, for the device or for another thread, run detached from the
//!   interpreter; so no thread waits for the store while it keeps others from running Python code.
//! - No lock of this crate is held while Python code runs.
//! - Every call first checks whether this process is a fork's child, see `fork`.
#![deny(unsafe_code)]

mod errors;
mod fork;
mod convert;
mod mapping;
mod waiting;
mod store;
mod run;
mod keyspace;
mod batch;
mod transaction;
mod expiring;
mod snapshot;
mod multimap;
mod changes;
mod arrays;
mod module;
