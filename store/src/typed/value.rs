//! Typed values: numbers, texts, byte strings.
//!
//! Purpose: numbers have their size, least significant byte first. Texts and byte strings are their
//! bytes; they are not copied on the way in, nor, as `Slice`s, on the way out.

use adamant_slice::Slice;
use zerocopy::{FromBytes, IntoBytes, little_endian};

use super::malformed::Malformed;
use super::named::Named;

/// A type that stands for a value of type `V`: `V` itself, or what it borrows as, such as `str` for
/// `String`.
pub trait ValueFor<V: ?Sized> {
    /// The value's bytes; in `spare`, which is empty, if they are nowhere else.
    ///
    /// # Errors
    /// The value has no encoding.
    fn encode_value<'b>(&'b self, spare: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed>;
}

/// A type of values.
///
/// ```
/// use adamant::Slice;
/// use adamant::typed::{Malformed, Named, Value, ValueFor};
///
/// /// A colour, as 3 bytes.
/// #[derive(Debug, PartialEq)]
/// struct Colour([u8; 3]);
///
/// impl Named for Colour {
///     const NAME: &'static str = "Colour";
/// }
///
/// impl ValueFor<Colour> for Colour {
///     fn encode_value<'b>(&'b self, _: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed> {
///         Ok(&self.0)
///     }
/// }
///
/// impl Value for Colour {
///     fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
///         bytes[..].try_into().map(Colour).map_err(|_| Malformed::new("3 bytes of a colour"))
///     }
/// }
///
/// let store = adamant::Store::in_memory()?;
/// let colours = store.keyspace("colours")?.typed::<String, Colour>()?;
/// colours.put("grass", &Colour([0, 128, 0]))?;
/// assert_eq!(colours.get("grass")?, Some(Colour([0, 128, 0])));
/// # Ok::<(), adamant::Error>(())
/// ```
pub trait Value: ValueFor<Self> + Named + Sized {
    /// Decodes the value.
    ///
    /// # Errors
    /// The bytes are no such value.
    fn decode_value(bytes: Slice) -> Result<Self, Malformed>;
}

impl<V, W: ValueFor<V> + ?Sized> ValueFor<V> for &W {
    fn encode_value<'b>(&'b self, spare: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed> {
        (**self).encode_value(spare)
    }
}

macro_rules! numbers {
    ($($number:ty, $encoded:ty;)*) => {$(
        impl ValueFor<$number> for $number {
            fn encode_value<'b>(&'b self, spare: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed> {
                spare.extend_from_slice(<$encoded>::from(*self).as_bytes());
                Ok(spare)
            }
        }

        impl Value for $number {
            fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
                let number = <$encoded>::read_from_bytes(&bytes);
                number.map(Self::from).map_err(|_| {
                    let bytes = size_of::<$number>();
                    Malformed::new(format!("{bytes} bytes of a {}", stringify!($number)))
                })
            }
        }
    )*};
}

numbers! {
    u8, u8;
    i8, i8;
    u16, little_endian::U16;
    i16, little_endian::I16;
    u32, little_endian::U32;
    i32, little_endian::I32;
    u64, little_endian::U64;
    i64, little_endian::I64;
    u128, little_endian::U128;
    i128, little_endian::I128;
    f32, little_endian::F32;
    f64, little_endian::F64;
}

impl ValueFor<bool> for bool {
    fn encode_value<'b>(&'b self, spare: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed> {
        spare.push(u8::from(*self));
        Ok(spare)
    }
}

impl Value for bool {
    fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
        match &bytes[..] {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed::new("0 or 1 for a bool")),
        }
    }
}

impl ValueFor<char> for char {
    fn encode_value<'b>(&'b self, spare: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed> {
        spare.extend_from_slice(little_endian::U32::from(u32::from(*self)).as_bytes());
        Ok(spare)
    }
}

impl Value for char {
    fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
        let found = u32::decode_value(bytes)?;
        Self::from_u32(found).ok_or_else(|| Malformed::new("a code point of Unicode"))
    }
}

/// For keyspaces that are sets.
impl ValueFor<()> for () {
    fn encode_value<'b>(&'b self, spare: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed> {
        Ok(spare)
    }
}

impl Value for () {
    fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
        if bytes.is_empty() { Ok(()) } else { Err(Malformed::new("no bytes")) }
    }
}

macro_rules! bytes_for {
    ($($value:ty: $($lent:ty),*;)*) => {$($(
        impl ValueFor<$value> for $lent {
            fn encode_value<'b>(&'b self, _: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed> {
                Ok(self.as_ref())
            }
        }
    )*)*};
}

bytes_for! {
    String: String, str;
    Vec<u8>: Vec<u8>, [u8], Slice;
    Slice: Slice, [u8], Vec<u8>, str, String;
}

impl Value for String {
    fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
        Self::from_utf8(bytes.to_vec()).map_err(|_| Malformed::new("UTF-8"))
    }
}

impl Value for Vec<u8> {
    fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
        Ok(bytes.to_vec())
    }
}

impl Value for Slice {
    fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
        Ok(bytes)
    }
}

impl<const N: usize> ValueFor<[u8; N]> for [u8; N] {
    fn encode_value<'b>(&'b self, _: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed> {
        Ok(self)
    }
}

impl<const N: usize> Value for [u8; N] {
    fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
        bytes[..].try_into().map_err(|_| Malformed::new(format!("{N} bytes")))
    }
}
