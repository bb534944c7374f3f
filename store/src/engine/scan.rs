//! Scan options and scan results.
//!
//! Purpose: a scan finds keys; the caller decides about their values: read, copied, borrowed, kept
//! to be read later, or not wanted at all.
//! Invariants: an item is valid for the call that passes it on, under the view of the scan.

use std::ops::Bound;

use adamant_heap::View;
use adamant_lsm::{LaterValue, Scanned};
use adamant_slice::Slice;

use crate::bounds::Direction;
use crate::engine::tree_map::TreeMap;
use crate::engine::value_codec::Found;
use crate::error::{Error, Result};

/// Values in trees from this size on are borrowed rather than copied, if requested: finding the
/// block to borrow takes as long as copying half of that.
const LENT_BYTES_MIN: usize = 2048;

/// The options of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanOptions<'r> {
    pub(crate) direction: Direction,
    pub(crate) bounds: (Bound<&'r [u8]>, Bound<&'r [u8]>),
    /// The scan ends after this many entries, at the end of a node.
    pub(crate) entries_min: usize,
    /// Whether values are read; otherwise items have none.
    pub(crate) with_values: bool,
}

/// The value of an entry that a scan found.
pub(crate) enum ScanItem<'m, 'v> {
    /// In a tree on the heap, as it is stored there.
    Tree { stored: &'m [u8], tree: &'m TreeMap, view: &'m View<'v> },
    /// A version kept for a snapshot.
    Version(&'m Slice),
    /// In an LSM keyspace with that name.
    Lsm { value: Scanned<'m>, name: &'m str },
}

/// A value for a caller that keeps it.
pub(crate) enum Keep<'m> {
    /// To be copied.
    Copy(&'m [u8]),
    /// Borrowed, or shared.
    Share(Slice),
    /// In a blob file.
    Later(LaterValue),
}

impl<'m> ScanItem<'m, '_> {
    /// Calls a closure with the value of a key; one in a blob file is read, a compressed one is
    /// decoded.
    ///
    /// # Errors
    /// Those of blob files; damage of a compressed value.
    #[inline]
    pub(crate) fn with<T>(self, key: &[u8], reader: impl FnOnce(&[u8]) -> T) -> Result<T> {
        match self {
            Self::Tree { stored, tree, .. } => Ok(reader(&tree.plain(key, stored)?)),
            Self::Version(value) => Ok(reader(value)),
            Self::Lsm { value, name } => value.with(key, reader).map_err(Error::of_lsm(name)),
        }
    }

    /// The value of a key, to be kept without reading more of it than necessary.
    ///
    /// # Errors
    /// Those of the heap; damage of a compressed value.
    pub(crate) fn keep(self, key: &[u8]) -> Result<Keep<'m>> {
        Ok(match self {
            Self::Tree { stored, tree, view } => match tree.plain(key, stored)? {
                Found::Own(value) => Keep::Share(value),
                Found::Lent(value) if value.len() >= LENT_BYTES_MIN => {
                    tree.get(view, key)?.map_or(Keep::Copy(value), Keep::Share)
                }
                Found::Lent(value) => Keep::Copy(value),
            },
            Self::Version(value) => Keep::Share(value.clone()),
            Self::Lsm { value: Scanned::Bytes(value), .. } => Keep::Copy(value),
            Self::Lsm { value: Scanned::Blob(blob), .. } => Keep::Later(blob.later()),
        })
    }
}
