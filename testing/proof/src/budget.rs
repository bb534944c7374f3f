//! The time that a campaign may take.

use std::time::{Duration, Instant};

/// Ends at some moment.
pub(crate) struct Budget {
    end: Instant,
}

impl Budget {
    /// So many seconds from now.
    pub(crate) fn new(seconds: u64) -> Self {
        Self { end: Instant::now() + Duration::from_secs(seconds) }
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}
