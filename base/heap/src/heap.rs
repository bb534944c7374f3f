//! The heap: the public type that opens a pool and combines the modules of this crate.
//!
//! Purpose: open, read, change, make durable, check, close.
//! Thread safety: a `Heap` can be shared between threads. Any number of views, or one transaction,
//! at a time. Lock order: writer lock, image, pins, journal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use adamant_medium::address::persist::Flushing;
use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::{Directory, Lock};
use adamant_medium::system::direct::DirectDirectory;
use parking_lot::Mutex;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, IntoBytes};

use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::image::class::{ClassTable, initial_classes};
use crate::image::kind::ImageKind;
use crate::image::mapping::Image;
use crate::image::mapping::guards::{Exclusive, Shared};
use crate::image::memory_bounds::Bounds;
use crate::image::pool_file::PoolFile;
use crate::inspect::check::{CheckReport, Checker, Reached};
use crate::inspect::occupancy::{Occupancy, occupancy};
use crate::journal::{
    Journal, JournalOptions, JournalStats, Opened, READERS_NAME, RECOVERY_BYTES, ReadOnly,
    Recovery, Registry,
};
use crate::latch::writer_queue::WriterQueue;
use crate::layout::{
    CLASS_TABLE_OFFSET, Descriptor, FIRST_PAGE, HeapRoot, KIND_SYSTEM, LOG_NAME, LOG_NEW_NAME,
    PAGE_BYTES, POOL_NAME, POOL_NEW_NAME, ROOT_COUNT, ROOT_MAGIC, ROOT_OFFSET, descriptor_offset,
    file_offset,
};
use crate::memory::copier::Copier;
use crate::memory::evictor::{EvictionContext, Evictor, MemoryStats};
use crate::space::allocator::BlockAllocator;
use crate::space::arena::CHUNK_PAGES;
use crate::space::batch::Batch;
use crate::space::blocks::Blocks;
use crate::space::borrowed::BorrowedBlocks;
use crate::space::pin::{Pin, Pins};
use crate::space::reclaim::{ReclaimContext, Recyclers};
use crate::space::reservation::{HeldLock, Holder, Shares};
use crate::space::state::Space;
use crate::space::thread_cache::ThreadCaches;
use crate::transaction::calls::Calls;
use crate::transaction::requests::Requests;
use crate::transaction::scratch::Writer;
use crate::transaction::view::View;

/// Words of bitmaps and extents that are made reusable in one hold of the image: some 100 us.
const RECYCLED_PART: usize = 64;

/// Options for opening a heap.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Which directories count as memory. The processor's stores write their files, cache line by
    /// cache line, with one fence a commit, instead of system calls. Elsewhere, and in a heap
    /// opened read-only, files are files.
    pub flushing: Flushing,
    /// Bytes of log files above which commits wait for a checkpoint. At least 4 MiB.
    pub log_bytes_max: u64,
    /// The most bytes of the log that are kept for writes to blocks reserved by
    /// [`crate::Write::reserve_held`] that the pool file does not have yet. While there are such
    /// blocks the log may be longer by their bytes and a quarter, up to three times `log_bytes_max`
    /// in all. Beyond that, and half of `log_bytes_max`, they are copied to the pool file after
    /// all.
    pub log_held_bytes_max: u64,
    /// The most milliseconds after which a deferred commit is made durable.
    pub deferred_ms_max: u64,
    /// The most bytes of deferred commits kept in memory.
    pub deferred_bytes_max: u64,
    /// Whether checkpoints and deferred commits have threads of their own. Without, they happen
    /// within the calls that need them.
    pub background: bool,
    /// Address space to reserve: the largest size that the heap can grow to while it is open.
    /// `u64::MAX`: 64 GiB, or sixteen times the size of the heap, and twice as many each time that
    /// they are used up, if the addresses behind them are free.
    pub address_bytes_max: u64,
    /// Whether an empty directory becomes a new heap; else it is an error.
    pub create: bool,
    /// Whether to open read-only: any number of processes may have a heap open so, while none has
    /// it for writing. Recovery happens in memory; no file is written, not even its time, so files
    /// and directory need not be writable. All calls that write return `Error::ReadOnly`.
    pub read_only: bool,
    /// With `read_only`: whether another process may have the heap open for writing, now or later.
    /// The heap is as of a commit of it at the opening, whatever it writes since. The directory
    /// must be writable: a file in its folder `readers` tells the writer what is still read. The
    /// image is a filled one.
    pub beside_writer: bool,
    /// Bytes that a writer keeps for such readers at most, of pages that it overwrites. Beyond that
    /// the oldest reader is told that it is too old.
    pub reader_bytes_max: u64,
    /// Whether each page is verified against its checksum when it is first touched, so that no read
    /// trusts a page that is not what was written. Costs about 1 us a page, once.
    pub verify_first_touch: bool,
    /// Threads that make the blocks reusable that large commits freed, after these commits
    /// returned. 0: each commit does so itself, as it does while the heap cannot grow.
    pub post_commit_workers: u8,
    /// Bytes of memory that may differ from the pool file's because of writes since the heap was
    /// opened; beyond that commits wait until the file has enough of it for the memory to be freed.
    /// The record of a commit is not counted; it takes as many bytes as were written until the
    /// commit has ended; of this and the like some 20 MiB are kept. The writes of one transaction
    /// count too, but are never freed before its commit, nor are 2 MiB that contain a reservation,
    /// or pages of which a slice is left. Below a few MiB nearly every commit waits for the medium.
    /// `u64::MAX`: unbounded.
    pub memory_bytes_max: u64,
    /// Bytes of memory for huge pages: a thread finds the hot parts of the pool, and moves them
    /// there, as long as half of [`Options::memory_bytes_max`], within which they count, is free.
    /// 0: none. Only with `background`, on Linux.
    pub huge_bytes_max: u64,
    /// How the pages of the pool get into memory.
    pub image: ImageKind,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            flushing: Flushing::Auto,
            log_bytes_max: 128 << 20,
            log_held_bytes_max: u64::MAX,
            deferred_ms_max: 100,
            deferred_bytes_max: 4 << 20,
            background: true,
            address_bytes_max: u64::MAX,
            create: true,
            read_only: false,
            beside_writer: false,
            reader_bytes_max: 1 << 30,
            verify_first_touch: false,
            post_commit_workers: 0,
            memory_bytes_max: u64::MAX,
            huge_bytes_max: 0,
            image: ImageKind::default(),
        }
    }
}

impl Options {
    fn bounds(&self) -> Bounds {
        Bounds { memory_bytes_max: self.memory_bytes_max, huge_bytes_max: self.huge_bytes_max }
    }
}

/// Figures of a heap.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes of data pages that the pool file backs.
    pub pool_bytes: u64,
    /// Bytes up to the last page ever allocated; 0 once the heap is closed.
    pub used_bytes: u64,
    /// Bytes of address space reserved; if the heap needs more while it is open, see
    /// [`Options::address_bytes_max`].
    pub address_bytes: u64,
    /// Freed blocks and extents that are not reusable yet because of pins.
    pub quarantined: u64,
    /// Pins.
    pub pins: u64,
    /// The memory that the heap takes.
    pub memory: MemoryStats,
    /// The journal: log, pool file and checkpoints.
    pub journal: JournalStats,
}

/// A crash-safe persistent heap.
#[derive(Debug)]
pub struct Heap {
    // Field order is drop order: all threads end before the lock is released, and those that need
    // the journal before it.
    recyclers: Recyclers,
    pub(crate) evictor: Evictor,
    pub(crate) journal: Arc<Opened>,
    pub(crate) writer_queue: Arc<WriterQueue<Writer>>,
    pub(crate) space: Arc<Space>,
    pub(crate) thread_caches: ThreadCaches,
    /// Requests to publish or free without a transaction.
    pub(crate) requests: Requests<Batch>,
    /// Changes that wait to share a transaction, and memory for a batch of them.
    pub(crate) calls: Requests<Calls>,
    pub(crate) calls_spare: Mutex<Option<Box<Calls>>>,
    pub(crate) borrowed: Arc<BorrowedBlocks>,
    pub(crate) pins: Arc<Pins>,
    /// Of a heap for reading only, once they are asked for.
    pub(crate) savepoints: OnceLock<Arc<Registry>>,
    verify_first_touch: bool,
    pub(crate) closed: AtomicBool,
    /// Held while a copy of the pool is made, which `close` ends.
    pub(crate) copying: Mutex<()>,
    pub(crate) is_closing: AtomicBool,
    /// The thread that runs a transaction: the address of a thread-local of it; 0 for none.
    owner: AtomicUsize,
    /// The lock on the directory, which reservations keep too; `None` once closed.
    lock: Mutex<Option<Arc<HeldLock>>>,
    /// Closed with the heap, and all files with it.
    pub(crate) directory: Arc<dyn Directory>,
}

impl Heap {
    /// Opens the heap in a directory, and recovers after a crash; creates a heap in an empty
    /// directory. The log bounds the work, never the data.
    ///
    /// # Errors
    /// `Error::Medium` when the lock is held or the medium fails, `Error::Unsupported` when the
    /// directory holds something else or a newer format, `Error::Damaged` with the damaged file.
    pub fn open(directory: Arc<dyn Directory>, options: Options) -> Result<(Self, Recovery)> {
        let directory = directory.open_again()?.unwrap_or(directory);
        let directory = match options.read_only {
            true => directory,
            false => DirectDirectory::over(directory, options.flushing, POOL_NAME)?,
        };
        let (lock, journal, image, recovery) = match options.read_only {
            true => open_read_only(&directory, &options)?,
            false => open_writable(&directory, &options)?,
        };
        let bounds = options.bounds();
        if let Opened::ReadOnly(journal) = &journal {
            let each = &mut |offset, len| image.note_verified(offset, len);
            journal.unlike_file(&image, each)?;
        }
        let (classes, pages_end) = load_root(journal.pool(), &image)?;
        let (journal, pins) = (Arc::new(journal), Arc::new(Pins::new(image.fork())));
        let holds = journal.writable().map(|journal| Arc::clone(journal.holds()));
        let holds = holds.unwrap_or_default();
        let space = Arc::new(Space::new(image, classes, holds, pages_end));
        let lock = Arc::new(Mutex::new(Some(lock)));
        let borrowed =
            Arc::new(BorrowedBlocks::new(Holder::new(Arc::clone(&space), Arc::clone(&lock))));
        let count = options.post_commit_workers.into();
        let context = || ReclaimContext::new(&space, &journal, &borrowed, &pins);
        let recyclers = Recyclers::new(count, context);
        let writer_queue = Arc::new(WriterQueue::new(Writer::new()));
        if let Opened::Writable(journal) = &*journal {
            journal.set_source(Arc::new(Copier::new(&space, &writer_queue)));
        }
        let context = EvictionContext::new(&space, &journal, &borrowed, &writer_queue, bounds);
        let evictor = Evictor::spawn(context, options.background).map_err(|source| {
            MediumError::io("start a thread for", directory.path(), None, 0, source)
        })?;
        let heap = Self {
            recyclers,
            evictor,
            borrowed,
            writer_queue,
            requests: Requests::new(Batch::new()),
            calls: Requests::new(Box::default()),
            calls_spare: Mutex::default(),
            thread_caches: ThreadCaches::new(|| Holder::new(Arc::clone(&space), Arc::clone(&lock))),
            space,
            journal: Arc::clone(&journal),
            pins,
            savepoints: OnceLock::new(),
            verify_first_touch: options.verify_first_touch,
            closed: AtomicBool::new(false),
            copying: Mutex::new(()),
            is_closing: AtomicBool::new(false),
            owner: AtomicUsize::new(0),
            lock: Mutex::new(Some(lock)),
            directory,
        };
        if let Ok(journal) = journal.writable() {
            heap.savepoints.get_or_init(|| Arc::clone(journal.savepoints()));
        }
        if options.read_only {
            // A heap opened read-only reserves nothing, as it could not publish it.
            heap.thread_caches.all().for_each(|mut thread_cache| drop(thread_cache.shares.take()));
        }
        Ok((heap, recovery))
    }

    /// The heap as the last commit left it, for as long as the view lives. Waits for a running
    /// transaction and, while a transaction waits, for other views; the thread that runs a
    /// transaction must not call it.
    ///
    /// # Errors
    /// `Error::Misuse` in the child of a fork, which has no copy of the heap's memory, and after
    /// [`Heap::close`].
    #[inline]
    pub fn view(&self) -> Result<View<'_>> {
        self.refuse_child()?;
        self.remind_of_reads();
        Ok(View::new(self.blocks(), self.read_image_long()?, &self.borrowed))
    }

    /// As [`Heap::view`], for a caller that drops it within some microseconds, and meanwhile calls
    /// nothing that could take longer. It does not wait for long-lived views, though a transaction
    /// waits for them. A brief view that is kept for longer blocks all other threads as soon as one
    /// of them wants to write.
    ///
    /// # Errors
    /// As [`Heap::view`].
    #[inline]
    pub fn brief_view(&self) -> Result<View<'_>> {
        self.refuse_child()?;
        self.remind_of_reads();
        Ok(View::new(self.blocks(), self.read_image()?, &self.borrowed))
    }

    /// Wakes the evictor if pages that were read may take much memory. A read does not wait for it,
    /// as its caller may have a view.
    #[inline]
    fn remind_of_reads(&self) {
        if self.space.image.is_filled() {
            self.evictor.remind();
        }
    }

    /// Makes freed blocks reusable that no pin can see any more. Pins may have gone since the last
    /// commit, and a pin made after this needs none of the blocks.
    #[inline]
    pub(crate) fn recycle(&self, image: &Exclusive<'_>) {
        if self.borrowed.has_any() {
            self.borrowed.settle();
        }
        if self.space.has_waiting() {
            self.recycle_waiting(image);
        }
    }

    /// `recycle` without relying on the reclaim threads; each record covers a part, which bounds
    /// its size.
    pub(crate) fn recycle_all(&self, image: &Exclusive<'_>) {
        self.recycle(image);
        while self.allocator().recycle_part(image, self.pins.released(), RECYCLED_PART) {}
    }

    /// Takes the runs back from the shards: then the arena knows which runs are empty. The shards
    /// take other runs, or the same again.
    pub(crate) fn give_up_runs(&self, writer: &mut Writer) {
        let take_back = |run, words: &[u64]| self.space.arena().take_back(run, words);
        writer.shard.give_up(take_back);
        self.allocator().give_up_packing(&mut writer.packing);
        self.thread_caches.all().for_each(|mut thread_cache| thread_cache.shard.give_up(take_back));
    }

    /// Loads the bitmaps of all runs: then the arena knows which are empty. A few at a time, so
    /// that no other thread waits long.
    pub(crate) fn look_at_runs(&self) -> Result<()> {
        loop {
            let _image = self.read_image()?;
            if !self.allocator().load_runs()? {
                return Ok(());
            }
        }
    }

    /// Large frees are for the reclaim threads, if there are any.
    fn recycle_waiting(&self, image: &Exclusive<'_>) {
        if self.space.is_short() || !self.recyclers.take(self.space.waiting()) {
            self.allocator().recycle(image, self.pins.released());
        }
    }

    /// Makes reusable what a transaction freed. A chunked one may have freed much: other threads
    /// get the image in between.
    pub(crate) fn recycle_after(&self, image: &mut Exclusive<'_>, chunked: bool) {
        if !chunked {
            return self.recycle_waiting(image);
        }
        if self.recyclers.take(self.space.waiting()) {
            return;
        }
        image.drain_readers();
        while self.allocator().recycle_part(image, self.pins.released(), RECYCLED_PART) {
            image.pause();
        }
    }

    #[inline]
    pub(crate) fn allocator(&self) -> BlockAllocator<'_> {
        BlockAllocator { space: &self.space, journal: &self.journal, borrowed: &self.borrowed }
    }

    /// Whether this thread holds the writer lock: runs a transaction, or [holds the
    /// permit](Heap::take_write_permit).
    #[inline]
    pub fn has_writer(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == thread_token()
    }

    /// Notes whether this thread holds the writer lock.
    pub(crate) fn set_within(&self, is_within: bool) {
        self.owner.store(if is_within { thread_token() } else { 0 }, Ordering::Relaxed);
    }

    /// Refuses a call that would wait for the writer lock that this thread holds.
    pub(crate) fn refuse_within(&self) -> Result<()> {
        if self.has_writer() {
            return Err(Error::Misuse {
                what: "not while this thread holds the write permit: it would wait for itself",
            });
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn blocks(&self) -> Blocks<'_> {
        Blocks { classes: &self.space.classes, verifies_first_touch: self.verify_first_touch }
    }

    /// The image, unless the heap was closed: then another process may write the pool, and the
    /// mapped bytes may change under a reader (S1).
    #[inline]
    pub(crate) fn read_image(&self) -> Result<Shared<'_>> {
        let image = self.space.image.read();
        self.refuse_closed()?;
        Ok(image)
    }

    /// The image, for longer than some microseconds.
    #[inline]
    pub(crate) fn read_image_long(&self) -> Result<Shared<'_>> {
        let image = self.space.image.read_long();
        self.refuse_closed()?;
        Ok(image)
    }

    /// Call it with the image's lock held: `close` sets the flag before it waits for the lock.
    #[inline]
    pub(crate) fn refuse_closed(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Misuse { what: "the heap was closed; open it again" });
        }
        Ok(())
    }

    /// Whether this is the child of a fork: then nothing of the heap may be touched.
    #[inline]
    pub(crate) fn is_child(&self) -> bool {
        self.space.image.fork().is_child()
    }

    /// Fails in the child of a fork, as all calls do there. One load, no waiting: in a child, a
    /// lock may be held by a thread that stayed with the parent.
    ///
    /// # Errors
    /// `Error::Misuse`.
    #[inline]
    pub fn refuse_child(&self) -> Result<()> {
        if self.is_child() {
            return Err(Error::Misuse {
                what: "the heap was opened before a fork; open it in the child after its parent \
                       has closed it, or use exec",
            });
        }
        Ok(())
    }

    /// Waits for what was committed by now as a commit with this durability would: for a caller
    /// that found nothing to change. The promise covers its findings: a key removed once more stays
    /// removed.
    ///
    /// # Errors
    /// `Error::Poisoned` if that fails or failed; `Error::Misuse` in the child of a fork.
    pub fn settle(&self, durability: Durability) -> Result<()> {
        self.refuse_child()?;
        self.journal.finish(self.last_commit(), durability)
    }

    /// Keeps what is visible now from being reused while the pin lives. It may be overwritten in
    /// place: nodes of trees are, and so are short values, by others of the same length.
    ///
    /// # Errors
    /// As [`Heap::view`].
    pub fn pin(&self) -> Result<Pin> {
        // Under the shared lock no commit is half visible.
        let view = self.brief_view()?;
        let sequence = view.ceiling().unwrap_or_else(|| self.journal.last_sequence());
        Ok(self.pins.pin(sequence))
    }

    /// Makes everything committed so far durable.
    ///
    /// # Errors
    /// `Error::Poisoned` if that fails or failed.
    pub fn sync(&self) -> Result<()> {
        self.sync_to(self.last_commit())
    }

    /// The number of the newest commit, for [`Heap::sync_to`]; 0 in the child of a fork.
    pub fn last_commit(&self) -> u64 {
        if self.is_child() {
            return 0;
        }
        self.journal.last_sequence()
    }

    /// Makes that commit durable, and all before it; returns at once if they are. Threads that wait
    /// at the same time share a flush.
    ///
    /// # Errors
    /// As [`Heap::sync`].
    pub fn sync_to(&self, commit: u64) -> Result<()> {
        self.refuse_child()?;
        self.journal.finish(commit.min(self.last_commit()), Durability::Sync)
    }

    /// Fails if every later commit will: checks the known state, and writes nothing. Whether there
    /// is space for a commit is known only when it is made.
    ///
    /// # Errors
    /// `Error::Poisoned`, `Error::ReadOnly`; `Error::Misuse` if it is closed, or in the child of a
    /// fork.
    pub fn check_writable(&self) -> Result<()> {
        self.refuse_child()?;
        self.refuse_closed()?;
        self.journal.writable()?.check_writable()
    }

    /// Copies everything committed so far to the pool file, and empties the log, except what is
    /// held back for blocks that [`crate::Write::reserve_held`] reserved. Waits for a running
    /// transaction; a thread that has a view, which a transaction may wait for, must not call it.
    ///
    /// # Errors
    /// `Error::Misuse` within a transaction of the same thread; `Error::Poisoned` if it fails or
    /// failed.
    pub fn checkpoint(&self) -> Result<()> {
        self.refuse_child()?;
        self.refuse_within()?;
        // A heap opened read-only has nothing to checkpoint.
        self.journal.writable().map_or(Ok(()), Journal::checkpoint)
    }

    /// The savepoints.
    ///
    /// # Errors
    /// `Error::Misuse` beside a writer; those of the medium.
    pub(crate) fn registry(&self) -> Result<&Arc<Registry>> {
        if let Some(registry) = self.savepoints.get() {
            return Ok(registry);
        }
        if self.journal.is_beside_writer() {
            return Err(Error::Misuse {
                what: "savepoints are read by the process that writes, or while none does; not \
                       beside a writer",
            });
        }
        let opened = Arc::new(Registry::open(&self.directory, self.journal.pool(), false)?);
        Ok(self.savepoints.get_or_init(|| opened))
    }

    /// Verifies every page of the pool file and every rule of the allocator, and names the
    /// savepoints, and the files of pages for them, that cannot be read. Commits go on
    /// meanwhile: each waits for some 100 us of it, and for a millisecond at an extent of a GiB.
    /// Pages and blocks are counted as of one moment only if nothing was committed between the call
    /// and its end. O(pool).
    ///
    /// # Errors
    /// When the medium fails; damage is in the report.
    pub fn check(&self) -> Result<CheckReport> {
        self.refuse_within()?;
        self.checkpoint()?;
        let file: PathBuf = self.journal.pool().file().path().into();
        let mut report = CheckReport::default();
        report.pages_verified = self.journal.verify(&mut |error| report.note(error, &file))?;
        if !self.journal.is_beside_writer() {
            self.registry()?.faults(&mut |error| report.note(error, &file));
        }
        let mut reached = Reached::default();
        loop {
            // No other thread is within a commit, and no run is made.
            let _permit = self.writer_queue.wait();
            let image = self.read_image_long()?;
            let _arena = self.space.arena();
            let classes = &self.space.classes;
            let mut checker = Checker { image: &image, classes, file: &file, report: &mut report };
            if checker.part(&mut reached, self.last_commit())? {
                checker.named_roots()?;
                return Ok(report);
            }
        }
    }

    /// Runs `work` while no other thread reads or writes: no view, no transaction. Waits for no
    /// checkpoint (C8): for `work` that needs one see [`Journal::hold_checkpoints`].
    pub(crate) fn alone<T>(
        &self,
        work: impl FnOnce(Blocks<'_>, &mut Exclusive<'_>, &mut Writer) -> Result<T>,
    ) -> Result<T> {
        self.refuse_child()?;
        self.refuse_within()?;
        let mut permit = self.writer_queue.wait();
        let mut image = self.space.image.write();
        self.refuse_closed()?;
        work(self.blocks(), &mut image, &mut permit)
    }

    /// The use of each page. O(pages): reads every descriptor and every bitmap.
    ///
    /// # Errors
    /// As [`Heap::view`].
    pub fn occupancy(&self) -> Result<Occupancy> {
        self.refuse_child()?;
        occupancy(&*self.read_image_long()?, &self.space.classes)
    }

    /// The directory of the heap, as it was named when it was opened.
    pub fn path(&self) -> &Path {
        self.journal.pool().file().path().parent().unwrap_or(Path::new(""))
    }

    /// The heap's own handle to its directory: files opened through it are closed with the heap.
    pub fn directory(&self) -> &Arc<dyn Directory> {
        &self.directory
    }

    /// Whether the data take more than half of the memory that the process may have: then pages are
    /// read one by one, and a page is often read from the device when it is touched. O(1).
    #[inline]
    pub fn is_larger_than_memory(&self) -> bool {
        self.space.image.is_larger_than_memory()
    }

    /// The heap's figures; all 0 in the child of a fork.
    pub fn stats(&self) -> Stats {
        if self.is_child() {
            return Stats::default();
        }
        let journal = self.journal.stats();
        let quarantined = self.space.arena().retired();
        let image = self.space.image.read();
        let used_pages = self.refuse_closed().and_then(|()| image.pages_end()).unwrap_or(0);
        Stats {
            pool_bytes: image.pages() * PAGE_BYTES,
            used_bytes: used_pages * PAGE_BYTES,
            address_bytes: image.pages_max() * PAGE_BYTES,
            quarantined,
            pins: self.pins.count(),
            memory: self.evictor.stats(),
            journal,
        }
    }

    /// Makes everything durable, applies it to the pool, ends all threads and releases the system
    /// resources of the heap: its files, its lock, so that the directory can be opened again, and
    /// its memory, except the pages of borrowed slices, which are copied and stay until the last
    /// slice is dropped. While a reservation is left, all of the memory stays, and the lock. Waits
    /// for views; later ones, and transactions, are refused.
    ///
    /// # Errors
    /// `Error::Poisoned` if something is not durable; dropping the heap would not have reported it.
    /// `Error::Misuse` in the child of a fork, which has no right to write: nothing is done.
    pub fn close(&self) -> Result<()> {
        self.refuse_child()?;
        self.is_closing.store(true, Ordering::Release);
        let _no_copy = self.copying.lock();
        self.refuse_within()?;
        self.recyclers.workers.stop();
        self.evictor.workers.stop();
        // Set first: the last checkpoint waits for the writer lock, and no transaction may begin
        // meanwhile.
        self.closed.store(true, Ordering::Release);
        let outcome = self.journal.writable().map_or(Ok(()), Journal::close);
        let _seat = self.writer_queue.wait();
        let mut image = self.space.image.write();
        let shares = self
            .thread_caches
            .all()
            .map(|mut thread_cache| thread_cache.shares.take().is_none_or(Shares::end));
        let is_all_there = shares.fold(true, |all, ended| all & ended);
        let mut kept = Vec::new();
        self.borrowed.ranges(&mut kept);
        self.borrowed.close();
        self.close_savepoints();
        self.directory.close();
        if let Some(lock) = self.lock.lock().take() {
            // SAFETY: there are no views, no transactions and no reservations, and there will be
            // none; slices, of which no more are made either, lie in these ranges.
            let is_free = is_all_there && unsafe { image.give_up(&kept) }.is_ok();
            if is_free {
                drop(lock.lock().take());
            }
        }
        outcome
    }
}

impl Heap {
    /// What shows savepoints cannot be read any more: another process may write the pool.
    fn close_savepoints(&self) {
        self.savepoints.get().into_iter().for_each(|savepoints| savepoints.close());
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        if self.is_child() {
            self.recyclers.workers.forget();
            self.evictor.workers.forget();
        } else {
            self.close_savepoints();
            self.recyclers.workers.stop();
            self.evictor.workers.stop();
        }
    }
}

/// A number that no other living thread has.
pub(crate) fn thread_token() -> usize {
    thread_local!(static TOKEN: u8 = const { 0 });
    TOKEN.with(|token| std::ptr::from_ref(token).addr())
}

/// The result of opening: the lock, the journal, the image as recovered, and the recovery's
/// figures.
type Found = (Box<dyn Lock>, Opened, Image, Recovery);

/// Opens a heap for writing; creates it if there is none.
fn open_writable(directory: &Arc<dyn Directory>, options: &Options) -> Result<Found> {
    let names = directory.list()?;
    let is_heap = names.iter().any(|name| name == POOL_NAME);
    if !is_heap {
        refuse_strangers(directory, &names, options)?;
    }
    let lock = directory.lock("lock")?;
    let journal_options = JournalOptions {
        log_bytes_max: options.log_bytes_max,
        held_bytes_max: options.log_held_bytes_max,
        background: options.background,
        deferred_ms_max: options.deferred_ms_max,
        deferred_bytes_max: options.deferred_bytes_max,
        recovery_bytes_max: RECOVERY_BYTES.min(options.memory_bytes_max / 2),
        reader_bytes_max: options.reader_bytes_max,
    };
    // Another process may have created the heap between the listing and the lock.
    let is_heap = is_heap || directory.list()?.iter().any(|name| name == POOL_NAME);
    let (journal, recovery) = if is_heap {
        Journal::open(directory, journal_options)?
    } else {
        let pages = initial_pages();
        let borrowed: Vec<(u64, &[u8])> =
            pages.iter().map(|(offset, page)| (*offset, page.as_slice())).collect();
        let journal = Journal::create(directory, journal_options, &borrowed, CHUNK_PAGES)?;
        (journal, Recovery::default())
    };
    let backed = journal.pool().pages_backed();
    let pages = backed.next_multiple_of(CHUNK_PAGES);
    if pages > backed {
        journal.grow(pages)?;
    }
    let (bytes_max, bounds) = (options.address_bytes_max, options.bounds());
    let image = Image::map(journal.pool().file(), pages, bytes_max, bounds, options.image)?;
    Ok((lock, Opened::Writable(journal), image, recovery))
}

/// Opens a heap read-only.
fn open_read_only(directory: &Arc<dyn Directory>, options: &Options) -> Result<Found> {
    if !directory.list()?.iter().any(|name| name == POOL_NAME) {
        return Err(Error::Unsupported {
            file: directory.path().join(POOL_NAME),
            what: "expected a pool, found none; create the store first".into(),
        });
    }
    let (bytes_max, bounds) = (options.address_bytes_max, options.bounds());
    let (lock, (journal, image, recovery)) = match options.beside_writer {
        true => ReadOnly::open_beside(directory, bytes_max, bounds)?,
        false => {
            let lock = directory.lock_shared("lock")?;
            (lock, ReadOnly::open(directory, bytes_max, bounds, options.image)?)
        }
    };
    Ok((lock, Opened::ReadOnly(Box::new(journal)), image, recovery))
}

/// Only an empty directory, or one where an earlier creation was interrupted, becomes a heap.
fn refuse_strangers(
    directory: &Arc<dyn Directory>,
    names: &[String],
    options: &Options,
) -> Result<()> {
    let ours: BTreeSet<&str> =
        [POOL_NEW_NAME, LOG_NAME, LOG_NEW_NAME, READERS_NAME, "lock", "tables", "blobs"].into();
    let file = directory.path().join(POOL_NAME);
    if let Some(stranger) = names.iter().find(|name| !ours.contains(name.as_str())) {
        return Err(Error::Unsupported {
            file,
            what: format!(
                "expected a pool or an empty directory, found \"{stranger}\" and no pool; \
                 choose another directory"
            ),
        });
    }
    if !options.create {
        return Err(Error::Unsupported {
            file,
            what: "expected a pool, found none; create the store first".into(),
        });
    }
    Ok(())
}

/// The pages of a new heap: root, class table, and the descriptors of these two.
fn initial_pages() -> Vec<(u64, Vec<u8>)> {
    let page = |bytes: &[u8]| {
        let mut page = vec![0; PAGE_BYTES as usize];
        page[..bytes.len()].copy_from_slice(bytes);
        page
    };
    let classes = initial_classes();
    let root = HeapRoot {
        magic: ROOT_MAGIC,
        pages_end: U64::new(FIRST_PAGE),
        class_count: U64::new(classes.len() as u64),
        roots: [U64::new(0); ROOT_COUNT],
    };
    let system =
        Descriptor { kind: KIND_SYSTEM, flags: 0, class: U16::new(0), argument: U32::new(0) };
    vec![
        (ROOT_OFFSET, page(root.as_bytes())),
        (CLASS_TABLE_OFFSET, page(classes.as_bytes())),
        (descriptor_offset(0), page([system; FIRST_PAGE as usize].as_bytes())),
    ]
}

/// Reads and validates the root page and the class table.
fn load_root(pool: &PoolFile, image: &Image) -> Result<(ClassTable, u64)> {
    let file = pool.file().path();
    for offset in [ROOT_OFFSET, CLASS_TABLE_OFFSET] {
        image.verify(offset, PAGE_BYTES)?;
    }
    let root = image.bytes(ROOT_OFFSET, size_of::<HeapRoot>() as u64)?;
    let Ok(root) = HeapRoot::read_from_bytes(root) else {
        let what = "is not the root page";
        return Err(Error::InvalidPointer { offset: ROOT_OFFSET, what });
    };
    let damaged =
        |what: String| Error::Damaged { file: file.into(), offset: file_offset(ROOT_OFFSET), what };
    if root.magic != ROOT_MAGIC {
        return Err(damaged(format!("expected the root page of a heap, found {:?}", root.magic)));
    }
    let pages_end = root.pages_end.get();
    if pages_end < FIRST_PAGE {
        return Err(damaged(format!(
            "expected a root page that says of at least {FIRST_PAGE} pages, found {pages_end}; \
             restore a backup"
        )));
    }
    if pages_end > image.pages() {
        return Err(damaged(format!(
            "expected a pool of at least {pages_end} pages as its root page says, found {}; \
             the file was cut off",
            image.pages()
        )));
    }
    let table = image.bytes(CLASS_TABLE_OFFSET, PAGE_BYTES)?;
    Ok((ClassTable::load(table, root.class_count.get(), file)?, pages_end))
}
