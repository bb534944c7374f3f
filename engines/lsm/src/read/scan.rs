//! Scans: reads of a range at one sequence number.
//!
//! Purpose: a scan has two parts. The first copies entries of memtables, under the heap's lock; the
//! second merges them with those of tables, without a lock, because it may wait for the device.
//! Blob files are left to the receiver of the entries.
//! Invariants: both parts read the same version at the same sequence number, so a flush or merge
//! between them makes no difference.
//! Thread safety: any thread.

use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use adamant_heap::access::Read;
use adamant_slice::Slice;

use crate::error::{Error, Result};
use crate::key::{BlobPointer, EntryKind, RangeTombstone, Version};
use crate::level_compression::LEVELS;
use crate::memtable::{CopiedWalk, CopyLimits, Wanted};
use crate::merge_operator::{Chain, decode};
use crate::read::lookup::newer;
use crate::read::sources::{Source, Sources, TableRun};
use crate::tombstones::fragments::Fragments;
use crate::version::gaps::{self, Gaps, Steps};
use crate::version::later::{Scanned, ScannedBlob};
use crate::version::tree_version::{TreeVersion, within};

/// Keys below one range tombstone that a scan steps over, one by one, before it searches the end.
const KEYS_STEPPED: u32 = 8;

/// The second part of a scan.
pub struct TableScan {
    tree_version: Arc<TreeVersion>,
    sequence: u64,
    forward: bool,
    lower: Bound<Slice>,
    upper: Bound<Slice>,
    /// Batches of memtable entries, each ordered in the direction of the scan.
    copied: Vec<CopiedWalk>,
    /// Range tombstones of memtables.
    covers: Vec<Fragments>,
    gaps: Arc<Gaps>,
    seen: gaps::SeenGaps,
    /// The key up to which memtables were copied; `None`: all of the range.
    stop: Option<Slice>,
    with_values: bool,
}

/// Copies the memtables' entries of a range, about as many as the limits say.
pub(crate) fn scan<R: Read>(
    tree_version: &Arc<TreeVersion>,
    heap: &R,
    (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    forward: bool,
    (sequence, limits): (u64, CopyLimits),
    (gaps, seen): (&Arc<Gaps>, gaps::SeenGaps),
) -> Result<TableScan> {
    let (mut copied, mut covers) = (Vec::new(), Vec::new());
    let mut stop: Option<Slice> = None;
    for memtable in tree_version.memtables() {
        let cover = memtable.emptied().at(sequence);
        if !cover.is_empty() {
            covers.push(cover);
        }
        let entries_max = memtable.share_of(limits.entries_max, tree_version.table_entries);
        let limits = CopyLimits { entries_max, ..limits };
        let wanted =
            Wanted { limits, sequence, covers: &covers, gap: &|key| seen.over(key).cloned() };
        let (piece, end) = memtable.copy_range(heap, (lower, upper), forward, &wanted)?;
        stop = match (stop, end) {
            (Some(one), Some(other)) if forward => Some(one.min(other)),
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        if piece.len() > 0 {
            copied.push(piece.walk());
        }
    }
    let (mut lower, mut upper) = (lower.map(Slice::new), upper.map(Slice::new));
    if let Some(stop) = &stop {
        *if forward { &mut upper } else { &mut lower } = Bound::Included(stop.clone());
        for piece in &mut copied {
            piece.end_where(|key| if forward { *key <= **stop } else { *key >= **stop });
        }
    }
    Ok(TableScan {
        tree_version: Arc::clone(tree_version),
        sequence,
        forward,
        lower,
        upper,
        copied,
        covers,
        gaps: Arc::clone(gaps),
        seen,
        stop,
        with_values: limits.with_values,
    })
}

impl TableScan {
    /// Hands the entries on in order, until `each` breaks or `entries_max` are done. Returns where
    /// a later scan continues; `None` when nothing is left.
    ///
    /// # Errors
    /// Those of tables; `NoOperator` and `MergeFailed` of operands, and those of the blob files
    /// that these lie on.
    pub fn finish(
        mut self,
        entries_max: usize,
        mut each: impl FnMut(&[u8], Scanned<'_>) -> ControlFlow<()>,
    ) -> Result<Option<Bound<Slice>>> {
        let copied = std::mem::take(&mut self.copied);
        let bounds =
            (self.lower.as_ref().map(|key| &key[..]), self.upper.as_ref().map(|key| &key[..]));
        let mut sources: Vec<_> = copied.into_iter().map(Source::Copied).collect();
        self.tree_version.add_sources(bounds, self.forward, &mut sources);
        let mut sources = Sources::new(sources, self.forward)?;
        let entries = Cell::new(0);
        let mut each = |key: &[u8], value: Scanned<'_>| {
            entries.set(entries.get() + 1);
            each(key, value).is_break() || entries.get() >= entries_max
        };
        let mut steps = Steps::new(&self.gaps, &self.seen, &self.tree_version.active, self.forward);
        let end = if self.forward {
            self.ascend(&mut sources, &mut steps, &mut each)?
        } else {
            self.descend(&mut sources, &mut steps, &mut each)?
        };
        steps.end();
        Ok(match end {
            End::All => self.stop.clone().map(Bound::Excluded),
            End::Enough(last) => Some(Bound::Excluded(last)),
            // Whoever asks for the rest gets the error. What came before is not lost with it.
            End::Unmerged(key, _) if entries.get() > 0 => Some(Bound::Included(key)),
            End::Unmerged(_, error) => return Err(error),
        })
    }

    /// Hands entries on until `each` has enough.
    fn ascend<'s>(
        &'s self,
        sources: &mut Sources<'s>,
        steps: &mut Steps<'s>,
        each: &mut impl FnMut(&[u8], Scanned<'_>) -> bool,
    ) -> Result<End> {
        // The newest visible version of a key comes first; the others are skipped.
        let (mut seen, mut covered) = (LastKey::default(), Covered::default());
        while let Some(next) = sources.next() {
            let (key, (sequence, kind)) = (next.key(), next.said());
            if sequence <= self.sequence && seen.is_new(key) {
                if self.is_there(key, sequence, kind)? {
                    steps.end();
                    if kind == EntryKind::Merge && self.with_values {
                        let value = match self.fold_up(&seen.key, sources) {
                            Ok(value) => value,
                            Err(error) => return End::unmerged(&seen.key, error),
                        };
                        if each(&seen.key, Scanned::Bytes(&value)) {
                            return Ok(End::Enough(Slice::new(&seen.key)));
                        }
                        continue;
                    }
                    let is_enough = each(key, self.scanned(kind, next.value()));
                    if is_enough {
                        return Ok(End::Enough(Slice::new(key)));
                    }
                } else if let Some(gap) = steps.step(key) {
                    sources.skip_to(&gap.end)?;
                    continue;
                } else if let Some(range) = covered.again(self.range_over(key)?) {
                    sources.pass(range)?;
                    continue;
                }
            }
            sources.advance()?;
        }
        Ok(End::All)
    }

    /// As [`TableScan::ascend`], in the other direction.
    fn descend<'s>(
        &'s self,
        sources: &mut Sources<'s>,
        steps: &mut Steps<'s>,
        each: &mut impl FnMut(&[u8], Scanned<'_>) -> bool,
    ) -> Result<End> {
        // The newest visible version of a key comes last, so it is known only at the next key.
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let (mut said, mut covered) = (None, Covered::default());
        // Versions below an operand, the newest of them last.
        let mut below: Vec<Version> = Vec::new();
        loop {
            let next = sources.next();
            if next.is_none_or(|next| next.key() != key)
                && let Some((sequence, kind)) = said.take()
            {
                if self.is_there(&key, sequence, kind)? {
                    steps.end();
                    let is_enough = if kind == EntryKind::Merge && self.with_values {
                        let value = Slice::new(&value);
                        below.push(Version { sequence, kind, value });
                        let folded = match self.fold(&key, below.drain(..).rev()) {
                            Ok(folded) => folded,
                            Err(error) => return End::unmerged(&key, error),
                        };
                        each(&key, Scanned::Bytes(&folded))
                    } else {
                        each(&key, self.scanned(kind, &value))
                    };
                    if is_enough {
                        return Ok(End::Enough(Slice::new(&key)));
                    }
                } else if let Some(gap) = steps.step(&key) {
                    sources.skip_to(&gap.start)?;
                    continue;
                } else if let Some(range) = covered.again(self.range_over(&key)?) {
                    sources.pass(range)?;
                    continue;
                }
            }
            let Some(next) = next else { return Ok(End::All) };
            if next.said().0 <= self.sequence {
                let before = said.replace(next.said());
                match before {
                    Some((sequence, kind)) if next.said().1 == EntryKind::Merge => {
                        below.push(Version { sequence, kind, value: Slice::new(&value) });
                        let (first, _) = decode(next.said().0, next.value()).unwrap_or_default();
                        // It stands for these, too.
                        below.truncate(below.partition_point(|older| older.sequence < first));
                    }
                    _ => below.clear(),
                }
                key.clear();
                key.extend_from_slice(next.key());
                value.clear();
                if self.with_values {
                    value.extend_from_slice(next.value());
                }
            }
            sources.advance()?;
        }
    }

    /// The value of a key whose newest visible version, that of the next entry, is an operand. Goes
    /// on behind what it needed of the key's versions.
    #[cold]
    fn fold_up<'s>(&'s self, key: &[u8], sources: &mut Sources<'s>) -> Result<Slice> {
        let (mut versions, mut end) = (Vec::new(), u64::MAX);
        while let Some(next) = sources.next().filter(|next| next.key() == key) {
            let (sequence, kind) = next.said();
            if sequence < end {
                versions.push(Version { sequence, kind, value: Slice::new(next.value()) });
                let first = decode(sequence, next.value()).map(|(first, _)| first);
                end = first.filter(|_| kind == EntryKind::Merge).unwrap_or(0);
            }
            sources.advance()?;
            if end == 0 {
                break;
            }
        }
        self.fold(key, versions.into_iter())
    }

    /// The value that versions of a key make, the newest of which is an operand and comes first.
    #[cold]
    fn fold(&self, key: &[u8], versions: impl Iterator<Item = Version>) -> Result<Slice> {
        let covered = self.range_over(key)?.map_or(0, |range| range.sequence);
        let (mut chain, mut sequence_max, mut base) = (Chain::default(), self.sequence, None);
        for version in versions.filter(|version| version.sequence > covered) {
            match version.kind {
                // An operand above it stands for it, too.
                _ if version.sequence > sequence_max => continue,
                EntryKind::Merge => {
                    sequence_max = chain.push(&version)?;
                    continue;
                }
                EntryKind::Tombstone => {}
                EntryKind::Value => base = Some(version.value),
                EntryKind::Blob => {
                    let pointer = BlobPointer::from_bytes(&version.value);
                    let pointer =
                        pointer.ok_or(Error::NotPointer { bytes: version.value.len() })?;
                    base = Some(self.tree_version.blob_value(key, &pointer)?);
                }
            }
            break;
        }
        chain.fold(&self.tree_version.operator, key, base.as_deref())
    }

    /// Whether the newest visible version of a key is a value.
    #[inline]
    fn is_there(&self, key: &[u8], sequence: u64, kind: EntryKind) -> Result<bool> {
        // Its tombstone may have been skipped with everything else in the gap.
        if kind == EntryKind::Tombstone || self.seen.over(key).is_some() {
            return Ok(false);
        }
        Ok(self.range_over(key)?.is_none_or(|range| range.sequence < sequence))
    }

    /// The newest range tombstone over a key.
    fn range_over(&self, key: &[u8]) -> Result<Option<&RangeTombstone>> {
        range_over(&self.covers, &self.tree_version, key, self.sequence)
    }

    /// Converts a stored value to the form in which it is handed on.
    #[inline]
    fn scanned<'s>(&'s self, kind: EntryKind, stored: &'s [u8]) -> Scanned<'s> {
        if !self.with_values {
            return Scanned::Bytes(&[]);
        }
        match BlobPointer::from_bytes(stored).filter(|_| kind == EntryKind::Blob) {
            Some(pointer) => Scanned::Blob(ScannedBlob::new(&self.tree_version, pointer)),
            None => Scanned::Bytes(stored),
        }
    }
}

/// Where a scan ended.
enum End {
    /// Everything was handed on.
    All,
    /// This key was the last one asked for.
    Enough(Slice),
    /// The operands of this key cannot be merged.
    Unmerged(Slice, Error),
}

impl End {
    fn unmerged(key: &[u8], error: Error) -> Result<Self> {
        match error {
            Error::NoOperator { .. } | Error::MergeFailed { .. } => {
                Ok(Self::Unmerged(Slice::new(key), error))
            }
            other => Err(other),
        }
    }
}

/// The newest range tombstone over a key, of memtables and up to a sequence number of tables.
#[inline]
fn range_over<'r>(
    covers: &'r [Fragments],
    tree_version: &'r TreeVersion,
    key: &[u8],
    sequence: u64,
) -> Result<Option<&'r RangeTombstone>> {
    let over = covers.iter().filter_map(|cover| cover.over(key));
    let newest = over.max_by_key(|fragment| fragment.sequence);
    Ok(newer(newest, tree_version.range_over(key, sequence)?))
}

/// The range tombstone over the last keys.
#[derive(Default)]
struct Covered<'r> {
    range: Option<&'r RangeTombstone>,
    keys: u32,
}

impl<'r> Covered<'r> {
    /// Takes the range over the next key. Returns it if it covers many in a row, so that passing
    /// over the rest is worth a search in a table.
    fn again(&mut self, range: Option<&'r RangeTombstone>) -> Option<&'r RangeTombstone> {
        let is_same = range.zip(self.range).is_some_and(|(one, other)| std::ptr::eq(one, other));
        self.keys = if is_same { self.keys + 1 } else { 0 };
        self.range = range;
        range.filter(|_| self.keys >= KEYS_STEPPED)
    }
}

/// The key whose newest version was seen.
#[derive(Debug, Default)]
struct LastKey {
    key: Vec<u8>,
    is_begun: bool,
}

impl LastKey {
    /// Whether the key differs from the last one, which it replaces.
    #[inline]
    fn is_new(&mut self, key: &[u8]) -> bool {
        let is_new = self.key != key || !self.is_begun;
        if is_new {
            self.is_begun = true;
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        is_new
    }
}

/// The second part of a count of a tree's entries at one sequence number.
pub struct Count {
    tree_version: Arc<TreeVersion>,
    sequence: u64,
    /// Range tombstones of memtables.
    covers: Vec<Fragments>,
}

impl Count {
    pub(crate) fn new(tree_version: Arc<TreeVersion>, sequence: u64) -> Self {
        let covers =
            tree_version.memtables().map(|memtable| memtable.emptied().at(sequence)).collect();
        Self { tree_version, sequence, covers }
    }

    /// The number of entries. O(n); holds no lock, reads no value.
    ///
    /// # Errors
    /// Those of tables.
    pub fn finish(self) -> Result<u64> {
        let Self { tree_version, sequence, covers } = self;
        let mut sources = Vec::new();
        for memtable in tree_version.memtables() {
            sources.push(Source::Keys(memtable.keys()));
        }
        tree_version.add_sources((Bound::Unbounded, Bound::Unbounded), true, &mut sources);
        let (mut count, mut seen) = (0, LastKey::default());
        let mut sources = Sources::new(sources, true)?;
        while let Some(next) = sources.next() {
            let (key, (written, kind)) = (next.key(), next.said());
            if written <= sequence && seen.is_new(key) && kind != EntryKind::Tombstone {
                let range = range_over(&covers, &tree_version, key, sequence)?;
                count += u64::from(range.is_none_or(|range| range.sequence < written));
            }
            sources.advance()?;
        }
        Ok(count)
    }
}

impl TreeVersion {
    /// Adds the tables' entries within bounds as sources.
    fn add_sources<'l>(
        &'l self,
        bounds: (Bound<&'l [u8]>, Bound<&'l [u8]>),
        forward: bool,
        sources: &mut Vec<Source<'l>>,
    ) {
        let (first, others) = self.levels.split_at(1);
        for file in first[0].iter().filter(|file| file.overlaps(bounds.0, bounds.1)) {
            let alone = std::slice::from_ref(file);
            sources.push(Source::Tables(TableRun::new(alone, bounds, forward)));
        }
        debug_assert_eq!(1 + others.len(), LEVELS);
        for level in others {
            let files = within(level, bounds);
            if !files.is_empty() {
                sources.push(Source::Tables(TableRun::new(files, bounds, forward)));
            }
        }
    }
}
