//! Catalogue entries of keyspaces.
//!
//! Purpose: an entry of fixed size, followed by the types of keys and values and by options of the
//! keyspace, if they are recorded; these stay with the entry. See `docs/format/store.md`.

use std::ops::Deref;

use zerocopy::{FromBytes, IntoBytes};

use crate::common::recorded_options::{self, Fault};
use crate::engine::map::Map;
use crate::error::{Error, Result};
use crate::kind::KeyspaceKind;
use crate::layout::{DURABILITY_DEFERRED, KeyspaceEntry, OPTION_MERGE, OPTION_VALUES};
use crate::own_options::OwnOptions;
use crate::types::{KeyspaceTypes, TYPE_NAME_BYTES_MAX};

/// The catalogue's entry of a keyspace.
#[derive(Clone, Debug)]
pub(crate) struct CatalogueEntry {
    fixed: KeyspaceEntry,
    /// The types of keys and values, encoded: copying an entry does not need to decode them.
    types: Box<[u8]>,
    /// The options of the keyspace, encoded.
    options: Box<[u8]>,
}

impl Deref for CatalogueEntry {
    type Target = KeyspaceEntry;

    fn deref(&self) -> &KeyspaceEntry {
        &self.fixed
    }
}

impl CatalogueEntry {
    /// The entry of a keyspace without recorded types, with these options of its own.
    pub(crate) fn new(fixed: KeyspaceEntry, own: &OwnOptions) -> Self {
        Self { fixed, types: Box::default(), options: recorded_options::to_bytes(own).into() }
    }

    /// Decodes the entry of the keyspace with this name.
    pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Self> {
        let read = KeyspaceEntry::read_from_prefix(bytes);
        let (fixed, rest) = read.map_err(|_| Error::Damaged {
            what: format!(
                "the catalogue's entry of keyspace {name:?} should have {} bytes or more and has {}",
                size_of::<KeyspaceEntry>(),
                bytes.len()
            ),
        })?;
        // Where the types do not end as they should, all of it counts as types: those are damaged
        // then, which keeps nobody from the bytes of the keyspace.
        let whole = rest.split_at_checked(fixed.types_bytes.get().into());
        let whole = whole.filter(|(_, options)| recorded_options::records(options).is_some());
        let (types, options) = whole.unwrap_or((rest, &[]));
        Ok(Self { fixed, types: types.into(), options: options.into() })
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [self.fixed.as_bytes(), &self.types, &self.options].concat()
    }

    /// The same keyspace with another tree.
    pub(crate) fn with_map(&self, map: &Map) -> Self {
        let KeyspaceEntry { id, kind, types_bytes, .. } = self.fixed;
        let fixed = KeyspaceEntry { kind, types_bytes, ..map.entry(id.get()) };
        Self { fixed, ..self.clone() }
    }

    /// The same keyspace with its kind recorded.
    pub(crate) fn with_kind(&self, kind: KeyspaceKind) -> Self {
        let fixed = KeyspaceEntry { kind: kind.number().into(), ..self.fixed };
        Self { fixed, ..self.clone() }
    }

    /// The same keyspace with these options of its own.
    ///
    /// # Errors
    /// Damage of its types, behind which options would not be found again.
    pub(crate) fn with_options(&self, name: &str, own: &OwnOptions) -> Result<Self> {
        if usize::from(self.types_bytes.get()) != self.types.len() {
            self.types(name)?;
        }
        Ok(Self { options: recorded_options::to_bytes(own).into(), ..self.clone() })
    }

    /// Whether it has options of its own.
    pub(crate) fn has_options(&self) -> bool {
        !self.options.is_empty()
    }

    /// Whether the compression of values is among them.
    pub(crate) fn has_values(&self) -> bool {
        self.has_option(OPTION_VALUES)
    }

    /// Whether a merge operator is among them.
    pub(crate) fn has_merge(&self) -> bool {
        self.has_option(OPTION_MERGE)
    }

    fn has_option(&self, wanted: u16) -> bool {
        let records = recorded_options::records(&self.options).unwrap_or_default();
        records.iter().any(|(tag, _)| *tag == wanted)
    }

    /// The options of a keyspace, which may ask for what this build has not.
    ///
    /// # Errors
    /// [`Error::UnknownOption`]; damage.
    pub(crate) fn options(&self, name: &str) -> Result<OwnOptions> {
        recorded_options::parse(&self.options).map_err(|fault| match fault {
            Fault::Unknown { tag } => Error::UnknownOption { name: name.into(), tag },
            Fault::Durability { number } => Error::Damaged {
                what: format!(
                    "expected a durability of keyspace {name:?} in the catalogue, 0 to \
                     {DURABILITY_DEFERRED}, found {number}"
                ),
            },
            Fault::Malformed => Error::Damaged {
                what: format!(
                    "expected {} bytes of options of keyspace {name:?} in the catalogue, found \
                     others",
                    self.options.len()
                ),
            },
        })
    }

    /// The same keyspace with these types.
    pub(crate) fn with_types(&self, types: &KeyspaceTypes) -> Result<Self> {
        let types = types.to_bytes().map_err(|name| Error::TypeName {
            bytes: name.len() as u64,
            bytes_max: TYPE_NAME_BYTES_MAX as u64,
        })?;
        let types_bytes = (types.len() as u16).into();
        let fixed = KeyspaceEntry { types_bytes, ..self.fixed };
        Ok(Self { fixed, types: types.into(), ..self.clone() })
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
