//! The test store: a heap with one tree on it.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use adamant_heap::access::{Read, Write};
use adamant_heap::{Directory, Durability, Heap, Options as HeapOptions};
use adamant_lsm::{
    Cache, CacheOptions, Compression, CopyLimits, Error, FileCounter, Lsm, LsmReport,
    NamedOperator, Options, Scanned, TreeContext, built_in,
};
use adamant_sim::{SimDirectory, SimDisk};
use adamant_slice::Slice;

pub(crate) type Pair = (Vec<u8>, Vec<u8>);
pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The root that holds the number of the next file, and the one that names the tree.
const FILES: usize = 1;
pub(crate) const TREE: usize = 2;

/// Small limits, so that a few hundred entries make many tables on several levels.
pub(crate) fn small_options() -> Options {
    let mut options = Options::default();
    options.memtable_bytes_max = 2_000;
    options.table_bytes_max = 1_500;
    options.base_bytes_min = 4_000;
    options.level0_tables_max = 4;
    options.compression = [Compression::None, Compression::Lz4].into();
    if Compression::zstd().is_built() {
        options.compression = options.compression.bottommost(Compression::zstd());
    }
    options.level_ratio = 3;
    options.block_bytes = 256;
    options.blob_bytes_min = Some(60);
    options.blob_file_bytes_max = 2_000;
    options
}

/// The operator of the tree, unless a test gives it another.
pub(crate) fn appends() -> NamedOperator {
    NamedOperator::new("append", built_in("append"))
}

pub(crate) struct Store {
    pub(crate) heap: Heap,
    pub(crate) context: Arc<TreeContext>,
    pub(crate) tree: Arc<Lsm>,
}

impl Drop for Store {
    fn drop(&mut self) {
        self.context.end();
    }
}

/// The store on a simulated disk; all work happens within the calls.
pub(crate) fn open_on(disk: &SimDisk) -> Result<Store, Error> {
    let directory: Arc<dyn Directory> = Arc::new(SimDirectory::root(disk));
    let mut heap_options = HeapOptions::default();
    heap_options.log_bytes_max = 4 << 20;
    heap_options.address_bytes_max = 256 << 20;
    heap_options.deferred_bytes_max = 64 << 10;
    heap_options.background = false;
    Store::open_with(&directory, small_options(), heap_options)
}

impl Store {
    pub(crate) fn open(directory: &Arc<dyn Directory>, options: Options) -> Result<Self, Error> {
        let mut heap_options = HeapOptions::default();
        heap_options.background = false;
        Self::open_with(directory, options, heap_options)
    }

    pub(crate) fn open_with(
        directory: &Arc<dyn Directory>,
        options: Options,
        heap_options: HeapOptions,
    ) -> Result<Self, Error> {
        let (heap, _) = Heap::open(Arc::clone(directory), heap_options)?;
        if heap.view()?.root(FILES) == 0 {
            heap.transaction(Durability::Sync, |transaction| {
                let block = transaction.reserve_zeroed(8)?;
                transaction.set_root(FILES, block)
            })?;
        }
        let (counter, next_file) = {
            let view = heap.view()?;
            let block = view.root(FILES);
            let bytes = view.block(block)?.first_chunk().copied().unwrap_or_default();
            (FileCounter { block, at: 0 }, u32::from_le_bytes(bytes))
        };
        let directories = (directory.subdirectory("tables")?, directory.subdirectory("blobs")?);
        // Before any file in them is named.
        directory.sync()?;
        let cache = Arc::new(Cache::new(CacheOptions {
            block_bytes: 4_000,
            pinned_bytes: 2_000,
            file_count: 3,
        }));
        let context = Arc::new(TreeContext::new(
            directories,
            [7; 16],
            cache,
            (options, Arc::default()),
            (counter, next_file),
        ));
        if heap.view()?.root(TREE) == 0 {
            heap.transaction(Durability::Sync, |transaction| {
                let head = Lsm::create(transaction, &context)?;
                transaction.set_root(TREE, head)?;
                Ok::<(), Error>(())
            })?;
        }
        let tree = {
            let view = heap.view()?;
            Lsm::open(&view, view.root(TREE), &context)?
        };
        tree.set_operator(appends());
        context.remove_orphans(|file| tree.has_file(file))?;
        Ok(Self { heap, context, tree })
    }

    /// Opens the tree that the heap names now.
    pub(crate) fn reopen_tree(&mut self) -> Result<(), Error> {
        let view = self.heap.view()?;
        self.tree = Lsm::open(&view, view.root(TREE), &self.context)?;
        self.tree.set_operator(appends());
        Ok(())
    }

    /// Loads pairs; false if memtables have a key between them.
    pub(crate) fn load(
        &self,
        durability: Durability,
        pairs: &[(Slice, Slice)],
    ) -> Result<bool, Error> {
        let Some(load) = self.tree.prepare_load(pairs, 1)? else { return Ok(false) };
        self.heap.transaction(durability, |tx| load.commit(tx)).map(|()| true)
    }

    pub(crate) fn get(&self, key: &[u8], sequence: u64) -> Result<Option<Slice>, Error> {
        let look = self.tree.look(&self.heap.view()?, key, sequence)?;
        look.finish(key)
    }

    /// The first entry from one of the ends.
    pub(crate) fn first<R: Read>(
        &self,
        heap: &R,
        forward: bool,
        sequence: u64,
    ) -> Result<Option<Pair>, Error> {
        let mut first = None;
        let all = (Bound::Unbounded, Bound::Unbounded);
        let one = CopyLimits { entries_max: 1, bytes_max: 64 << 10, with_values: true };
        self.tree.walk(heap, all, forward, sequence, one, |key, value| {
            first = Some((key.to_vec(), value.to_vec()));
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    /// The entries of a range. Values in blob files are read at once, or after the scan.
    pub(crate) fn scan(
        &self,
        bounds: (Bound<Slice>, Bound<Slice>),
        forward: bool,
        sequence: u64,
        entries_max: usize,
    ) -> Result<Vec<Pair>, Error> {
        let (mut found, mut later) = (Vec::new(), Vec::new());
        let reads_later = entries_max % 2 == 1;
        let limits = CopyLimits { entries_max, bytes_max: 300, with_values: true };
        self.scan_by(limits, bounds, forward, sequence, |key, value| {
            found.push((key.to_vec(), Vec::new()));
            let (_, bytes) = found.last_mut().unwrap();
            match value {
                Scanned::Blob(blob) if reads_later => {
                    later.push((found.len() - 1, blob.later()));
                    Ok(())
                }
                value => value.with(key, |value| bytes.extend_from_slice(value)),
            }
        })?;
        for (index, value) in later {
            let (key, bytes) = &mut found[index];
            bytes.extend_from_slice(&value.read(key)?);
        }
        Ok(found)
    }

    /// The keys of a range.
    pub(crate) fn keys(
        &self,
        bounds: (Bound<Slice>, Bound<Slice>),
        forward: bool,
        sequence: u64,
        entries_max: usize,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let mut found = Vec::new();
        let limits = CopyLimits { entries_max, bytes_max: 300, with_values: false };
        self.scan_by(limits, bounds, forward, sequence, |key, value| {
            assert!(matches!(value, Scanned::Bytes(&[])), "no value was asked for");
            found.push(key.to_vec());
            Ok(())
        })?;
        Ok(found)
    }

    fn scan_by(
        &self,
        limits: CopyLimits,
        mut bounds: (Bound<Slice>, Bound<Slice>),
        forward: bool,
        sequence: u64,
        mut each: impl FnMut(&[u8], Scanned<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            let range = (bounds.0.as_ref().map(|k| &k[..]), bounds.1.as_ref().map(|k| &k[..]));
            let scan = {
                let view = self.heap.view()?;
                self.tree.scan(&view, range, forward, sequence, limits)?
            };
            let mut failed = Ok(());
            let rest = scan.finish(limits.entries_max, |key, value| {
                failed = each(key, value);
                if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            failed?;
            match rest {
                None => return Ok(()),
                Some(bound) if forward => bounds.0 = bound,
                Some(bound) => bounds.1 = bound,
            }
        }
    }

    /// Checks the tree, and that it owns all blocks of the heap.
    pub(crate) fn check(&self) -> LsmReport {
        let (check, allocated) = {
            let report = self.heap.check().unwrap();
            assert!(report.is_clean(), "{:#?}", report.findings);
            (self.tree.check(&self.heap.view().unwrap()).unwrap(), report.blocks)
        };
        let report = check.finish();
        // And the one with the file counter.
        let has = report.blocks + 1;
        assert_eq!(has, allocated, "blocks that the tree has, and that are allocated");
        report
    }
}
