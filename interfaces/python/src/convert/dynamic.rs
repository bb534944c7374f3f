//! Python objects of the types of typed keyspaces.
//!
//! Invariants: an object that a type cannot hold exactly is refused, except that numbers for `f32`
//! are rounded. The words of errors are made for errors only: this is on the way of every key.

use std::borrow::Cow;
use std::fmt;

use adamant::typed::{DynamicType, DynamicValue};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyString, PyTuple};

use crate::convert::objects::{bytes_of, wrong};
use crate::errors;

/// The highest integer up to which `f64` has all.
const EXACT_MAX: u128 = 1 << 53;

/// What is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Key,
    Value,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Key => "a key",
            Self::Value => "a value",
        }
    }
}

/// What an object is to be, in errors: it is put into words only there.
#[derive(Clone, Copy)]
pub(crate) struct What<'a> {
    pub(crate) role: Role,
    /// The tuple that it is a part of.
    pub(crate) tuple: Option<&'a DynamicType>,
}

impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tuple {
            None => f.write_str(self.role.name()),
            Some(found) => write!(f, "a part of {} {found}", self.role.name()),
        }
    }
}

/// The exception for an object of the wrong type.
fn other(object: &Bound<'_, PyAny>, what: What<'_>, expected: &str, advice: &str) -> PyErr {
    wrong(object, &what.to_string(), expected, advice)
}

fn taken_bytes(object: &Bound<'_, PyAny>, what: What<'_>) -> PyResult<Vec<u8>> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes().to_vec()),
        Err(_) => bytes_of(object, &what.to_string()).map(Cow::into_owned),
    }
}

/// An integer of its range.
fn integer<'a, 'py, T>(object: &'a Bound<'py, PyAny>, what: What<'_>, name: &str) -> PyResult<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    object.extract::<T>().map_err(|error| {
        let py = object.py();
        if error.is_instance_of::<PyOverflowError>(py) {
            let found = object.str().map_or_else(|_| "another".into(), |text| text.to_string());
            PyOverflowError::new_err(format!(
                "expected the range of {name} as {what}, found {found}"
            ))
        } else if error.is_instance_of::<PyTypeError>(py) {
            other(object, what, &format!("int ({name})"), "convert it, as int does")
        } else {
            error
        }
    })
}

/// A floating-point number: also an integer that is one.
fn float(object: &Bound<'_, PyAny>, what: What<'_>, name: &str) -> PyResult<f64> {
    if let Ok(float) = object.cast::<PyFloat>() {
        return Ok(float.value());
    }
    let whole = match object.extract::<i128>() {
        Ok(whole) if whole.unsigned_abs() <= EXACT_MAX => return Ok(whole as f64),
        Ok(whole) => whole.to_string(),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => "a larger one".into(),
        Err(_) => {
            return Err(other(
                object,
                what,
                &format!("float ({name})"),
                "convert it, as float does",
            ));
        }
    };
    let words = format!("expected an int up to {EXACT_MAX}, or a float, as {what}, found {whole}");
    Err(PyOverflowError::new_err(words))
}

/// A number; `None` for a type of others.
fn number_of(
    found: &DynamicType,
    object: &Bound<'_, PyAny>,
    what: What<'_>,
) -> PyResult<Option<DynamicValue>> {
    use {DynamicType as Type, DynamicValue as Value};

    Ok(Some(match found {
        Type::U8 => Value::U8(integer(object, what, "u8")?),
        Type::U16 => Value::U16(integer(object, what, "u16")?),
        Type::U32 => Value::U32(integer(object, what, "u32")?),
        Type::U64 => Value::U64(integer(object, what, "u64")?),
        Type::U128 => Value::U128(integer(object, what, "u128")?),
        Type::I8 => Value::I8(integer(object, what, "i8")?),
        Type::I16 => Value::I16(integer(object, what, "i16")?),
        Type::I32 => Value::I32(integer(object, what, "i32")?),
        Type::I64 => Value::I64(integer(object, what, "i64")?),
        Type::I128 => Value::I128(integer(object, what, "i128")?),
        Type::F64 => Value::F64(float(object, what, "f64")?),
        Type::F32 => {
            let double = float(object, what, "f32")?;
            let single = double as f32;
            if double.is_finite() && single.is_infinite() {
                let words = format!("expected the range of f32 as {what}, found {double}");
                return Err(PyOverflowError::new_err(words));
            }
            Value::F32(single)
        }
        _ => return Ok(None),
    }))
}

fn text_of<'a>(
    found: &DynamicType,
    object: &'a Bound<'_, PyAny>,
    what: What<'_>,
) -> PyResult<&'a str> {
    let text = object.cast::<PyString>();
    text.map_err(|_| other(object, what, &format!("str ({found})"), "convert it, as str does"))?
        .to_str()
}

/// The value of a type that an object stands for.
///
/// # Errors
/// `TypeError` for an object of another type, `OverflowError` for a number that is too large,
/// `ValueError` for others that the type does not have.
pub(crate) fn value_of(
    found: &DynamicType,
    object: &Bound<'_, PyAny>,
    what: What<'_>,
) -> PyResult<DynamicValue> {
    use {DynamicType as Type, DynamicValue as Value};

    if let Some(number) = number_of(found, object, what)? {
        return Ok(number);
    }
    Ok(match found {
        Type::Bool => match object.cast::<PyBool>() {
            Ok(bool) => Value::Bool(bool.is_true()),
            Err(_) => return Err(other(object, what, "bool", "convert it, as bool does")),
        },
        Type::Char => {
            let text = text_of(found, object, what)?;
            let mut characters = text.chars();
            let (Some(first), None) = (characters.next(), characters.next()) else {
                let words = format!("expected a str of one character as {what}, found {text:?}");
                return Err(PyValueError::new_err(words));
            };
            Value::Char(first)
        }
        Type::Unit if object.is_none() => Value::Unit,
        Type::Unit => return Err(other(object, what, "None", "the type is ()")),
        Type::String => Value::String(text_of(found, object, what)?.to_owned()),
        Type::Bytes => Value::Bytes(taken_bytes(object, what)?),
        Type::Array(length) => {
            let bytes = taken_bytes(object, what)?;
            if bytes.len() != *length {
                let words = format!("expected {length} bytes as {what}, found {}", bytes.len());
                return Err(PyValueError::new_err(words));
            }
            Value::Bytes(bytes)
        }
        Type::Option(_) if object.is_none() => Value::Option(None),
        Type::Option(part) => Value::Option(Some(Box::new(value_of(part, object, what)?))),
        Type::Reverse(part) => value_of(part, object, what)?,
        Type::Tuple(types) => tuple_of(found, types, object, what)?,
        other => {
            let words = format!("expected a type that this version knows, found {other}");
            return Err(errors::named("Unsupported", words));
        }
    })
}

fn tuple_of(
    found: &DynamicType,
    types: &[DynamicType],
    object: &Bound<'_, PyAny>,
    what: What<'_>,
) -> PyResult<DynamicValue> {
    let parts = object.cast::<PyTuple>().map_err(|_| {
        other(object, what, &format!("a tuple, {found}"), "convert it, as tuple does")
    })?;
    if parts.len() != types.len() {
        let (all, parts) = (types.len(), parts.len());
        let words = format!("expected {all} parts, {found}, as {what}, found {parts}");
        return Err(PyValueError::new_err(words));
    }
    let part = What { tuple: Some(found), ..what };
    let parts = parts.iter().zip(types).map(|(object, found)| value_of(found, &object, part));
    Ok(DynamicValue::Tuple(parts.collect::<PyResult<_>>()?))
}

/// The object that stands for a value.
///
/// # Errors
/// That of an interpreter without memory.
pub(crate) fn object_of(py: Python<'_>, value: DynamicValue) -> PyResult<Bound<'_, PyAny>> {
    use DynamicValue as Value;

    Ok(match value {
        Value::U8(number) => number.into_pyobject(py)?.into_any(),
        Value::U16(number) => number.into_pyobject(py)?.into_any(),
        Value::U32(number) => number.into_pyobject(py)?.into_any(),
        Value::U64(number) => number.into_pyobject(py)?.into_any(),
        Value::U128(number) => number.into_pyobject(py)?.into_any(),
        Value::I8(number) => number.into_pyobject(py)?.into_any(),
        Value::I16(number) => number.into_pyobject(py)?.into_any(),
        Value::I32(number) => number.into_pyobject(py)?.into_any(),
        Value::I64(number) => number.into_pyobject(py)?.into_any(),
        Value::I128(number) => number.into_pyobject(py)?.into_any(),
        Value::F32(number) => PyFloat::new(py, number.into()).into_any(),
        Value::F64(number) => PyFloat::new(py, number).into_any(),
        Value::Bool(bool) => PyBool::new(py, bool).to_owned().into_any(),
        Value::Char(character) => PyString::new(py, character.encode_utf8(&mut [0; 4])).into_any(),
        Value::Unit | Value::Option(None) => py.None().into_bound(py),
        Value::String(text) => PyString::new(py, &text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
        Value::Option(Some(value)) => object_of(py, *value)?,
        Value::Tuple(parts) => {
            let parts = parts.into_iter().map(|part| object_of(py, part));
            PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        _ => {
            let words = "expected a value of a type that this version knows, found another one";
            return Err(errors::named("Unsupported", words));
        }
    })
}
