//! The catalogue: the keyspaces, and where their trees begin.
//!
//! Purpose: the store's head and the tree of keyspace entries behind it, see
//! `docs/format/store.md`.
//! Invariants: every keyspace has a number that no other keyspace of the store ever had; an entry
//! is in the catalogue exactly while the keyspace's tree exists.
//! Thread safety: as of the tree: a view reads, a transaction writes.

mod retired;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use adamant_heap::Transaction;
use adamant_heap::access::{Read, Write};
use adamant_heap::layout::{DIRECTORY_ROOT, ROOT_COUNT};
use adamant_heap::ptr::Ptr;

use crate::bounds::Direction;
use crate::common::catalogue_entry::CatalogueEntry;
use crate::engine::lsm_trees::LsmTrees;
use crate::engine::map::Map;
use crate::engine::tree::{Engine, Tree};
use crate::engine::tree_map::TreeMap;
use crate::engine::value_codec::ValueCodec;
use crate::error::{Error, Result};
use crate::kind::KeyspaceKind;
use crate::layout::{
    KIND_CHANGES, KeyspaceEntry, STORE_FORMAT, STORE_FORMAT_CHANGES, STORE_FORMAT_MERGE,
    STORE_FORMAT_MIN, STORE_FORMAT_OPTIONS, STORE_FORMAT_VALUES, STORE_MAGIC, STORE_ROOT,
    StoreHead,
};
use crate::limits::NAME_BYTES_MAX;
use crate::own_options::{DictionaryPlace, OwnOptions};
use crate::types::KeyspaceTypes;

/// The catalogue of a store.
#[derive(Clone, Debug)]
pub(crate) struct Catalogue {
    head: Ptr<StoreHead>,
    tree: Tree,
    lsm_trees: Arc<LsmTrees>,
    /// The number of lookups.
    #[cfg(test)]
    pub(crate) looks: Arc<std::sync::atomic::AtomicU64>,
}

/// Whether there was a keyspace with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameWas {
    Free,
    Taken,
}

impl Catalogue {
    /// Makes an empty catalogue and returns the heap offset of its head, for the heap's root.
    pub(crate) fn create<W: Write>(heap: &mut W) -> Result<u64> {
        let tree = Tree::create(Engine::Bplus, heap)?;
        let block = heap.reserve(size_of::<StoreHead>() as u64)?;
        *heap.write_as(Ptr::<StoreHead>::new(block))? = StoreHead {
            magic: STORE_MAGIC,
            format: STORE_FORMAT.into(),
            next_file: 0.into(),
            next_keyspace: 1.into(),
            catalogue: tree.head().into(),
        };
        Ok(block)
    }

    /// Opens the catalogue whose head the heap's root names.
    pub(crate) fn open<R: Read>(heap: &R, root: u64, lsm_trees: Arc<LsmTrees>) -> Result<Self> {
        let pointer = Ptr::<StoreHead>::new(root);
        let head = heap.read(pointer)?;
        if head.magic != STORE_MAGIC {
            return Err(Error::Damaged {
                what: format!(
                    "the heap's root {root:#x} names no store: expected {STORE_MAGIC:?} there, \
                     found {:?}",
                    head.magic
                ),
            });
        }
        let is_known = (STORE_FORMAT_MIN..=STORE_FORMAT_MERGE).contains(&head.format.get());
        if !is_known {
            return Err(Error::Damaged {
                what: format!(
                    "the store's head has format {}, this version knows {STORE_FORMAT_MIN} to \
                     {STORE_FORMAT_MERGE}; open it with a newer version",
                    head.format
                ),
            });
        }
        let tree = Tree::open_as(heap, Engine::Bplus, head.catalogue.get())?;
        Ok(Self {
            head: pointer,
            tree,
            lsm_trees,
            #[cfg(test)]
            looks: Arc::default(),
        })
    }

    /// The map of a keyspace, given its entry.
    pub(crate) fn map<R: Read>(&self, heap: &R, name: &str, entry: &CatalogueEntry) -> Result<Map> {
        let mut own = entry.options(name)?;
        if !is_visible(name) {
            // It was dropped: nothing is written to it, so it needs nothing that this build lacks.
            own = OwnOptions { merge: own.merge, ..OwnOptions::default() };
        }
        let codec = || codec_of(heap, name, &own);
        let place = (&*self.lsm_trees, self.head.offset());
        let map = Map::open(place, heap, name, (entry, &own), codec)?;
        self.lsm_trees.give_filter(map.lsm(), name, entry.kind.get());
        Ok(map)
    }

    /// The LSM trees.
    pub(crate) fn lsm_trees(&self) -> &Arc<LsmTrees> {
        &self.lsm_trees
    }

    /// The format in the head.
    pub(crate) fn format<R: Read>(&self, heap: &R) -> Result<u32> {
        Ok(heap.read(self.head)?.format.get())
    }

    /// The tree of entries.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The entry of a keyspace.
    pub(crate) fn find<R: Read>(&self, heap: &R, name: &str) -> Result<Option<CatalogueEntry>> {
        #[cfg(test)]
        self.looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match self.tree.find(heap, name.as_bytes())? {
            Some(bytes) => Ok(Some(CatalogueEntry::parse(name, bytes)?)),
            None => Ok(None),
        }
    }

    /// All keyspaces, by name.
    pub(crate) fn list<R: Read>(&self, heap: &R) -> Result<Vec<(String, CatalogueEntry)>> {
        self.list_within(heap, (Bound::Unbounded, Bound::Unbounded))
    }

    /// The keyspaces whose names are within bounds.
    fn list_within<R: Read>(
        &self,
        heap: &R,
        names: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<Vec<(String, CatalogueEntry)>> {
        #[cfg(test)]
        self.looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut entries = Vec::new();
        let mut outcome = Ok(());
        self.tree.scan(
            heap,
            Direction::Up,
            names,
            usize::MAX,
            |(name, bytes)| match parse_both(name, bytes) {
                Ok(entry) => {
                    entries.push(entry);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    outcome = Err(error);
                    ControlFlow::Break(())
                }
            },
        )?;
        outcome.map(|()| entries)
    }

    /// The number that the next keyspace gets.
    pub(crate) fn next_id<R: Read>(&self, heap: &R) -> Result<u64> {
        Ok(heap.read(self.head)?.next_keyspace.get())
    }

    /// Has the next keyspace get a number: for a copy, whose keyspaces have those of the source's.
    pub(crate) fn set_next_id<W: Write>(&self, heap: &mut W, id: u64) -> Result<()> {
        heap.write_as(self.head)?.next_keyspace = id.into();
        Ok(())
    }

    /// Makes a keyspace; the name must be free.
    pub(crate) fn add(
        &self,
        heap: &mut Transaction<'_>,
        name: &str,
        (engine, kind): (Engine, u16),
        own: &OwnOptions,
    ) -> Result<CatalogueEntry> {
        let head = heap.write_as(self.head)?;
        let id = head.next_keyspace.get();
        head.next_keyspace = (id + 1).into();
        let codec = codec_of(heap, name, own)?;
        let map = Map::create(&self.lsm_trees, name, (engine, own), codec, heap)?;
        self.lsm_trees.give_filter(map.lsm(), name, kind);
        let fixed = map.entry(id);
        let entry = CatalogueEntry::new(KeyspaceEntry { kind: kind.into(), ..fixed }, own);
        self.put(heap, name, &entry, NameWas::Free)?;
        Ok(entry)
    }

    /// Records the kind of a keyspace that has none recorded.
    pub(crate) fn mark<W: Write>(
        &self,
        heap: &mut W,
        name: &str,
        entry: &CatalogueEntry,
        kind: KeyspaceKind,
    ) -> Result<()> {
        self.put(heap, name, &entry.with_kind(kind), NameWas::Taken)
    }

    /// Records the types of a keyspace's keys and values.
    pub(crate) fn record<W: Write>(
        &self,
        heap: &mut W,
        (name, entry): (&str, &CatalogueEntry),
        types: &KeyspaceTypes,
    ) -> Result<()> {
        self.put(heap, name, &entry.with_types(types)?, NameWas::Taken)
    }

    /// Gives a keyspace these options of its own, in place of what it has. An open tree has them
    /// with the commit.
    pub(crate) fn give_options(
        &self,
        heap: &mut Transaction<'_>,
        (name, entry): (&str, &CatalogueEntry),
        own: &OwnOptions,
    ) -> Result<()> {
        own.check(name)?;
        let tree = self.map(heap, name, entry)?.lsm().map(Arc::clone);
        self.put(heap, name, &entry.with_options(name, own)?, NameWas::Taken)?;
        if let Some(tree) = tree {
            let (lsm, operator) = (own.lsm, self.lsm_trees.operator(own));
            heap.on_commit(move |_| {
                tree.set_options(&lsm).expect("checked above");
                if let Some(operator) = operator {
                    tree.set_operator(operator);
                }
            });
        }
        Ok(())
    }

    /// Writes the entry of a name, where the caller has found this under the same lock.
    fn put<W: Write>(
        &self,
        heap: &mut W,
        name: &str,
        entry: &CatalogueEntry,
        was: NameWas,
    ) -> Result<()> {
        self.raise_format(heap, entry)?;
        let replaced = self.tree.insert(heap, name.as_bytes(), &entry.to_bytes())?;
        assert_eq!(
            replaced,
            was == NameWas::Taken,
            "the name {name:?} was {was:?} under this lock"
        );
        Ok(())
    }

    /// Raises the format of the head to what an entry needs: older versions pass over what they do
    /// not know of it.
    fn raise_format<W: Write>(&self, heap: &mut W, entry: &CatalogueEntry) -> Result<()> {
        let needed = match entry.kind.get() {
            _ if entry.has_merge() => STORE_FORMAT_MERGE,
            _ if entry.has_values() => STORE_FORMAT_VALUES,
            KIND_CHANGES => STORE_FORMAT_CHANGES,
            _ if entry.has_options() => STORE_FORMAT_OPTIONS,
            _ => STORE_FORMAT,
        };
        self.raise_format_to(heap, needed)
    }

    /// Raises the format to one, if it is below.
    pub(crate) fn raise_format_to<W: Write>(&self, heap: &mut W, needed: u32) -> Result<()> {
        if heap.read(self.head)?.format.get() < needed {
            heap.write_as(self.head)?.format = needed.into();
        }
        Ok(())
    }

    /// Converts a keyspace to another engine, with the same number and entries, and to options of
    /// its own, whose dictionary, if it is another one, has no other owner. If both trees are on
    /// the heap and store values in the same way, entries move, and the old one is freed; otherwise
    /// it is kept, as by `retire`, and returned: it may hold old versions, and its bytes are
    /// copied.
    pub(crate) fn convert(
        &self,
        heap: &mut Transaction<'_>,
        name: &str,
        entry: &CatalogueEntry,
        (engine, own): (Engine, &OwnOptions),
    ) -> Result<Option<Map>> {
        let source = self.map(heap, name, entry)?;
        let before = entry.options(name)?;
        let is_same = before == *own;
        if source.lsm().is_some() && engine == Engine::Lsm {
            // It has the options noted for the day when it is a tree.
            if let Some(place) = before.dictionary.filter(|_| before.dictionary != own.dictionary) {
                heap.free(place.block)?;
            }
            self.give_options(heap, (name, entry), own)?;
            return Ok(None);
        }
        let tree = source.tree().filter(|_| engine != Engine::Lsm && is_same);
        let Some(tree) = tree else {
            self.renew(heap, name, entry, (engine, own))?.copy_all(heap, &source)?;
            return Ok(Some(source));
        };
        let target = Tree::create(engine, heap)?;
        target.fill(heap, tree.tree())?;
        tree.tree().destroy(heap)?;
        // To be recorded: its options are, beside it.
        let target = Map::Tree(TreeMap::new(target, None, None));
        self.put(heap, name, &entry.with_map(&target), NameWas::Taken)?;
        Ok(None)
    }

    /// Gives a keyspace a free name. O(log keyspaces).
    pub(crate) fn rename<W: Write>(
        &self,
        heap: &mut W,
        name: &str,
        new_name: &str,
        entry: &CatalogueEntry,
    ) -> Result<()> {
        self.put(heap, new_name, entry, NameWas::Free)?;
        let removed = self.tree.remove(heap, name.as_bytes())?;
        assert!(removed, "a keyspace is renamed that was found under the same lock");
        Ok(())
    }

    /// Exchanges the names of two keyspaces. O(log keyspaces).
    pub(crate) fn exchange<W: Write>(
        &self,
        heap: &mut W,
        (name, entry): (&str, &CatalogueEntry),
        (other_name, other_entry): (&str, &CatalogueEntry),
    ) -> Result<()> {
        for (name, entry) in [(name, other_entry), (other_name, entry)] {
            self.put(heap, name, entry, NameWas::Taken)?;
        }
        Ok(())
    }

    /// The entry of the keyspace with this number, and its current name. O(keyspaces).
    pub(crate) fn find_by_id<R: Read>(
        &self,
        heap: &R,
        id: u64,
    ) -> Result<Option<(String, CatalogueEntry)>> {
        let list = self.list(heap)?.into_iter();
        Ok(list.filter(|(name, _)| is_visible(name)).find(|(_, entry)| entry.id.get() == id))
    }

    /// Gives a keyspace an empty tree of the same engine and keeps the old one, as by `retire`.
    /// O(log keyspaces).
    pub(crate) fn clear(
        &self,
        heap: &mut Transaction<'_>,
        name: &str,
        entry: &CatalogueEntry,
        engine: Engine,
    ) -> Result<Map> {
        let own = entry.options(name)?;
        self.renew(heap, name, entry, (engine, &own))
    }

    /// The same with another engine and other options. The old entry keeps its dictionary: the new
    /// one gets a copy if it is to have the same.
    fn renew(
        &self,
        heap: &mut Transaction<'_>,
        name: &str,
        entry: &CatalogueEntry,
        (engine, own): (Engine, &OwnOptions),
    ) -> Result<Map> {
        self.retire(heap, name, entry)?;
        let mut own = *own;
        let before = entry.options(name)?;
        if let Some(place) = own.dictionary.filter(|_| before.dictionary == own.dictionary) {
            let bytes = dictionary(heap, place)?.to_vec();
            own.dictionary = Some(self.place_dictionary(heap, &bytes)?);
        }
        let codec = codec_of(heap, name, &own)?;
        let map = Map::create(&self.lsm_trees, name, (engine, &own), codec, heap)?;
        self.lsm_trees.give_filter(map.lsm(), name, entry.kind.get());
        let mut entry = entry.with_map(&map);
        if own != before {
            entry = entry.with_options(name, &own)?;
        }
        self.put(heap, name, &entry, NameWas::Free)?;
        Ok(map)
    }

    /// Writes a dictionary to a block of its own, for one entry.
    pub(crate) fn place_dictionary<W: Write>(
        &self,
        heap: &mut W,
        bytes: &[u8],
    ) -> Result<DictionaryPlace> {
        let block = heap.reserve(bytes.len() as u64)?;
        heap.write(block, 0, bytes.len())?.copy_from_slice(bytes);
        Ok(DictionaryPlace { block, bytes: bytes.len() as u32 })
    }

    /// Removes a keyspace and frees all it holds.
    pub(crate) fn drop(
        &self,
        heap: &mut Transaction<'_>,
        name: &str,
        entry: &CatalogueEntry,
    ) -> Result<()> {
        self.map(heap, name, entry)?.destroy(&self.lsm_trees, heap)?;
        if let Some(place) = entry.options(name)?.dictionary {
            heap.free(place.block)?;
        }
        let removed = self.tree.remove(heap, name.as_bytes())?;
        assert!(removed, "a keyspace is dropped that was found under the same lock");
        Ok(())
    }
}

/// The codec of a keyspace with these options, if its values are compressed where a tree keeps
/// them.
pub(crate) fn codec_of<R: Read>(
    heap: &R,
    name: &str,
    own: &OwnOptions,
) -> Result<Option<Arc<ValueCodec>>> {
    let Some(values) = own.values else { return Ok(None) };
    let bytes = own.dictionary.map(|place| dictionary(heap, place)).transpose()?;
    ValueCodec::new(name, values, bytes).map(Some)
}

/// The bytes of a dictionary.
pub(crate) fn dictionary<R: Read>(heap: &R, place: DictionaryPlace) -> Result<&[u8]> {
    Ok(heap.part(place.block, 0, place.bytes as usize)?)
}

/// The kind in an entry.
pub(crate) fn kind_of(name: &str, entry: &KeyspaceEntry) -> Result<KeyspaceKind> {
    let kind = entry.kind.get();
    let known = KeyspaceKind::numbered(kind);
    known.ok_or_else(|| Error::UnknownKind { name: name.into(), kind })
}

/// The name under which a dropped keyspace's tree is kept: longer than any keyspace's name.
pub(crate) fn hidden_name(head: u64) -> String {
    format!("{:NAME_BYTES_MAX$} {head:016x}", "dropped")
}

/// Whether this is the name of a keyspace, and not of a tree that is kept for snapshots.
pub(crate) fn is_visible(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
}

// Named objects are application objects, too.
const _: () = assert!(DIRECTORY_ROOT != STORE_ROOT);

/// Whether a heap with these root words holds objects beside the store's.
pub(crate) fn has_other_objects(root: impl FnMut(usize) -> u64) -> bool {
    let others = (0..ROOT_COUNT).filter(|&index| index != STORE_ROOT);
    others.map(root).any(|word| word != 0)
}

fn parse_both(name: &[u8], bytes: &[u8]) -> Result<(String, CatalogueEntry)> {
    let Ok(name) = str::from_utf8(name) else {
        return Err(Error::Damaged {
            what: format!("the catalogue has a name that is no UTF-8: {name:?}"),
        });
    };
    Ok((name.into(), CatalogueEntry::parse(name, bytes)?))
}

#[cfg(test)]
mod tests {
    use adamant_heap::{Durability, Heap, MemoryDirectory};

    use super::*;
    use crate::options::Options;
    use crate::store::handle::Store;

    /// An intact heap may hold no store, or one of a later version: nothing of it is read then.
    #[test]
    #[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
    fn a_head_that_is_none_or_of_another_version_is_refused() {
        let directory: Arc<MemoryDirectory> = Arc::new(MemoryDirectory::new());
        let open = || Store::open_directory(directory.clone(), Options::new().background(false));
        let store = open().unwrap();
        store.keyspace("main").unwrap().insert("key", "value").unwrap();
        store.close().unwrap();
        let change = |change: fn(&mut StoreHead)| {
            let heap = Heap::open(directory.clone(), adamant_heap::Options::default()).unwrap().0;
            let changed = heap.transaction(Durability::Sync, |tx| {
                let head = Ptr::<StoreHead>::new(tx.root(STORE_ROOT));
                tx.write_as(head).map(change)
            });
            changed.unwrap();
            heap.close().unwrap();
        };
        for (spoil, mend, expected) in [
            (
                (|head| head.magic[0] ^= 1) as fn(&mut StoreHead),
                (|head| head.magic[0] ^= 1) as fn(&mut StoreHead),
                "names no store",
            ),
            (
                |head| head.format = (STORE_FORMAT_MERGE + 1).into(),
                |head| head.format = STORE_FORMAT.into(),
                "has format 7",
            ),
        ] {
            change(spoil);
            let error = open().expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
            change(mend);
            let store = open().unwrap();
            let value = store.open_keyspace("main").unwrap().get("key").unwrap();
            assert_eq!(value, Some("value".into()));
            store.close().unwrap();
        }
    }
}
