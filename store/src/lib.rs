//! An embedded, transactional, ordered key-value store on a crash-safe persistent heap.
//!
//! ```
//! use adamant::Store;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("app.adamant");
//! // A store is a directory; it is created if it is not there.
//! let store = Store::open(&path)?;
//! let people = store.keyspace("people")?;
//! let by_town = store.keyspace("people by town")?;
//!
//! // Changes to any keyspaces become one commit, which survives power loss.
//! let mut batch = store.batch();
//! for (name, town) in [("ada", "London"), ("blaise", "Paris"), ("sophie", "Paris")] {
//!     batch.put(&people, name, town)?;
//!     batch.put(&by_town, format!("{town}/{name}"), "")?;
//! }
//! batch.commit()?;
//!
//! // Keys are in the order of their bytes.
//! assert_eq!(people.get("ada")?, Some("London".into()));
//! for entry in by_town.prefix("Paris/") {
//!     let (key, _) = entry?;
//!     println!("{}", String::from_utf8_lossy(&key));
//! }
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! - [`Store`] is opened once per process and cloned freely. [`Keyspace`] is an ordered map of byte
//!   strings in it. Any number of threads read beside one writer.
//! - Single changes and [`Batch`]es are atomic: a crash at any moment leaves all of a commit or
//!   nothing of it. [`Durability`] says what a commit waits for.
//! - [`Keyspace::rename`], [`Keyspace::move_to`], [`Keyspace::swap`] and [`Keyspace::move_range`]
//!   move values of any size without copying them, also between keyspaces and trees.
//! - [`Keyspace::pop_first`] and [`Keyspace::pop_last`] take entries out at the ends, as queues do.
//! - [`Keyspace::delete_range`] deletes a range, [`Keyspace::retain`] and [`Keyspace::extract_if`]
//!   the entries of it that a closure chooses; each in one commit.
//! - [`Keyspace::load_sorted`] and [`Keyspace::extend`] fill keyspaces from iterators of any
//!   length.
//! - A [`Snapshot`] is the whole store at one moment. Snapshots never block writers and are never
//!   blocked.
//! - A [`Transaction`] is serializable: it reads and writes as if it ran alone, or fails and is run
//!   again.
//! - [`Keyspace::typed`] gives keys and values types, see [`typed`].
//! - [`Store::expiring`] gives entries a time to live (TTL): each expires at its deadline, see
//!   [`expiring`].
//! - [`Store::cache`] bounds such a keyspace in bytes, see [`cache`].
//! - [`Store::multimap`] gives a key any number of sorted values, see [`multimap`].
//! - [`Store::backup`] copies a store while it is in use, [`Store::backup_since`] what changed
//!   since another backup, and [`restore`] restores both. [`compact`] makes files as small as their
//!   contents. [`Store::open_read_only`] reads beside other readers.
//! - [`Store::changes`] is a feed of what each commit did, live and from the past;
//!   [`Store::open_beside`] reads beside a process that writes, and [`Store::refresh`] follows it.
//! - [`Transaction::on_heap`] changes objects of your own in the same commit, see [`Store::heap`].
//! - [`Iter::keys`] iterates over keys without their values; [`Iter::entries`] reads values lazily.
//! - [`Store::reserve`] allocates a large value in place: it is written straight to its final
//!   block.
//! - [`Slice`] is the type of values read: 24 bytes, no allocation for up to 20 bytes, cheap to
//!   clone.
//! - Keys have up to 65,535 bytes, values up to 4 GiB - 1, names of keyspaces 1 to 255.
//! - [`Store::stats`] returns counters and commit latencies. Events go to the `tracing` crate,
//!   under the targets of `adamant_heap::events`: `adamant::commit`, `adamant::checkpoint` and so
//!   on.
//! - Every call that can fail returns an [`Error`] that says what was expected, what was found and
//!   what to do. A full disk is such an error. A failing device poisons the store until it is
//!   opened again.
#![forbid(unsafe_code)]

pub mod layout;
mod clock;
mod kind;
mod types;
mod error;
mod limits;
mod metrics;
mod reserved;
mod bounds;
mod value_compression;
mod guard;
mod merge_operators;
mod compaction_filters;
mod own_options;
mod engine;
mod encryption;
mod options;
pub mod increment;
mod common;
mod savepoint_view;
mod keyspace;
mod type_records;
mod option_records;
mod batch;
mod transaction;
mod store;
pub mod expiring;
pub mod typed;
pub mod cache;
pub mod multimap;
mod care;
mod changes;
#[cfg(test)]
mod tests;

pub use adamant_heap::durability::Durability;
pub use adamant_heap::{
    CheckReport as HeapCheckReport, ClassOccupancy, Flushing, ImageKind, JournalStats, MemoryStats,
    Occupancy, PageRange, Recovery, SavepointState, Shrunk, Stats as HeapStats, Usage,
};
pub use adamant_lsm::{
    BlobStats as LsmBlobs, BuiltIn as BuiltInOperator, CompactionFilter, Compression,
    Error as LsmError, LevelCompression, LevelStats as LsmLevel, LsmStats, MemtableStats,
    MergeError, MergeOperator, OPERAND_BYTES_MAX, Options as LsmOptions, TableMeta as LsmTable,
    TreeOptions as LsmTreeOptions, Verdict as FilterVerdict,
};
pub use adamant_medium::error::Error as DirectoryError;
pub use adamant_medium::names as file_names;
pub use adamant_medium::storage::{Directory, File as DirectoryFile};
pub use adamant_medium::system::os::OsDirectory;
pub use adamant_slice::Slice;
pub use adamant_trees::{Moved, Report as TreeReport};
pub use adamant_wire::key::prefix_end;

pub use batch::builder::Batch;
pub use bounds::KeyBounds;
pub use cache::{Cache, CacheStats};
pub use care::compact::{Compacted, compact, compact_with};
#[cfg(feature = "encryption")]
pub use care::encrypt::{encrypt, rekey};
pub use care::go_back::{go_back, go_back_in, go_back_with};
pub use care::repair::{repair, repair_into, repair_with};
pub use care::rescue::{KeyspaceRepair, RepairReport};
pub use care::restore::{restore, restore_with};
pub use care::savepoints::PersistentSavepoint;
pub use changes::feed::{Changes, Commit};
pub use changes::info::ChangesInfo;
pub use common::change::{Change, ChangedKeyspace};
pub use common::keyspace_options::KeyspaceOptions;
pub use common::versions::SnapshotStats;
#[cfg(feature = "encryption")]
pub use encryption::EncryptionKey;
pub use engine::tree::Engine;
pub use error::{Error, Result};
pub use expiring::{Deadline, Expiring};
pub use increment::{Increment, increment_in};
pub use keyspace::atomic::Swapped;
pub use keyspace::entry::Entry;
pub use keyspace::estimate::RangeEstimate;
pub use keyspace::handle::Keyspace;
pub use keyspace::iterate::{Entries, Iter, Keys};
pub use keyspace::load::Loaded;
pub use keyspace::lsm::LsmKeyspace;
pub use keyspace::moves::MovedRange;
pub use keyspace::snapshot::Snapshot;
pub use keyspace::stats::KeyspaceStats;
pub use kind::KeyspaceKind;
pub use limits::{KEY_BYTES_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX};
pub use merge_operators::MERGE_OPERATOR_NAME_BYTES_MAX;
pub use metrics::{CommitStats, Latencies};
pub use multimap::Multimap;
pub use options::Options;
pub use reserved::ReservedValue;
pub use store::attempts::Attempts;
pub use store::exclusive::ExclusiveTransaction;
pub use store::handle::Store;
pub use store::inspect::{CheckReport, Finding, KeyspaceCheck, KeyspaceInfo, Stats};
pub use store::sync_point::SyncPoint;
pub use transaction::handle::Transaction;
pub use transaction::iterate::TransactionIter;
pub use transaction::shared::{SharedTransaction, SharedTransactionIter, TransactionAccess};
pub use types::{KeyspaceTypes, RecordedType};
pub use value_compression::ValueCompression;
