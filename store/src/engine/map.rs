//! The map behind a keyspace: a tree on the heap, or an LSM tree.
//!
//! Purpose: hides the difference between the two. A tree on the heap lends its values under the
//! heap's lock. An LSM tree searches memtables under that lock and tables without it, since these
//! may wait for the device. The first keeps one version of each key, and old ones are kept beside
//! it for snapshots (`versions.rs`); the second keeps versions itself, by the sequence numbers of
//! all such trees.
//! Invariants: a view reads at a complete moment; a transaction sees its own writes.
//! Thread safety: reading takes a view (shared lock), writing a transaction (exclusive lock).

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use adamant_heap::access::Read;
use adamant_heap::{Transaction, View};
use adamant_lsm::{CopyLimits, Lsm, MemtableLookup, NEWEST, Scanned};
use adamant_slice::Slice;
use adamant_trees::Pair;

use crate::bounds::Direction;
use crate::engine::lsm_keyspace::{COPIED_BYTES, LsmMap};
use crate::engine::lsm_trees::LsmTrees;
use crate::engine::scan::{ScanItem, ScanOptions};
use crate::engine::tree::{Engine, Tree};
use crate::engine::tree_map::TreeMap;
use crate::engine::value_codec::{Found, ValueCodec};
use crate::error::{Error, Result};
use crate::layout::KeyspaceEntry;
use crate::merge_operators::KeyspaceOperator;
use crate::own_options::OwnOptions;

/// The map of a keyspace.
#[derive(Clone, Debug)]
pub(crate) enum Map {
    Tree(TreeMap),
    Lsm(LsmMap),
}

impl Map {
    /// Makes an empty map; a tree stores values by that codec.
    pub(crate) fn create(
        lsm_trees: &Arc<LsmTrees>,
        name: &str,
        (engine, own): (Engine, &OwnOptions),
        codec: Option<Arc<ValueCodec>>,
        heap: &mut Transaction<'_>,
    ) -> Result<Self> {
        match engine {
            Engine::Lsm => {
                let tree = lsm_trees.create(heap, name, own)?;
                Ok(Self::Lsm(LsmMap::new(lsm_trees, tree, name)))
            }
            engine => {
                let (tree, operator) = (Tree::create(engine, heap)?, lsm_trees.operator(own));
                Ok(Self::Tree(TreeMap::new(tree, codec, operator.map(Arc::new))))
            }
        }
    }

    /// Opens the map of a catalogue entry, in the store with that head; a tree stores values by
    /// that codec.
    pub(crate) fn open<R: Read>(
        (lsm_trees, store): (&LsmTrees, u64),
        heap: &R,
        name: &str,
        (entry, own): (&KeyspaceEntry, &OwnOptions),
        codec: impl FnOnce() -> Result<Option<Arc<ValueCodec>>>,
    ) -> Result<Self> {
        let (engine, format) = (entry.engine.get(), entry.format.get());
        match Engine::numbered(engine, format) {
            Some(Engine::Lsm) => {
                let tree = lsm_trees.tree(heap, store, (name, entry.head.get()), own)?;
                Ok(Self::Lsm(LsmMap::new(lsm_trees, tree, name)))
            }
            Some(engine) => {
                let tree = Tree::open_as(heap, engine, entry.head.get())?;
                let operator = lsm_trees.operator(own).map(Arc::new);
                Ok(Self::Tree(TreeMap::new(tree, codec()?, operator)))
            }
            None => Err(Error::UnknownEngine { name: name.into(), engine, format }),
        }
    }

    /// Heap offset of the head.
    pub(crate) fn head(&self) -> u64 {
        match self {
            Self::Tree(tree) => tree.tree().head(),
            Self::Lsm(lsm) => lsm.tree.head(),
        }
    }

    /// Its engine.
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Tree(tree) => tree.tree().engine(),
            Self::Lsm(_) => Engine::Lsm,
        }
    }

    /// Its entry for the catalogue.
    pub(crate) fn entry(&self, id: u64) -> KeyspaceEntry {
        self.engine().entry(id, self.head())
    }

    /// The tree whose old versions are kept beside it; `None` if the map keeps them itself.
    pub(crate) fn tree(&self) -> Option<&TreeMap> {
        match self {
            Self::Tree(tree) => Some(tree),
            Self::Lsm(_) => None,
        }
    }

    /// The codec of its values, if it is a tree that stores them compressed.
    #[inline]
    pub(crate) fn codec(&self) -> Option<&Arc<ValueCodec>> {
        self.tree().and_then(TreeMap::codec)
    }

    /// The merge operator of the keyspace with that name.
    pub(crate) fn operator(&self, name: &str) -> Result<KeyspaceOperator> {
        let operator = match self {
            Self::Tree(tree) => tree.operator(),
            Self::Lsm(lsm) => lsm.tree.operator(),
        };
        KeyspaceOperator::new(operator, name)
    }

    /// The LSM tree, if it is one.
    pub(crate) fn lsm(&self) -> Option<&Arc<Lsm>> {
        match self {
            Self::Tree(_) => None,
            Self::Lsm(lsm) => Some(&lsm.tree),
        }
    }

    /// The value of a key, as of a moment; `None`: the last complete one. The lock is released
    /// before the device is read.
    #[inline]
    pub(crate) fn get(&self, view: View<'_>, key: &[u8], at: Option<u64>) -> Result<Option<Slice>> {
        match self {
            Self::Tree(tree) => tree.get(&view, key),
            Self::Lsm(lsm) => {
                let at = at.unwrap_or_else(|| lsm.visible());
                let look = lsm.tree.look(&view, key, at);
                drop(view);
                look.and_then(|look| look.finish(key)).map_err(lsm.wrong())
            }
        }
    }

    /// The values of many keys as of one moment, like [`Map::get`]; those of `known` that are
    /// `Some` are not looked for.
    pub(crate) fn get_many<Q: AsRef<[u8]>>(
        &self,
        view: View<'_>,
        keys: &[Q],
        at: Option<u64>,
        mut known: Vec<Option<Option<Slice>>>,
    ) -> Result<Vec<Option<Slice>>> {
        known.resize(keys.len(), None);
        let keys = keys.iter().map(AsRef::as_ref).zip(known);
        match self {
            Self::Tree(tree) => {
                keys.map(|(key, known)| known.map_or_else(|| tree.get(&view, key), Ok)).collect()
            }
            Self::Lsm(lsm) => {
                let at = at.unwrap_or_else(|| lsm.visible());
                let look = |(key, known): (_, Option<_>)| match known {
                    Some(value) => Ok((key, MemtableLookup::Known(value))),
                    None => Ok((key, lsm.tree.look(&view, key, at)?)),
                };
                let looked: Vec<_> =
                    keys.map(look).collect::<std::result::Result<_, _>>().map_err(lsm.wrong())?;
                drop(view);
                let finish = |(key, look): (&[u8], MemtableLookup)| look.finish(key);
                looked
                    .into_iter()
                    .map(finish)
                    .collect::<std::result::Result<_, _>>()
                    .map_err(lsm.wrong())
            }
        }
    }

    /// Like [`Map::get`], with a borrowed value where possible.
    pub(crate) fn get_with<T>(
        &self,
        view: View<'_>,
        key: &[u8],
        at: Option<u64>,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        match self {
            Self::Tree(tree) => Ok(tree.find(&view, key)?.map(|value| reader(&value))),
            Self::Lsm(_) => Ok(self.get(view, key, at)?.map(|value| reader(&value))),
        }
    }

    /// Whether the key has a value. Like [`Map::get`].
    pub(crate) fn contains(&self, view: View<'_>, key: &[u8], at: Option<u64>) -> Result<bool> {
        match self {
            Self::Tree(tree) => Ok(tree.tree().find(&view, key)?.is_some()),
            Self::Lsm(lsm) => {
                let at = at.unwrap_or_else(|| lsm.visible());
                let look = lsm.tree.look(&view, key, at);
                drop(view);
                look.and_then(|look| look.is_there(key)).map_err(lsm.wrong())
            }
        }
    }

    /// Like [`Tree::scan`], as of a moment; the lock is released before the device is read, and
    /// blob files are not read.
    pub(crate) fn scan(
        &self,
        view: View<'_>,
        reach: &ScanOptions<'_>,
        at: Option<u64>,
        mut each: impl FnMut(&[u8], ScanItem<'_, '_>) -> ControlFlow<()>,
    ) -> Result<Option<Bound<Slice>>> {
        let ScanOptions { direction, bounds, entries_min, with_values } = *reach;
        match self {
            Self::Tree(tree) => {
                let each = |(key, stored): Pair<'_>| {
                    each(key, ScanItem::Tree { stored, tree, view: &view })
                };
                let rest = tree.tree().scan(&view, direction, bounds, entries_min, each)?;
                Ok(rest.map(|bound| bound.map(Slice::from)))
            }
            Self::Lsm(lsm) => {
                let at = at.unwrap_or_else(|| lsm.visible());
                let forward = direction == Direction::Up;
                let (entries_max, bytes_max) = (entries_min, COPIED_BYTES);
                let limits = CopyLimits { entries_max, bytes_max, with_values };
                let scan = lsm.tree.scan(&view, bounds, forward, at, limits);
                drop(view);
                let each = |key: &[u8], value: Scanned<'_>| {
                    each(key, ScanItem::Lsm { value, name: &lsm.name })
                };
                scan.and_then(|scan| scan.finish(entries_min, each)).map_err(lsm.wrong())
            }
        }
    }

    /// The number of entries, counted if need be, without the lock.
    pub(crate) fn count(&self, view: View<'_>) -> Result<u64> {
        match self {
            Self::Tree(tree) => tree.tree().len(&view),
            Self::Lsm(lsm) => {
                let count = lsm.tree.count();
                drop(view);
                count.finish().map_err(lsm.wrong())
            }
        }
    }

    /// The number of entries, if it is known without counting.
    pub(crate) fn len<R: Read>(&self, heap: &R) -> Result<Option<u64>> {
        match self {
            Self::Tree(tree) => tree.tree().len(heap).map(Some),
            Self::Lsm(_) => Ok(None),
        }
    }

    /// Whether there is no entry, as a transaction sees it.
    pub(crate) fn is_empty(&self, heap: &Transaction<'_>) -> Result<bool> {
        match self {
            Self::Tree(tree) => Ok(tree.tree().len(heap)? == 0),
            Self::Lsm(lsm) => {
                Ok(lsm.keys(heap, NEWEST, (Bound::Unbounded, Bound::Unbounded), 1)?.is_empty())
            }
        }
    }

    /// The value of a key, as a transaction sees it.
    pub(crate) fn find<'a>(
        &self,
        heap: &'a Transaction<'_>,
        key: &[u8],
    ) -> Result<Option<Found<'a>>> {
        match self {
            Self::Tree(tree) => tree.find(heap, key),
            Self::Lsm(lsm) => Ok(lsm.find(heap, key, NEWEST)?.map(Found::Own)),
        }
    }

    /// The first keys of a range, at most so many.
    pub(crate) fn keys<R: Read>(
        &self,
        heap: &R,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        entries_max: usize,
    ) -> Result<Vec<Slice>> {
        match self {
            Self::Tree(tree) => tree.tree().keys(heap, range, entries_max),
            Self::Lsm(lsm) => lsm.keys(heap, lsm.visible(), range, entries_max),
        }
    }

    /// The first entries of a range, at most so many, as a transaction sees them.
    pub(crate) fn entries(
        &self,
        heap: &Transaction<'_>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        entries_max: usize,
    ) -> Result<Vec<(Slice, Slice)>> {
        let tree = match self {
            Self::Lsm(lsm) => return lsm.entries(heap, NEWEST, range, entries_max),
            Self::Tree(tree) => tree,
        };
        let mut found = Vec::new();
        tree.scan(heap, Direction::Up, range, entries_max, |key, value| {
            if found.len() == entries_max {
                return ControlFlow::Break(());
            }
            found.push((Slice::from(key), value.into_slice()));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Whether a commit after a moment changed a key between bounds; ignores what is kept beside
    /// the map.
    pub(crate) fn has_changed(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        since: u64,
    ) -> Result<bool> {
        match self {
            Self::Tree(_) => Ok(false),
            Self::Lsm(lsm) => lsm.tree.has_changed(bounds, since).map_err(lsm.wrong()),
        }
    }

    /// Frees the map, with its head.
    pub(crate) fn destroy(
        self,
        lsm_trees: &Arc<LsmTrees>,
        heap: &mut Transaction<'_>,
    ) -> Result<()> {
        match self {
            Self::Tree(tree) => tree.tree().destroy(heap),
            Self::Lsm(lsm) => lsm_trees.destroy(heap, &lsm.tree),
        }
    }
}
