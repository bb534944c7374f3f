//! Multimaps: a key has any number of sorted values, as in a `BTreeMap<K, BTreeSet<V>>`.
//!
//! Purpose: indexes, tags, relations. Each pair of a key and a value is one row of an ordinary
//! keyspace, so pairs are found, added and removed in O(log n), however many values a key has.
//! Invariants: a row's key is the pair, encoded as a typed key of two parts; its value is empty.
//! Nothing else writes such a keyspace: the catalogue records its kind. The bytes:
//! `docs/format/multimap.md`.
//!
//! ```
//! use adamant::Store;
//!
//! let store = Store::in_memory()?;
//! let tags = store.multimap("tags")?;
//! tags.insert("rust", "adamant")?;
//! tags.insert("rust", "ripgrep")?;
//! tags.insert("c", "sqlite")?;
//! assert!(!tags.insert("c", "sqlite")?, "it is there already");
//!
//! let tagged: Result<Vec<_>, _> = tags.get("rust").collect();
//! assert_eq!(tagged?, ["adamant", "ripgrep"].map(adamant::Slice::from));
//! let all: Result<Vec<_>, _> = tags.keys(..).collect();
//! assert_eq!(all?, ["c", "rust"].map(adamant::Slice::from));
//!
//! // Keys and values of other types sort as these do.
//! let scores = store.multimap("scores")?.typed::<String, i32>()?;
//! scores.insert("ada", &100)?;
//! scores.insert("ada", &-3)?;
//! assert_eq!(scores.first_value("ada")?, Some(-3));
//! # Ok::<(), adamant::Error>(())
//! ```

mod rows;

mod handle;

mod iterate;

mod read;
mod write;

mod at;

mod within;

#[cfg(test)]
mod tests;

pub use at::MultimapSnapshot;
pub use handle::Multimap;
pub use iterate::{DistinctKeys, Pairs, StoredRows, Values};
pub use within::{MultimapTransaction, TransactionRows};
