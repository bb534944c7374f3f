//! Reading: one key, or the entries of a range, at one moment.
//!
//! Purpose: reads in two parts. The first looks at memtables, under the heap's lock; the second at
//! tables, which may wait for the device, under none.
//! Invariants: both parts look at the same layers and the same moment, so what is flushed or merged
//! between them makes no difference.
//! Thread safety: any thread.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use adamant_heap::access::Read;
use adamant_slice::Slice;

use crate::cover::Cover;
use crate::error::Result;
use crate::key::{BlobPointer, Entry, EntryKind, Lookup, RangeTombstone, Version};
use crate::layers::{LEVELS, Layers};
use crate::merge::{Merge, Run};

/// What memtables say of a key.
pub enum Look {
    /// All there is to say: its value, or that it is absent.
    Known(Option<Slice>),
    /// Nothing: the tables are to be asked.
    Tables(TableLook),
}

impl Look {
    /// The value of the key, if it has one: asks the tables if need be.
    ///
    /// # Errors
    /// Those of tables and blob files.
    pub fn finish(self, key: &[u8]) -> Result<Option<Slice>> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Tables(tables) => tables.finish(key),
        }
    }

    /// Whether the key has a value. As [`Look::finish`], but values in blob files are not looked at.
    ///
    /// # Errors
    /// Those of tables.
    pub fn is_there(&self, key: &[u8]) -> Result<bool> {
        match self {
            Self::Known(value) => Ok(value.is_some()),
            Self::Tables(tables) => tables.is_there(key),
        }
    }
}

/// The second part of looking for a key.
pub struct TableLook {
    layers: Arc<Layers>,
    sequence: u64,
    /// The newest commit that made a range with the key in it empty, as far as memtables know.
    covered: u64,
}

/// Looks for a key in memtables.
pub(crate) fn look<R: Read>(
    layers: &Arc<Layers>,
    heap: &R,
    key: &[u8],
    sequence: u64,
) -> Result<Look> {
    let mut covered = 0;
    for memtable in layers.memtables() {
        covered = covered.max(memtable.range_over(key, sequence));
        if let Some(version) = memtable.find(heap, key, sequence)? {
            let is_there = version.kind == EntryKind::Value && version.sequence > covered;
            return Ok(Look::Known(is_there.then_some(version.value)));
        }
    }
    Ok(Look::Tables(TableLook { layers: Arc::clone(layers), sequence, covered }))
}

impl TableLook {
    fn finish(&self, key: &[u8]) -> Result<Option<Slice>> {
        let Some(version) = self.version(key)? else { return Ok(None) };
        match version.kind {
            EntryKind::Value => Ok(Some(version.value)),
            EntryKind::Tombstone => Ok(None),
            EntryKind::Blob => self.layers.version_value(key, version).map(Some),
        }
    }

    fn is_there(&self, key: &[u8]) -> Result<bool> {
        let version = self.version(key)?;
        Ok(version.is_some_and(|version| version.kind != EntryKind::Tombstone))
    }

    /// The newest version, unless its key is in a range that was made empty later.
    fn version(&self, key: &[u8]) -> Result<Option<Version>> {
        let Some(version) = self.layers.find(key, self.sequence)? else { return Ok(None) };
        let covered = self.covered.max(self.layers.covered(key, self.sequence)?);
        Ok((version.sequence > covered).then_some(version))
    }
}

impl Layers {
    /// The newest version of a key in the tables, up to a sequence number. Ranges that were made empty
    /// are not looked at.
    pub(crate) fn find(&self, key: &[u8], sequence: u64) -> Result<Option<Version>> {
        let at = (Bound::Included(key), Bound::Included(key));
        let lookup = Lookup::new(key, sequence);
        for level in 0..LEVELS {
            for file in self.overlapping(level, at) {
                if let Some(version) = file.open()?.find(&lookup)? {
                    return Ok(Some(version));
                }
            }
        }
        Ok(None)
    }

    /// The newest commit up to a sequence number that made a range with this key in it empty, as tables
    /// say; 0 if none did. Fails where one that would have to be asked cannot be read: what it says is
    /// absent must not come back.
    fn covered(&self, key: &[u8], sequence: u64) -> Result<u64> {
        let mut newest = self.cover.over(key, sequence);
        let at = Bound::Included(key);
        for file in self.unread.iter().filter(|file| file.overlaps(at, at)) {
            let ranges = file.open()?.range_tombstones().iter();
            let over = ranges.filter(|range| range.sequence <= sequence && range.contains(key));
            newest = newest.max(over.map(|range| range.sequence).max().unwrap_or(0));
        }
        Ok(newest)
    }

    fn version_value(&self, key: &[u8], version: Version) -> Result<Slice> {
        match BlobPointer::from_bytes(&version.value) {
            Some(pointer) if version.kind == EntryKind::Blob => self.blob_value(key, &pointer),
            _ => Ok(version.value),
        }
    }

    /// Whether a commit after one with this number changed a key, or one between bounds.
    pub(crate) fn has_changed(
        &self,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        since: u64,
    ) -> Result<bool> {
        let overlaps = |range: &RangeTombstone| {
            let starts = match upper {
                Bound::Unbounded => true,
                Bound::Included(key) => range.start[..] <= *key,
                Bound::Excluded(key) => range.start[..] < *key,
            };
            let ends = match lower {
                Bound::Unbounded => true,
                Bound::Included(key) | Bound::Excluded(key) => range.end[..] > *key,
            };
            starts && ends && range.sequence > since
        };
        for memtable in self.memtables().filter(|memtable| memtable.sequence_max() > since) {
            if memtable.has_changed_within((lower, upper), since)
                || memtable.ranges(u64::MAX).iter().any(overlaps)
            {
                return Ok(true);
            }
        }
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

/// The second part of looking at a range.
pub struct TableScan {
    layers: Arc<Layers>,
    sequence: u64,
    forward: bool,
    lower: Bound<Slice>,
    upper: Bound<Slice>,
    /// What memtables have, each ordered, in the direction of the scan.
    copied: Vec<Vec<Entry>>,
    cover: Option<Cover>,
    /// The key up to which memtables were looked at; `None`: all of the range.
    stop: Option<Slice>,
}

/// Copies what memtables have of a range, for about so many entries.
pub(crate) fn scan<R: Read>(
    layers: &Arc<Layers>,
    heap: &R,
    (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    forward: bool,
    sequence: u64,
    (entries_max, bytes_max): (usize, usize),
) -> Result<TableScan> {
    let (mut copied, mut ranges) = (Vec::new(), Vec::new());
    let mut stop: Option<Slice> = None;
    for memtable in layers.memtables() {
        let (piece, end) = memtable.copy_range(
            heap,
            (lower, upper),
            forward,
            sequence,
            (entries_max, bytes_max),
        )?;
        stop = match (stop, end) {
            (Some(one), Some(other)) if forward => Some(one.min(other)),
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        copied.push(piece.finish().collect::<Vec<_>>());
        ranges.extend(memtable.ranges(sequence));
    }
    let cover = (!ranges.is_empty()).then(|| Cover::new(&ranges));
    let (mut lower, mut upper) = (lower.map(Slice::new), upper.map(Slice::new));
    if let Some(stop) = &stop {
        *if forward { &mut upper } else { &mut lower } = Bound::Included(stop.clone());
        for entries in &mut copied {
            let is_before = |entry: &Entry| {
                if forward { entry.key <= *stop } else { entry.key >= *stop }
            };
            entries.truncate(entries.partition_point(is_before));
        }
    }
    let layers = Arc::clone(layers);
    Ok(TableScan { layers, sequence, forward, lower, upper, copied, cover, stop })
}

impl TableScan {
    /// Hands the entries on, in order, until `each` breaks or has had so many. Where a later scan goes on;
    /// `None` when nothing is left.
    ///
    /// # Errors
    /// Those of tables and blob files.
    pub fn finish(
        self,
        entries_max: usize,
        mut each: impl FnMut(&Slice, &Slice) -> ControlFlow<()>,
    ) -> Result<Option<Bound<Slice>>> {
        let Self { layers, sequence, forward, lower, upper, copied, cover, stop } = self;
        let bounds = (lower.as_ref().map(|key| &key[..]), upper.as_ref().map(|key| &key[..]));
        for file in layers.unread.iter().filter(|file| file.overlaps(bounds.0, bounds.1)) {
            file.open()?;
        }
        let mut runs: Vec<Run<'_>> = Vec::new();
        for entries in copied {
            runs.push(Box::new(entries.into_iter().map(Ok)));
        }
        layers.add_runs(bounds, forward, &mut runs);
        let mut merge = Merge::new(runs, forward)?;
        let mut entries = 0;
        while let Some(entry) = next_seen(&mut merge, forward, sequence)? {
            let Entry { key, version } = entry;
            let covered = cover.as_ref().map_or(0, |cover| cover.over(&key, sequence));
            let covered = covered.max(layers.covered(&key, sequence)?);
            if version.kind == EntryKind::Tombstone || version.sequence < covered {
                continue;
            }
            let value = layers.version_value(&key, version)?;
            entries += 1;
            if each(&key, &value).is_break() || entries >= entries_max {
                return Ok(Some(Bound::Excluded(key)));
            }
        }
        Ok(stop.map(Bound::Excluded))
    }
}

/// The version of the next key that is seen at a moment, of those that have one.
fn next_seen(merge: &mut Merge<'_>, forward: bool, sequence: u64) -> Result<Option<Entry>> {
    while let Some(mut entry) = merge.next().transpose()? {
        let mut is_seen = entry.version.sequence <= sequence;
        // The other versions of the key: forward the newest came first, backward it comes last.
        while merge.peek().is_some_and(|next| next.key == entry.key) {
            let Some(next) = merge.next().transpose()? else { break };
            if next.version.sequence <= sequence && !(forward && is_seen) {
                (entry, is_seen) = (next, true);
            }
        }
        if is_seen {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// Counts the entries of a tree at one moment.
pub struct Count {
    layers: Arc<Layers>,
    sequence: u64,
}

impl Count {
    pub(crate) fn new(layers: Arc<Layers>, sequence: u64) -> Self {
        Self { layers, sequence }
    }

    /// How many there are. O(n); holds no lock, looks at no value.
    ///
    /// # Errors
    /// Those of tables.
    pub fn finish(self) -> Result<u64> {
        let Self { layers, sequence } = self;
        if let Some(file) = layers.unread.first() {
            file.open()?;
        }
        let mut runs: Vec<Run<'_>> = Vec::new();
        let mut ranges = Vec::new();
        for memtable in layers.memtables() {
            runs.push(Box::new(memtable.keys().map(Ok)));
            ranges.extend(memtable.ranges(sequence));
        }
        layers.add_runs((Bound::Unbounded, Bound::Unbounded), true, &mut runs);
        let (cover, mut count) = (Cover::new(&ranges), 0);
        let mut merge = Merge::new(runs, true)?;
        while let Some(Entry { key, version }) = next_seen(&mut merge, true, sequence)? {
            let covered = cover.over(&key, sequence).max(layers.cover.over(&key, sequence));
            let is_there = version.kind != EntryKind::Tombstone && version.sequence > covered;
            count += u64::from(is_there);
        }
        Ok(count)
    }
}

impl Layers {
    /// The tables' entries within bounds, as runs.
    fn add_runs<'l>(
        &'l self,
        (lower, upper): (Bound<&'l [u8]>, Bound<&'l [u8]>),
        forward: bool,
        runs: &mut Vec<Run<'l>>,
    ) {
        for level in 0..LEVELS {
            let files = self.overlapping(level, (lower, upper));
            let run = move |file: &'l Arc<crate::layers::TableFile>| -> Run<'l> {
                match file.open() {
                    Ok(table) if forward => Box::new(table.range(lower, upper)),
                    Ok(table) => Box::new(table.range(lower, upper).rev()),
                    Err(error) => Box::new(std::iter::once(Err(error))),
                }
            };
            if level == 0 {
                runs.extend(files.map(run));
            } else if forward {
                runs.push(Box::new(files.flat_map(run)));
            } else {
                runs.push(Box::new(files.rev().flat_map(run)));
            }
        }
    }
}
