//! Serde support for slices and texts.
//!
//! Purpose: bytes as bytes and text as text, in formats that know both.
//! Invariants: a text is UTF-8 because the deserialiser passes it as `str`.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde_core::de::{Error, SeqAccess, Visitor};
use serde_core::{Deserialize, Deserializer, Serialize, Serializer};

use crate::builder::Builder;
use crate::slice::Slice;
use crate::text::Text;

impl Serialize for Slice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}

impl<'de> Deserialize<'de> for Slice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(SliceVisitor)
    }
}

struct SliceVisitor;

impl<'de> Visitor<'de> for SliceVisitor {
    type Value = Slice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Slice, E> {
        Slice::try_new(bytes).map_err(E::custom)
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Slice, E> {
        crate::slice::check_length(bytes.len()).map_err(E::custom)?;
        Ok(Slice::from(bytes))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Slice, E> {
        self.visit_bytes(text.as_bytes())
    }

    /// Formats without bytes write them as numbers. The count that the format claims is not
    /// trusted: memory grows with the bytes that came.
    fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<Slice, A::Error> {
        let mut builder = Builder::new();
        while let Some(byte) = bytes.next_element::<u8>()? {
            builder.append(&[byte]).map_err(A::Error::custom)?;
        }
        Ok(builder.freeze())
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_string(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
        crate::slice::check_length(text.len()).map_err(E::custom)?;
        Ok(Text::new(text))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Text, E> {
        crate::slice::check_length(text.len()).map_err(E::custom)?;
        Ok(Text::from(text))
    }
}
