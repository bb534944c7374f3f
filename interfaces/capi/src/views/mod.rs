//! Snapshots, transactions, and cursors over what they and keyspaces hold. Called from C.

pub mod loan;
pub mod snapshot;
pub mod transaction;
pub mod expiring_views;
pub mod multimap_views;
pub mod position;
pub mod walk;
pub mod cursor;
