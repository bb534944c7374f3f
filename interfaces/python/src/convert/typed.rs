//! Conversion between Python objects and the encodings of recorded types.
//!
//! Purpose: keys and values of typed keyspaces, with the bytes that a Rust program with the same
//! types writes; see `docs/format/typed.md`. Types are given by their recorded names.
//! Invariants: an object that the type cannot hold exactly is refused, except that numbers for
//! `f32` are rounded. What is decoded is encoded to the same bytes again; so an `Option` within an
//! `Option`, of which Python has one `None`, is no type here.

use std::borrow::Cow;
use std::fmt;

use adamant::typed::{DynamicType, DynamicValue};
use adamant::{RecordedType, Slice};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyString, PyTuple};

use crate::convert::json;
use crate::convert::objects::{bytes_of, undecodable, wrong};
use crate::errors;

/// The highest integer up to which `f64` has all.
const EXACT_MAX: u128 = 1 << 53;

/// A type of keys or values.
#[derive(Debug)]
pub(crate) struct Typed {
    kind: Kind,
    recorded: RecordedType,
    /// Its recorded name and version.
    name: String,
}

#[derive(Debug)]
enum Kind {
    Dynamic(DynamicType),
    Json,
}

impl Typed {
    /// The type with this recorded name, for keys or for values.
    ///
    /// # Errors
    /// `InvalidArgument`, for a name of another type.
    pub(crate) fn parse(name: &str, is_key: bool) -> PyResult<Self> {
        let given = name.rsplit_once(" version ");
        let versioned = given.and_then(|(name, version)| Some((name, version.parse().ok()?)));
        let (base, version): (&str, u32) = versioned.unwrap_or((name, 1));
        if base.starts_with("Json<") && base.ends_with('>') && !is_key {
            let recorded = RecordedType { name: base.to_owned(), version };
            return Ok(Self { kind: Kind::Json, name: recorded.to_string(), recorded });
        }
        let of_role = |it: &DynamicType| if is_key { it.is_key() } else { it.is_value() };
        let found = DynamicType::parse(base).filter(|it| version == 1 && of_role(it));
        let found = found.ok_or_else(|| unknown(name, is_key))?;
        if has_nested_option(&found, false) {
            let words = format!(
                "expected a type that Python can tell the keys of, found {found}, whose None may be \
                 either of two; use the keyspace as bytes"
            );
            return Err(errors::named("InvalidArgument", words));
        }
        let recorded = RecordedType { name: found.to_string(), version };
        Ok(Self { kind: Kind::Dynamic(found), name: recorded.to_string(), recorded })
    }

    /// Its recorded name and version, in one.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn recorded(&self) -> &RecordedType {
        &self.recorded
    }

    /// The type, if its values are not JSON.
    pub(crate) fn dynamic(&self) -> Option<&DynamicType> {
        match &self.kind {
            Kind::Dynamic(found) => Some(found),
            Kind::Json => None,
        }
    }

    /// The bytes of an object that is a key or a value.
    ///
    /// # Errors
    /// `TypeError` for an object of another type, `OverflowError` for a number that is too large,
    /// `ValueError` for others that the type does not have.
    pub(crate) fn encode(&self, object: &Bound<'_, PyAny>, what: Role) -> PyResult<Vec<u8>> {
        let Kind::Dynamic(found) = &self.kind else { return json::encode(object) };
        let value = value_of(found, object, What { role: what, tuple: None })?;
        let encoded = match what {
            Role::Key => found.encode_key(&value),
            Role::Value => found.encode_value(&value),
        };
        encoded.map_err(|error| PyTypeError::new_err(format!("expected {}", error.expected())))
    }

    /// The bytes of the first parts of keys that are tuples; `None` for an object that is no tuple
    /// with fewer parts than a key.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub(crate) fn first_parts(&self, object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
        let (Some(DynamicType::Tuple(types)), Ok(parts)) =
            (self.dynamic(), object.cast::<PyTuple>())
        else {
            return Ok(None);
        };
        if parts.len() >= types.len() {
            return Ok(None);
        }
        let what = What { role: Role::Key, tuple: self.dynamic() };
        let parts = parts.iter().zip(types).map(|(part, found)| value_of(found, &part, what));
        let parts = parts.collect::<PyResult<Vec<_>>>()?;
        let encoded = self.dynamic().map(|found| found.encode_first_parts(&parts)).transpose();
        encoded.map_err(|error| PyTypeError::new_err(format!("expected {}", error.expected())))
    }

    /// The exception for what is no prefix of keys.
    pub(crate) fn no_prefix(&self) -> PyErr {
        let name = self.name();
        PyTypeError::new_err(match self.dynamic() {
            Some(DynamicType::Tuple(parts)) => {
                let most = parts.len() - 1;
                format!("expected a tuple of 0 to {most} of the first parts of {name} as a prefix")
            }
            _ => format!("keys of type {name} have no prefixes; use start and stop"),
        })
    }

    /// Decodes bytes to an object.
    ///
    /// # Errors
    /// `Undecodable` for bytes that are none of this type.
    pub(crate) fn decode<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
        what: Role,
    ) -> PyResult<Bound<'py, PyAny>> {
        let decoded = match (&self.kind, what) {
            (Kind::Json, _) => return json::decode(py, bytes, self.name()),
            (Kind::Dynamic(found), Role::Key) => found.decode_key(bytes),
            (Kind::Dynamic(found), Role::Value) => found.decode_value(Slice::from(bytes)),
        };
        let value = decoded
            .map_err(|error| undecodable(what.name(), error.expected(), bytes, self.name()))?;
        object_of(py, value)
    }
}

/// What is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Key,
    Value,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Key => "a key",
            Self::Value => "a value",
        }
    }
}

fn unknown(name: &str, is_key: bool) -> PyErr {
    let (of, more) = match is_key {
        true => ("keys", "tuples, Option<..>, Reverse<..>"),
        false => ("values", "(), Json<any>"),
    };
    let about = match () {
        () if name.starts_with("Serde<") => {
            "; values of Serde are read by the Rust type only: use Json in Rust, or the keyspace as \
             bytes"
        }
        () => "",
    };
    let words = format!(
        "expected a type of {of}, found {name:?}: known are u8 to u128, i8 to i128, f32, f64, bool, \
         char, String, bytes, [u8; N], {more}{about}"
    );
    errors::named("InvalidArgument", words)
}

fn has_nested_option(found: &DynamicType, is_within: bool) -> bool {
    match found {
        DynamicType::Option(part) => is_within || has_nested_option(part, true),
        DynamicType::Reverse(part) => has_nested_option(part, is_within),
        DynamicType::Tuple(parts) => parts.iter().any(|part| has_nested_option(part, false)),
        _ => false,
    }
}

/// What an object is to be, in errors: it is put into words only there.
#[derive(Clone, Copy)]
struct What<'a> {
    role: Role,
    /// The tuple that it is a part of.
    tuple: Option<&'a DynamicType>,
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

fn value_of(
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

fn object_of(py: Python<'_>, value: DynamicValue) -> PyResult<Bound<'_, PyAny>> {
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
