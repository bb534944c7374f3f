//! The native half of Adamant's Python package: `adamant._native`.
//!
//! It holds what every read and write goes through; what is made of that for Python programmers,
//! mappings, views, context managers and the tree of exceptions, is Python: `python/adamant`.
//!
//! Rules that hold everywhere in here:
//! - Whatever can wait, for a lock, for the device or for another thread, runs detached from the
//!   interpreter; so no thread waits for the store while it keeps others from running Python.
//! - No lock of this crate is held while Python code runs.
//! - Every call first looks whether this process is a fork's child, see `fork`.
#![deny(unsafe_code)]

mod errors;

mod fork;

mod codec;
mod choices;
mod path;
mod span;
mod pairs;

mod lent;

mod map;
mod moment;
mod place;

mod cursor;

mod reader;

mod stats;

mod store;

mod run;

mod keyspace;

mod batch;
mod transaction;
mod expiring;
mod snapshot;

mod module;
