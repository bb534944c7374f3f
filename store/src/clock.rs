//! The system's clock, in milliseconds since 1970.
//!
//! Thread safety: any thread.

use std::sync::Arc;
use std::time::SystemTime;

/// A clock: milliseconds since 1970.
pub(crate) type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Milliseconds since 1970, by the system's clock; 0 before.
pub(crate) fn system_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
