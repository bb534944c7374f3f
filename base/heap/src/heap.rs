//! The heap: the public type that opens a pool and combines the modules of this crate.
//!
//! Purpose: open, read, change, make durable, check, close.
//! Thread safety: a `Heap` can be shared between threads. Any number of views, or one transaction,
//! at a time. Lock order: writer lock, image, pins, journal.

mod options;
mod opening;
mod admission;
mod reuse;
pub(crate) mod inspection;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::Directory;
use adamant_medium::system::direct::DirectDirectory;
use parking_lot::Mutex;

use self::opening::{load_root, open_read_only, open_writable};
pub use self::options::Options;
use crate::durability::Durability;
use crate::error::Result;
use crate::journal::{Journal, Opened, Recovery, Registry};
use crate::latch::writer_queue::WriterQueue;
use crate::layout::POOL_NAME;
use crate::memory::copier::Copier;
use crate::memory::evictor::{EvictionContext, Evictor};
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

    #[inline]
    pub(crate) fn blocks(&self) -> Blocks<'_> {
        Blocks { classes: &self.space.classes, verifies_first_touch: self.verify_first_touch }
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

    /// The directory of the heap, as it was named when it was opened.
    pub fn path(&self) -> &Path {
        self.journal.pool().file().path().parent().unwrap_or(Path::new(""))
    }

    /// The heap's own handle to its directory: files opened through it are closed with the heap.
    pub fn directory(&self) -> &Arc<dyn Directory> {
        &self.directory
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
