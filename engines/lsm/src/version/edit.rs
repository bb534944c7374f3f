//! Version edits: from one tree version to the next, in one heap transaction.
//!
//! Purpose: applies the file changes of a flush, a compaction or a load.
//! Invariants: memory follows the heap: the commit publishes a new version, and nothing else does.
//! Thread safety: made by the holder of the write permit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use adamant_heap::Transaction;
use adamant_heap::access::Write;

use crate::error::{Error, Result};
use crate::head;
use crate::layout::HEAD_BUFFER_AT;
use crate::memtable::{Memtable, create_buffer, destroy_buffer, forget_older};
use crate::table::TableMeta;
use crate::version::context::{FileCounter, ObsoleteFile, TreeContext};
use crate::version::manifest::{self, BlobInfo};
use crate::version::tree_version::{Blob, ListedBlob, TableFile, TreeVersion};

/// The changes.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    /// Added tables, with their levels.
    pub(crate) added: Vec<(usize, TableMeta)>,
    /// Numbers of removed tables.
    pub(crate) removed: BTreeSet<u64>,
    /// Tables that move to another level unchanged.
    pub(crate) moved: BTreeMap<u64, usize>,
    pub(crate) blobs: Vec<BlobInfo>,
    /// Values of blob files that are no longer referenced: number and bytes.
    pub(crate) stale: BTreeMap<u64, (u64, u64)>,
    /// Whether the added tables hold the oldest memtable.
    pub(crate) flushes: bool,
    /// Whether a new memtable takes later writes.
    pub(crate) rotates: bool,
}

impl Edit {
    /// Makes the changes on the heap. Returns the version that the commit publishes, and the files
    /// that may be removed when it is durable.
    pub(crate) fn apply(
        self,
        heap: &mut Transaction<'_>,
        head: u64,
        tree_version: &TreeVersion,
        context: &Arc<TreeContext>,
    ) -> Result<(TreeVersion, Vec<Arc<dyn ObsoleteFile>>)> {
        let mut next = tree_version.clone();
        let mut gone: Vec<Arc<dyn ObsoleteFile>> = Vec::new();
        if self.rotates {
            rotate(heap, head, &mut next, context)?;
        }
        if self.flushes {
            drop_oldest(heap, &mut next)?;
        }
        if self.changes_files() {
            self.change_tables(heap, &mut next, context, &mut gone)?;
            self.change_blobs(heap, &mut next, context, &mut gone)?;
            next.manifest = manifest::write(heap, head, tree_version.manifest, &next.listed())?;
            keep_next_file(heap, context)?;
            next.finish();
        }
        Ok((next, gone))
    }

    fn changes_files(&self) -> bool {
        !(self.added.is_empty()
            && self.removed.is_empty()
            && self.moved.is_empty()
            && self.blobs.is_empty()
            && self.stale.is_empty())
    }

    fn change_tables(
        &self,
        heap: &mut Transaction<'_>,
        next: &mut TreeVersion,
        context: &Arc<TreeContext>,
        gone: &mut Vec<Arc<dyn ObsoleteFile>>,
    ) -> Result<()> {
        let mut moved = Vec::new();
        for files in &mut next.levels {
            for file in std::mem::take(files) {
                let number = file.meta.number;
                if self.removed.contains(&number) {
                    heap.free(file.record)?;
                    gone.push(file);
                } else if let Some(level) = self.moved.get(&number) {
                    moved.push((*level, file));
                } else {
                    files.push(file);
                }
            }
        }
        for (level, file) in moved {
            next.levels[level].push(file);
        }
        let mut added = Vec::new();
        for (level, meta) in &self.added {
            let record = manifest::put_table(heap, meta)?;
            next.sequence_max = next.sequence_max.max(meta.sequence_max);
            added.push((*level, TableFile::new((context, &next.used), meta.clone(), record)));
        }
        // Tables that were loaded between the inputs of a merge while it ran may lie within its
        // output. They are newer than all else that had their keys then, so they may be above all
        // of that.
        for (level, file) in added.iter().filter(|(level, _)| *level > 0) {
            let (lower, upper) = file.bounds();
            let between = next.levels[*level].extract_if(.., |file| file.overlaps(lower, upper));
            let between: Vec<_> = between.collect();
            next.levels[0].extend(between);
        }
        for (level, file) in added {
            next.levels[level].push(file);
        }
        Ok(())
    }

    fn change_blobs(
        &self,
        heap: &mut Transaction<'_>,
        next: &mut TreeVersion,
        context: &Arc<TreeContext>,
        gone: &mut Vec<Arc<dyn ObsoleteFile>>,
    ) -> Result<()> {
        for info in &self.blobs {
            let record = manifest::put_blob(heap, info)?;
            let blob = Blob::new((context, &next.used), info.file, record);
            next.blobs.insert(info.file, ListedBlob { blob, info: *info });
        }
        for (file, (values, bytes)) in &self.stale {
            let Some(listed) = next.blobs.get_mut(file) else { continue };
            listed.info.stale_values += values;
            listed.info.stale_bytes += bytes;
            if listed.info.stale_values < listed.info.values {
                manifest::set_stale(heap, listed.blob.record, &listed.info)?;
            } else if let Some(listed) = next.blobs.remove(file) {
                heap.free(listed.blob.record)?;
                gone.push(listed.blob);
            }
        }
        Ok(())
    }
}

/// Stores the number of the next file, if it has changed.
fn keep_next_file(heap: &mut Transaction<'_>, context: &TreeContext) -> Result<()> {
    let FileCounter { block, at } = context.counter();
    let next_file = u32::try_from(context.next_file()).map_err(|_| Error::FilesExhausted)?;
    let bytes = heap.write(block, at, size_of::<u32>())?;
    bytes.copy_from_slice(&next_file.to_le_bytes());
    Ok(())
}

/// Gives the tree a new active memtable.
fn rotate(
    heap: &mut Transaction<'_>,
    head: u64,
    next: &mut TreeVersion,
    context: &Arc<TreeContext>,
) -> Result<()> {
    let block = create_buffer(heap, next.active.buffer())?;
    head::set(heap, head, HEAD_BUFFER_AT, block)?;
    let active = Arc::new(Memtable::open(heap, block, context.sequences())?);
    next.frozen.insert(0, std::mem::replace(&mut next.active, active));
    Ok(())
}

/// Drops the oldest memtable, which is frozen.
fn drop_oldest(heap: &mut Transaction<'_>, next: &mut TreeVersion) -> Result<()> {
    let Some(oldest) = next.frozen.pop() else { return Ok(()) };
    let newer = next.frozen.last().unwrap_or(&next.active).buffer();
    forget_older(heap, newer)?;
    destroy_buffer(heap, oldest.buffer())
}
