//! Events, through the `tracing` crate: what their targets are called, and how they are timed.
//!
//! Purpose: who looks for the reason of a pause filters by a few names that stay, not by modules
//! that move. Nobody who listens costs a load and a jump; the clock is read only for a listener
//! (45 ns here, twice).

use std::time::Instant;

/// Opening, closing, and the end of writing.
pub const STORE: &str = "adamant::store";
/// Syncs of the log, and waiting for its space.
pub const LOG: &str = "adamant::log";
/// What is taken from the log to the pool.
pub const CHECKPOINT: &str = "adamant::checkpoint";
/// Commits.
pub const COMMIT: &str = "adamant::commit";
/// Snapshots, and what is kept for them.
pub const SNAPSHOT: &str = "adamant::snapshot";
/// Serializable transactions that conflict.
pub const TRANSACTION: &str = "adamant::transaction";

/// Microseconds since something began.
pub(crate) fn micros(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}
