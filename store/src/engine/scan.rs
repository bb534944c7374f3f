//! What a scan is to look at, and what it comes by.
//!
//! Purpose: a scan finds keys; what becomes of their values is up to who scans: they are looked at, copied,
//! lent, kept to be read later, or not wanted at all.
//! Invariants: what is met is good for the call that hands it on, under the view of the scan.

use std::ops::Bound;

use adamant_heap::View;
use adamant_lsm::{LaterValue, Scanned};
use adamant_slice::Slice;

use crate::bounds::Direction;
use crate::engine::tree::Tree;
use crate::error::{Error, Result};

/// Values in trees from here on are lent rather than copied, where that is asked for: finding the block
/// that is lent takes as long as copying half of it.
const LENT_BYTES_MIN: usize = 2048;

/// What a scan is to look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanOptions<'r> {
    pub(crate) direction: Direction,
    pub(crate) bounds: (Bound<&'r [u8]>, Bound<&'r [u8]>),
    /// Entries after which it ends, with the end of a node.
    pub(crate) entries_min: usize,
    /// Whether values are looked at; else what is met has none.
    pub(crate) with_values: bool,
}

/// The value of an entry that a scan came by.
pub(crate) enum ScanItem<'m, 'v> {
    /// In a tree on the heap.
    Tree { value: &'m [u8], tree: &'m Tree, view: &'m View<'v> },
    /// Kept for a snapshot.
    Version(&'m Slice),
    /// In a log-structured keyspace of that name.
    Log { value: Scanned<'m>, name: &'m str },
}

/// A value for who keeps it.
pub(crate) enum Keep<'m> {
    /// To be copied.
    Copy(&'m [u8]),
    /// Lent, or shared.
    Share(Slice),
    /// In a blob file.
    Later(LaterValue),
}

impl<'m> ScanItem<'m, '_> {
    /// What a closure makes of the value of a key; one in a blob file is read.
    ///
    /// # Errors
    /// Those of blob files.
    #[inline]
    pub(crate) fn with<T>(self, key: &[u8], reader: impl FnOnce(&[u8]) -> T) -> Result<T> {
        match self {
            Self::Tree { value, .. } => Ok(reader(value)),
            Self::Version(value) => Ok(reader(value)),
            Self::Log { value, name } => value.with(key, reader).map_err(Error::of_lsm(name)),
        }
    }

    /// The value of a key, to be kept without looking at more of it than need be.
    ///
    /// # Errors
    /// Those of the heap.
    pub(crate) fn keep(self, key: &[u8]) -> Result<Keep<'m>> {
        Ok(match self {
            Self::Tree { value, tree, view } if value.len() >= LENT_BYTES_MIN => {
                tree.get(view, key)?.map_or(Keep::Copy(value), Keep::Share)
            }
            Self::Tree { value, .. } => Keep::Copy(value),
            Self::Version(value) => Keep::Share(value.clone()),
            Self::Log { value: Scanned::Bytes(value), .. } => Keep::Copy(value),
            Self::Log { value: Scanned::Blob(blob), .. } => Keep::Later(blob.later()),
        })
    }
}
