//! Times as Python has them.
//!
//! Invariants: a number is of seconds, since 1970 or from now, and becomes whole milliseconds; so does what
//! says itself how many seconds it is, `datetime` and `timedelta`. A deadline that was read and is given
//! again is the same.

use std::time::Duration;

use adamant::{Deadline, Expiring};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors;

/// When an entry is to end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    Never,
    After(Duration),
    At(Deadline),
}

impl Ends {
    /// Of what was given: one of both, or neither.
    pub(crate) fn of(
        ttl: Option<&Bound<'_, PyAny>>,
        deadline: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        match (ttl, deadline) {
            (None, None) => Ok(Self::Never),
            (Some(ttl), None) => {
                let millis = millis(ttl, ("total_seconds", "a ttl: seconds, or a timedelta"))?;
                Ok(Self::After(Duration::from_millis(millis)))
            }
            (None, Some(deadline)) => {
                let expected = "a deadline: seconds since 1970, or a datetime";
                Ok(Self::At(Deadline::from_millis(millis(deadline, ("timestamp", expected))?)))
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

/// What a clock of Python's says.
pub(crate) fn asked(py: Python<'_>, clock: &Py<PyAny>) -> PyResult<u64> {
    millis(clock.bind(py).call0()?.as_any(), ("timestamp", "seconds since 1970 of the clock"))
}

/// Seconds, of milliseconds.
pub(crate) fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

/// Milliseconds of a number of seconds, or of what has a method that gives one. Less than none is none, and
/// more than there can be is the end of time.
fn millis(object: &Bound<'_, PyAny>, (method, expected): (&str, &str)) -> PyResult<u64> {
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
    Ok((seconds * 1000.0).round() as u64)
}
