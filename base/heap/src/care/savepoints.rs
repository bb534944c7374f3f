//! Savepoints: named moments of a heap that survive, to read or to go back to.
//!
//! Purpose: the calls of the heap's users; the journal does the work, see
//! docs/decisions/0140-savepoints.md.
//! Invariants: a savepoint shows exactly one commit, and all of it is durable.
//! Thread safety: any thread. Lock order: checkpoints, writer lock, image, arena, savepoints.

use std::sync::Arc;

use adamant_medium::storage::{Directory, File};

use crate::care::new_pool::NewPool;
use crate::error::{Error, Result};
use crate::heap::{Heap, Options};
use crate::image::kind::ImageKind;
use crate::journal::{Arrival, PoolView, READERS_NAME, SAVEPOINT_NAME_BYTES_MAX, Savepoint};

/// The pool that a savepoint shows, as long as its heap is open.
#[derive(Clone, Debug)]
pub struct SavepointPool(Arc<PoolView>);

impl SavepointPool {
    /// The pool file of a closed heap, for reading only.
    pub fn file(&self) -> Arc<dyn File> {
        Arc::clone(&self.0) as Arc<dyn File>
    }

    /// What is attached to the savepoint.
    pub fn attached(&self) -> &[u8] {
        self.0.attached()
    }

    /// Whether it can be read still.
    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Ends it: the file is not read any more, and the savepoint can be deleted.
    pub fn close(&self) {
        self.0.close();
    }
}

impl Heap {
    /// Makes a savepoint of the heap as it is after the last commit; false if there is one of that
    /// name. `attached` is called while no other thread reads or writes, and what it returns is
    /// kept with it. `made_ms` is the time, in milliseconds since 1970.
    ///
    /// From then on the first write to each page after it costs a copy of the page, and a sync for
    /// each 8 MiB; nothing is given back by [`Heap::shrink`]. Where there is no space for these
    /// copies, the oldest savepoint is given up, and the heap goes on. O(changes since the last
    /// checkpoint), and 4 bytes for each page of the pool.
    ///
    /// # Errors
    /// `Error::Misuse` for a name of no or more than 255 bytes, and within a transaction;
    /// `Error::Poisoned`; those of the medium. Then there is no such savepoint.
    pub fn create_savepoint(
        &self,
        name: &str,
        made_ms: u64,
        attached: impl FnOnce() -> Vec<u8>,
    ) -> Result<bool> {
        self.refuse_child()?;
        self.refuse_within()?;
        if !(1..=SAVEPOINT_NAME_BYTES_MAX).contains(&name.len()) {
            return Err(Error::Misuse { what: "the name of a savepoint has 1 to 255 bytes" });
        }
        let journal = self.journal.writable()?;
        journal.wait_for_space()?;
        // Covers most of the log, while no other thread waits.
        self.checkpoint()?;
        let mut checkpoints = journal.hold_checkpoints()?;
        let attached = self.alone(|_, _, _| {
            // No other thread reserves or publishes without a transaction either.
            let _arena = self.space.arena();
            journal.checkpoint_alone(&mut checkpoints, &[])?;
            Ok(attached())
        })?;
        // Others write again, to memory and to the log; the pool stays as it is.
        journal.create_savepoint(&checkpoints, name, made_ms, &attached)
    }

    /// All savepoints, the oldest first, then those that were given up. O(pages that are kept).
    ///
    /// # Errors
    /// `Error::Misuse` beside a writer; those of the medium.
    pub fn savepoints(&self) -> Result<Vec<Savepoint>> {
        self.refuse_child()?;
        Ok(self.registry()?.list())
    }

    /// What is attached to each savepoint that is there, in some order; `None` for one that is
    /// damaged. O(savepoints).
    ///
    /// # Errors
    /// `Error::Misuse` beside a writer; those of the medium.
    pub fn attached_to_savepoints(&self) -> Result<Vec<Option<Vec<u8>>>> {
        self.refuse_child()?;
        Ok(self.registry()?.attached())
    }

    /// Deletes a savepoint, and frees what only it needs; false if there is none of that name.
    /// Needs no space. O(pages that are kept).
    ///
    /// # Errors
    /// `Error::ReadOnly`; `Error::Misuse` while what [`Heap::savepoint_pool`] returned is in use;
    /// those of the medium.
    pub fn delete_savepoint(&self, name: &str) -> Result<bool> {
        self.refuse_child()?;
        self.journal.writable()?.savepoints().delete(name)
    }

    /// The pool as a savepoint shows it. `None` if there is none of that name that can be read.
    /// O(pages that were kept since).
    ///
    /// # Errors
    /// `Error::Misuse` beside a writer, `Error::Damaged`; those of the medium.
    pub fn savepoint_pool(&self, name: &str) -> Result<Option<SavepointPool>> {
        self.refuse_child()?;
        let view = self.registry()?.view(self.journal.pool().file(), name)?;
        Ok(view.map(|view| SavepointPool(Arc::new(view))))
    }

    fn go_back_to(
        &self,
        (name, options): (&str, &Options),
        user: &dyn GoBack,
    ) -> Result<Option<u64>> {
        let journal = self.journal.writable()?;
        let Some(view) = journal.savepoints().view(journal.pool().file(), name)? else {
            return Ok(None);
        };
        user.refuse(view.attached())?;
        let refuse_readers = || match journal.oldest_reader()? {
            None => Ok(()),
            Some(_) => Err(Error::Unsupported {
                file: self.directory.path().join(READERS_NAME),
                what:
                    "other processes read this store beside its writer, and would see it go back; \
                       end them first"
                        .into(),
            }),
        };
        refuse_readers()?;
        let is_changed = user.leave(self)?;
        journal.close()?;
        let change = || match is_changed {
            true => self.change_new(options, user),
            false => Ok(Vec::new()),
        };
        let arrival = Arrival { change: &change, refuse: &refuse_readers };
        journal.go_back(Arc::new(view), &arrival).map(Some)
    }

    /// Has the user change the new pool; returns the heap offsets of the pages that were written.
    fn change_new(&self, options: &Options, user: &dyn GoBack) -> Result<Vec<u64>> {
        let directory = Arc::new(NewPool::new(Arc::clone(&self.directory)));
        // The files that are written through know nothing of mappings.
        let options = Options { image: ImageKind::Filled, ..options.clone() };
        let (heap, _) = Heap::open(Arc::clone(&directory) as Arc<dyn Directory>, options)?;
        let arrived = user.arrive(&heap);
        arrived.and(heap.close())?;
        Ok(directory.written())
    }
}

/// What the heap's user does when it goes back to a savepoint.
pub trait GoBack {
    /// Gets what is attached to the savepoint, before anything changes.
    ///
    /// # Errors
    /// The heap must not go back: it is as it was then.
    fn refuse(&self, attached: &[u8]) -> Result<()>;

    /// Looks at the heap as it is, for the last time; whether [`GoBack::arrive`] is to be called.
    ///
    /// # Errors
    /// As of [`GoBack::refuse`].
    fn leave(&self, heap: &Heap) -> Result<bool>;

    /// Changes the heap as the savepoint shows it: what is committed now is there, durably, with
    /// all of it, or not at all. To be called for heaps alone that nobody else has.
    ///
    /// # Errors
    /// As of [`GoBack::refuse`].
    fn arrive(&self, heap: &Heap) -> Result<()>;
}

/// Makes the heap in a directory, which is not open, what a savepoint of it shows. That is a commit
/// behind all that it ever had; returns its number, or one above it if `user` changed
/// something. `None` if there is no savepoint of that name that can be read. All savepoints stay,
/// that one and later ones, too.
///
/// The pool is made anew, and replaces the old one in one step: a crash leaves one of them. Takes
/// as much space as the pool, and copies of the pages that differ. O(pool).
///
/// # Errors
/// As [`Heap::open`]; those of `user`; `Error::Unsupported` while processes read the heap
/// beside a writer; out of space, damage of the savepoint. Then the heap is as it was.
pub fn go_back(
    directory: Arc<dyn Directory>,
    options: Options,
    name: &str,
    user: &dyn GoBack,
) -> Result<Option<u64>> {
    let options = Options { background: false, create: false, read_only: false, ..options };
    let (heap, _) = Heap::open(directory, options.clone())?;
    let gone = heap.go_back_to((name, &options), user);
    let closed = heap.close();
    gone.and_then(|sequence| closed.map(|()| sequence))
}
