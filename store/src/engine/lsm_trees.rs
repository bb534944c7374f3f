//! The LSM trees of a store: what they share, and which are open.
//!
//! Purpose: a tree has indexes and a cache in memory, so it is opened once, whatever the number
//! of handles. The shared tree context is made with the first tree: a store without one has neither
//! their directories nor their cache.
//! Invariants: a tree is listed from the transaction that makes it, unless that is undone, to the
//! one that destroys it.
//! Thread safety: `trees` is held for itself, while a tree is opened.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use adamant_heap::access::Read;
use adamant_heap::{Heap, Ptr, Salvage, Transaction};
use adamant_lsm::{
    Cache, CacheOptions, FileCounter, HeldFiles, LostRecords, Lsm, NamedOperator,
    Options as LsmOptions, Sequences, TreeContext, file_name, number_of, owner_of,
};
use adamant_medium::storage::Directory;
use parking_lot::Mutex;

use crate::compaction_filters::CompactionFilters;
use crate::engine::write_stall::WriteStall;
use crate::error::{Error, Result};
use crate::layout::{HEAD_NEXT_FILE_AT, STORE_ROOT, StoreHead};
use crate::merge_operators::MergeOperators;
use crate::own_options::OwnOptions;

/// Directories of tables and blob files, in the store's directory.
const TABLES_NAME: &str = "tables";
const BLOBS_NAME: &str = "blobs";
pub(crate) const FOLDERS: [&str; 2] = [TABLES_NAME, BLOBS_NAME];
/// Bytes of a file that are copied at once.
const COPY_BYTES: usize = 1 << 20;

/// The LSM trees of a store.
pub(crate) struct LsmTrees {
    directory: Arc<dyn Directory>,
    options: LsmOptions,
    cache_options: CacheOptions,
    operators: MergeOperators,
    filters: CompactionFilters,
    /// That of an earlier opening, whose files have the same numbers.
    cache: Option<Arc<Cache>>,
    sequences: Arc<Sequences>,
    environment: OnceLock<Arc<TreeContext>>,
    trees: Mutex<HashMap<u64, Arc<Lsm>>>,
    /// Whether there is a tree that could not be opened: which files belong to it is not known.
    has_unopened: AtomicBool,
    write_stall: Arc<WriteStall>,
    /// Backups in progress.
    pins: Mutex<usize>,
    /// Files that savepoints need.
    held: Mutex<HeldFiles>,
}

impl fmt::Debug for LsmTrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LsmTrees").field("sequences", &self.sequences).finish_non_exhaustive()
    }
}

impl LsmTrees {
    /// The trees of the store in a directory.
    pub(crate) fn new(
        directory: Arc<dyn Directory>,
        options: LsmOptions,
        cache_options: CacheOptions,
        operators: MergeOperators,
    ) -> Self {
        Self {
            directory,
            options,
            cache_options,
            operators,
            filters: CompactionFilters::default(),
            cache: None,
            sequences: Arc::default(),
            environment: OnceLock::new(),
            trees: Mutex::default(),
            has_unopened: AtomicBool::new(false),
            write_stall: Arc::default(),
            pins: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// The same, with filters for their compactions.
    pub(crate) fn with_filters(self, filters: CompactionFilters) -> Self {
        Self { filters, ..self }
    }

    /// The trees of the same store at a later commit, with the same cache: for a store that is read
    /// beside a writer. A file number never names another file.
    pub(crate) fn later(&self) -> Self {
        let (directory, options) = (Arc::clone(&self.directory), self.options.clone());
        let cache = self.environment.get().map(|environment| Arc::clone(environment.cache()));
        let cache = cache.or_else(|| self.cache.clone());
        Self { cache, ..Self::new(directory, options, self.cache_options, self.operators.clone()) }
    }

    /// The write stall, which also wakes the background workers.
    pub(crate) fn write_stall(&self) -> &Arc<WriteStall> {
        &self.write_stall
    }

    /// The sequence clock of all trees.
    pub(crate) fn sequences(&self) -> &Arc<Sequences> {
        &self.sequences
    }

    /// The tree context, if there is or was a tree.
    pub(crate) fn environment(&self) -> Option<&Arc<TreeContext>> {
        self.environment.get()
    }

    /// All open trees.
    pub(crate) fn all(&self) -> Vec<Arc<Lsm>> {
        self.trees.lock().values().cloned().collect()
    }

    /// The tree context, made if need be: with the identity of the store's files, and the head of
    /// the store, which keeps the number of the next one. `is_first`: no tree is there yet.
    fn environment_or_new<R: Read>(
        &self,
        heap: &R,
        (head, is_first): (u64, bool),
        uuid: impl FnOnce() -> Result<[u8; 16]>,
    ) -> Result<&Arc<TreeContext>> {
        if let Some(environment) = self.environment.get() {
            return Ok(environment);
        }
        let next_file = heap.read(Ptr::<StoreHead>::new(head))?.next_file.get();
        let tables = self.subdirectory(TABLES_NAME, is_first)?;
        let blobs = self.subdirectory(BLOBS_NAME, is_first)?;
        if is_first {
            self.directory.sync()?;
        }
        let environment = TreeContext::new(
            (tables, blobs),
            uuid()?,
            self.cache.clone().unwrap_or_else(|| Arc::new(Cache::new(self.cache_options))),
            (self.options.clone(), Arc::clone(&self.sequences)),
            (FileCounter { block: head, at: HEAD_NEXT_FILE_AT }, next_file),
        );
        let held = self.held.lock();
        environment.set_held(held.clone());
        if is_first {
            environment.skip_present().map_err(Error::of_lsm(""))?;
        }
        // A backup that began before there was a tree pins its files from the start.
        let pins = self.pins.lock();
        Ok(self.environment.get_or_init(|| {
            (0..*pins).for_each(|_| environment.pin_files());
            Arc::new(environment)
        }))
    }

    /// The directory with a name, made if need be; durable once the store's directory was synced.
    /// `is_first`: no file was ever kept in it.
    fn subdirectory(&self, name: &str, is_first: bool) -> Result<Arc<dyn Directory>> {
        let is_there = || Ok::<_, Error>(self.directory.list()?.iter().any(|known| known == name));
        // Nor where a reader in another process may have a file in it open.
        let is_empty = || Ok::<_, Error>(self.directory.subdirectory(name)?.list()?.is_empty());
        // Files that are there are a savepoint's, and were durable with it.
        if is_first && self.directory.renames_open() && is_there()? && is_empty()? {
            // Left by an attempt whose sync failed: its name may look durable and not be. Renaming
            // it writes the name again.
            let again = format!("{name}.new");
            self.directory.rename(name, &again)?;
            self.directory.rename(&again, name)?;
        }
        Ok(self.directory.subdirectory(name)?)
    }

    /// Keeps all files, existing and new, until the pin is dropped: for a backup.
    pub(crate) fn pin_files(&self) -> FilePin<'_> {
        let mut pins = self.pins.lock();
        *pins += 1;
        if let Some(environment) = self.environment.get() {
            environment.pin_files();
        }
        FilePin(self)
    }

    /// Numbers of the files of all trees that are open.
    pub(crate) fn file_numbers(&self) -> Vec<u64> {
        self.all().iter().flat_map(|tree| tree.file_numbers()).collect()
    }

    /// Notes that there is a tree that cannot be opened.
    pub(crate) fn note_unopened(&self) {
        self.has_unopened.store(true, Ordering::Release);
    }

    fn has_unopened(&self) -> bool {
        self.has_unopened.load(Ordering::Acquire)
    }

    /// Numbers of the files that trees may have which could not be opened: then all that are there.
    pub(crate) fn files_of_unopened(&self) -> Result<Vec<u64>> {
        let mut numbers = Vec::new();
        let folders = if self.has_unopened() { self.folders()? } else { Vec::new() };
        for folder in folders {
            let names = folder.list()?.into_iter();
            let finished =
                names.filter_map(|name| number_of(&name)).filter(|(_, finished)| *finished);
            numbers.extend(finished.map(|(number, _)| number));
        }
        Ok(numbers)
    }

    /// The identity that files have which only savepoints need. A tree that is the first one again
    /// gets it, too: otherwise its files are left for good by going back, as another store's.
    fn held_identity(&self) -> Result<Option<[u8; 16]>> {
        let held = self.held.lock();
        for folder in self.folders()? {
            for number in &held.numbers {
                let owner = owner_of(&*folder, &file_name(*number)).map_err(Error::of_lsm(""))?;
                if owner.is_some() {
                    return Ok(owner);
                }
            }
        }
        Ok(None)
    }

    /// Whether a tree that is open has a file.
    pub(crate) fn has_file(&self, number: u64) -> bool {
        self.all().iter().any(|tree| tree.has_file(number))
    }

    /// Bytes of some files.
    pub(crate) fn bytes_of(&self, numbers: &HashSet<u64>) -> Result<u64> {
        let mut bytes = 0;
        for directory in self.folders()? {
            for number in numbers {
                bytes += directory.open(&file_name(*number))?.map_or(Ok(0), |file| file.len())?;
            }
        }
        Ok(bytes)
    }

    /// The directories of files that are there.
    fn folders(&self) -> Result<Vec<Arc<dyn Directory>>> {
        let names = self.directory.list()?;
        let mut folders = Vec::new();
        for folder in FOLDERS {
            if names.iter().any(|name| name == folder) {
                folders.push(self.directory.subdirectory(folder)?);
            }
        }
        Ok(folders)
    }

    /// Says which files savepoints need from now on. Removes those that nothing needs any more; one
    /// that cannot be removed is an orphan, which a later opening removes.
    pub(crate) fn set_held(&self, held: HeldFiles) {
        let mut last = self.held.lock();
        if let Some(environment) = self.environment.get() {
            environment.set_held(held.clone());
        } else if !held.are_all && !self.has_unopened() {
            // There is no tree at all.
            let free = last.numbers.difference(&held.numbers).map(|number| file_name(*number));
            let names: Vec<String> = free.collect();
            for directory in self.folders().unwrap_or_default() {
                for name in &names {
                    // Most are in the other one.
                    if matches!(directory.open(name), Ok(Some(_))) {
                        let _ = directory.remove(name);
                    }
                }
            }
        }
        *last = held;
    }

    /// Makes a tree. It is listed unless the transaction is undone.
    pub(crate) fn create(
        self: &Arc<Self>,
        heap: &mut Transaction<'_>,
        name: &str,
        own: &OwnOptions,
    ) -> Result<Arc<Lsm>> {
        let identity = || {
            if let Some(held) = self.held_identity()? {
                return Ok(held);
            }
            let mut uuid = [0; 16];
            self.directory.random(&mut uuid)?;
            Ok(uuid)
        };
        let store = heap.root(STORE_ROOT);
        let environment = self.environment_or_new(heap, (store, true), identity)?;
        let head = Lsm::create(heap, environment).map_err(Error::of_lsm(""))?;
        let tree =
            Lsm::open_with(heap, head, environment, &own.lsm).map_err(Error::of_lsm(name))?;
        self.give_operator(&tree, own);
        self.trees.lock().insert(head, Arc::clone(&tree));
        let listing = Listing { lsm_trees: Arc::clone(self), head, is_kept: false };
        heap.on_commit(move |_| listing.keep());
        Ok(tree)
    }

    /// The tree with this head, in the store with that head.
    pub(crate) fn tree<R: Read>(
        &self,
        heap: &R,
        store: u64,
        (name, head): (&str, u64),
        own: &OwnOptions,
    ) -> Result<Arc<Lsm>> {
        let mut trees = self.trees.lock();
        if let Some(tree) = trees.get(&head) {
            return Ok(Arc::clone(tree));
        }
        let uuid = || Lsm::identity(heap, head).map_err(Error::of_lsm(name));
        let environment = self.environment_or_new(heap, (store, false), uuid)?;
        let tree =
            Lsm::open_with(heap, head, environment, &own.lsm).map_err(Error::of_lsm(name))?;
        self.give_operator(&tree, own);
        trees.insert(head, Arc::clone(&tree));
        Ok(tree)
    }

    /// Opens a tree with damaged memtables as far as possible; `lost` is called with the lost
    /// records.
    pub(crate) fn salvage(
        &self,
        heap: &Salvage,
        store: u64,
        (name, head, own): (&str, u64, &OwnOptions),
        lost: &mut dyn FnMut(LostRecords),
    ) -> Result<Arc<Lsm>> {
        let uuid = || Lsm::identity(heap, head).map_err(Error::of_lsm(name));
        let environment = self.environment_or_new(heap, (store, false), uuid)?;
        let tree = Lsm::salvage(heap, head, environment, lost).map_err(Error::of_lsm(name))?;
        self.give_operator(&tree, own);
        Ok(tree)
    }

    /// The merge operator that these options name, registered or not.
    pub(crate) fn operator(&self, own: &OwnOptions) -> Option<NamedOperator> {
        own.merge.as_ref().map(|name| self.operators.named(name))
    }

    /// Gives the tree of a keyspace with this name and kind its filter, if there is one.
    pub(crate) fn give_filter(&self, tree: Option<&Arc<Lsm>>, name: &str, kind: u16) {
        if let (Some(tree), Some(filter)) = (tree, self.filters.of(name, kind)) {
            tree.set_filter(filter);
        }
    }

    fn give_operator(&self, tree: &Lsm, own: &OwnOptions) {
        if let Some(operator) = self.operator(own) {
            tree.set_operator(operator);
        }
    }

    /// Destroys a tree, which leaves the list with the commit.
    pub(crate) fn destroy(
        self: &Arc<Self>,
        heap: &mut Transaction<'_>,
        tree: &Arc<Lsm>,
    ) -> Result<()> {
        tree.destroy(heap).map_err(Error::of_lsm(""))?;
        let (lsm_trees, head) = (Arc::clone(self), tree.head());
        heap.on_commit(move |_| {
            lsm_trees.trees.lock().remove(&head);
        });
        Ok(())
    }

    /// Copies all finished files to the directory of another store, but for those that only
    /// savepoints need, and makes them durable there. With `links` they are hard links where that
    /// can be done: finished files never change, and are durable. `is_still`: no commit follows,
    /// so a file that no tree has is needed by none.
    pub(crate) fn copy_files(
        &self,
        target: &dyn Directory,
        (links, is_still): (bool, bool),
    ) -> Result<()> {
        let Some(environment) = self.environment.get() else { return Ok(()) };
        let only_held = environment.only_held();
        let own = (is_still && !self.has_unopened())
            .then(|| self.file_numbers().into_iter().collect::<HashSet<u64>>());
        let is_needed = |number: &u64| match &own {
            Some(own) => own.contains(number),
            None => !only_held.contains(number),
        };
        let mut piece = vec![0; COPY_BYTES];
        for name in FOLDERS {
            let from = self.directory.subdirectory(name)?;
            let to = target.subdirectory(name)?;
            let is_copied = |name: &String| {
                let number = number_of(name).filter(|(_, is_finished)| *is_finished);
                number.is_some_and(|(number, _)| is_needed(&number))
            };
            for file in from.list()?.into_iter().filter(is_copied) {
                if links {
                    match from.link(&file, &*to) {
                        Err(error) if error.is_unsupported() => {}
                        linked => {
                            linked?;
                            continue;
                        }
                    }
                }
                let Some(source) = from.open(&file)? else { continue };
                let copy = to.create_once(&file)?;
                let (len, mut at) = (source.len()?, 0);
                while at < len {
                    let bytes = (len - at).min(COPY_BYTES as u64) as usize;
                    source.read_at(&mut piece[..bytes], at)?;
                    copy.write_at(&piece[..bytes], at)?;
                    at += bytes as u64;
                }
                copy.sync()?;
            }
            to.sync()?;
        }
        Ok(target.sync()?)
    }

    /// Removes files that belong to no tree, and to no reader in another process, and ensures that
    /// no number is reused. To be called when all trees are open that can be.
    pub(crate) fn remove_orphans(&self, heap: &Heap) -> Result<()> {
        let Some(environment) = self.environment.get() else { return Ok(()) };
        let trees = self.all();
        // Where it cannot be told, one may be there.
        let has_readers = heap.oldest_reader().map_or(true, |oldest| oldest.is_some());
        let is_unknown = has_readers || self.has_unopened();
        // A process that went back may have died before its sync: a power cut brings the old pool
        // back, with the files that it has. Only where there is one to remove.
        let synced = OnceCell::new();
        let is_durable = || synced.get_or_init(|| heap.directory().sync()).is_ok();
        let is_listed =
            |file| is_unknown || trees.iter().any(|tree| tree.has_file(file)) || !is_durable();
        environment.remove_orphans(is_listed).map_err(Error::of_lsm(""))?;
        Ok(synced.into_inner().unwrap_or(Ok(()))?)
    }

    /// Stops removing files: the store is being closed.
    pub(crate) fn end(&self) {
        if let Some(environment) = self.environment.get() {
            environment.end();
        }
    }

    /// Deletes obsolete files of commits, which become durable now.
    pub(crate) fn delete_obsolete(&self, heap: &Heap) -> Result<()> {
        match self.environment.get() {
            Some(environment) => environment.delete_obsolete(heap).map_err(Error::of_lsm("")),
            None => Ok(()),
        }
    }
}

/// A pin that keeps files from removal.
pub(crate) struct FilePin<'f>(&'f LsmTrees);

impl Drop for FilePin<'_> {
    fn drop(&mut self) {
        let mut pins = self.0.pins.lock();
        *pins -= 1;
        if let Some(environment) = self.0.environment.get() {
            environment.unpin_files();
        }
    }
}

/// A listed tree that stays only if its transaction commits.
struct Listing {
    lsm_trees: Arc<LsmTrees>,
    head: u64,
    is_kept: bool,
}

impl Listing {
    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        if !self.is_kept {
            self.lsm_trees.trees.lock().remove(&self.head);
        }
    }
}
