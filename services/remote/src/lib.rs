//! Stores of [Adamant](adamant) that are larger than a disk: SlateDB on objects, opened by URL.
//!
//! ```
//! use adamant_remote::Store;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let url = format!("slatedb+file://{}", directory.path().join("store").display());
//! // Or slatedb+s3://BUCKET/PREFIX.
//! let store = Store::open(&url)?;
//! let people = store.keyspace("people")?;
//! let mut batch = store.batch();
//! for (name, town) in [("ada", "London"), ("blaise", "Paris")] {
//!     batch.put(&people, name, town)?;
//! }
//! batch.commit()?;
//! assert_eq!(people.get("ada")?, Some("London".into()));
//!
//! // Whoever only reads follows the writer, from any machine.
//! let reader = Store::open_read_only(&url)?;
//! assert_eq!(reader.open_keyspace("people")?.iter().count(), 2);
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! - [`Store`], [`Keyspace`], [`Batch`], [`Snapshot`], [`Transaction`] have the interface of
//!   `adamant`'s, as far as possible: a program that names this crate `adamant` need not change for
//!   them.
//! - **A commit returns when it is in the objects**, and reads outside of transactions see nothing
//!   that is not. There is no lower durability.
//! - **One writer a store.** A process that opens it for writing replaces the previous writer,
//!   whose calls return [`Error::Fenced`] from then on; none of its commits that returned is lost,
//!   and no later one returns.
//! - [`copy()`] moves all keyspaces between stores on a machine and on objects, in both directions.
//! - Not supported: a choice of engines, objects on a heap, reservations, moves without copying,
//!   savepoints, zero-copy scans, expiring entries, typed keyspaces. Counting entries reads all of
//!   them.
//!
//! docs/remote.md lists the guarantees and their limits.
#![forbid(unsafe_code)]

mod error;
pub mod layout;
mod limits;
mod location;
mod options;
mod shared;
mod keyspace;
mod batch;
mod snapshot;
mod transaction;
mod catalogue;
mod open;
mod store;
mod copy;

pub use adamant::{Durability, KEY_BYTES_MAX, KeyBounds, NAME_BYTES_MAX, Slice, Swapped};
pub use slatedb::object_store;

pub use batch::Batch;
pub use copy::{CopyError, CopyOptions, Digest, copy};
pub use error::{Error, Result};
pub use keyspace::handle::Keyspace;
pub use keyspace::iterate::Iter;
pub use limits::VALUE_BYTES_MAX;
pub use options::Options;
pub use snapshot::Snapshot;
pub use store::{KeyspaceInfo, Store};
pub use transaction::{Transaction, TransactionIter};
