//! Events, through the `tracing` crate: the names of their targets, and how they are timed.
//!
//! Purpose: a user who looks for the reason of a pause filters by a few stable names, not by
//! modules that move. Without a listener an event costs a load and a jump; the clock is read only
//! for a listener (45 ns here, twice).

use std::time::Instant;

/// Opening, closing, and the end of writing.
pub const STORE: &str = "adamant::store";
/// Syncs of the log, and waits for space in it.
pub const LOG: &str = "adamant::log";
/// Checkpoints: dirty pages that are written to the pool, with bytes and microseconds.
pub const CHECKPOINT: &str = "adamant::checkpoint";
/// Commits.
pub const COMMIT: &str = "adamant::commit";
/// Snapshots, and the versions kept for them.
pub const SNAPSHOT: &str = "adamant::snapshot";
/// Serializable transactions that conflict.
pub const TRANSACTION: &str = "adamant::transaction";

/// Microseconds since something began.
pub(crate) fn micros(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}
