//! The names that `serde` has for types.
//!
//! Purpose: a name that does not depend on the compiler or the module: the one that a derived
//! `Deserialize` passes, which `#[serde(rename = "..")]` sets.
//! Invariants: nothing is read. The first request of a type ends its deserialization, by an error
//! that carries the name; a type that requests any value has no other name.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

/// How deep nested sequences, maps and options are followed.
const DEPTH_MAX: usize = 8;

/// The name of a type, as a text format sees it, or a binary one.
pub(super) fn serde_name<T: DeserializeOwned>(is_text: bool) -> String {
    match T::deserialize(Tracer { depth: 0, is_text }) {
        Err(Name(name)) => name,
        // It requested nothing.
        Ok(_) => ANY.into(),
    }
}

/// The name of a type that may be anything.
const ANY: &str = "any";

#[derive(Clone, Copy)]
struct Tracer {
    depth: usize,
    is_text: bool,
}

#[derive(Debug)]
struct Name(String);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Name {}

impl Error for Name {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(ANY.into())
    }
}

impl Tracer {
    /// The tracer for a part, unless that is too deep.
    fn within(self) -> Result<Self, Name> {
        let depth = self.depth + 1;
        if depth < DEPTH_MAX { Ok(Self { depth, ..self }) } else { Err(Name("..".into())) }
    }
}

/// The name of a type with a part: made from the part's name, or from an empty one if the part was
/// not requested.
fn around<T>(part: Result<T, Name>, name: impl FnOnce(&str) -> String) -> Result<T, Name> {
    let part = part.err().map(|Name(part)| part).unwrap_or_default();
    Err(Name(name(&part)))
}

macro_rules! plain {
    ($($method:ident: $name:expr;)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Name> {
            Err(Name($name.into()))
        }
    )*};
}

macro_rules! called {
    ($($method:ident: $($argument:ty),*;)*) => {$(
        fn $method<V: Visitor<'de>>(
            self,
            name: &'static str,
            $(_: $argument,)*
            _: V,
        ) -> Result<V::Value, Name> {
            Err(Name(name.into()))
        }
    )*};
}

impl<'de> Deserializer<'de> for Tracer {
    type Error = Name;

    plain! {
        deserialize_any: ANY;
        deserialize_ignored_any: ANY;
        deserialize_identifier: "field";
        deserialize_bool: "bool";
        deserialize_i8: "i8";
        deserialize_i16: "i16";
        deserialize_i32: "i32";
        deserialize_i64: "i64";
        deserialize_i128: "i128";
        deserialize_u8: "u8";
        deserialize_u16: "u16";
        deserialize_u32: "u32";
        deserialize_u64: "u64";
        deserialize_u128: "u128";
        deserialize_f32: "f32";
        deserialize_f64: "f64";
        deserialize_char: "char";
        deserialize_str: "String";
        deserialize_string: "String";
        deserialize_bytes: "bytes";
        deserialize_byte_buf: "bytes";
        deserialize_unit: "()";
    }

    called! {
        deserialize_unit_struct:;
        deserialize_newtype_struct:;
        deserialize_tuple_struct: usize;
        deserialize_struct: &'static [&'static str];
        deserialize_enum: &'static [&'static str];
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Name> {
        around(visitor.visit_some(self.within()?), |part| format!("Option<{part}>"))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Name> {
        around(visitor.visit_seq(self.within()?), |part| format!("[{part}]"))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Name> {
        around(visitor.visit_seq(self.within()?), |part| format!("[{part}; {len}]"))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Name> {
        around(visitor.visit_map(self.within()?), |part| format!("{{{part}}}"))
    }

    fn is_human_readable(&self) -> bool {
        self.is_text
    }
}

impl<'de> SeqAccess<'de> for Tracer {
    type Error = Name;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Name> {
        seed.deserialize(*self).map(Some)
    }
}

impl<'de> MapAccess<'de> for Tracer {
    type Error = Name;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Name> {
        seed.deserialize(*self).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Name> {
        seed.deserialize(*self)
    }
}
