//! Recorded types of a keyspace's keys and values, as the catalogue has them.
//!
//! Purpose: a typed keyspace records its types when it is made. A program that takes its bytes for
//! other types gets an error instead of reading or writing wrong values. See
//! `docs/format/store.md`.
//! Invariants: a name is 1 to `TYPE_NAME_BYTES_MAX` bytes of UTF-8, so that an entry stays small.

use std::fmt;

use zerocopy::{FromBytes, IntoBytes};

use crate::layout::TypesHead;

/// Bytes that the name of a type may have.
pub(crate) const TYPE_NAME_BYTES_MAX: usize = 1000;

/// The types of a keyspace's keys and values, recorded when it was made.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// store.keyspace("ages")?.typed::<String, u32>()?;
/// let types = store.keyspaces()?[0].types.clone().expect("they were recorded");
/// assert_eq!(types.to_string(), "keys String, values u32");
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyspaceTypes {
    /// The type of the keys.
    pub key: RecordedType,
    /// The type of the values.
    pub value: RecordedType,
}

/// A type as it is recorded, see [`KeyspaceTypes`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordedType {
    /// Its name.
    pub name: String,
    /// The version of its encoding.
    pub version: u32,
}

impl KeyspaceTypes {
    /// The encoded form, which follows the entry of a keyspace.
    ///
    /// # Errors
    /// The name that is empty or too long.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, &str> {
        let names = [&self.key.name, &self.value.name];
        if let Some(name) = names.iter().find(|name| !is_name(name)) {
            return Err(name);
        }
        let [key_bytes, value_bytes] = names.map(|name| name.len() as u16);
        let head = TypesHead {
            key_version: self.key.version.into(),
            value_version: self.value.version.into(),
            key_name_bytes: key_bytes.into(),
            value_name_bytes: value_bytes.into(),
        };
        Ok([head.as_bytes(), self.key.name.as_bytes(), self.value.name.as_bytes()].concat())
    }

    /// Decodes the types; `None` if the bytes are no valid encoding.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (head, names) = TypesHead::read_from_prefix(bytes).ok()?;
        let (key_bytes, value_bytes) = (head.key_name_bytes.get(), head.value_name_bytes.get());
        let (key, value) = names.split_at_checked(key_bytes.into())?;
        let is_whole = value.len() == usize::from(value_bytes);
        if !is_whole {
            return None;
        }
        let of = |name, version| {
            let name = str::from_utf8(name).ok().filter(|name| is_name(name))?.to_owned();
            Some(RecordedType { name, version })
        };
        let key = of(key, head.key_version.get())?;
        Some(Self { key, value: of(value, head.value_version.get())? })
    }
}

fn is_name(name: &str) -> bool {
    (1..=TYPE_NAME_BYTES_MAX).contains(&name.len())
}

impl fmt::Display for KeyspaceTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keys {}, values {}", self.key, self.value)
    }
}

impl fmt::Display for RecordedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.version {
            1 => Ok(()),
            version => write!(f, " version {version}"),
        }
    }
}
