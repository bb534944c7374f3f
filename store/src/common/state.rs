//! The state of one keyspace that its handles share.
//!
//! Purpose: finds a keyspace's tree without a catalogue lookup at each operation.
//! Invariants: a tree is a keyspace's until a transaction gives it another one or drops it, and
//! that transaction increments `version` first. The transaction may still fail, so the next
//! operation asks the catalogue, which is right under every lock, and its answer holds until the
//! next such transaction. Renaming changes nothing of all this.
//! Thread safety: `version` changes under the exclusive lock; all others read under the heap's
//! lock.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use adamant_heap::access::Read;
use adamant_heap::durability::Durability;
use adamant_lsm::Counters;
use parking_lot::RwLock;

use crate::common::catalogue::{Catalogue, kind_of};
use crate::common::catalogue_entry::CatalogueEntry;
use crate::common::recorded_options::{durability_of, number_of};
use crate::engine::map::Map;
use crate::engine::tree::Engine;
use crate::engine::value_codec::ValueCodec;
use crate::error::{Error, Result};
use crate::kind::KeyspaceKind;
use crate::layout::DURABILITY_STORE;
use crate::limits::check_plain;

/// A keyspace with its name and tree when it was opened, shared by all its handles.
#[derive(Debug)]
pub(crate) struct KeyspaceState {
    pub(crate) name: Box<str>,
    pub(crate) id: u64,
    pub(crate) kind: KeyspaceKind,
    /// The number of its kind; for old keyspaces it does not say whether they are plain.
    pub(crate) kind_number: u16,
    map: Map,
    /// The version at which `map` was its tree.
    version: u64,
    place: Arc<Place>,
}

impl KeyspaceState {
    /// The state for an entry that was found under the lock that `heap` stands for.
    pub(crate) fn new<R: Read>(
        heap: &R,
        catalogue: &Catalogue,
        (name, entry): (&str, &CatalogueEntry),
        place: &Arc<Place>,
    ) -> Result<Arc<Self>> {
        let version = place.version.load(Ordering::Acquire);
        let (id, kind) = (entry.id.get(), kind_of(name, entry)?);
        let map = catalogue.map(heap, name, entry)?;
        let (kind_number, place) = (entry.kind.get(), Arc::clone(place));
        Ok(Arc::new(Self { name: name.into(), id, kind, kind_number, map, version, place }))
    }

    /// The part that all of its states share.
    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// What is counted of it.
    #[inline]
    pub(crate) fn counts(&self) -> &Counts {
        &self.place.counts
    }

    /// The keyspace's engine when it was opened.
    pub(crate) fn engine(&self) -> Engine {
        self.map.engine()
    }

    /// The codec of its values, if they are compressed, as far as is known without a lock: to
    /// prepare values for it. The write itself looks again.
    #[inline]
    pub(crate) fn codec(&self) -> Option<Arc<ValueCodec>> {
        if self.is_current() {
            return self.map.codec().map(Arc::clone);
        }
        match &self.place.now.read().tree {
            Tree::Of(map, _) => map.codec().map(Arc::clone),
            Tree::Dropped | Tree::Unknown => None,
        }
    }

    /// Whether its tree is still the keyspace's.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        self.place.version.load(Ordering::Acquire) == self.version
    }

    /// The keyspace's map, unless it was dropped. To be called under the lock that `heap` stands
    /// for.
    #[inline]
    pub(crate) fn map<R: Read>(&self, heap: &R, catalogue: &Catalogue) -> Result<Cow<'_, Map>> {
        if self.is_current() {
            return Ok(Cow::Borrowed(&self.map));
        }
        self.map_now(heap, catalogue).map(Cow::Owned)
    }

    fn map_now<R: Read>(&self, heap: &R, catalogue: &Catalogue) -> Result<Map> {
        self.place.learn(heap, catalogue)?;
        match &self.place.now.read().tree {
            Tree::Of(map, kind) if *kind == self.kind => Ok(map.clone()),
            Tree::Of(_, kind) => Err(check_plain(&self.name, *kind)
                .err()
                .unwrap_or_else(|| Error::KeyspaceDropped { name: self.name.to_string() })),
            Tree::Dropped | Tree::Unknown => {
                Err(Error::KeyspaceDropped { name: self.name.to_string() })
            }
        }
    }

    /// The current name and entry of the keyspace, unless it was dropped.
    pub(crate) fn find<R: Read>(
        &self,
        heap: &R,
        catalogue: &Catalogue,
    ) -> Result<(String, CatalogueEntry)> {
        let name = self.place.now.read().name.clone();
        let found = find(heap, catalogue, &name, self.id)?;
        found.ok_or_else(|| Error::KeyspaceDropped { name: self.name.to_string() })
    }
}

/// Keys that were looked up.
const LOOKUPS: usize = 0;
/// Entries that scans read.
const SCANNED: usize = 1;
/// Keys that commits wrote, removed or moved.
const WRITES: usize = 2;

/// Counts of a keyspace since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Counts(Counters<3>);

impl Counts {
    /// Keys are looked up.
    #[inline]
    pub(crate) fn note_lookups(&self, keys: u64) {
        self.0.add(LOOKUPS, keys);
    }

    /// A scan read entries.
    #[inline]
    pub(crate) fn note_scanned(&self, entries: u64) {
        self.0.add(SCANNED, entries);
    }

    /// A commit changed keys.
    #[inline]
    pub(crate) fn note_writes(&self, keys: u64) {
        self.0.add(WRITES, keys);
    }

    /// Lookups, scanned entries and writes.
    pub(crate) fn sums(&self) -> [u64; 3] {
        self.0.sums()
    }
}

/// The part that all states of one keyspace share.
#[derive(Debug)]
pub(crate) struct Place {
    id: u64,
    /// Counts the transactions that may have given it another tree.
    version: AtomicU64,
    /// The recorded durability of commits that do not set their own.
    durability: AtomicU8,
    counts: Counts,
    /// The catalogue's answer since the last of them.
    now: RwLock<Now>,
}

#[derive(Debug)]
struct Now {
    /// Its name when it was last looked up: the first to try.
    name: Box<str>,
    tree: Tree,
}

#[derive(Debug)]
enum Tree {
    Unknown,
    Of(Map, KeyspaceKind),
    Dropped,
}

impl Place {
    pub(crate) fn new(id: u64, name: &str) -> Arc<Self> {
        let now = Now { name: name.into(), tree: Tree::Unknown };
        let (version, durability) = (AtomicU64::new(0), AtomicU8::new(DURABILITY_STORE));
        let counts = Counts::default();
        Arc::new(Self { id, version, durability, counts, now: RwLock::new(now) })
    }

    /// Marks it stale, within a transaction that changes the keyspace's tree or kind, or drops it.
    pub(crate) fn doubt(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
        self.now.write().tree = Tree::Unknown;
    }

    /// The recorded durability of commits that do not set their own; `None`: that of the store.
    #[inline]
    pub(crate) fn durability(&self) -> Option<Durability> {
        durability_of(self.durability.load(Ordering::Relaxed)).ok().flatten()
    }

    /// Notes what was recorded.
    pub(crate) fn set_durability(&self, durability: Option<Durability>) {
        self.durability.store(number_of(durability), Ordering::Relaxed);
    }

    /// Notes its current name.
    pub(crate) fn is_called(&self, name: &str) {
        self.now.write().name = name.into();
    }

    /// Looks the keyspace up in the catalogue, unless another thread did so since it changed.
    fn learn<R: Read>(&self, heap: &R, catalogue: &Catalogue) -> Result<()> {
        if !matches!(self.now.read().tree, Tree::Unknown) {
            return Ok(());
        }
        let mut now = self.now.write();
        match find(heap, catalogue, &now.name, self.id)? {
            Some((name, entry)) => {
                let map = catalogue.map(heap, &name, &entry)?;
                now.tree = Tree::Of(map, kind_of(&name, &entry)?);
                now.name = name.into();
            }
            None => now.tree = Tree::Dropped,
        }
        Ok(())
    }
}

/// The keyspace with a number, which most likely has that name.
fn find<R: Read>(
    heap: &R,
    catalogue: &Catalogue,
    name: &str,
    id: u64,
) -> Result<Option<(String, CatalogueEntry)>> {
    match catalogue.find(heap, name)? {
        Some(entry) if entry.id.get() == id => Ok(Some((name.into(), entry))),
        _ => catalogue.find_by_id(heap, id),
    }
}
