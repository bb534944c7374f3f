//! Layers: an immutable version of a tree, of memtables and tables.
//!
//! Purpose: the state that a read works on. It never changes: an edit makes a new version, which
//! shares what stayed.
//! Invariants: memtables and the tables of level 0 are ordered from the newest to the oldest; the
//! tables of other levels by key, and no two tables of such a level overlap.
//! Thread safety: immutable, shared freely.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use adamant_heap::Salvage;
use adamant_heap::access::Read;
use adamant_medium::storage::Directory;
use adamant_slice::Slice;
use adamant_wire::key::is_below;

use crate::blob::BlobFile;
use crate::cache::{BlockUse, Cache, FileKey};
use crate::error::{Error, Result};
use crate::file::{FileKind, Identity};
use crate::key::BlobPointer;
use crate::layout::Head;
use crate::level_compression::LEVELS;
use crate::memtable::{LostRecords, Memtable, open_buffer};
use crate::merge_operator::OperatorSlot;
use crate::sum::damaged;
use crate::table::{Table, TableMeta};
use crate::version::context::{ObsoleteFile, TreeContext};
use crate::version::manifest::{self, BlobInfo, Listed};

/// A file of a tree, opened when it is first read. Once it is obsolete it goes with its last user.
#[derive(Debug)]
struct TreeFile<F> {
    key: FileKey,
    context: Arc<TreeContext>,
    used: Arc<BlockUse>,
    opened: OnceLock<F>,
    is_obsolete: AtomicBool,
}

impl<F> TreeFile<F> {
    fn new((context, used): (&Arc<TreeContext>, &Arc<BlockUse>), key: FileKey) -> Self {
        let (context, used) = (Arc::clone(context), Arc::clone(used));
        Self { key, context, used, opened: OnceLock::new(), is_obsolete: AtomicBool::new(false) }
    }

    /// The file, opened by `open` on first use.
    fn open(&self, open: Open<F>) -> Result<&F> {
        if let Some(file) = self.opened.get() {
            return Ok(file);
        }
        let (context, FileKey { kind, number }) = (&*self.context, self.key);
        let identity = context.identity(number);
        let file = open(context.directory(kind), identity, context.cache(), &self.used)?;
        Ok(self.opened.get_or_init(|| file))
    }
}

impl<F> Drop for TreeFile<F> {
    fn drop(&mut self) {
        if self.is_obsolete.load(Ordering::Acquire) {
            self.context.cache().forget_file(self.key);
            self.context.remove(self.key.kind, self.key.number);
        }
    }
}

/// How a file is opened.
type Open<F> = fn(&Arc<dyn Directory>, Identity, &Arc<Cache>, &Arc<BlockUse>) -> Result<F>;

/// A table of a tree.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub(crate) meta: TableMeta,
    /// Heap offset of its record.
    pub(crate) record: u64,
    file: TreeFile<Arc<Table>>,
}

impl TableFile {
    pub(crate) fn new(
        of: (&Arc<TreeContext>, &Arc<BlockUse>),
        meta: TableMeta,
        record: u64,
    ) -> Arc<Self> {
        let file = TreeFile::new(of, FileKey { kind: FileKind::Tables, number: meta.number });
        Arc::new(Self { meta, record, file })
    }

    /// The table, opened on first use.
    pub(crate) fn open(&self) -> Result<&Arc<Table>> {
        self.file.open(|directory, identity, cache, used| {
            Table::open(directory, identity, cache, used).map(Arc::new)
        })
    }

    /// Whether keys of the table lie within bounds.
    pub(crate) fn overlaps(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
        is_below(&self.meta.key_min, upper) && !self.ends_below(lower)
    }

    /// Whether all keys of the table lie below a lower bound.
    pub(crate) fn ends_below(&self, lower: Bound<&[u8]>) -> bool {
        let last = &self.meta.key_max[..];
        match lower {
            Bound::Unbounded => false,
            Bound::Included(key) if self.meta.key_max_is_exclusive => last <= key,
            Bound::Included(key) => last < key,
            Bound::Excluded(key) => last <= key,
        }
    }

    /// Bounds that hold all of its keys.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let last = &self.meta.key_max[..];
        let upper = if self.meta.key_max_is_exclusive { Bound::Excluded } else { Bound::Included };
        (Bound::Included(&self.meta.key_min[..]), upper(last))
    }
}

impl ObsoleteFile for TableFile {
    fn delete_obsolete(&self) {
        self.file.is_obsolete.store(true, Ordering::Release);
    }

    fn bytes(&self) -> u64 {
        self.meta.file_bytes
    }
}

/// A blob file of a tree.
#[derive(Debug)]
pub(crate) struct Blob {
    /// Heap offset of its record.
    pub(crate) record: u64,
    file: TreeFile<BlobFile>,
}

impl Blob {
    pub(crate) fn new(
        of: (&Arc<TreeContext>, &Arc<BlockUse>),
        number: u64,
        record: u64,
    ) -> Arc<Self> {
        let file = TreeFile::new(of, FileKey { kind: FileKind::Blobs, number });
        Arc::new(Self { record, file })
    }

    /// The file, opened on first use.
    pub(crate) fn open(&self) -> Result<&BlobFile> {
        self.file.open(BlobFile::open)
    }
}

impl ObsoleteFile for Blob {
    fn delete_obsolete(&self) {
        self.file.is_obsolete.store(true, Ordering::Release);
    }

    fn bytes(&self) -> u64 {
        self.file.context.file_bytes(FileKind::Blobs, self.file.key.number)
    }
}

/// Reads the value of a key in a blob file, if the file is listed.
pub(crate) fn read_blob(blob: Option<&Blob>, key: &[u8], pointer: &BlobPointer) -> Result<Slice> {
    let missing = || Error::Missing { file: FileKind::Blobs.name(pointer.file).into() };
    blob.ok_or_else(missing)?.open()?.get(pointer, key)
}

/// A blob file, and how much of it is stale.
#[derive(Clone, Debug)]
pub(crate) struct ListedBlob {
    pub(crate) blob: Arc<Blob>,
    pub(crate) info: BlobInfo,
}

/// A tree version: what a read works on.
#[derive(Clone, Debug)]
pub(crate) struct TreeVersion {
    pub(crate) active: Arc<Memtable>,
    pub(crate) frozen: Vec<Arc<Memtable>>,
    pub(crate) levels: [Vec<Arc<TableFile>>; LEVELS],
    pub(crate) blobs: BTreeMap<u64, ListedBlob>,
    /// Tables with range tombstones, by level.
    pub(crate) ranged: [Vec<Arc<TableFile>>; LEVELS],
    /// Entries of all tables, including old versions.
    pub(crate) table_entries: u64,
    /// Of all tables that ever existed.
    pub(crate) sequence_max: u64,
    /// Heap offset of the manifest.
    pub(crate) manifest: u64,
    /// How its files use the cache; of all versions of a tree the same.
    pub(crate) used: Arc<BlockUse>,
    /// Folds operands; of the tree, whatever its version.
    pub(crate) operator: Arc<OperatorSlot>,
}

/// Opens the memtables of a buffer and of all older ones.
fn open_memtables<R: Read>(
    heap: &R,
    mut buffer: u64,
    memtables: &mut Vec<Arc<Memtable>>,
    mut open: impl FnMut(u64) -> Result<Memtable>,
) -> Result<()> {
    while buffer != 0 {
        if memtables.iter().any(|known| known.buffer() == buffer) {
            return Err(damaged(buffer, "is a buffer that comes before itself"));
        }
        memtables.push(Arc::new(open(buffer)?));
        buffer = open_buffer(heap, buffer)?.older.get();
    }
    Ok(())
}

/// Of the ascending tables of a level, those that have keys within bounds.
pub(crate) fn within<'l>(
    files: &'l [Arc<TableFile>],
    (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
) -> &'l [Arc<TableFile>] {
    let rest = &files[files.partition_point(|file| file.ends_below(lower))..];
    &rest[..rest.partition_point(|file| file.overlaps(Bound::Unbounded, upper))]
}

impl TreeVersion {
    /// The version of a tree that was destroyed.
    pub(crate) fn nothing() -> Self {
        Self {
            active: Arc::new(Memtable::empty(0)),
            frozen: Vec::new(),
            levels: Default::default(),
            blobs: BTreeMap::new(),
            ranged: Default::default(),
            table_entries: 0,
            sequence_max: 0,
            manifest: 0,
            used: Arc::default(),
            operator: Arc::default(),
        }
    }

    /// Opens what a head names.
    pub(crate) fn open<R: Read>(heap: &R, head: &Head, context: &Arc<TreeContext>) -> Result<Self> {
        let (sequences, mut memtables) = (context.sequences(), Vec::new());
        let open = |buffer| Memtable::open(heap, buffer, sequences);
        open_memtables(heap, head.buffer.get(), &mut memtables, open)?;
        Self::over(memtables, heap, head, context)
    }

    /// As [`TreeVersion::open`], with what is left of damaged memtables.
    pub(crate) fn salvage(
        heap: &Salvage,
        head: &Head,
        context: &Arc<TreeContext>,
        lost: &mut dyn FnMut(LostRecords),
    ) -> Result<Self> {
        let (sequences, mut memtables) = (context.sequences(), Vec::new());
        let mut at = head.buffer.get();
        let salvage = |buffer| {
            at = buffer;
            Memtable::salvage(heap, buffer, sequences, lost)
        };
        if open_memtables(heap, head.buffer.get(), &mut memtables, salvage).is_err() {
            // Nothing else names the older buffers.
            lost(LostRecords { offset: at, bytes: 0 });
        }
        if memtables.is_empty() {
            memtables.push(Arc::new(Memtable::empty(at)));
        }
        Self::over(memtables, heap, head, context)
    }

    /// These memtables, the newest first, over the files that a head names.
    fn over<R: Read>(
        mut memtables: Vec<Arc<Memtable>>,
        heap: &R,
        head: &Head,
        context: &Arc<TreeContext>,
    ) -> Result<Self> {
        let frozen = memtables.split_off(memtables.len().min(1));
        let Some(active) = memtables.pop() else {
            return Err(damaged(0, "is where a tree's buffer should be"));
        };
        let Listed { sequence_max, tables, blobs } = manifest::read(heap, head.manifest.get())?;
        context.sequences().note(sequence_max);
        let mut tree_version = Self {
            active,
            frozen,
            levels: Default::default(),
            blobs: BTreeMap::new(),
            ranged: Default::default(),
            table_entries: 0,
            sequence_max,
            manifest: head.manifest.get(),
            used: Arc::default(),
            operator: Arc::default(),
        };
        for (level, record) in tables {
            let meta = manifest::read_table(heap, record)?;
            let Some(files) = tree_version.levels.get_mut(level as usize) else {
                return Err(damaged(
                    tree_version.manifest,
                    "is a manifest with a level that no tree has",
                ));
            };
            files.push(TableFile::new((context, &tree_version.used), meta, record));
        }
        for record in blobs {
            let info = manifest::read_blob(heap, record)?;
            let blob = Blob::new((context, &tree_version.used), info.file, record);
            tree_version.blobs.insert(info.file, ListedBlob { blob, info });
        }
        tree_version.finish();
        Ok(tree_version)
    }

    /// Sorts the tables. To be called when tables have changed.
    pub(crate) fn finish(&mut self) {
        let (first, others) = self.levels.split_at_mut(1);
        // Flushes come in order; tables that were loaded at once do not overlap.
        first[0].sort_by_key(|file| std::cmp::Reverse((file.meta.sequence_max, file.meta.number)));
        for level in others {
            level.sort_by(|one, other| one.meta.key_min.cmp(&other.meta.key_min));
        }
        self.table_entries = self.levels.iter().flatten().map(|file| file.meta.entries).sum();
        let says_ranges = |file: &&Arc<TableFile>| file.meta.range_tombstones > 0;
        for (ranged, level) in self.ranged.iter_mut().zip(&self.levels) {
            *ranged = level.iter().filter(says_ranges).cloned().collect();
        }
    }

    /// All memtables, the newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }

    /// The tables of a level that have keys within bounds.
    pub(crate) fn overlapping(
        &self,
        level: usize,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    ) -> impl DoubleEndedIterator<Item = &Arc<TableFile>> {
        let files = &self.levels[level][..];
        let files = if level == 0 { files } else { within(files, (lower, upper)) };
        files.iter().filter(move |file| file.overlaps(lower, upper))
    }

    /// Whether memtables have a key between bounds.
    pub(crate) fn are_in_memtables(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
        self.memtables().any(|memtable| memtable.has_changed_within(bounds, 0))
    }

    /// Whether tables may have a key between bounds.
    pub(crate) fn are_in_tables(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
        (0..LEVELS).any(|level| self.overlapping(level, bounds).next().is_some())
    }

    /// A value of a blob file.
    pub(crate) fn blob_value(&self, key: &[u8], pointer: &BlobPointer) -> Result<Slice> {
        let listed = self.blobs.get(&pointer.file);
        read_blob(listed.map(|listed| &*listed.blob), key, pointer)
    }

    /// Bytes of the tables of a level.
    pub(crate) fn level_bytes(&self, level: usize) -> u64 {
        self.levels[level].iter().map(|file| file.meta.file_bytes).sum()
    }

    /// The content of the manifest.
    pub(crate) fn listed(&self) -> Listed {
        let level_of = |(level, files): (usize, &Vec<Arc<TableFile>>)| {
            files.iter().map(|file| (level as u32, file.record)).collect::<Vec<_>>()
        };
        Listed {
            sequence_max: self.sequence_max,
            tables: self.levels.iter().enumerate().flat_map(level_of).collect(),
            blobs: self.blobs.values().map(|listed| listed.blob.record).collect(),
        }
    }

    /// Numbers of all files, tables and blob files.
    pub(crate) fn files(&self) -> impl Iterator<Item = u64> + '_ {
        let tables = self.levels.iter().flatten().map(|file| file.meta.number);
        tables.chain(self.blobs.keys().copied())
    }
}
