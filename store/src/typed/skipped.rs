//! Detection of values that skip fields when they are encoded.
//!
//! Purpose: the format of `postcard` has no names of fields, so bytes of a value that lacks one are
//! read as another value, or not at all. This serializer writes nothing, and fails if a field is
//! skipped.

use std::fmt;

use serde::ser::{self, Serialize, Serializer};

/// Fails if a value skips a field.
pub(super) fn check_fields<T: Serialize>(value: &T) -> Result<(), Skipped> {
    value.serialize(Fields)
}

/// The field that was skipped, or the type's own error.
#[derive(Debug)]
pub(super) struct Skipped(String);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skipped {}

impl ser::Error for Skipped {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Visits all fields of a value.
#[derive(Clone, Copy)]
struct Fields;

macro_rules! nothing {
    ($($name:ident: $value:ty;)*) => {$(
        fn $name(self, _: $value) -> Result<(), Skipped> {
            Ok(())
        }
    )*};
}

impl Serializer for Fields {
    type Ok = ();
    type Error = Skipped;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    nothing! {
        serialize_bool: bool;
        serialize_i8: i8;
        serialize_i16: i16;
        serialize_i32: i32;
        serialize_i64: i64;
        serialize_i128: i128;
        serialize_u8: u8;
        serialize_u16: u16;
        serialize_u32: u32;
        serialize_u64: u64;
        serialize_u128: u128;
        serialize_f32: f32;
        serialize_f64: f64;
        serialize_char: char;
        serialize_str: &str;
        serialize_bytes: &[u8];
        serialize_unit_struct: &'static str;
    }

    fn serialize_none(self) -> Result<(), Skipped> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Skipped> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Skipped> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &str, _: u32, _: &'static str) -> Result<(), Skipped> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Skipped> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Skipped> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Skipped> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Skipped> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Skipped> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Skipped> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Skipped> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Skipped> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Skipped> {
        Ok(self)
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Result<(), Skipped> {
        Ok(())
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! elements {
    ($($trait:ident: $element:ident;)*) => {$(
        impl ser::$trait for Fields {
            type Ok = ();
            type Error = Skipped;

            fn $element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Skipped> {
                value.serialize(*self)
            }

            fn end(self) -> Result<(), Skipped> {
                Ok(())
            }
        }
    )*};
}

elements! {
    SerializeSeq: serialize_element;
    SerializeTuple: serialize_element;
    SerializeTupleStruct: serialize_field;
    SerializeTupleVariant: serialize_field;
}

macro_rules! fields {
    ($($trait:ident,)*) => {$(
        impl ser::$trait for Fields {
            type Ok = ();
            type Error = Skipped;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                _: &'static str,
                value: &T,
            ) -> Result<(), Skipped> {
                value.serialize(*self)
            }

            fn skip_field(&mut self, name: &'static str) -> Result<(), Skipped> {
                Err(Skipped(format!("the field {name:?} is left out")))
            }

            fn end(self) -> Result<(), Skipped> {
                Ok(())
            }
        }
    )*};
}

fields! { SerializeStruct, SerializeStructVariant, }

impl ser::SerializeMap for Fields {
    type Ok = ();
    type Error = Skipped;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Skipped> {
        key.serialize(*self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Skipped> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Skipped> {
        Ok(())
    }
}
