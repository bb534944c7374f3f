//! The crash-safe persistent heap of Adamant.
//!
//! A heap is a directory: a pool file, which holds blocks and the descriptors that say what is
//! allocated, and a log. Memory holds a private image of the pool. A [`Transaction`] changes the
//! image, its commit appends one record to the log, and checkpoints copy the pages that changed
//! from memory to the pool file. Opening a heap replays the records that no checkpoint covers.
//!
//! - [`Heap`] opens, runs transactions, checks and closes.
//! - Data structures are written against [`Read`] and [`Write`]; a [`View`] and a [`Transaction`]
//!   implement them.
//! - [`TypedRead`] and [`TypedWrite`] read and write objects of [`Persistent`] types; a program
//!   finds them again by a named root ([`Transaction::named_root_or_create`]).
//! - [`Heap::leaks`] finds the blocks that no root reaches.
//! - [`Heap::back_up`] copies a heap that stays in use.
//! - [`Salvage`] reads the intact part of a damaged heap.
//! - Formats: `docs/format/pool.md`, `docs/format/heap.md`, `docs/format/roots.md`,
//!   `docs/format/log.md`. Where to start: `docs/heap-guide.md`.
//!
//! ```
//! use std::sync::Arc;
//! use adamant_heap::{Durability, Error, Heap, OsDirectory, Options, TypedRead, TypedWrite};
//!
//! # fn main() -> Result<(), Error> {
//! # let temporary = tempfile::tempdir().expect("a temporary directory");
//! # let path = temporary.path().join("heap");
//! let (heap, _) = Heap::open(Arc::new(OsDirectory::create(&path)?), Options::default())?;
//! let visits = heap.transaction(Durability::Sync, |tx| {
//!     let counter = tx.named_root_or_create("visits", |_| Ok(0_u64))?;
//!     *tx.get_mut(counter)? += 1;
//!     Ok::<_, Error>(*tx.get(counter)?)
//! })?;
//! assert_eq!(visits, 1);
//! heap.close()?;
//! # Ok(())
//! # }
//! ```

pub mod error;
pub mod events;
pub mod layout;
pub mod durability;
pub mod ptr;
mod objects;
mod sync;
mod latch;
mod collections;
mod image;
mod journal;
mod space;
mod transaction;
mod memory;
mod inspect;
mod heap;
mod write_guard;
mod held_write_permit;
mod actions;
mod combined;
mod care;
#[cfg(all(test, loom))]
mod every_order;

pub use adamant_medium::memory::MemoryDirectory;
pub use adamant_medium::storage::Directory;
pub use adamant_medium::system::os::OsDirectory;
pub use adamant_slice::Slice;

pub use adamant_medium::address::persist::Flushing;
pub use care::identity::{PoolIdentity, verify_file_page};
pub use care::leaks::{Leak, LeakFinding, LeakReport};
pub use care::savepoints::{GoBack, SavepointPool, go_back};
pub use care::shrink::Shrunk;
pub use durability::Durability;
pub use error::{Error, Result};
pub use heap::inspection::Stats;
pub use heap::{Heap, Options};
pub use held_write_permit::HeldWritePermit;
pub use image::class::{ClassId, ClassShape};
pub use image::kind::ImageKind;
pub use inspect::check::{CheckReport, Finding};
pub use inspect::occupancy::{ClassOccupancy, Occupancy, PageRange, Usage};
pub use inspect::salvage::Salvage;
pub use inspect::trace::{Trace, Traced, Tracer, Types, Walk};
pub use journal::{JournalStats, Recovery, Refresh, Savepoint, SavepointState};
pub use memory::evictor::MemoryStats;
pub use objects::access::{Read, Write};
pub use objects::any_ptr::AnyPtr;
pub use objects::array::{Array, Bytes, Text};
pub use objects::directory::NamedRoot;
pub use objects::persistent::{Layout, Persistent};
pub use objects::typed::{Handle, TypedRead, TypedWrite};
pub use objects::{access, typed};
pub use ptr::Ptr;
pub use space::pin::Pin;
pub use space::reservation::Reservation;
pub use transaction::chunked::{BeforeView, Ending};
pub use transaction::tx::Transaction;
pub use transaction::view::View;
pub use write_guard::WriteGuard;
