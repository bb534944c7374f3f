//! Lookups: reads of one key at one sequence number.
//!
//! Purpose: a read has two parts. The first searches memtables, under the heap's lock; the second
//! searches tables, without a lock, because it may wait for the device.
//! Invariants: both parts read the same version at the same sequence number, so a flush or merge
//! between them makes no difference.
//! Thread safety: any thread.

use std::ops::Bound;
use std::sync::Arc;

use adamant_heap::access::Read;
use adamant_slice::Slice;

use crate::error::Result;
use crate::key::{BlobPointer, Entry, EntryKind, Lookup, RangeTombstone, Version};
use crate::level_compression::LEVELS;
use crate::merge_operator::Chain;
use crate::tombstones::fragments::{begins_below, ends_above};
use crate::version::tree_version::{TreeVersion, within};

/// The result of the search in memtables.
pub enum MemtableLookup {
    /// Final: the key's value, or its absence.
    Known(Option<Slice>),
    /// Final: the key's operands, which are not folded yet, and the value below them.
    Merged(MergedLookup),
    /// Open: the tables must be searched.
    Tables(TableLookup),
}

impl MemtableLookup {
    /// The value of the key, if it has one; searches the tables if necessary.
    ///
    /// # Errors
    /// Those of tables and blob files; `NoOperator` and `MergeFailed` of operands.
    pub fn finish(self, key: &[u8]) -> Result<Option<Slice>> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Merged(merged) => merged.finish(key),
            Self::Tables(tables) => tables.finish(key),
        }
    }

    /// Whether the key has a value. As [`MemtableLookup::finish`], but does not read blob files,
    /// and folds no operands.
    ///
    /// # Errors
    /// Those of tables.
    pub fn is_there(&self, key: &[u8]) -> Result<bool> {
        match self {
            Self::Known(value) => Ok(value.is_some()),
            Self::Merged(_) => Ok(true),
            Self::Tables(tables) => tables.is_there(key),
        }
    }
}

/// Operands in memtables, and the value below them.
pub struct MergedLookup {
    tree_version: Arc<TreeVersion>,
    chain: Chain,
    base: Option<Slice>,
}

impl MergedLookup {
    fn finish(&self, key: &[u8]) -> Result<Option<Slice>> {
        let Self { tree_version, chain, base } = self;
        chain.fold(&tree_version.operator, key, base.as_deref()).map(Some)
    }
}

/// The second part of a lookup.
pub struct TableLookup {
    tree_version: Arc<TreeVersion>,
    sequence: u64,
    /// The operands of the key in memtables, if there are any.
    chain: Option<Chain>,
    /// Versions with larger numbers were seen.
    sequence_max: u64,
    /// The key's hash.
    hash: u64,
    /// The newest commit that removed a range with the key, according to memtables.
    covered: u64,
}

/// Searches memtables for a key.
pub(crate) fn look<R: Read>(
    tree_version: &Arc<TreeVersion>,
    heap: &R,
    key: &[u8],
    sequence: u64,
) -> Result<MemtableLookup> {
    let mut lookup = Lookup::new(key, sequence);
    let (mut covered, mut chain) = (0, None::<Chain>);
    for memtable in tree_version.memtables() {
        covered = covered.max(memtable.emptied().over(key, sequence));
        while let Some(version) = memtable.find(heap, &lookup)? {
            let is_seen = version.sequence > covered;
            if is_seen && version.kind == EntryKind::Merge {
                // What is below it may be in the same memtable.
                lookup.sequence_max = chain.get_or_insert_default().push(&version)?;
                continue;
            }
            let is_there = is_seen && version.kind == EntryKind::Value;
            let base = is_there.then_some(version.value);
            let Some(chain) = chain else { return Ok(MemtableLookup::Known(base)) };
            let tree_version = Arc::clone(tree_version);
            return Ok(MemtableLookup::Merged(MergedLookup { tree_version, chain, base }));
        }
    }
    let Lookup { hash, sequence_max, .. } = lookup;
    let tree_version = Arc::clone(tree_version);
    let rest = TableLookup { tree_version, sequence, chain, sequence_max, hash, covered };
    Ok(MemtableLookup::Tables(rest))
}

impl TableLookup {
    fn finish(mut self, key: &[u8]) -> Result<Option<Slice>> {
        let (mut chain, mut found) = (self.chain.take(), None);
        self.versions(key, |version| {
            if version.kind == EntryKind::Merge {
                return chain.get_or_insert_default().push(&version).map(Some);
            }
            found = Some(version);
            Ok(None)
        })?;
        let base = match found {
            Some(version) if version.kind == EntryKind::Tombstone => None,
            Some(version) => Some(self.tree_version.version_value(key, version)?),
            None => None,
        };
        match chain {
            None => Ok(base),
            Some(chain) => chain.fold(&self.tree_version.operator, key, base.as_deref()).map(Some),
        }
    }

    fn is_there(&self, key: &[u8]) -> Result<bool> {
        if self.chain.is_some() {
            return Ok(true);
        }
        let mut is_there = false;
        self.versions(key, |version| {
            is_there = version.kind != EntryKind::Tombstone;
            Ok(None)
        })?;
        Ok(is_there)
    }

    /// As [`TreeVersion::find_down`], up to a version whose key is in a range that was removed
    /// later.
    fn versions(
        &self,
        key: &[u8],
        mut each: impl FnMut(Version) -> Result<Option<u64>>,
    ) -> Result<()> {
        let lookup = Lookup { key, hash: self.hash, sequence_max: self.sequence_max };
        let mut covered = None;
        self.tree_version.find_down(lookup, |version| {
            let covered = match covered {
                Some(covered) => covered,
                None => {
                    let range = self.tree_version.range_over(key, self.sequence)?;
                    *covered.insert(self.covered.max(range.map_or(0, |range| range.sequence)))
                }
            };
            if version.sequence > covered { each(version) } else { Ok(None) }
        })
    }
}

/// The newer one of two range tombstones.
pub(super) fn newer<'r>(
    one: Option<&'r RangeTombstone>,
    other: Option<&'r RangeTombstone>,
) -> Option<&'r RangeTombstone> {
    one.into_iter().chain(other).max_by_key(|range| range.sequence)
}

/// Whether a range tombstone is newer than `since` and holds keys between bounds.
fn has_emptied(
    range: &RangeTombstone,
    (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    since: u64,
) -> bool {
    begins_below(range, upper) && ends_above(range, lower) && range.sequence > since
}

impl TreeVersion {
    /// Hands on the newest version of a key in the tables, up to a sequence number, and then, while
    /// `each` returns a smaller one, the newest up to that. Does not look at range tombstones.
    fn find_down(
        &self,
        mut lookup: Lookup<'_>,
        mut each: impl FnMut(Version) -> Result<Option<u64>>,
    ) -> Result<()> {
        let key = lookup.key;
        let (first, others) = self.levels.split_at(1);
        let ordered = others.iter().filter_map(|files| {
            // Keys are disjoint: the candidate is the first table that ends at or after the key.
            let at = files.partition_point(|file| file.ends_below(Bound::Included(key)));
            files.get(at)
        });
        for file in first[0].iter().chain(ordered) {
            if !file.overlaps(Bound::Included(key), Bound::Included(key)) {
                continue;
            }
            let table = file.open()?;
            while let Some(version) = table.find(&lookup)? {
                match each(version)? {
                    Some(sequence_max) => lookup.sequence_max = sequence_max,
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// Whether a reader at `oldest_seen` or later may see an entry of a table, according to tables.
    pub(crate) fn may_see(&self, entry: &Entry, oldest_seen: u64) -> Result<bool> {
        let Entry { key, version } = entry;
        if version.sequence > oldest_seen {
            return Ok(true);
        }
        let range = self.range_over(key, oldest_seen)?;
        if range.is_some_and(|range| range.sequence > version.sequence) {
            return Ok(false);
        }
        // What lies on top of operands alone is seen through them.
        let mut may_see = true;
        self.find_down(Lookup::new(key, oldest_seen), |newer| {
            let is_above = newer.sequence > version.sequence;
            may_see = !is_above || newer.kind == EntryKind::Merge;
            Ok((is_above && may_see).then_some(newer.sequence - 1))
        })?;
        Ok(may_see)
    }

    /// The newest range tombstone over a key up to a sequence number, of those in tables. Fails if
    /// a table that must be searched cannot be read: keys that it removes must not come back.
    pub(crate) fn range_over(&self, key: &[u8], sequence: u64) -> Result<Option<&RangeTombstone>> {
        let at = (Bound::Included(key), Bound::Included(key));
        let mut newest = None;
        for (level, ranged) in self.ranged.iter().enumerate().filter(|(_, files)| !files.is_empty())
        {
            let files = if level == 0 { ranged } else { within(ranged, at) };
            for file in files.iter().filter(|file| file.overlaps(at.0, at.1)) {
                newest = newer(newest, file.open()?.range_over(key, sequence));
            }
        }
        Ok(newest)
    }

    fn version_value(&self, key: &[u8], version: Version) -> Result<Slice> {
        match BlobPointer::from_bytes(&version.value) {
            Some(pointer) if version.kind == EntryKind::Blob => self.blob_value(key, &pointer),
            _ => Ok(version.value),
        }
    }

    /// Whether a commit after `since` that is in memtables changed a key between bounds.
    fn have_memtables_changed(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>), since: u64) -> bool {
        let mut newer = self.memtables().filter(|memtable| memtable.sequence_max() > since);
        newer.any(|memtable| {
            memtable.has_changed_within(bounds, since)
                || memtable.emptied().has_newer(bounds, since)
        })
    }

    /// Whether a commit after `since` changed a key between bounds.
    pub(crate) fn has_changed(
        &self,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        since: u64,
    ) -> Result<bool> {
        if self.have_memtables_changed((lower, upper), since) {
            return Ok(true);
        }
        let overlaps = |range: &RangeTombstone| has_emptied(range, (lower, upper), since);
        for level in 0..LEVELS {
            for file in self.overlapping(level, (lower, upper)) {
                if file.meta.sequence_max <= since {
                    continue;
                }
                let table = file.open()?;
                if table.range_tombstones().iter().any(overlaps) {
                    return Ok(true);
                }
                for entry in table.range(lower, upper) {
                    if entry?.version.sequence > since {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

/// The version and the sequence number of a pre-read, made before a write: see
/// [`crate::Lsm::glance`].
pub struct Glance {
    tree_version: Arc<TreeVersion>,
    sequence: u64,
}

impl Glance {
    pub(crate) fn new(tree_version: Arc<TreeVersion>, sequence: u64) -> Self {
        Self { tree_version, sequence }
    }

    /// Searches memtables for a key.
    ///
    /// # Errors
    /// Those of the heap.
    pub fn look<R: Read>(&self, heap: &R, key: &[u8]) -> Result<MemtableLookup> {
        look(&self.tree_version, heap, key, self.sequence)
    }

    /// Whether the version is the same and no commit since then wrote a key between bounds. Reads
    /// memtables only: what was flushed since then may have left no trace there, so another version
    /// mean no.
    pub(crate) fn holds(
        &self,
        now: &Arc<TreeVersion>,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> bool {
        Arc::ptr_eq(&self.tree_version, now) && !now.have_memtables_changed(bounds, self.sequence)
    }
}
