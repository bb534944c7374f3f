//! Bytes and text of Python objects.
//!
//! Invariants: bytes are borrowed if their object cannot change, otherwise copied. An object with
//! a buffer is taken as its memory lies, whatever the type of its elements, unless these are
//! pointers.

use std::borrow::Cow;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use crate::errors;

/// Bytes that an error shows of what it found.
const SHOWN_BYTES: usize = 32;

/// The bytes of an object; `what` describes it in errors.
///
/// # Errors
/// `TypeError` for an object without bytes.
pub(crate) fn bytes_of<'a>(object: &'a Bound<'_, PyAny>, what: &str) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    // Before buffers: numpy's strings export the memory of their characters.
    if object.is_instance_of::<PyString>() {
        return Err(wrong(object, what, "bytes", "give the keyspace a codec to use str"));
    }
    let py = object.py();
    // It may change while another thread runs.
    if let Ok(buffer) = PyBuffer::<u8>::get(object) {
        return Ok(Cow::Owned(buffer.to_vec(py)?));
    }
    let view = match PyMemoryView::from(object) {
        Ok(view) => view,
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            let advice = "make bytes of it, as int.to_bytes, struct or pickle do";
            return Err(wrong(object, what, "bytes", advice));
        }
        Err(error) => {
            let advice = format!("it does not lend its memory ({error}), make bytes of it");
            return Err(wrong(object, what, "bytes", &advice));
        }
    };
    if has_pointers(&view.getattr("format")?.extract::<String>()?) {
        let advice = "its memory holds pointers to objects, make bytes of them, as pickle does";
        return Err(wrong(object, what, "bytes", advice));
    }
    let copied = view.call_method0("tobytes")?;
    Ok(Cow::Owned(copied.cast::<PyBytes>()?.as_bytes().to_vec()))
}

/// Whether elements of a format, in the syntax of the module `struct` and PEP 3118, hold pointers.
/// Names of fields, which are enclosed in colons, are ignored.
pub(crate) fn has_pointers(format: &str) -> bool {
    format.split(':').step_by(2).any(|types| types.contains(['O', 'P', '&']))
}

/// An object that is text.
///
/// # Errors
/// `TypeError` for another one.
pub(crate) fn text_of<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
    what: &str,
) -> PyResult<&'a Bound<'py, PyString>> {
    object.cast::<PyString>().map_err(|_| {
        let lends_bytes = object.is_instance_of::<PyBytes>()
            || object.is_instance_of::<PyByteArray>()
            || object.is_instance_of::<PyMemoryView>();
        let advice = if lends_bytes {
            "open the keyspace without a codec to use bytes"
        } else {
            "make a str of it, as str or json.dumps do"
        };
        wrong(object, what, "str", advice)
    })
}

/// The exception for an object of the wrong type.
pub(crate) fn wrong(object: &Bound<'_, PyAny>, what: &str, expected: &str, advice: &str) -> PyErr {
    let found = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!("expected {expected} as {what}, found {found}; {advice}"))
}

/// The exception for bytes that are not of their type.
pub(crate) fn undecodable(what: &str, expected: &str, bytes: &[u8], name: &str) -> PyErr {
    let shown = bytes.get(..SHOWN_BYTES).unwrap_or(bytes).escape_ascii();
    let more = if bytes.len() > SHOWN_BYTES { ".." } else { "" };
    let words = format!(
        "expected {expected} as {what} of type {name}, found {} bytes, \"{shown}{more}\"; use the \
         types that it was written with, or the keyspace as bytes",
        bytes.len()
    );
    errors::named("Undecodable", words)
}
