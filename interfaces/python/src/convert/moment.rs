//! Conversion of Python times.
//!
//! Invariants: a number is in seconds, since 1970 or from now, and becomes whole milliseconds; so
//! do `datetime` and `timedelta`, by their methods. A deadline that was read and is given again is
//! the same. A negative time is zero, except a ttl or a timeout, which is refused; a time beyond
//! the highest is the end of time.

use std::time::Duration;

use adamant::{Deadline, Expiring};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors;

/// The expiry of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    Never,
    After(Duration),
    At(Deadline),
}

impl Ends {
    /// The expiry from the arguments: one of both, or neither.
    pub(crate) fn of(
        ttl: Option<&Bound<'_, PyAny>>,
        deadline: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        match (ttl, deadline) {
            (None, None) => Ok(Self::Never),
            (Some(ttl), None) => {
                duration(ttl, "a ttl: seconds, at least 0, or a timedelta").map(Self::After)
            }
            (None, Some(deadline)) => {
                let expected = "a deadline: seconds since 1970, or a datetime";
                let millis = millis(deadline, ("timestamp", expected))?;
                Ok(Self::At(Deadline::from_millis(millis as u64)))
            }
            (Some(_), Some(_)) => {
                Err(errors::named("InvalidArgument", "give ttl or deadline, not both"))
            }
        }
    }

    /// The deadline.
    pub(crate) fn by(self, expiring: &Expiring) -> Option<Deadline> {
        match self {
            Self::Never => None,
            Self::After(duration) => Some(expiring.after(duration)),
            Self::At(deadline) => Some(deadline),
        }
    }
}

/// A duration; a negative one is refused.
pub(crate) fn duration(object: &Bound<'_, PyAny>, expected: &str) -> PyResult<Duration> {
    let millis = millis(object, ("total_seconds", expected))?;
    if millis < 0.0 {
        let words = format!("expected {expected}, found {} s", millis / 1000.0);
        return Err(errors::named("InvalidArgument", words));
    }
    Ok(Duration::from_millis(millis as u64))
}

/// The longest time to wait; None: for ever.
pub(crate) fn timeout_of(timeout: Option<Bound<'_, PyAny>>) -> PyResult<Option<Duration>> {
    timeout
        .map(|time| duration(&time, "a timeout: seconds, at least 0, or a timedelta"))
        .transpose()
}

/// The time of a Python clock.
pub(crate) fn asked(py: Python<'_>, clock: &Py<PyAny>) -> PyResult<u64> {
    let said = clock.bind(py).call0()?;
    Ok(millis(&said, ("timestamp", "seconds since 1970 of the clock"))? as u64)
}

/// Converts milliseconds to seconds.
pub(crate) fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

/// Converts seconds to milliseconds, from a number or from an object with a method that returns
/// one.
///
/// # Errors
/// `TypeError` for an object that is neither, `InvalidArgument` for a NaN, and for a `datetime`
/// without a zone: its moment would depend on where it is read.
fn millis(object: &Bound<'_, PyAny>, (method, expected): (&str, &str)) -> PyResult<f64> {
    if object.hasattr("utcoffset")? && object.call_method0("utcoffset")?.is_none() {
        let words = format!(
            "expected {expected}, found a datetime without a zone; give it one, as \
             datetime.now(timezone.utc) or astimezone() do"
        );
        return Err(errors::named("InvalidArgument", words));
    }
    let seconds: f64 = match object.extract() {
        Ok(seconds) => seconds,
        Err(_) if object.hasattr(method)? => object.call_method0(method)?.extract()?,
        Err(_) => {
            let found = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!("expected {expected}, found {found}")));
        }
    };
    if seconds.is_nan() {
        return Err(errors::named("InvalidArgument", format!("expected {expected}, found nan")));
    }
    Ok((seconds * 1000.0).round())
}
