//! Typed keys and values: a thin layer over keyspaces of bytes.
//!
//! Purpose: keys that are numbers, texts or tuples of such are encoded so that their bytes sort as
//! they do, so ranges and prefixes keep their meaning. Values are encoded by their type, or by
//! `serde` (feature `serde`, type `Serde`; feature `json`, type `Json`).
//! Invariants: the names and versions of the types that a keyspace is first opened with are
//! recorded in the store, and others are refused ([`Keyspace::typed`](crate::Keyspace::typed)).
//! Bytes that do not decode are [`Error::Encoding`](crate::Error::Encoding), never a panic. The
//! bytes: `docs/format/typed.md`.
//!
//! ```
//! use adamant::Store;
//!
//! let store = Store::in_memory()?;
//! // Who measured what, and when: by place, then by time.
//! let readings = store.keyspace("readings")?.typed::<(String, u64), f64>()?;
//! readings.put(&("Oslo", 1_700_000_000), &-3.5)?;
//! readings.put(&("Oslo", 1_700_003_600), &-4.0)?;
//! readings.put(&("Bergen", 1_700_000_000), &2.5)?;
//!
//! assert_eq!(readings.get(&("Bergen", 1_700_000_000))?, Some(2.5));
//! let oslo: Result<Vec<_>, _> = readings.prefix(&("Oslo",)).map(|entry| entry.map(|e| e.1)).collect();
//! assert_eq!(oslo?, [-3.5, -4.0]);
//! let early = readings.range(("Oslo", 0)..("Oslo", 1_700_000_001)).count();
//! assert_eq!(early, 1);
//! # Ok::<(), adamant::Error>(())
//! ```

mod malformed;
mod named;

mod key;
mod float;
mod text;
mod tuple;
mod value;

mod bounds;

#[cfg(feature = "serde")]
mod serde_name;
#[cfg(feature = "serde")]
mod skipped;
#[cfg(feature = "serde")]
mod wrapper;

#[cfg(feature = "serde")]
mod serde;

#[cfg(feature = "json")]
mod json;

mod keyspace;
mod dynamic_type;
mod dynamic_value;
mod iterate;

mod change;
mod moves;
mod snapshot;

mod transaction;
mod transaction_writes;

mod remove;

mod expiring;
mod expiring_change;

mod expiring_snapshot;

mod expiring_transaction;
mod expiring_writes;

#[cfg(test)]
mod expiring_tests;
#[cfg(test)]
mod dynamic_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod float_tests;

#[cfg(feature = "json")]
pub use self::json::Json;
#[cfg(feature = "serde")]
pub use self::serde::Serde;
pub use bounds::{EncodedBounds, KeyBoundsFor};
pub use change::TypedSwapped;
pub use dynamic_type::DynamicType;
pub use dynamic_value::DynamicValue;
pub use expiring::{DecodedLiving, TypedExpiring};
pub use expiring_snapshot::TypedExpiringSnapshot;
pub use expiring_transaction::TypedExpiringTransaction;
pub use iterate::{Decoded, DecodedKeys};
pub use key::{Key, KeyFor, PrefixFor};
pub use keyspace::TypedKeyspace;
pub use malformed::Malformed;
pub use named::Named;
pub(crate) use named::types_of;
pub use snapshot::TypedSnapshot;
pub use transaction::TypedTransaction;
pub use value::{Value, ValueFor};
