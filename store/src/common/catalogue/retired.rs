//! Retired trees in the catalogue: those of keyspaces that were dropped or cleared.
//!
//! Purpose: keeps them for snapshots, and frees them when none needs them any more, or when the
//! store is opened again.
//! Invariants: each has an entry, under a name that no keyspace can have and that says its head.
//! Thread safety: as of the catalogue.

use std::ops::Bound;

use adamant_heap::Transaction;
use adamant_heap::access::{Read, Write};

use super::{Catalogue, hidden_name};
use crate::common::catalogue_entry::CatalogueEntry;
use crate::engine::map::Map;
use crate::error::Result;

impl Catalogue {
    /// Removes a keyspace but keeps its tree for snapshots, under a name that no keyspace can have.
    /// O(log keyspaces).
    pub(crate) fn retire<W: Write>(
        &self,
        heap: &mut W,
        name: &str,
        entry: &CatalogueEntry,
    ) -> Result<()> {
        self.rename(heap, name, &hidden_name(entry.head.get()), entry)
    }

    /// Removes some entries of a tree that was kept for snapshots; returns whether there may be
    /// more.
    pub(crate) fn thin_retired(
        &self,
        heap: &mut Transaction<'_>,
        head: u64,
        entries_max: usize,
    ) -> Result<bool> {
        let hidden = hidden_name(head);
        let Some(entry) = self.find(heap, &hidden)? else { return Ok(false) };
        // An LSM tree is freed at once.
        let Map::Tree(tree) = self.map(heap, &hidden, &entry)? else { return Ok(false) };
        let tree = tree.tree();
        if tree.len(heap)? <= entries_max as u64 {
            return Ok(false);
        }
        for key in tree.keys(heap, (Bound::Unbounded, Bound::Unbounded), entries_max)? {
            tree.remove(heap, &key)?;
        }
        Ok(true)
    }

    /// Whether a tree of a keyspace is kept only for snapshots.
    pub(crate) fn is_retired<R: Read>(&self, heap: &R, id: u64, map: &Map) -> Result<bool> {
        let entry = self.find(heap, &hidden_name(map.head()))?;
        Ok(entry.is_some_and(|entry| entry.id.get() == id))
    }

    /// Frees a tree that was kept for snapshots, if this is one.
    pub(crate) fn destroy_retired(&self, heap: &mut Transaction<'_>, head: u64) -> Result<()> {
        let hidden = hidden_name(head);
        match self.find(heap, &hidden)? {
            Some(entry) => self.drop(heap, &hidden, &entry),
            None => Ok(()),
        }
    }

    /// Heads of the trees that an earlier process kept for snapshots. O(log keyspaces), plus
    /// O(those trees).
    pub(crate) fn list_retired<R: Read>(&self, heap: &R) -> Result<Vec<u64>> {
        let (first, last) = (hidden_name(0), hidden_name(u64::MAX));
        let hidden = (Bound::Included(first.as_bytes()), Bound::Included(last.as_bytes()));
        let list = self.list_within(heap, hidden)?.into_iter();
        Ok(list.map(|(_, entry)| entry.head.get()).collect())
    }
}
