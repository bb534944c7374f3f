//! Paths from Python: `str`, `bytes`, or objects with `os.fspath`.
//!
//! Invariants: any bytes without zeros are a path; the bytes of a `str` are those of `os.fsencode`.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

use crate::errors;

/// The path of an object.
///
/// # Errors
/// `TypeError` for an object that is no path, `InvalidArgument` for one with a zero byte.
pub(crate) fn path_of(object: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let decoded = PyModule::import(object.py(), "os")?.getattr("fsdecode")?.call1((object,))?;
    let path: OsString = decoded.extract()?;
    if path.as_encoded_bytes().contains(&0) {
        let words = format!("a path has no zero byte, this one has: {}", object.repr()?);
        return Err(errors::named("InvalidArgument", words));
    }
    Ok(path.into())
}
