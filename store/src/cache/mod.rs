//! Caches: expiring keyspaces bounded in bytes.
//!
//! Purpose: what is over the bound makes room for what is put, by a policy (S3-FIFO) that keeps
//! what is read again and again. Entries survive restarts and crashes, as those of every keyspace.
//! Invariants: evictions are deletes in the commit of the put that needs the room. So after each
//! commit the entries have no more bytes than the bound, on the medium too. The policy is in memory
//! only; it is built when a cache is opened.
//!
//! ```
//! use std::time::Duration;
//!
//! use adamant::Store;
//!
//! let store = Store::in_memory()?;
//! let pages = store.cache("pages", 10_000)?;
//! for number in 0..100 {
//!     pages.put(format!("page {number}"), [b' '; 1000], Some(pages.after(Duration::from_secs(60))))?;
//! }
//! assert!(pages.bytes() <= 10_000);
//! assert!(pages.get("page 99")?.is_some());
//! let stats = pages.stats();
//! assert_eq!((stats.hits, stats.entries + stats.evictions), (1, 100));
//! # Ok::<(), adamant::Error>(())
//! ```

mod handle;

#[cfg(test)]
mod tests;

pub use handle::Cache;

pub use crate::common::cache_policy::CacheStats;
