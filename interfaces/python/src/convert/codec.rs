//! Conversion between Python objects and bytes of the store.
//!
//! Purpose: keys and values are bytes; a keyspace may be given a codec that makes them `str`, or
//! types.
//! Invariants: there is no implicit conversion: without a codec a `str` is a `TypeError`, with one
//! `bytes` are.

use std::borrow::Cow;
use std::sync::Arc;

use adamant::RecordedType;
use adamant::typed::DynamicType;
use pyo3::exceptions::{
    PyOverflowError, PyTypeError, PyUnicodeDecodeError, PyUnicodeEncodeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::convert::dynamic::Role;
use crate::convert::objects::{bytes_of, text_of};
use crate::convert::typed::Typed;

/// A conversion between objects and bytes.
#[derive(Clone, Debug)]
pub(crate) enum Codec {
    /// `bytes`; for writes also objects with a buffer: `bytearray`, `memoryview`, arrays.
    Bytes,
    /// `str`, ordered by its UTF-8.
    Utf8,
    /// `str` by another codec of Python, with this name.
    Named(String),
    /// Keys of a recorded type, or values.
    Typed(Arc<Typed>, Role),
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

    /// The codec of a type with this recorded name, and what is recorded. Text is the codec utf-8,
    /// as which it has the same bytes.
    ///
    /// # Errors
    /// `InvalidArgument`, for a name of no such type.
    pub(crate) fn typed(name: &str, role: Role) -> PyResult<(Self, RecordedType)> {
        let typed = Typed::parse(name, role == Role::Key)?;
        let recorded = typed.recorded().clone();
        let codec = match typed.dynamic() {
            Some(DynamicType::String) => Self::Utf8,
            Some(DynamicType::Bytes) => Self::Bytes,
            _ => Self::Typed(Arc::new(typed), role),
        };
        Ok((codec, recorded))
    }

    /// Its name, as Python spells it, or that of the type.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Bytes => None,
            Self::Utf8 => Some("utf-8"),
            Self::Named(name) => Some(name),
            Self::Typed(typed, _) => Some(typed.name()),
        }
    }

    /// The bytes of an object; `what` describes it in errors.
    ///
    /// # Errors
    /// `TypeError` for an object of the wrong type, `UnicodeEncodeError` for one that the codec
    /// cannot encode, `ValueError` and `OverflowError` for one that the type does not have.
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
            Self::Typed(typed, role) => Ok(Cow::Owned(typed.encode(object, *role)?)),
        }
    }

    /// The bytes of an object between the keys: a key, or the first parts of a tuple, which come
    /// before the tuples that begin with them.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub(crate) fn bound<'a>(&self, object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
        if let Self::Typed(typed, _) = self
            && let Some(bytes) = typed.first_parts(object)?
        {
            return Ok(Cow::Owned(bytes));
        }
        self.encode(object, "a key")
    }

    /// The bytes that keys begin with: of text or bytes, or of the first parts of a tuple.
    ///
    /// # Errors
    /// As [`Self::encode`]; `TypeError` for what is no prefix of keys.
    pub(crate) fn prefix<'a>(&self, object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
        let Self::Typed(typed, _) = self else { return self.encode(object, "a key") };
        typed.first_parts(object)?.map(Cow::Owned).ok_or_else(|| typed.no_prefix())
    }

    /// Whether an error says that an object cannot be a key.
    pub(crate) fn refuses(&self, py: Python<'_>, error: &PyErr) -> bool {
        let is_typed = matches!(self, Self::Typed(..));
        error.is_instance_of::<PyTypeError>(py)
            || is_typed
                && (error.is_instance_of::<PyValueError>(py)
                    || error.is_instance_of::<PyOverflowError>(py))
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
                if self.refuses(py, &error) || error.is_instance_of::<PyUnicodeEncodeError>(py) =>
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
            Self::Named(_) | Self::Typed(..) => Err(bytes.to_vec()),
        }
    }

    /// Decodes bytes to an object.
    ///
    /// # Errors
    /// `UnicodeDecodeError`, for bytes that are no text of the codec; `Undecodable`, for those that
    /// are not of the type.
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
            Self::Typed(typed, role) => typed.decode(py, bytes, *role),
        }
    }
}
