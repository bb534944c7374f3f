//! Order-preserving keys: integers, `bool`, `Option`, `Reverse`, arrays.
//!
//! Purpose: most significant byte first, with the sign flipped, compares as numbers do.
//! Invariants: no encoding is a prefix of another one of the same type, except for
//! [`KeyFor::encode_last`]: so encodings can be concatenated, and compare part by part.

use std::cmp::Reverse;

use zerocopy::big_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, IntoBytes};

use super::malformed::Malformed;
use super::named::Named;

/// A type that stands for a key of type `K`: `K` itself, or what it borrows as, such as `str` for
/// `String`.
pub trait KeyFor<K: ?Sized> {
    /// Appends the key in such a way that what follows cannot be taken for a part of it, and that
    /// bytes compare as keys do.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// Like [`KeyFor::encode`], with nothing behind it. Texts need no terminator there: a key that
    /// is one text has just its bytes.
    fn encode_last(&self, bytes: &mut Vec<u8>) {
        self.encode(bytes);
    }
}

/// A type of keys.
///
/// ```
/// use adamant::typed::{Key, KeyFor, Malformed, Named};
///
/// /// A day, in the order of days.
/// #[derive(Debug, PartialEq)]
/// struct Day { year: u16, number: u16 }
///
/// impl Named for Day {
///     const NAME: &'static str = "Day";
/// }
///
/// impl KeyFor<Day> for Day {
///     fn encode(&self, bytes: &mut Vec<u8>) {
///         (self.year, self.number).encode(bytes);
///     }
/// }
///
/// impl Key for Day {
///     fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
///         let (year, number) = Key::decode(bytes)?;
///         Ok(Day { year, number })
///     }
/// }
///
/// let store = adamant::Store::in_memory()?;
/// let notes = store.keyspace("notes")?.typed::<Day, String>()?;
/// notes.put(&Day { year: 2024, number: 60 }, "a day more")?;
/// assert_eq!(notes.first()?, Some((Day { year: 2024, number: 60 }, "a day more".into())));
/// # Ok::<(), adamant::Error>(())
/// ```
pub trait Key: KeyFor<Self> + Named + Sized {
    /// Decodes a key, as [`KeyFor::encode`] writes it, from the front of the bytes.
    ///
    /// # Errors
    /// The bytes begin with no such key.
    fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed>;

    /// Decodes a key from bytes of [`KeyFor::encode_last`].
    ///
    /// # Errors
    /// They are no such key.
    fn decode_last(mut bytes: &[u8]) -> Result<Self, Malformed> {
        let key = Self::decode(&mut bytes)?;
        if bytes.is_empty() { Ok(key) } else { Err(Malformed::new("nothing more")) }
    }
}

/// A prefix of keys of type `K`: some characters of a text, or the first parts of a tuple.
pub trait PrefixFor<K: ?Sized> {
    /// Appends the bytes that all these keys begin with.
    fn encode_prefix(&self, bytes: &mut Vec<u8>);

    /// Like [`PrefixFor::encode_prefix`], of keys that something follows, as
    /// [`KeyFor::encode`] writes them: the keys of multimaps.
    fn encode_prefix_of_part(&self, bytes: &mut Vec<u8>) {
        self.encode_prefix(bytes);
    }
}

/// A capacity that fits most keys.
const KEY_BYTES_SHORT: usize = 32;

/// Encodes a whole key.
pub(crate) fn encode_key<K, Q: KeyFor<K> + ?Sized>(key: &Q) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(KEY_BYTES_SHORT);
    key.encode_last(&mut bytes);
    bytes
}

/// Encodes a prefix of keys.
pub(super) fn encode_prefix<K, P: PrefixFor<K> + ?Sized>(prefix: &P) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(KEY_BYTES_SHORT);
    prefix.encode_prefix(&mut bytes);
    bytes
}

impl<K, Q: KeyFor<K> + ?Sized> KeyFor<K> for &Q {
    fn encode(&self, bytes: &mut Vec<u8>) {
        (**self).encode(bytes);
    }

    fn encode_last(&self, bytes: &mut Vec<u8>) {
        (**self).encode_last(bytes);
    }
}

/// Takes so many bytes off the front.
pub(super) fn take<'b>(
    bytes: &mut &'b [u8],
    count: usize,
    of: &str,
) -> Result<&'b [u8], Malformed> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(|| {
        let found = bytes.len();
        Malformed::new(format!("{count} bytes of {of}, and not only {found},"))
    })?;
    *bytes = rest;
    Ok(taken)
}

impl KeyFor<u8> for u8 {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(*self);
    }
}

impl Key for u8 {
    fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(take(bytes, 1, "a u8")?[0])
    }
}

macro_rules! unsigned {
    ($($integer:ty, $encoded:ty;)*) => {$(
        impl KeyFor<$integer> for $integer {
            fn encode(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(<$encoded>::new(*self).as_bytes());
            }
        }

        impl Key for $integer {
            fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
                let name = concat!("a ", stringify!($integer));
                let taken = take(bytes, size_of::<$integer>(), name)?;
                let number = <$encoded>::read_from_bytes(taken);
                number.map(<$encoded>::get).map_err(|_| Malformed::new(name))
            }
        }
    )*};
}

unsigned! { u16, U16; u32, U32; u64, U64; u128, U128; }

macro_rules! signed {
    ($($integer:ty, $unsigned:ty;)*) => {$(
        impl KeyFor<$integer> for $integer {
            fn encode(&self, bytes: &mut Vec<u8>) {
                // Negative numbers sort below the others.
                KeyFor::<$unsigned>::encode(&(*self ^ <$integer>::MIN).cast_unsigned(), bytes);
            }
        }

        impl Key for $integer {
            fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
                Ok(<$unsigned>::decode(bytes)?.cast_signed() ^ <$integer>::MIN)
            }
        }
    )*};
}

signed! { i8, u8; i16, u16; i32, u32; i64, u64; i128, u128; }

impl KeyFor<bool> for bool {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }
}

impl Key for bool {
    fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        match take(bytes, 1, "a bool")? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed::new("0 or 1 for a bool")),
        }
    }
}

impl<const N: usize> KeyFor<[u8; N]> for [u8; N] {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

impl<const N: usize> Key for [u8; N] {
    fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let taken = take(bytes, N, "an array")?;
        taken.try_into().map_err(|_| Malformed::new(format!("{N} bytes")))
    }
}

/// `None` comes before all others.
impl<K, Q: KeyFor<K>> KeyFor<Option<K>> for Option<Q> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self.is_some()));
        if let Some(key) = self {
            key.encode(bytes);
        }
    }

    fn encode_last(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self.is_some()));
        if let Some(key) = self {
            key.encode_last(bytes);
        }
    }
}

impl<K: Key> Key for Option<K> {
    fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        if bool::decode(bytes)? { K::decode(bytes).map(Some) } else { Ok(None) }
    }

    fn decode_last(mut bytes: &[u8]) -> Result<Self, Malformed> {
        match bool::decode(&mut bytes)? {
            true => K::decode_last(bytes).map(Some),
            false if bytes.is_empty() => Ok(None),
            false => Err(Malformed::new("nothing behind None")),
        }
    }
}

/// The highest first: for maps that are mostly read from their end, such as the newest entry.
impl<K, Q: KeyFor<K>> KeyFor<Reverse<K>> for Reverse<Q> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        self.0.encode(bytes);
        bytes[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

impl<K: Key> Key for Reverse<K> {
    fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let inverted: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        let mut rest = &inverted[..];
        let key = K::decode(&mut rest)?;
        *bytes = &bytes[inverted.len() - rest.len()..];
        Ok(Self(key))
    }
}
