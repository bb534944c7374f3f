//! Conversion between Python objects and bytes of the store.
//!
//! Purpose: keys and values are bytes; a keyspace may be given a codec that makes them `str`.
//! Invariants: there is no implicit conversion: without a codec a `str` is a `TypeError`, with one
//! `bytes` are. Bytes are borrowed if their object cannot change, otherwise copied. An object with
//! a buffer is taken as its memory lies, whatever the type of its elements, unless these are
//! pointers.

use std::borrow::Cow;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyUnicodeDecodeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

/// A conversion between objects and bytes.
#[derive(Clone, Debug)]
pub(crate) enum Codec {
    /// `bytes`; for writes also objects with a buffer: `bytearray`, `memoryview`, arrays.
    Bytes,
    /// `str`, ordered by its UTF-8.
    Utf8,
    /// `str` by another codec of Python, with this name.
    Named(String),
}

impl Codec {
    /// The codec with this name, as Python knows it, in any of its spellings; none for bytes.
    ///
    /// # Errors
    /// `LookupError` for a name that Python does not know.
    pub(crate) fn named(py: Python<'_>, name: Option<&str>) -> PyResult<Self> {
        let Some(name) = name else { return Ok(Self::Bytes) };
        let found = PyModule::import(py, "codecs")?.getattr("lookup")?.call1((name,))?;
        let name: String = found.getattr("name")?.extract()?;
        Ok(if name == "utf-8" { Self::Utf8 } else { Self::Named(name) })
    }

    /// Its name, as Python spells it.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Bytes => None,
            Self::Utf8 => Some("utf-8"),
            Self::Named(name) => Some(name),
        }
    }

    /// The bytes of an object; `what` describes it in errors.
    ///
    /// # Errors
    /// `TypeError` for an object of the wrong type, `UnicodeEncodeError` for one that the codec
    /// cannot encode.
    pub(crate) fn encode<'a>(
        &self,
        object: &'a Bound<'_, PyAny>,
        what: &str,
    ) -> PyResult<Cow<'a, [u8]>> {
        match self {
            Self::Bytes => bytes_of(object, what),
            Self::Utf8 => Ok(Cow::Borrowed(text_of(object, what)?.to_str()?.as_bytes())),
            Self::Named(name) => {
                let encoded = text_of(object, what)?.call_method1("encode", (name,))?;
                Ok(Cow::Owned(encoded.cast::<PyBytes>()?.as_bytes().to_vec()))
            }
        }
    }

    /// The bytes of a key to look up; `None` for an object that cannot be a key.
    ///
    /// # Errors
    /// Any other failure of the conversion.
    pub(crate) fn sought<'a>(
        &self,
        object: &'a Bound<'_, PyAny>,
    ) -> PyResult<Option<Cow<'a, [u8]>>> {
        let py = object.py();
        match self.encode(object, "a key") {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error)
                if error.is_instance_of::<PyTypeError>(py)
                    || error.is_instance_of::<PyUnicodeEncodeError>(py) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Decodes bytes to an object, if that runs no code of Python: neither of a codec nor of the
    /// garbage collection. Otherwise a copy of the bytes, for [`Codec::decode`].
    pub(crate) fn decode_plainly<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
    ) -> Result<Bound<'py, PyAny>, Vec<u8>> {
        match self {
            Self::Bytes => Ok(PyBytes::new(py, bytes).into_any()),
            Self::Utf8 => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(PyString::new(py, text).into_any()),
                Err(_) => Err(bytes.to_vec()),
            },
            Self::Named(_) => Err(bytes.to_vec()),
        }
    }

    /// Decodes bytes to an object.
    ///
    /// # Errors
    /// `UnicodeDecodeError`, for bytes that are no text of the codec.
    pub(crate) fn decode<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Bytes => Ok(PyBytes::new(py, bytes).into_any()),
            Self::Utf8 => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(PyString::new(py, text).into_any()),
                Err(error) => {
                    let error = PyUnicodeDecodeError::new_utf8(py, bytes, error)?;
                    Err(PyErr::from_value(error.into_any()))
                }
            },
            Self::Named(name) => PyBytes::new(py, bytes).call_method1("decode", (name,)),
        }
    }
}

fn bytes_of<'a>(object: &'a Bound<'_, PyAny>, what: &str) -> PyResult<Cow<'a, [u8]>> {
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

fn text_of<'a, 'py>(
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

fn wrong(object: &Bound<'_, PyAny>, what: &str, expected: &str, advice: &str) -> PyErr {
    let found = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!("expected {expected} as {what}, found {found}; {advice}"))
}
