//! Write transactions: begun under the writer lock, then committed, or undone when their guard is
//! dropped.
//!
//! Purpose: the one way into a transaction and out of it: for closures, for a write permit that was
//! held before, and for changes that threads combine. Nothing here depends on the closure, so the
//! compiler generates this code once and not for each closure.
//! Invariants: however a guard ends, its thread no longer counts as the writer before another
//! thread can take the writer lock, and the requests that came along are answered before that.
//! Lock order: writer lock, then image.

use std::mem::forget;
use std::ops::{Deref, DerefMut};

use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::latch::writer_queue::WritePermit;
use crate::transaction::calls::Along;
use crate::transaction::chunked::{Ending, Last};
use crate::transaction::scratch::Writer;
use crate::transaction::tx::Transaction;

/// A transaction, which is undone when this is dropped without [`WriteGuard::commit`]. It stays on
/// its thread.
#[derive(Debug)]
#[must_use = "a transaction that is dropped is undone"]
pub struct WriteGuard<'h> {
    heap: &'h Heap,
    /// The changes of other threads that it makes too. Dropped before the writer lock is released.
    pub(crate) along: Along<'h>,
    transaction: Transaction<'h>,
}

impl Heap {
    /// Begins a transaction: other writers wait until it has ended, and so do views. O(1).
    ///
    /// ```
    /// # use adamant_heap::{Durability, Heap, MemoryDirectory, Options, Write};
    /// # let (heap, _) = Heap::open(std::sync::Arc::new(MemoryDirectory::new()), Options::default())?;
    /// let mut write = heap.begin_write()?;
    /// let block = write.reserve(5)?;
    /// write.write(block, 0, 5)?.copy_from_slice(b"hello");
    /// write.set_root(0, block)?;
    /// write.commit(Durability::Sync)?;
    /// # assert_eq!(heap.view()?.root(0), block);
    /// # Ok::<(), adamant_heap::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Error::Misuse` within another transaction of the same thread, and when the heap is closed;
    /// `Error::Poisoned` after a failed write.
    pub fn begin_write(&self) -> Result<WriteGuard<'_>> {
        self.begin(self.wait_for_write_permit()?, None)
    }

    /// Runs a transaction and waits for what `durability` promises. `Err` or a panic of `work`
    /// restores every byte.
    ///
    /// # Errors
    /// What `work` returns, and as [`Heap::begin_write`]. Out of space: undone, the heap goes on.
    pub fn transaction<T, E: From<Error>>(
        &self,
        durability: Durability,
        work: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let mut write = self.begin_write()?;
        let result = work(&mut write)?;
        write.commit(durability)?;
        Ok(result)
    }

    /// As [`Heap::transaction`], for a large one: views are admitted where `work`
    /// [yields](Transaction::yield_to_readers), and while the record is made, and see the heap as
    /// it was before. For that each block is copied before it is changed, up to `copied_bytes_max`
    /// in all; beyond that, views wait for the end. Calls `last` when the commit cannot fail any
    /// more, and no other thread sees it yet.
    ///
    /// # Errors
    /// As [`Heap::transaction`].
    pub fn chunked_transaction<T, E: From<Error>>(
        &self,
        durability: Durability,
        copied_bytes_max: u64,
        work: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<T, E>,
        last: impl FnOnce(&mut Ending<'_, '_>),
    ) -> std::result::Result<T, E> {
        let mut write = self.begin_write()?;
        write.chunked(copied_bytes_max);
        let result = work(&mut write)?;
        write.commit_chunked(durability, last)?;
        Ok(result)
    }

    /// Waits for the writer lock.
    #[inline]
    pub(crate) fn wait_for_write_permit(&self) -> Result<WritePermit<'_, Writer>> {
        self.prepare_write()?;
        Ok(self.writer_queue.wait())
    }

    /// The checks and waits that come before the writer lock.
    pub(crate) fn prepare_write(&self) -> Result<()> {
        self.refuse_child()?;
        if self.has_writer() {
            return Err(Error::Misuse {
                what: "not within a transaction, which it would wait for: use that one, or a \
                       savepoint",
            });
        }
        self.journal.writable()?.wait_for_space()?;
        self.evictor.wait();
        Ok(())
    }

    /// Begins a transaction with a write permit, which ends with it. It makes the changes that came
    /// `along`, too.
    pub(crate) fn begin<'h>(
        &'h self,
        permit: WritePermit<'h, Writer>,
        along: Along<'h>,
    ) -> Result<WriteGuard<'h>> {
        if let Err(error) = self.refuse_child() {
            // Ending the permit would wake threads that do not exist here.
            forget((permit, along));
            return Err(error);
        }
        let image = self.space.image.write();
        // The permit may have been held before; that state ends here.
        self.set_within(false);
        self.refuse_closed()?;
        self.set_within(true);
        self.recycle(&image);
        let transaction = Transaction::new(self.blocks(), self.allocator(), permit, image);
        Ok(WriteGuard { heap: self, along, transaction })
    }

    /// Waits for what `durability` promises of a committed transaction, after the writer lock was
    /// released.
    pub(crate) fn finish(&self, sequence: Option<u64>, durability: Durability) -> Result<()> {
        match sequence {
            Some(sequence) => self.journal.finish(sequence, durability)?,
            None => self.settle(durability)?,
        }
        self.evictor.remind();
        Ok(())
    }
}

impl<'h> WriteGuard<'h> {
    /// Makes everything that the transaction did one record, and visible, and waits for what
    /// `durability` promises of it. O(what it did).
    ///
    /// # Errors
    /// `Error::Poisoned` if a write fails or failed. Out of space: undone, the heap goes on.
    pub fn commit(self, durability: Durability) -> Result<()> {
        let heap = self.heap;
        let sequence = self.show(None)?;
        heap.finish(sequence, durability)
    }

    /// Makes the transaction admit views, as [`Heap::chunked_transaction`] says. Call it before the
    /// transaction changes anything.
    pub fn chunked(&mut self, copied_bytes_max: u64) {
        self.transaction.begin_chunks(copied_bytes_max);
    }

    /// As [`WriteGuard::commit`], for a chunked transaction: calls `last` when it cannot fail any
    /// more, and no other thread sees it yet.
    ///
    /// # Errors
    /// As [`WriteGuard::commit`].
    pub fn commit_chunked(
        self,
        durability: Durability,
        last: impl FnOnce(&mut Ending<'_, '_>),
    ) -> Result<()> {
        let heap = self.heap;
        let sequence = self.show(Some(Box::new(last)))?;
        heap.finish(sequence, durability)
    }

    /// Makes everything one record, and visible, and releases the writer lock; returns the record's
    /// number, if there was anything to do. `last` is for a chunked transaction.
    pub(crate) fn show(mut self, last: Last<'_>) -> Result<Option<u64>> {
        let (heap, transaction) = (self.heap, &mut self.transaction);
        heap.set_within(false);
        // The transaction may have forked.
        heap.refuse_child()?;
        let chunked = transaction.admits_readers;
        let sequence = transaction.commit(last, self.along.take())?;
        if heap.space.has_waiting() {
            heap.recycle_after(&mut transaction.image, chunked);
        }
        Ok(sequence)
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        self.heap.set_within(false);
        if self.heap.is_child() {
            // The threads to be answered do not exist here.
            forget(self.along.take());
        }
    }
}

impl<'h> Deref for WriteGuard<'h> {
    type Target = Transaction<'h>;

    fn deref(&self) -> &Transaction<'h> {
        &self.transaction
    }
}

impl<'h> DerefMut for WriteGuard<'h> {
    fn deref_mut(&mut self) -> &mut Transaction<'h> {
        &mut self.transaction
    }
}
