//! Expiring entries (TTL): a keyspace whose entries may have a deadline, at which they expire.
//!
//! Purpose: caches, sessions, leases. A deadline is a moment of wall-clock time, stored with the
//! entry, so it is exact across restarts and in copies: an entry is not visible from its deadline
//! on, whether it was already removed or not. A background thread removes what has expired, of the
//! keyspaces that the process has opened
//! ([`Options::sweep_expired`](crate::Options::sweep_expired)), or the program does
//! ([`Expiring::remove_expired`]). A removal is a commit like any other: snapshots from before have
//! the entry, the feed of changes has the delete, and a transaction that has read the entry
//! conflicts.
//! Invariants: a value is stored behind its deadline; for each entry with a deadline, a second
//! keyspace, ordered by time, has a row, written in the same transaction. The bytes:
//! `docs/format/expiring.md`.
//!
//! ```
//! use std::time::Duration;
//!
//! use adamant::Store;
//!
//! let store = Store::in_memory()?;
//! let sessions = store.expiring("sessions")?;
//! let end = sessions.after(Duration::from_secs(1800));
//! sessions.put("ada", "of the engine", Some(end))?;
//! sessions.put("guest", "of nobody", Some(sessions.after(Duration::ZERO)))?;
//! assert_eq!(sessions.get("ada")?, Some("of the engine".into()));
//! assert_eq!(sessions.get("guest")?, None, "its time is over");
//! assert_eq!(sessions.len()?, 1);
//! # Ok::<(), adamant::Error>(())
//! ```

mod deadline;

mod entries;

mod sweep;

mod keyspace;

mod reserved;

mod at;
mod within;

mod change;

mod remove;

mod shared_methods;

#[cfg(test)]
mod sweep_tests;
#[cfg(test)]
mod tests;

pub use at::ExpiringSnapshot;
pub use deadline::Deadline;
pub(crate) use deadline::{deadline_of, row, split};
pub(crate) use entries::Entry;
pub use entries::Living;
pub use keyspace::Expiring;
pub use reserved::ReservedExpiring;
pub use within::ExpiringTransaction;
