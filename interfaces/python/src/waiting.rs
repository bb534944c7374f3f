//! Waiting for commits.
//!
//! Invariants: whoever waits does so detached from the interpreter and in slices, so that signals
//! such as that of Ctrl-C are heard.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::convert::moment::timeout_of;
use crate::errors;

/// How long a thread waits before it looks for signals.
const SLICE: Duration = Duration::from_millis(100);

/// Calls a closure that waits for no longer than it is told, until it has something or the time is
/// over; None: never.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    timeout: Option<Bound<'_, PyAny>>,
    mut work: impl FnMut(Duration) -> errors::Result<Option<T>> + Send,
) -> PyResult<Option<T>> {
    let longest = timeout_of(timeout)?;
    // A time that no clock has is none.
    let end = longest.and_then(|longest| Instant::now().checked_add(longest));
    loop {
        let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()));
        if let Some(found) = py.detach(|| work(left.min(SLICE)))? {
            return Ok(Some(found));
        }
        py.check_signals()?;
        if end.is_some_and(|end| end <= Instant::now()) {
            return Ok(None);
        }
    }
}
