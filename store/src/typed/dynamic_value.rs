//! Keys and values of types that are known while a program runs.
//!
//! Purpose: what `Key` and `Value` do for a type, for one that [`DynamicType`] describes, by the
//! same implementations.
//! Invariants: a value of another type is refused, never encoded.

use adamant_slice::Slice;

use super::dynamic_type::DynamicType;
use super::key::{Key, KeyFor, take};
use super::malformed::Malformed;
use super::value::{Value, ValueFor};

/// A key, a part of one, or a value, of a [`DynamicType`]. One of a type `Reverse<K>` is that of
/// `K`, one of `[u8; N]` is `Bytes`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants are called as the types are")]
#[non_exhaustive]
pub enum DynamicValue {
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    U128(u128),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    I128(i128),
    F32(f32),
    F64(f64),
    Bool(bool),
    Char(char),
    Unit,
    String(String),
    Bytes(Vec<u8>),
    Option(Option<Box<Self>>),
    Tuple(Vec<Self>),
}

impl From<&str> for DynamicValue {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<&[u8]> for DynamicValue {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

/// Encodes a part, or the last one.
fn encode<K, Q: KeyFor<K>>(key: &Q, is_last: bool, bytes: &mut Vec<u8>) {
    if is_last { key.encode_last(bytes) } else { key.encode(bytes) }
}

/// Decodes a part, or the last one, which takes all bytes.
fn decode<K: Key>(bytes: &mut &[u8], is_last: bool) -> Result<K, Malformed> {
    if is_last { K::decode_last(std::mem::take(bytes)) } else { K::decode(bytes) }
}

fn invert(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}

/// Passes the types that are encoded alike to a macro.
macro_rules! for_scalars {
    ($with:ident) => {
        $with! {
            U8 u8, U16 u16, U32 u32, U64 u64, U128 u128, I8 i8, I16 i16, I32 i32, I64 i64,
            I128 i128, F32 f32, F64 f64, Bool bool, Char char, String String, Bytes Vec<u8>
        }
    };
}

macro_rules! keys {
    ($($variant:ident $rust:ty),*) => {
        impl DynamicType {
            fn put_key(
                &self,
                key: &DynamicValue,
                is_last: bool,
                bytes: &mut Vec<u8>,
            ) -> Result<(), Malformed> {
                match (self, key) {
                    $((Self::$variant, DynamicValue::$variant(key)) => {
                        encode::<$rust, _>(key, is_last, bytes);
                    })*
                    (Self::Array(length), DynamicValue::Bytes(key)) if key.len() == *length => {
                        bytes.extend_from_slice(key);
                    }
                    (Self::Option(part), DynamicValue::Option(key)) => {
                        bytes.push(u8::from(key.is_some()));
                        if let Some(key) = key {
                            part.put_key(key, is_last, bytes)?;
                        }
                    }
                    (Self::Reverse(part), key) => {
                        let start = bytes.len();
                        part.put_key(key, false, bytes)?;
                        invert(&mut bytes[start..]);
                    }
                    (Self::Tuple(types), DynamicValue::Tuple(parts))
                        if types.len() == parts.len() =>
                    {
                        for (number, (part, key)) in (1..).zip(types.iter().zip(parts)) {
                            part.put_key(key, is_last && number == types.len(), bytes)?;
                        }
                    }
                    _ => return Err(Malformed::new(format!("a key of type {self}"))),
                }
                Ok(())
            }

            fn take_key(&self, bytes: &mut &[u8], is_last: bool) -> Result<DynamicValue, Malformed> {
                Ok(match self {
                    $(Self::$variant => {
                        DynamicValue::$variant(decode::<$rust>(bytes, is_last)?)
                    })*
                    Self::Unit => return Err(Malformed::new("a type of keys, and not ()")),
                    Self::Array(length) => {
                        let taken = take(bytes, *length, "an array")?;
                        DynamicValue::Bytes(taken.to_vec())
                    }
                    Self::Option(part) => DynamicValue::Option(match bool::decode(bytes)? {
                        true => Some(Box::new(part.take_key(bytes, is_last)?)),
                        false => None,
                    }),
                    Self::Reverse(part) => {
                        let mut inverted = bytes.to_vec();
                        invert(&mut inverted);
                        let mut rest = &inverted[..];
                        let key = part.take_key(&mut rest, false)?;
                        *bytes = &bytes[inverted.len() - rest.len()..];
                        key
                    }
                    Self::Tuple(types) => {
                        let parts = (1..).zip(types).map(|(number, part)| {
                            part.take_key(bytes, is_last && number == types.len())
                        });
                        DynamicValue::Tuple(parts.collect::<Result<_, _>>()?)
                    }
                })
            }
        }
    };
}

for_scalars!(keys);

macro_rules! values {
    ($($variant:ident $rust:ty),*) => {
        impl DynamicType {
            /// The bytes of a value, as [`ValueFor::encode_value`] makes them. O(n) of n bytes.
            ///
            /// # Errors
            /// It is of another type, or no value can be of this one.
            pub fn encode_value(&self, value: &DynamicValue) -> Result<Vec<u8>, Malformed> {
                let mut spare = Vec::new();
                match (self, value) {
                    $((Self::$variant, DynamicValue::$variant(value)) => {
                        let encoded = ValueFor::<$rust>::encode_value(value, &mut spare)?;
                        Ok(encoded.to_vec())
                    })*
                    (Self::Array(length), DynamicValue::Bytes(value))
                        if value.len() == *length => Ok(value.clone()),
                    (Self::Unit, DynamicValue::Unit) => Ok(spare),
                    _ => Err(Malformed::new(format!("a value of type {self}"))),
                }
            }

            /// Decodes a value, as [`Value::decode_value`] does. O(n) of n bytes.
            ///
            /// # Errors
            /// The bytes are no such value, or no value can be of this type.
            pub fn decode_value(&self, bytes: Slice) -> Result<DynamicValue, Malformed> {
                match self {
                    $(Self::$variant => {
                        <$rust>::decode_value(bytes).map(DynamicValue::$variant)
                    })*
                    Self::Array(length) if bytes.len() == *length => {
                        Ok(DynamicValue::Bytes(bytes.to_vec()))
                    }
                    Self::Array(length) => Err(Malformed::new(format!("{length} bytes"))),
                    Self::Unit => <()>::decode_value(bytes).map(|()| DynamicValue::Unit),
                    Self::Option(_) | Self::Reverse(_) | Self::Tuple(_) => {
                        Err(Malformed::new(format!("a type of values, and not {self}")))
                    }
                }
            }
        }
    };
}

for_scalars!(values);

impl DynamicType {
    /// The bytes of a key, as [`KeyFor::encode_last`] makes them. O(n) of n bytes.
    ///
    /// # Errors
    /// It is of another type, or no key can be of this one.
    pub fn encode_key(&self, key: &DynamicValue) -> Result<Vec<u8>, Malformed> {
        let mut bytes = Vec::new();
        self.put_key(key, true, &mut bytes)?;
        Ok(bytes)
    }

    /// The bytes that the keys begin with whose first parts are these: a prefix of such tuples, and
    /// a lower bound of them. O(n) of n bytes.
    ///
    /// # Errors
    /// This is no type of tuples with more parts, or a part is of another type.
    pub fn encode_first_parts(&self, parts: &[DynamicValue]) -> Result<Vec<u8>, Malformed> {
        let mut bytes = Vec::new();
        match self {
            Self::Tuple(types) if parts.len() < types.len() => {
                for (part, key) in types.iter().zip(parts) {
                    part.put_key(key, false, &mut bytes)?;
                }
                Ok(bytes)
            }
            _ => Err(Malformed::new(format!("the first parts of a {self}, and not all"))),
        }
    }

    /// Decodes a key, as [`Key::decode_last`] does. O(n) of n bytes, for each `Reverse` around a
    /// part as much again.
    ///
    /// # Errors
    /// The bytes are no such key, or no key can be of this type.
    pub fn decode_key(&self, mut bytes: &[u8]) -> Result<DynamicValue, Malformed> {
        let key = self.take_key(&mut bytes, true)?;
        if bytes.is_empty() { Ok(key) } else { Err(Malformed::new("nothing more")) }
    }
}
