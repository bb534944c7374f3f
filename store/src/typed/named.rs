//! Names and versions of types.
//!
//! Purpose: a keyspace records the names of the types that it was made with. So a name must not
//! depend on the compiler, nor on where in a program a type is, as `std::any::type_name` does.

use std::cmp::Reverse;

use adamant_slice::Slice;

use crate::types::{KeyspaceTypes, RecordedType};

/// A type of keys or values that has a stable name in stores.
///
/// Name and version are recorded when a keyspace is first given types, see
/// [`Keyspace::typed`](crate::Keyspace::typed), and compared ever after. So keep a name when the
/// type is renamed or moved in the program, and give two types the same name only if each can read
/// what the other wrote.
pub trait Named {
    /// The name, without type parameters.
    const NAME: &'static str;

    /// The version of its encoding, to be raised with each change of that.
    const VERSION: u32 = 1;

    /// The whole name, with those of its type parameters.
    ///
    /// ```
    /// use adamant::typed::Named;
    ///
    /// assert_eq!(<(String, Option<u64>)>::name(), "(String, Option<u64>)");
    /// ```
    fn name() -> String {
        Self::NAME.into()
    }
}

/// The recorded form of a type.
fn recorded<T: Named>() -> RecordedType {
    RecordedType { name: T::name(), version: T::VERSION }
}

/// The recorded types of a keyspace with keys and values of these types.
pub(crate) fn types_of<K: Named, V: Named>() -> KeyspaceTypes {
    KeyspaceTypes { key: recorded::<K>(), value: recorded::<V>() }
}

/// The name of a type as a part of another one, with its version.
fn part<T: Named>() -> String {
    recorded::<T>().to_string()
}

macro_rules! named {
    ($($type:ty: $name:expr;)*) => {$(
        impl Named for $type {
            const NAME: &'static str = $name;
        }
    )*};
}

named! {
    u8: "u8";
    u16: "u16";
    u32: "u32";
    u64: "u64";
    u128: "u128";
    i8: "i8";
    i16: "i16";
    i32: "i32";
    i64: "i64";
    i128: "i128";
    f32: "f32";
    f64: "f64";
    bool: "bool";
    char: "char";
    (): "()";
    String: "String";
    // The same bytes in two containers.
    Vec<u8>: "bytes";
    Slice: "bytes";
}

impl<const N: usize> Named for [u8; N] {
    const NAME: &'static str = "[u8]";

    fn name() -> String {
        format!("[u8; {N}]")
    }
}

impl<K: Named> Named for Option<K> {
    const NAME: &'static str = "Option";

    fn name() -> String {
        format!("Option<{}>", part::<K>())
    }
}

impl<K: Named> Named for Reverse<K> {
    const NAME: &'static str = "Reverse";

    fn name() -> String {
        format!("Reverse<{}>", part::<K>())
    }
}

macro_rules! tuples {
    ($(($($part:ident),*);)*) => {$(
        impl<$($part: Named),*> Named for ($($part,)*) {
            const NAME: &'static str = "tuple";

            fn name() -> String {
                format!("({})", [$(part::<$part>()),*].join(", "))
            }
        }
    )*};
}

tuples! {
    (A, B);
    (A, B, C);
    (A, B, C, D);
    (A, B, C, D, E);
    (A, B, C, D, E, F);
}
