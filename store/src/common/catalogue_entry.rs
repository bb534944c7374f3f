//! Catalogue entries of keyspaces.
//!
//! Purpose: an entry of fixed size, followed by the types of keys and values if they are recorded;
//! these stay with the entry. See `docs/format/store.md`.

use std::ops::Deref;

use zerocopy::{FromBytes, IntoBytes};

use crate::engine::map::Map;
use crate::error::{Error, Result};
use crate::kind::KeyspaceKind;
use crate::layout::KeyspaceEntry;
use crate::types::{KeyspaceTypes, TYPE_NAME_BYTES_MAX};

/// The catalogue's entry of a keyspace.
#[derive(Clone, Debug)]
pub(crate) struct CatalogueEntry {
    fixed: KeyspaceEntry,
    /// The types of keys and values, encoded: copying an entry does not need to decode them.
    types: Box<[u8]>,
}

impl Deref for CatalogueEntry {
    type Target = KeyspaceEntry;

    fn deref(&self) -> &KeyspaceEntry {
        &self.fixed
    }
}

impl CatalogueEntry {
    /// The entry of a keyspace without recorded types.
    pub(crate) fn new(fixed: KeyspaceEntry) -> Self {
        Self { fixed, types: Box::default() }
    }

    /// Decodes the entry of the keyspace with this name.
    pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Self> {
        let read = KeyspaceEntry::read_from_prefix(bytes);
        let (fixed, types) = read.map_err(|_| Error::Damaged {
            what: format!(
                "the catalogue's entry of keyspace {name:?} should have {} bytes or more and has {}",
                size_of::<KeyspaceEntry>(),
                bytes.len()
            ),
        })?;
        Ok(Self { fixed, types: types.into() })
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [self.fixed.as_bytes(), &self.types].concat()
    }

    /// The same keyspace with another tree.
    pub(crate) fn with_map(&self, map: &Map) -> Self {
        let KeyspaceEntry { id, kind, types_bytes, .. } = self.fixed;
        let fixed = KeyspaceEntry { kind, types_bytes, ..map.entry(id.get()) };
        Self { fixed, types: self.types.clone() }
    }

    /// The same keyspace with its kind recorded.
    pub(crate) fn with_kind(&self, kind: KeyspaceKind) -> Self {
        let fixed = KeyspaceEntry { kind: kind.number().into(), ..self.fixed };
        Self { fixed, types: self.types.clone() }
    }

    /// The same keyspace with these types.
    pub(crate) fn with_types(&self, types: &KeyspaceTypes) -> Result<Self> {
        let types = types.to_bytes().map_err(|name| Error::TypeName {
            bytes: name.len() as u64,
            bytes_max: TYPE_NAME_BYTES_MAX as u64,
        })?;
        let types_bytes = (types.len() as u16).into();
        let fixed = KeyspaceEntry { types_bytes, ..self.fixed };
        Ok(Self { fixed, types: types.into() })
    }

    /// The recorded types of a keyspace, if any.
    pub(crate) fn types(&self, name: &str) -> Result<Option<KeyspaceTypes>> {
        let types_bytes = usize::from(self.types_bytes.get());
        if types_bytes == 0 && self.types.is_empty() {
            return Ok(None);
        }
        let is_whole = types_bytes == self.types.len();
        let types = KeyspaceTypes::parse(&self.types).filter(|_| is_whole);
        types.map(Some).ok_or_else(|| Error::Damaged {
            what: format!(
                "expected {types_bytes} bytes of the types of keyspace {name:?} in the catalogue, \
                 found {} that do not say them; its entries can be read as bytes",
                self.types.len()
            ),
        })
    }
}
