//! The crash-safe persistent heap of Adamant.
//!
//! A heap is a directory: a pool file, which holds blocks and the descriptors that say what is
//! allocated, and a log. Memory holds a private image of the pool; a [`Transaction`] changes the
//! image, its commit appends one record to the log, and a background applier takes records to the
//! pool file. Opening a heap replays what the applier had not done yet.
//!
//! - [`Heap`] opens, runs transactions, checks and closes.
//! - [`Read`] and [`Write`] are what data structures are written against; a [`View`] and a
//!   [`Transaction`] implement them.
//! - Formats: `docs/format/pool.md`, `docs/format/heap.md`, `docs/format/log.md`.

pub mod error;
pub mod layout;
pub mod durability;
pub mod ptr;
pub mod access;
mod class;
mod image;
mod keyed;
mod ranges;
mod extents;
mod arena;
mod pool_file;
mod journal;
mod settled;
mod blocks;
mod pin;
mod writer;
mod tx;
mod reserve;
mod commit;
mod view;
mod check;
mod heap;

pub use access::{Read, Write};
pub use check::{CheckReport, Finding};
pub use durability::Durability;
pub use error::{Error, Result};
pub use heap::{Heap, Options, Stats};
pub use journal::{JournalStats, Recovery};
pub use pin::Pin;
pub use ptr::Ptr;
pub use tx::Transaction;
pub use view::View;
