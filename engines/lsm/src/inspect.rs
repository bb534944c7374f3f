//! Statistics and checks of a tree.
//!
//! Purpose: figures for operators, and a check that reads everything: each file by its own check,
//! the manifest against the files, the levels against their invariants, and the counters of blob
//! files against the tables.
//! Invariants: nothing is changed. A check continues after a finding, so its report names them all.
//! Thread safety: any thread. The first part of a check reads the heap, in several holds if others
//! want it; the second part reads the files, which takes long, without a lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use adamant_heap::access::Read;

use crate::blob::check_blob_file;
use crate::error::{Error, Result};
use crate::file::FileKind;
use crate::head;
use crate::level_compression::LEVELS;
use crate::memtable::{BufferWalk, Memtable, buffer_chunks, open_buffer, read_buffer_on};
use crate::table::{TableMeta, check_table};
use crate::tree::Lsm;
use crate::version::context::TreeContext;
use crate::version::manifest::{self, BlobInfo};
use crate::version::tree_version::{TableFile, TreeVersion};

/// A memtable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemtableStats {
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Entries, including range tombstones.
    pub entries: u64,
    /// Bytes of memory that its index takes.
    pub index_bytes: u64,
}

/// A level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStats {
    /// Tables.
    pub tables: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Their entries, including tombstones.
    pub entries: u64,
    /// Their tombstones.
    pub tombstones: u64,
    /// Their range tombstones.
    pub range_tombstones: u64,
    /// Bytes of their data blocks before compression.
    pub data_bytes_plain: u64,
    /// Bytes of their data blocks in the files.
    pub data_bytes_stored: u64,
    /// Bytes of tables that were written to the level since the tree was opened.
    pub written_bytes: u64,
}

/// All blob files of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobStats {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Values in them, including stale ones.
    pub values: u64,
    /// Stored bytes of the values.
    pub stored_bytes: u64,
    /// Values that no table points to any more.
    pub stale_values: u64,
    /// Stored bytes of the stale values.
    pub stale_bytes: u64,
    /// Bytes of files that flushes wrote since the tree was opened.
    pub written_bytes: u64,
    /// Bytes of files that merges wrote since then, with moved values.
    pub moved_bytes: u64,
}

/// The composition of a tree, and its background work since it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LsmStats {
    /// Memtables, the active one first, then the frozen ones from the newest to the oldest.
    pub memtables: Vec<MemtableStats>,
    /// Levels.
    pub levels: [LevelStats; LEVELS],
    /// Blob files.
    pub blobs: BlobStats,
    /// Memtables that were written to tables.
    pub flushes: u64,
    /// Bytes of the files that flushes wrote.
    pub flushed_bytes: u64,
    /// Merges of tables.
    pub compactions: u64,
    /// Bytes of the files that merges wrote.
    pub compacted_bytes: u64,
    /// Tables that moved to another level unchanged.
    pub moves: u64,
    /// The compaction debt: [`Lsm::debt`].
    pub debt: f64,
    /// Numbers of tables that a merge could not read. They stay in place until the store is opened
    /// again or the tree is compacted by hand, and others are merged around them.
    pub damaged_tables: Vec<u64>,
    /// Blocks that reads found in the cache, of tables and blob files.
    pub cache_hits: u64,
    /// Blocks that they did not find there.
    pub cache_misses: u64,
}

impl Lsm {
    /// The tables of each level: level 0 from the newest to the oldest, the others by key.
    pub fn levels(&self) -> Vec<Vec<TableMeta>> {
        let metas = |files: &Vec<Arc<TableFile>>| files.iter().map(|f| f.meta.clone()).collect();
        self.tree_version().levels.iter().map(metas).collect()
    }

    /// The composition of the tree. O(tables), reads no file.
    pub fn stats(&self) -> LsmStats {
        let (tree_version, work) = (self.tree_version(), &self.work);
        let memtables = tree_version.memtables().map(|memtable| MemtableStats {
            bytes: memtable.bytes(),
            entries: memtable.entries(),
            index_bytes: memtable.index_bytes(),
        });
        let mut levels = [LevelStats::default(); LEVELS];
        for ((level, files), written) in
            levels.iter_mut().zip(&tree_version.levels).zip(&work.written)
        {
            level.written_bytes = written.load(Ordering::Relaxed);
            for TableFile { meta, .. } in files.iter().map(|file| &**file) {
                level.tables += 1;
                level.bytes += meta.file_bytes;
                level.entries += meta.entries;
                level.tombstones += meta.tombstones;
                level.range_tombstones += meta.range_tombstones;
                level.data_bytes_plain += meta.data_bytes_plain;
                level.data_bytes_stored += meta.data_bytes_stored;
            }
        }
        let mut blobs = BlobStats {
            written_bytes: work.blobs_written.load(Ordering::Relaxed),
            moved_bytes: work.blobs_moved.load(Ordering::Relaxed),
            ..BlobStats::default()
        };
        for BlobInfo { file_bytes, values, stored_bytes, stale_values, stale_bytes, .. } in
            tree_version.blobs.values().map(|listed| &listed.info)
        {
            blobs.files += 1;
            blobs.bytes += file_bytes;
            blobs.values += values;
            blobs.stored_bytes += stored_bytes;
            blobs.stale_values += stale_values;
            blobs.stale_bytes += stale_bytes;
        }
        let (cache_hits, cache_misses) = self.used().hits_and_misses();
        LsmStats {
            cache_hits,
            cache_misses,
            memtables: memtables.collect(),
            levels,
            blobs,
            flushes: work.flushes.load(Ordering::Relaxed),
            flushed_bytes: work.flushed_bytes.load(Ordering::Relaxed),
            compactions: work.compactions.load(Ordering::Relaxed),
            compacted_bytes: work.compacted_bytes.load(Ordering::Relaxed),
            moves: work.moves.load(Ordering::Relaxed),
            debt: self.debt(),
            damaged_tables: self.parked_tables(),
        }
    }

    /// The first part of a check: the tree's heap objects. O(memtables and tables).
    ///
    /// # Errors
    /// Those of the heap, also when the head or a buffer is invalid: then the check cannot
    /// continue.
    pub fn check<R: Read>(&self, heap: &R) -> Result<LsmCheck> {
        let mut checking = LsmChecking::default();
        loop {
            if let Some(check) = self.check_part(heap, &mut checking, &|| false)? {
                return Ok(check);
            }
        }
    }

    /// As [`Lsm::check`], but returns `None` after some 2,048 records of memtables if `is_wanted`
    /// says that others want the heap. Call it again then, with what was seen so far; the tree may
    /// change in between.
    ///
    /// # Errors
    /// As [`Lsm::check`].
    pub fn check_part<R: Read>(
        &self,
        heap: &R,
        checking: &mut LsmChecking,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<LsmCheck>> {
        let tree_version = self.tree_version();
        let Some(records) = checking.count_records(heap, &tree_version, is_wanted)? else {
            return Ok(None);
        };
        let context = Arc::clone(self.context());
        let head = head::read(heap, self.head())?;
        let mut findings = Vec::new();
        let mut wrong = |offset, what| {
            findings.push(Error::Heap(adamant_heap::Error::InvalidPointer { offset, what }));
        };
        if head.identity != context.uuid() {
            wrong(self.head(), "is the head of a tree whose files have another identity");
        }
        if head.manifest.get() != tree_version.manifest {
            wrong(self.head(), "names another manifest than the one that was read");
        }
        // The head, the manifest, the record of each file.
        let mut blocks =
            1 + tree_version.files().count() as u64 + u64::from(tree_version.manifest != 0);
        let mut buffer = head.buffer.get();
        for (memtable, records) in tree_version.memtables().zip(records) {
            if buffer != memtable.buffer() {
                wrong(buffer, "is where another buffer of the tree should be");
                break;
            }
            if records != memtable.entries() {
                wrong(buffer, "is a buffer with another number of records than its memtable has");
            }
            blocks += 1 + buffer_chunks(heap, buffer)?.len() as u64;
            buffer = open_buffer(heap, buffer)?.older.get();
        }
        // A manifest lists tables in any order.
        let (mut listed, mut used) =
            (manifest::read(heap, tree_version.manifest)?, tree_version.listed());
        listed.tables.sort_unstable();
        used.tables.sort_unstable();
        if tree_version.manifest != 0 && listed != used {
            wrong(tree_version.manifest, "is a manifest of other files than those in use");
        }
        for file in tree_version.levels.iter().flatten() {
            if manifest::read_table(heap, file.record)? != file.meta {
                wrong(file.record, "is the record of a table other than the one in use");
            }
        }
        for listed in tree_version.blobs.values() {
            if manifest::read_blob(heap, listed.blob.record)? != listed.info {
                wrong(listed.blob.record, "is the record of a blob file other than the one in use");
            }
        }
        Ok(Some(LsmCheck { context, tree_version, blocks, findings }))
    }
}

/// Minimum records of one hold: about 500 us.
const HOLD_RECORDS: u64 = 2048;

/// The progress of the first part of a check through memtables, which may grow meanwhile.
#[derive(Debug, Default)]
pub struct LsmChecking(Vec<(Arc<Memtable>, BufferWalk)>);

impl LsmChecking {
    /// Continues the walk through the records of the memtables. Returns how many each has by now,
    /// in the order of `tree_version`; `None` if others want the heap before all were seen.
    fn count_records<R: Read>(
        &mut self,
        heap: &R,
        tree_version: &TreeVersion,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<u64>>> {
        let before = std::mem::take(&mut self.0);
        let walk_of = |memtable: &Arc<Memtable>| {
            let known = before.iter().find(|(known, _)| Arc::ptr_eq(known, memtable));
            known.map_or(BufferWalk::default(), |(_, walk)| *walk)
        };
        self.0 = tree_version.memtables().map(|one| (Arc::clone(one), walk_of(one))).collect();
        let mut held_records = 0;
        for (memtable, walk) in &mut self.0 {
            let is_whole = read_buffer_on(heap, memtable.buffer(), walk, |_| {
                held_records += 1;
                Ok(held_records < HOLD_RECORDS || !is_wanted())
            })?;
            if !is_whole {
                return Ok(None);
            }
        }
        Ok(Some(self.0.iter().map(|(_, walk)| walk.records).collect()))
    }
}

/// A check whose first part is done.
#[derive(Debug)]
pub struct LsmCheck {
    context: Arc<TreeContext>,
    tree_version: Arc<TreeVersion>,
    blocks: u64,
    findings: Vec<Error>,
}

/// The result of a check.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct LsmReport {
    /// Heap blocks of the tree: head, buffers and their chunks, manifest, records.
    pub blocks: u64,
    /// Entries in memtables and tables: versions of keys, including tombstones.
    pub entries: u64,
    /// Tables that were read.
    pub tables: u64,
    /// Blob files that were read.
    pub blob_files: u64,
    /// Bytes of all files that were read.
    pub file_bytes: u64,
    /// The findings. Each names the file, or the heap offset.
    pub findings: Vec<Error>,
}

impl LsmReport {
    /// Whether there are no findings.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl LsmCheck {
    /// Heap blocks of the tree.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The second part: reads all files. They stay until it ends, whatever else happens.
    pub fn finish(self) -> LsmReport {
        let Self { context, tree_version, blocks, findings } = self;
        let entries = tree_version.memtables().map(|memtable| memtable.entries()).sum();
        let mut report = LsmReport { blocks, entries, findings, ..LsmReport::default() };
        check_levels(&context, &tree_version, &mut report.findings);
        check_counters(&context, &tree_version, &mut report.findings);
        for file in tree_version.levels.iter().flatten() {
            let identity = context.identity(file.meta.number);
            match check_table(context.directory(FileKind::Tables), identity) {
                Ok(meta) if meta != file.meta => {
                    let what = "expected the counts, keys and references that the manifest has";
                    report.findings.push(wrong_file(&context, FileKind::Tables, meta.number, what));
                }
                Ok(_) => {}
                Err(error) => report.findings.push(error),
            }
            report.tables += 1;
            report.entries += file.meta.entries;
            report.file_bytes += file.meta.file_bytes;
        }
        for listed in tree_version.blobs.values() {
            let info = listed.info;
            let identity = context.identity(info.file);
            match check_blob_file(context.directory(FileKind::Blobs), identity) {
                Ok(meta)
                    if (meta.file_bytes, meta.values, meta.stored_bytes)
                        != (info.file_bytes, info.values, info.stored_bytes) =>
                {
                    let what = "expected the bytes and values that the manifest has";
                    report.findings.push(wrong_file(&context, FileKind::Blobs, info.file, what));
                }
                Ok(_) => {}
                Err(error) => report.findings.push(error),
            }
            report.blob_files += 1;
            report.file_bytes += info.file_bytes;
        }
        report
    }
}

fn wrong_file(
    context: &TreeContext,
    kind: FileKind,
    number: u64,
    what: impl Into<String>,
) -> Error {
    let name = context.identity(number).name();
    Error::damaged(&context.directory(kind).path().join(name), 0, what)
}

/// Checks that the tables are on the levels where they belong.
fn check_levels(context: &TreeContext, tree_version: &TreeVersion, findings: &mut Vec<Error>) {
    let next_file = context.next_file();
    for number in tree_version.blobs.keys().filter(|number| **number >= next_file) {
        let what = format!("expected the number of a blob file below {next_file}");
        findings.push(wrong_file(context, FileKind::Blobs, *number, what));
    }
    let mut wrong = |number, what: String| {
        findings.push(wrong_file(context, FileKind::Tables, number, what));
    };
    let mut numbers = BTreeSet::new();
    for TableFile { meta, .. } in tree_version.levels.iter().flatten().map(|file| &**file) {
        let has_order = if meta.key_max_is_exclusive {
            meta.key_min < meta.key_max
        } else {
            meta.key_min <= meta.key_max
        };
        if !has_order {
            wrong(meta.number, "expected a lowest key that is not above the highest".into());
        }
        if meta.sequence_min > meta.sequence_max || meta.sequence_max > tree_version.sequence_max {
            let of = (meta.sequence_min, meta.sequence_max, tree_version.sequence_max);
            wrong(
                meta.number,
                format!("expected sequence numbers up to {}, found {} to {}", of.2, of.0, of.1),
            );
        }
        if !numbers.insert(meta.number) || meta.number >= next_file {
            wrong(meta.number, format!("expected a number of its own, below {next_file}"));
        }
    }
    for (level, files) in tree_version.levels.iter().enumerate().skip(1) {
        for pair in files.windows(2) {
            let [one, other] = pair else { continue };
            if !one.ends_below(other.bounds().0) {
                let what = format!(
                    "expected keys above those of table {}, which is on level {level} too",
                    one.meta.number
                );
                wrong(other.meta.number, what);
            }
        }
    }
}

/// Checks the counters of blob files against the tables' references.
fn check_counters(context: &TreeContext, tree_version: &TreeVersion, findings: &mut Vec<Error>) {
    let mut used: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for file in tree_version.levels.iter().flatten() {
        for reference in &file.meta.blob_references {
            let (values, bytes) = used.entry(reference.file).or_default();
            *values += reference.entries;
            *bytes += reference.stored_bytes;
            if !tree_version.blobs.contains_key(&reference.file) {
                let what = format!("points into blob file {}, which is not listed", reference.file);
                findings.push(wrong_file(context, FileKind::Tables, file.meta.number, what));
            }
        }
    }
    for listed in tree_version.blobs.values() {
        let info = &listed.info;
        let (values, bytes) = used.get(&info.file).copied().unwrap_or_default();
        let live = (
            info.values.checked_sub(info.stale_values),
            info.stored_bytes.checked_sub(info.stale_bytes),
        );
        if live != (Some(values), Some(bytes)) {
            let what = format!(
                "expected {values} values of {bytes} bytes that are not stale, as many as tables \
                 point to, found {} less {} of {} less {} bytes",
                info.values, info.stale_values, info.stored_bytes, info.stale_bytes
            );
            findings.push(wrong_file(context, FileKind::Blobs, info.file, what));
        }
    }
}
