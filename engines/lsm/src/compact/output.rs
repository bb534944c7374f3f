//! The output of a flush or a compaction: tables, and blob files beside them.
//!
//! Purpose: writes entries in order to as many tables as they need, without those that no reader
//! can see, and large values to blob files.
//! Invariants: all versions of a key are in one table. Files that no commit takes over are removed.
//! Thread safety: one thread at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adamant_slice::Slice;

use super::fold::{Below, OpenChain};
use super::survivors::{Fate, VisibilityFilter};
use crate::blob::{BlobOptions, BlobWriter};
use crate::compaction_filter::Filtering;
use crate::error::{Error, Result};
use crate::file::FileKind;
use crate::key::{BlobPointer, Entry, EntryKind, VALUE_BYTES_MAX, Version};
use crate::level_compression::LEVELS;
use crate::merge_operator::decode;
use crate::options::Options;
use crate::table::{TableMeta, TableOptions, TableWriter};
use crate::version::context::{ObsoleteFile, TreeContext};
use crate::version::edit::Edit;
use crate::version::manifest::BlobInfo;
use crate::version::tree_version::TreeVersion;

/// The files that were written.
#[derive(Debug)]
pub(crate) struct Outcome {
    context: Arc<TreeContext>,
    pub(crate) tables: Vec<TableMeta>,
    pub(crate) blobs: Vec<BlobInfo>,
    /// Values of blob files that were left out: number and bytes.
    pub(crate) stale: BTreeMap<u64, (u64, u64)>,
    /// The lowest number of an entry that the filter removed or changed: a snapshot that sees it
    /// must not see this outcome.
    pub(crate) filtered_from: Option<u64>,
    /// Whether a commit names the files, or may name them.
    is_taken: AtomicBool,
}

impl Outcome {
    /// An empty outcome.
    pub(crate) fn none(context: &Arc<TreeContext>) -> Self {
        Self {
            context: Arc::clone(context),
            tables: Vec::new(),
            blobs: Vec::new(),
            stale: BTreeMap::new(),
            filtered_from: None,
            is_taken: AtomicBool::new(false),
        }
    }

    /// The edit that adds the tables to a level.
    pub(crate) fn edit(&self, level: usize) -> Edit {
        Edit {
            added: self.tables.iter().map(|meta| (level, meta.clone())).collect(),
            blobs: self.blobs.clone(),
            stale: self.stale.clone(),
            ..Edit::default()
        }
    }

    /// Both, as of one commit.
    pub(crate) fn joined(mut self, mut other: Self) -> Self {
        self.tables.append(&mut other.tables);
        self.blobs.append(&mut other.blobs);
        debug_assert!(self.stale.is_empty() && other.stale.is_empty(), "no load replaces a value");
        self
    }

    /// Makes the names of the files durable. `failed_before`: the directory syncs that had failed
    /// before any of them was named.
    pub(crate) fn sync_names(&self, failed_before: u64) -> Result<()> {
        if !self.blobs.is_empty() {
            self.context.sync_names(FileKind::Blobs, failed_before)?;
        }
        if !self.tables.is_empty() {
            self.context.sync_names(FileKind::Tables, failed_before)?;
        }
        Ok(())
    }

    /// A commit names the files: they stay.
    pub(crate) fn keep(self) {
        self.is_taken.store(true, Ordering::Relaxed);
    }

    /// The commit that names the files failed, but the log may still contain it. The files are
    /// removed once a sync says that it does not; otherwise the next opening decides.
    pub(crate) fn doom(self) {
        self.is_taken.store(true, Ordering::Relaxed);
        let context = Arc::clone(&self.context);
        context.doom(vec![Arc::new(self)]);
    }

    /// Bytes of all tables, and of all blob files.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let tables = self.tables.iter().map(|meta| meta.file_bytes).sum();
        (tables, self.blobs.iter().map(|info| info.file_bytes).sum())
    }
}

impl ObsoleteFile for Outcome {
    fn delete_obsolete(&self) {
        self.is_taken.store(false, Ordering::Relaxed);
    }

    fn bytes(&self) -> u64 {
        let (tables, blobs) = Self::bytes(self);
        tables + blobs
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        if self.is_taken.load(Ordering::Relaxed) {
            return;
        }
        for meta in &self.tables {
            self.context.remove(FileKind::Tables, meta.number);
        }
        for info in &self.blobs {
            self.context.remove(FileKind::Blobs, info.file);
        }
    }
}

/// What of a tree its files are written by: the state that it shares with others, and its options.
pub(crate) type TreeParts<'p> = (&'p Arc<TreeContext>, &'p Options);

/// The part of a table's maximum bytes that may wait for its block when the table ends. It leaves
/// the table far from being small; see `pick_for_small`.
const WAITING_PART: u64 = 8;

/// Writes the tables.
pub(crate) struct Output<'o> {
    context: &'o Arc<TreeContext>,
    options: &'o Options,
    /// Source of the values that are moved from one blob file to another.
    tree_version: &'o TreeVersion,
    level: usize,
    survivors: VisibilityFilter,
    /// Whether operands are folded.
    folds: bool,
    /// Operands of the last key that are to be folded.
    chain: Option<OpenChain>,
    /// A key, and the first commits that its operands stand for which only some readers see.
    cuts: (Slice, Vec<u64>),
    /// Blob files whose values are moved.
    moved: BTreeSet<u64>,
    table: Option<TableWriter>,
    blob: Option<BlobWriter>,
    /// Start of the table that is being written; `None` for the first one.
    start: Option<Slice>,
    /// Directory syncs that had failed before any file was named.
    failed_syncs: u64,
    outcome: Outcome,
}

impl<'o> Output<'o> {
    pub(crate) fn new(
        (context, options): TreeParts<'o>,
        tree_version: &'o TreeVersion,
        level: usize,
        survivors: VisibilityFilter,
        moved: BTreeSet<u64>,
    ) -> Self {
        let outcome = Outcome::none(context);
        Self {
            context,
            options,
            tree_version,
            level,
            survivors,
            folds: true,
            chain: None,
            cuts: (Slice::EMPTY, Vec::new()),
            moved,
            table: None,
            blob: None,
            start: None,
            failed_syncs: context.failed_syncs(),
            outcome,
        }
    }

    fn table_options(&self) -> TableOptions {
        let options = self.options;
        TableOptions {
            block_bytes: options.block_bytes,
            hash_index: options.hash_index,
            compression: options.compression.level(self.level),
            filter_bits_per_key: options.filter_bits_per_key.into(),
            ..TableOptions::default()
        }
    }

    /// The table that takes the next entry.
    fn table(&mut self) -> Result<&mut TableWriter> {
        if self.table.is_none() {
            let directory = self.context.directory(FileKind::Tables);
            let identity = self.context.new_identity();
            let table = TableWriter::create(directory, identity, self.table_options())?;
            self.table = Some(table);
        }
        self.table.as_mut().ok_or(Error::TransactionTooLarge)
    }

    /// Whether the table ends before an entry with that key. One that is below the last one stays
    /// with its table, which refuses it.
    fn is_full(&mut self, key: &[u8]) -> Result<bool> {
        let bytes_max = self.options.table_bytes_max;
        let Some(table) = &mut self.table else { return Ok(false) };
        if table.file_bytes() < bytes_max || table.last_key() >= key {
            return Ok(false);
        }
        // What waits for its block is not compressed yet. A table that ends for it alone may turn
        // out so small that it is merged with others like it, to such tables again, for ever.
        if table.waiting_bytes() >= bytes_max / WAITING_PART {
            table.cut_before(key)?;
        }
        Ok(table.file_bytes() >= bytes_max)
    }

    /// Leaves operands as they are: what is written is no longer than what was read.
    pub(crate) fn without_folding(mut self) -> Self {
        self.folds = false;
        self
    }

    /// Adds the next entry as a filter leaves it.
    pub(crate) fn add_filtered(&mut self, entry: Entry, filtering: &mut Filtering) -> Result<()> {
        if !filtering.is_asked(&entry) {
            return self.add(entry);
        }
        let pointer = BlobPointer::from_bytes(&entry.version.value);
        let value = match pointer.filter(|_| entry.version.kind == EntryKind::Blob) {
            Some(pointer) => self.tree_version.blob_value(&entry.key, &pointer)?,
            None => entry.version.value.clone(),
        };
        match filtering.replaced(&entry, &value) {
            Some(replaced) => {
                self.note_stale(&entry)?;
                self.add(replaced)
            }
            None => self.add(entry),
        }
    }

    /// Adds the next entry, if a reader can see it.
    pub(crate) fn add(&mut self, entry: Entry) -> Result<()> {
        if self.chain.as_ref().is_some_and(|chain| *chain.key() != entry.key) {
            self.end_chain(Below::Other)?;
        }
        match self.survivors.judge(&entry)? {
            Fate::Kept => {
                if entry.version.kind == EntryKind::Merge {
                    self.note_cut(&entry);
                }
                self.write(entry)
            }
            Fate::Dropped => self.note_stale(&entry),
            Fate::DroppedWithOlder => {
                self.note_stale(&entry)?;
                self.end_chain(Below::Nothing)
            }
            Fate::Operand => {
                let written = match &mut self.chain {
                    Some(chain) if self.folds => chain.push(entry, &self.tree_version.operator),
                    Some(chain) => chain.pass(entry),
                    None => {
                        self.chain = Some(OpenChain::new(entry.clone(), self.take_cuts(&entry)));
                        Vec::new()
                    }
                };
                written.into_iter().try_for_each(|entry| self.write(entry))
            }
            Fate::Base => self.end_chain(Below::Base(entry)),
        }
    }

    /// Notes where the readers of an operand that only some see go on.
    fn note_cut(&mut self, operand: &Entry) {
        let mut cuts = self.take_cuts(operand);
        let Version { sequence, ref value, .. } = operand.version;
        cuts.extend(decode(sequence, value).map(|(first, _)| first));
        cuts.dedup();
        self.cuts = (operand.key.clone(), cuts);
    }

    /// The noted cuts of the key of an entry.
    fn take_cuts(&mut self, entry: &Entry) -> Vec<u64> {
        let (key, cuts) = std::mem::take(&mut self.cuts);
        if key == entry.key { cuts } else { Vec::new() }
    }

    /// Writes the operands that were gathered, folded as far as possible.
    fn end_chain(&mut self, below: Below) -> Result<()> {
        let Some(chain) = self.chain.take() else { return Ok(()) };
        let is_bottom = self.survivors.is_bottom();
        let below = match below {
            Below::Other if is_bottom => Below::Nothing,
            below => below,
        };
        if !self.folds {
            return chain.into_entries(below).into_iter().try_for_each(|entry| self.write(entry));
        }
        let mut pointed = None;
        let tree_version = self.tree_version;
        let entries = chain.fold(&tree_version.operator, below, |base| match base.version.kind {
            EntryKind::Value => Some(base.version.value.clone()),
            // A large value is written anew once, not on each level.
            EntryKind::Blob if is_bottom => {
                pointed = Some(base.clone());
                let pointer = BlobPointer::from_bytes(&base.version.value)?;
                tree_version.blob_value(&base.key, &pointer).ok()
            }
            EntryKind::Blob | EntryKind::Tombstone | EntryKind::Merge => None,
        });
        let is_base = |base: &Entry| entries.last() == Some(base);
        if let Some(base) = pointed.filter(|base| !is_base(base)) {
            self.note_stale(&base)?;
        }
        let goes = |entry: &Entry| is_bottom && entry.version.kind == EntryKind::Tombstone;
        entries.into_iter().filter(|e| !goes(e)).try_for_each(|entry| self.write(entry))
    }

    /// Writes an entry to the table.
    fn write(&mut self, mut entry: Entry) -> Result<()> {
        if self.is_full(&entry.key)? {
            self.end_table(Some(entry.key.clone()))?;
        }
        match entry.version.kind {
            EntryKind::Tombstone | EntryKind::Merge => {}
            EntryKind::Value => self.separate(&mut entry)?,
            EntryKind::Blob => self.relocate(&mut entry)?,
        }
        self.table()?.add(&entry)
    }

    /// Moves a large value into a blob file.
    fn separate(&mut self, entry: &mut Entry) -> Result<()> {
        let bytes_min = self.options.blob_bytes_min.unwrap_or(u32::MAX) as usize;
        if entry.version.value.len() < bytes_min.min(VALUE_BYTES_MAX) {
            return Ok(());
        }
        let pointer = self.add_blob(&entry.key, &entry.version.value)?;
        entry.version.value = Slice::new(&pointer.to_bytes());
        entry.version.kind = EntryKind::Blob;
        Ok(())
    }

    /// Moves a value out of a blob file that is to be removed.
    fn relocate(&mut self, entry: &mut Entry) -> Result<()> {
        let Some(pointer) = BlobPointer::from_bytes(&entry.version.value) else { return Ok(()) };
        if !self.moved.contains(&pointer.file) {
            return Ok(());
        }
        let value = self.tree_version.blob_value(&entry.key, &pointer)?;
        self.note_stale(entry)?;
        let pointer = self.add_blob(&entry.key, &value)?;
        entry.version.value = Slice::new(&pointer.to_bytes());
        Ok(())
    }

    fn add_blob(&mut self, key: &[u8], value: &[u8]) -> Result<BlobPointer> {
        let options = self.options;
        if self.blob.as_ref().is_some_and(|b| b.file_bytes() >= options.blob_file_bytes_max) {
            self.end_blob()?;
        }
        if self.blob.is_none() {
            let directory = self.context.directory(FileKind::Blobs);
            let identity = self.context.new_identity();
            // The values stay there while the tables that point to them are merged downwards.
            let blob_options = BlobOptions { compression: options.compression.level(LEVELS - 1) };
            self.blob = Some(BlobWriter::create(directory, identity, blob_options)?);
        }
        self.blob.as_mut().ok_or(Error::TransactionTooLarge)?.add(key, value)
    }

    /// Counts an entry that is left out.
    pub(crate) fn note_stale(&mut self, entry: &Entry) -> Result<()> {
        if entry.version.kind == EntryKind::Blob
            && let Some(pointer) = BlobPointer::from_bytes(&entry.version.value)
        {
            let (values, bytes) = self.outcome.stale.entry(pointer.file).or_default();
            *values += 1;
            *bytes += u64::from(pointer.stored_bytes);
        }
        Ok(())
    }

    /// Completes the table; the next one begins at the key `next`.
    fn end_table(&mut self, next: Option<Slice>) -> Result<()> {
        let start = std::mem::replace(&mut self.start, next.clone());
        let ranges = self.survivors.ranges(start.as_ref(), next.as_ref());
        if self.table.is_none() && ranges.is_empty() {
            return Ok(());
        }
        let table = self.table()?;
        for range in ranges {
            table.add_range_tombstone(range)?;
        }
        if let Some(table) = self.table.take() {
            self.outcome.tables.push(table.finish()?);
        }
        Ok(())
    }

    fn end_blob(&mut self) -> Result<()> {
        if let Some(blob) = self.blob.take() {
            let meta = blob.finish()?;
            self.outcome.blobs.push(BlobInfo {
                file: meta.number,
                file_bytes: meta.file_bytes,
                values: meta.values,
                stored_bytes: meta.stored_bytes,
                stale_values: 0,
                stale_bytes: 0,
            });
        }
        Ok(())
    }

    /// Completes all files: the files and their names are durable.
    pub(crate) fn finish(self) -> Result<Outcome> {
        let failed_syncs = self.failed_syncs;
        let outcome = self.finish_files()?;
        outcome.sync_names(failed_syncs)?;
        Ok(outcome)
    }

    /// The same, without their names.
    pub(crate) fn finish_files(mut self) -> Result<Outcome> {
        self.end_chain(Below::Other)?;
        self.end_table(None)?;
        self.end_blob()?;
        Ok(self.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a failed commit wait for a sync that says that it was undone. If none came, as
    /// after a failure that poisons the heap, the files and the tree context kept each other alive
    /// until the process ended.
    #[test]
    fn a_store_that_ends_with_files_that_wait_gives_its_cache_back() {
        for is_late in [false, true] {
            let context = TreeContext::in_memory(Options::default());
            let remains = Arc::downgrade(&context);
            if is_late {
                context.end();
            }
            Outcome::none(&context).doom();
            context.end();
            drop(context);
            assert!(remains.upgrade().is_none(), "late: {is_late}");
        }
    }
}
