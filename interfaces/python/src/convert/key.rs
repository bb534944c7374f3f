//! Keys of encrypted stores: `bytes` or `str`, or a file of either.
//!
//! Invariants: no key is in the words of an exception.

use std::error::Error as _;
use std::io;
use std::path::Path;

use adamant::{EncryptionKey, Error};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

use crate::errors;

/// The key in an object.
///
/// # Errors
/// `TypeError` for other objects, `InvalidArgument` for what is no key.
pub(crate) fn key_of(object: &Bound<'_, PyAny>) -> PyResult<EncryptionKey> {
    let parsed = match object.extract::<PyBackedStr>() {
        Ok(text) => EncryptionKey::parse(text.as_bytes()),
        Err(_) => EncryptionKey::parse(&object.extract::<PyBackedBytes>()?),
    };
    parsed.ok_or_else(|| {
        let words = format!(
            "expected a key of 32 bytes or 64 hexadecimal digits, found {} of something else",
            object.len().unwrap_or_default()
        );
        errors::named("InvalidArgument", words)
    })
}

/// The key in a file.
///
/// # Errors
/// `InvalidArgument` if it holds none; those of the system.
pub(crate) fn key_in(path: &Path) -> PyResult<EncryptionKey> {
    EncryptionKey::read(path).map_err(|error| {
        let system = error.source().and_then(|it| it.downcast_ref()).map(io::Error::kind);
        match system {
            Some(io::ErrorKind::InvalidData) => errors::named("InvalidArgument", error.to_string()),
            _ => errors::of_store(Error::from(error)),
        }
    })
}
