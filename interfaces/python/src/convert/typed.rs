//! Conversion between Python objects and the encodings of recorded types.
//!
//! Purpose: keys and values of typed keyspaces, with the bytes that a Rust program with the same
//! types writes; see `docs/format/typed.md`. Types are given by their recorded names.
//! Invariants: what is decoded is encoded to the same bytes again; so an `Option` within an
//! `Option`, of which Python has one `None`, is no type here.

use adamant::typed::DynamicType;
use adamant::{RecordedType, Slice};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::convert::dynamic::{Role, What, object_of, value_of};
use crate::convert::json;
use crate::convert::objects::undecodable;
use crate::errors;

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
