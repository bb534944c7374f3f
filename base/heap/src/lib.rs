//! The crash-safe persistent heap of Adamant.
//!
//! A heap is a directory: a pool file, which holds blocks and the descriptors that say what is
//! allocated, and a log. Memory holds a private image of the pool; a [`Transaction`] changes the
//! image, its commit appends one record to the log, and checkpoints copy the pages that changed from
//! memory to the pool file. Opening a heap replays what no checkpoint had taken yet.
//!
//! - [`Heap`] opens, runs transactions, checks and closes.
//! - [`Read`] and [`Write`] are what data structures are written against; a [`View`] and a
//!   [`Transaction`] implement them.
//! - [`TypedRead`] and [`TypedWrite`] read and write objects of [`Persistent`] types; a named root
//!   ([`Transaction::named_root_or_create`]) is where a program finds them again.
//! - [`Heap::leaks`] finds what no root reaches.
//! - [`Heap::back_up`] copies a heap that goes on being used.
//! - [`Salvage`] reads what is left of a damaged heap.
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
mod persistent;
mod array;
mod any_ptr;
pub mod access;
pub mod typed;
mod directory;
mod class;
mod sync;
mod seat;
mod thread;
mod readers;
mod gate;
mod zones;

mod pool_file;
mod pages;
mod keyed;
mod before;
mod place;
mod image;
mod marked;
mod ranges;
mod extents;
mod range_set;
mod journal;
mod shard;
mod runs;
mod arena;
mod space;
mod changes;
mod reservation;
mod batch;
mod lent;
mod supply;
mod ahead;
mod desk;
mod blocks;
mod pin;
mod recycler;
mod turns;
mod requests;
mod writer;
mod copier;
mod huge;
mod keeper;
mod tx;
mod view;
mod unused;
mod overwrite;
mod pieces;
mod calls;
mod commit;
mod roots;
mod allocated;
mod check;
mod occupancy;
mod heap;
mod write_guard;
mod held_turn;
mod actions;
mod combined;
mod shrink;
mod backup;
mod trace;
mod leaks;
mod salvage;

#[cfg(all(test, loom))]
mod every_order;

pub use adamant_medium::memory::MemoryDirectory;
pub use adamant_medium::os::OsDirectory;
pub use adamant_medium::storage::Directory;
pub use adamant_slice::Slice;

pub use access::{Read, Write};
pub use adamant_medium::persist::Flushing;
pub use any_ptr::AnyPtr;
pub use array::{Array, Bytes, Text};
pub use check::{CheckReport, Finding};
pub use class::{ClassId, ClassShape};
pub use directory::NamedRoot;
pub use durability::Durability;
pub use error::{Error, Result};
pub use heap::{Heap, Options, Stats};
pub use held_turn::HeldTurn;
pub use journal::{JournalStats, Recovery};
pub use keeper::MemoryStats;
pub use leaks::{Leak, LeakFinding, LeakReport};
pub use occupancy::{ClassOccupancy, Occupancy, Stretch, Usage};
pub use persistent::{Layout, Persistent};
pub use pieces::{Earlier, Ending};
pub use pin::Pin;
pub use ptr::Ptr;
pub use reservation::Reservation;
pub use salvage::Salvage;
pub use shrink::Shrunk;
pub use trace::{Trace, Traced, Tracer, Types, Walk};
pub use tx::Transaction;
pub use typed::{Handle, TypedRead, TypedWrite};
pub use view::View;
pub use write_guard::WriteGuard;
