//! The tree context: the state that all trees of a store share.
//!
//! Purpose: directories, cache, clock, options and obsolete files: everything that a tree needs
//! beside the heap.
//! Invariants (R9): a file is removed only when a durable commit says that no tree has it, no
//! reader reads it, of this process or another, no backup copies files, no savepoint holds it, and
//! the store is open. File numbers are never reused. A failed sync of a directory fails every
//! thread that had named files then: no later sync makes these names durable.
//! Thread safety: shared freely. Lock order: `obsolete`, `removals` and `failed_syncs` are never
//! held together.

use std::collections::HashSet;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_heap::Heap;
use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::Directory;
use parking_lot::Mutex;

use crate::cache::Cache;
use crate::error::Result;
use crate::file::{FileKind, Identity, number_of, owner_of};
use crate::options::{Options, TreeOptions};
use crate::sequence::Sequences;

/// A file that a commit dropped, and that readers may still use.
pub(crate) trait ObsoleteFile: Send + Sync + Debug {
    /// The commit is durable: the file is removed when its last reader is done.
    fn delete_obsolete(&self);
    /// Its length; 0 if the system does not say.
    fn bytes(&self) -> u64;
}

/// Four bytes of a heap block that hold the number of the next file, little-endian; 0 while there
/// was none.
#[derive(Clone, Copy, Debug)]
pub struct FileCounter {
    /// Heap offset of the block.
    pub block: u64,
    /// Offset in the block.
    pub at: usize,
}

/// The shared state of all trees of a store.
#[derive(Debug)]
pub struct TreeContext {
    tables: Arc<dyn Directory>,
    blobs: Arc<dyn Directory>,
    /// The identity that all files carry.
    uuid: [u8; 16],
    cache: Arc<Cache>,
    sequences: Arc<Sequences>,
    options: Arc<Options>,
    next_file: AtomicU64,
    /// Location of `next_file` on the heap.
    counter: FileCounter,
    /// Files that commits dropped which may not be durable yet; `None` when the store was closed.
    /// They refer to this tree context: a file left here at the end would keep it, its cache and
    /// its descriptors for ever.
    obsolete: Mutex<Option<Vec<Obsolete>>>,
    removals: Mutex<Removals>,
    /// How often a sync of one of the directories has failed; held while one is synced.
    failed_syncs: Mutex<u64>,
}

/// A file that a commit dropped.
#[derive(Debug)]
struct Obsolete {
    file: Arc<dyn ObsoleteFile>,
    /// A commit behind that one; `None` until it is asked for.
    dropped_by: Option<u64>,
}

/// Numbers of files that must stay, whether or not a tree has them: savepoints need them.
#[derive(Clone, Debug, Default)]
pub struct HeldFiles {
    /// Their numbers.
    pub numbers: HashSet<u64>,
    /// All files must stay: which ones are needed is not known.
    pub are_all: bool,
}

impl HeldFiles {
    /// Whether a file must stay.
    pub fn has(&self, number: u64) -> bool {
        self.are_all || self.numbers.contains(&number)
    }
}

/// Files to be removed, which no reader uses any more.
#[derive(Debug, Default)]
struct Removals {
    /// Number of backups that copy files.
    pins: usize,
    waiting: Vec<(FileKind, u64)>,
    /// Numbers of the files that others than trees need.
    held: HeldFiles,
    /// Files that only these need.
    only_held: Vec<(FileKind, u64)>,
    /// The store was closed: another store may own the directory by now.
    is_ended: bool,
}

impl TreeContext {
    /// Creates the context of a store: the directories of its tables and blob files, the identity
    /// that its files carry, and the location and value of the file counter on its heap. The names
    /// of the directories must already be durable: only files in them are synced.
    pub fn new(
        (tables, blobs): (Arc<dyn Directory>, Arc<dyn Directory>),
        uuid: [u8; 16],
        cache: Arc<Cache>,
        (options, sequences): (Options, Arc<Sequences>),
        (counter, next_file): (FileCounter, u32),
    ) -> Self {
        Self {
            tables,
            blobs,
            uuid,
            cache,
            sequences,
            options: Arc::new(options),
            next_file: AtomicU64::new(u64::from(next_file.max(1))),
            counter,
            obsolete: Mutex::new(Some(Vec::new())),
            removals: Mutex::default(),
            failed_syncs: Mutex::default(),
        }
    }

    /// The context of a store without a heap, in memory.
    #[cfg(test)]
    pub(crate) fn in_memory(options: Options) -> Arc<Self> {
        let directory = || Arc::new(adamant_medium::memory::MemoryDirectory::new()) as _;
        Arc::new(Self::new(
            (directory(), directory()),
            [1; 16],
            Arc::new(Cache::new(crate::cache::CacheOptions::default())),
            (options, Arc::default()),
            (FileCounter { block: 0, at: 0 }, 1),
        ))
    }

    /// The clock of all trees.
    pub fn sequences(&self) -> &Arc<Sequences> {
        &self.sequences
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The options of a tree that has these of its own. Trees without any share the store's.
    pub(crate) fn options_with(&self, own: &TreeOptions) -> Arc<Options> {
        match *own == TreeOptions::default() {
            true => Arc::clone(&self.options),
            false => Arc::new(own.over(&self.options)),
        }
    }

    /// Blocks and descriptors in memory.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    pub(crate) fn directory(&self, kind: FileKind) -> &Arc<dyn Directory> {
        match kind {
            FileKind::Tables => &self.tables,
            FileKind::Blobs => &self.blobs,
        }
    }

    pub(crate) fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    pub(crate) fn identity(&self, number: u64) -> Identity {
        Identity { uuid: self.uuid, number }
    }

    /// The identity of a file that is about to be created.
    pub(crate) fn new_identity(&self) -> Identity {
        self.identity(self.next_file.fetch_add(1, Ordering::Relaxed))
    }

    /// Location of the file counter on the heap.
    pub(crate) fn counter(&self) -> FileCounter {
        self.counter
    }

    /// The number of the next file.
    pub(crate) fn next_file(&self) -> u64 {
        self.next_file.load(Ordering::Relaxed)
    }

    /// How often a sync of a directory has failed; read it before the first file is named.
    pub(crate) fn failed_syncs(&self) -> u64 {
        *self.failed_syncs.lock()
    }

    /// Makes durable the names in a directory that were given since `failed_before` syncs had
    /// failed.
    ///
    /// # Errors
    /// Those of the storage backend; also if another thread's sync has failed since then: it may
    /// have lost these names, which look durable from then on, so that another sync would succeed
    /// without them.
    #[track_caller]
    pub(crate) fn sync_names(&self, kind: FileKind, failed_before: u64) -> Result<()> {
        // Held, so that a failure is counted before the next sync succeeds.
        let mut failed = self.failed_syncs.lock();
        let directory = self.directory(kind);
        if *failed == failed_before {
            let synced = directory.sync();
            *failed += u64::from(synced.is_err());
            return Ok(synced?);
        }
        let source = io::Error::other("it failed for other files, and may have lost these names");
        Err(MediumError::io("sync directory", directory.path(), None, 0, source).into())
    }

    /// Removes the files of changes that never became durable, and ensures that no number is
    /// reused. To be called after the store was opened and recovered, before any tree creates a
    /// file; `is_listed` says of a file whether a tree has it.
    ///
    /// # Errors
    /// Those of the storage backend.
    pub fn remove_orphans(&self, is_listed: impl Fn(u64) -> bool) -> Result<u64> {
        let mut removals = self.removals.lock();
        let mut removed = 0;
        for kind in [FileKind::Tables, FileKind::Blobs] {
            let directory = self.directory(kind);
            let before = removed;
            for name in directory.list()? {
                let Some((number, is_finished)) = number_of(&name) else { continue };
                self.skip_number(number);
                if is_finished && is_listed(number) {
                    continue;
                }
                if is_finished && removals.held.has(number) {
                    removals.only_held.push((kind, number));
                    continue;
                }
                // A file that another store left here by mistake is not ours to remove.
                let is_ours = owner_of(&**directory, &name)? == Some(self.uuid);
                if is_ours || !is_finished {
                    directory.remove(&name)?;
                    removed += 1;
                }
            }
            if removed > before {
                directory.sync()?;
            }
        }
        Ok(removed)
    }

    fn skip_number(&self, number: u64) {
        self.next_file.fetch_max(number.saturating_add(1), Ordering::Relaxed);
    }

    /// Ensures that no number is reused of a file that is there, and notes those that are held. For
    /// the first tree of a store: the files are those of earlier ones.
    ///
    /// # Errors
    /// Those of the storage backend.
    pub fn skip_present(&self) -> Result<()> {
        let mut removals = self.removals.lock();
        for kind in [FileKind::Tables, FileKind::Blobs] {
            for name in self.directory(kind).list()? {
                let Some((number, is_finished)) = number_of(&name) else { continue };
                self.skip_number(number);
                if is_finished && removals.held.has(number) {
                    removals.only_held.push((kind, number));
                }
            }
        }
        Ok(())
    }

    /// Numbers of files that no tree needs, now or later: they stay for those that hold them.
    pub fn only_held(&self) -> HashSet<u64> {
        self.removals.lock().only_held.iter().map(|(_, number)| *number).collect()
    }

    /// Says which files must stay from now on, and removes those that had to until now and that
    /// nothing else needs.
    pub fn set_held(&self, held: HeldFiles) {
        let free = {
            let mut removals = self.removals.lock();
            removals.held = held;
            let Removals { held, only_held, .. } = &mut *removals;
            only_held.extract_if(.., |(_, number)| !held.has(*number)).collect::<Vec<_>>()
        };
        free.into_iter().for_each(|(kind, number)| self.remove(kind, number));
    }

    /// Takes files that a commit dropped, to be removed when it is durable; after the store was
    /// closed, the next opening removes them.
    pub(crate) fn doom(&self, files: Vec<Arc<dyn ObsoleteFile>>) {
        if let Some(obsolete) = &mut *self.obsolete.lock() {
            obsolete.extend(files.into_iter().map(|file| Obsolete { file, dropped_by: None }));
        }
    }

    /// Makes the commits durable that dropped files, and releases these for removal, except those
    /// that readers in other processes may still ask for.
    ///
    /// # Errors
    /// Those of making commits durable: then no file is removed.
    pub fn delete_obsolete(&self, heap: &Heap) -> Result<()> {
        let mut obsolete = self.obsolete.lock().as_mut().map(std::mem::take).unwrap_or_default();
        if obsolete.is_empty() {
            return Ok(());
        }
        // If it fails the heap is poisoned; the next opening removes them.
        heap.sync()?;
        let last = heap.last_commit();
        obsolete.iter_mut().for_each(|found| _ = found.dropped_by.get_or_insert(last));
        // Behind the sync: a reader that registers later sees commits that dropped them.
        let read = loop {
            // Where it cannot be told, one may be there.
            let oldest = heap.oldest_reader().unwrap_or(Some(0));
            let is_read = |found: &mut Obsolete| {
                oldest.is_some_and(|moment| found.dropped_by.is_none_or(|it| moment < it))
            };
            let read: Vec<Obsolete> = obsolete.extract_if(.., is_read).collect();
            let bytes: u64 = read.iter().map(|found| found.file.bytes()).sum();
            if bytes <= heap.reader_bytes_max() {
                break read;
            }
            if !heap.overtake_oldest_reader().unwrap_or(false) {
                // It gets an error for a file that is missing.
                obsolete.extend(read);
                break Vec::new();
            }
            obsolete.extend(read);
        };
        obsolete.iter().for_each(|found| found.file.delete_obsolete());
        if let Some(waiting) = &mut *self.obsolete.lock() {
            waiting.extend(read);
        }
        Ok(())
    }

    /// The length of a file; 0 if the system does not say.
    pub(crate) fn file_bytes(&self, kind: FileKind, number: u64) -> u64 {
        let file = self.directory(kind).open(&self.identity(number).name());
        let bytes = file.and_then(|file| file.map_or(Ok(0), |file| file.len()));
        bytes.unwrap_or(0)
    }

    /// Removes a file that no reader uses any more, at once or when no backup copies files.
    pub(crate) fn remove(&self, kind: FileKind, number: u64) {
        let mut removals = self.removals.lock();
        if removals.pins > 0 {
            removals.waiting.push((kind, number));
            return;
        }
        if removals.held.has(number) {
            removals.only_held.push((kind, number));
            return;
        }
        // A file that is not removed now is an orphan, which the next opening removes. Under the
        // lock, so that no removal happens after the end.
        if !removals.is_ended {
            let _ = self.directory(kind).remove(&self.identity(number).name());
        }
    }

    /// Removes no file from here on: the store is being closed. A reader may still use a dropped
    /// file, and finish when another store has taken its place.
    pub fn end(&self) {
        self.removals.lock().is_ended = true;
        let waiting = self.obsolete.lock().take();
        // Without the lock: dropping the last of them may take it.
        drop(waiting);
        self.cache.clear();
    }

    /// Keeps all existing files, for a backup that copies them, until as many calls of
    /// [`TreeContext::unpin_files`].
    pub fn pin_files(&self) {
        self.removals.lock().pins += 1;
    }

    /// Removes files that were dropped meanwhile, unless another backup pins them.
    pub fn unpin_files(&self) {
        let waiting = {
            let mut removals = self.removals.lock();
            removals.pins -= 1;
            if removals.pins > 0 {
                return;
            }
            std::mem::take(&mut removals.waiting)
        };
        for (kind, number) in waiting {
            self.remove(kind, number);
        }
    }
}
