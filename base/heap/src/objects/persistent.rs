//! Persistent types: types that are stored in a heap as they are, and their names and versions.
//!
//! Purpose: a stable identity of types. Rust's own `TypeId` changes with the compiler, so a type
//! declares its name and version, and an id is made from them.
//! Invariants: a persistent type has no padding (`IntoBytes`), no invalid bits (`FromBytes`), at
//! least one byte, and an alignment that every block has. All of it is checked at compile time.

use core::fmt;

use zerocopy::little_endian as le;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::layout::{BLOCK_ALIGNMENT, NAME_BYTES_MAX};
use crate::ptr::Ptr;

/// A type whose bytes are stored in a heap as they are.
///
/// Derive the traits that zerocopy requires, and give the type a name that no other one in the pool
/// has. Raise the version whenever fields change: a pool that holds the old one then yields an
/// error, instead of showing its bytes as something else.
///
/// Integers of the machine are stored in its byte order; types made only of those of
/// `zerocopy::little_endian` can be read on every machine.
///
/// ```
/// use adamant_heap::{Persistent, Ptr, Text};
/// use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[repr(C)]
/// struct Person {
///     name: Text,
///     boss: Ptr<Person>,
///     born: u64,
/// }
///
/// impl Persistent for Person {
///     const NAME: &'static str = "example.person";
///     const VERSION: u32 = 1;
/// }
///
/// assert_eq!(Person::STORED.to_string(), "example.person version 1 of 32 bytes");
/// ```
pub trait Persistent: FromBytes + IntoBytes + Immutable + KnownLayout + Sized {
    /// The name of the type in a pool: 1 to 255 bytes, the same for all versions.
    const NAME: &'static str;
    /// The version of the type.
    const VERSION: u32;
    /// Its layout, made from the two above. Implementations do not give it.
    const STORED: Layout = Layout::of::<Self>(Self::NAME, Self::VERSION);
}

/// Name, version and size of a persistent type, and the id made from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    name: &'static str,
    version: u32,
    bytes: u64,
    id: u64,
}

impl Layout {
    /// The layout of `T` under a name and version.
    pub(crate) const fn of<T>(name: &'static str, version: u32) -> Self {
        Self::holding::<T>(name, version, 0)
    }

    /// The layout of `T`, which depends on the type with the id `inner`: the [`Persistent::STORED`]
    /// of a generic type.
    pub const fn holding<T>(name: &'static str, version: u32, inner: u64) -> Self {
        assert!(align_of::<T>() as u64 <= BLOCK_ALIGNMENT, "a persistent type is aligned to 8");
        assert!(size_of::<T>() > 0, "a persistent type has at least one byte");
        assert!(!name.is_empty() && name.len() <= NAME_BYTES_MAX, "a name has 1 to 255 bytes");
        let bytes = size_of::<T>() as u64;
        // FNV-1a, 64 bits (Fowler, Noll, Vo): small, and computed by the compiler.
        let mut id = hash(0xCBF2_9CE4_8422_2325, name.as_bytes());
        id = hash(id, &version.to_le_bytes());
        id = hash(id, &bytes.to_le_bytes());
        id = hash(id, &inner.to_le_bytes());
        Self { name, version, bytes, id: if id == 0 { 1 } else { id } }
    }

    /// The name of the type.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its version.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Bytes of a value of it.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The id of the type in a pool: a hash of name, version and size, never 0.
    pub const fn id(&self) -> u64 {
        self.id
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_layout(f, self.name, self.version, self.bytes)
    }
}

/// Writes a layout in words, one of the program or one that a pool names.
pub(crate) fn write_layout(
    f: &mut impl fmt::Write,
    name: &str,
    version: u32,
    bytes: u64,
) -> fmt::Result {
    write!(f, "{name} version {version} of {bytes} bytes")
}

const fn hash(mut state: u64, bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        state = (state ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01B3);
        at += 1;
    }
    state
}

macro_rules! persistent {
    ($($kind:ty: $name:literal),* $(,)?) => {$(
        impl Persistent for $kind {
            const NAME: &'static str = $name;
            const VERSION: u32 = 1;
        }
    )*};
}

persistent! {
    u8: "u8", i8: "i8", u16: "u16", i16: "i16", u32: "u32", i32: "i32", u64: "u64", i64: "i64",
    f32: "f32", f64: "f64",
    le::U16: "le.u16", le::I16: "le.i16", le::U32: "le.u32", le::I32: "le.i32",
    le::U64: "le.u64", le::I64: "le.i64", le::U128: "le.u128", le::I128: "le.i128",
    le::F32: "le.f32", le::F64: "le.f64",
}

impl<T: Persistent, const N: usize> Persistent for [T; N] {
    const NAME: &'static str = "adamant.sequence";
    const VERSION: u32 = 1;
    const STORED: Layout = Layout::holding::<Self>(Self::NAME, 1, T::STORED.id());
}

impl<T: Persistent> Persistent for Ptr<T> {
    const NAME: &'static str = "adamant.pointer";
    const VERSION: u32 = 1;
    const STORED: Layout = Layout::holding::<Self>(Self::NAME, 1, T::STORED.id());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_types_apart_and_never_change() {
        let layouts = [
            u64::STORED,
            le::U64::STORED,
            i64::STORED,
            <[u64; 2]>::STORED,
            <[u64; 3]>::STORED,
            <[i64; 2]>::STORED,
            Ptr::<u64>::STORED,
            Ptr::<i64>::STORED,
            Layout::of::<u64>("u64", 2),
            Layout::of::<u32>("u64", 1),
        ];
        for (index, layout) in layouts.iter().enumerate() {
            assert!(layouts[..index].iter().all(|other| other.id() != layout.id()), "{layout}");
        }
        // Stored in pools. Another program computed it from the format page.
        assert_eq!(u64::STORED.id(), 0xC2D4_C72C_0890_B66B);
    }
}
