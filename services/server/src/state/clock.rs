//! The time of day, as deadlines count it.

use std::time::SystemTime;

use adamant::Deadline;

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    Deadline::from(SystemTime::now()).millis()
}
