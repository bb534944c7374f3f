//! Actions: reserve, publish and free without a transaction, from any thread.
//!
//! Purpose: a reservation waits for no other thread. Publishing and freeing are combined commits:
//! they need the writer lock, but not the image, and the holder of the lock does the waiting
//! requests of other threads with the same record. Bits of one word are coalesced, however many
//! blocks are published.
//! Invariants: a record about a block is appended, and the allocator bits of the block change, only
//! under the writer lock; bits change after the record was appended. Blocks freed here become
//! reusable when a thread next has the image exclusively (`Heap::recycle`).
//! Thread safety: any thread. A thread that has a view must call none of these except `reserve`.

use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::image::block_location::BlockLocation;
use crate::image::class::{ClassId, ClassShape, HEADER_BYTES};
use crate::latch::thread::thread_number;
use crate::space::allocator::BlockAllocator;
use crate::space::arena::Arena;
use crate::space::batch::{Batch, POSTED_BYTES_MAX, Request};
use crate::space::block_bits::Word;
use crate::space::reservation::{Reservation, hand_over};
use crate::space::shard::Shard;
use crate::transaction::commit::Unwound;
use crate::transaction::requests::Refusal;
use crate::transaction::scratch::Writer;

/// The number of blocks freed without a transaction from which the thread tries to take the image
/// exclusively, to make them reusable.
const RETIRED_MIN: usize = 256;
/// Beyond that many it waits for the image.
const RETIRED_MAX: usize = 8192;
/// The ticket of the request of the writer lock's holder.
const OWN: u64 = 0;

impl Heap {
    /// Reserves a block of at least `bytes` bytes (1 to 2^40), to be filled on any thread. No
    /// fence, no record, no waiting for readers or the writer: some 25 ns, except when a new run is
    /// made. Its contents are unspecified.
    ///
    /// # Errors
    /// `Error::TooLarge`; those of the medium when the pool cannot grow. `Error::Misuse` after
    /// [`Heap::close`] and in the child of a fork.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation> {
        self.reserve_with(|allocator, shard| Ok((allocator.reserve(shard, bytes)?, bytes)))
    }

    /// As [`Heap::reserve`], a block of a registered class: the header, if it has one, is zero.
    ///
    /// # Errors
    /// `Error::Misuse` for a class that this heap does not have; as [`Heap::reserve`].
    pub fn reserve_in(&self, class: ClassId) -> Result<Reservation> {
        let Some((class, shape)) = self.space.classes.registered(class) else {
            return Err(Error::Misuse { what: "a class is registered before it is reserved in" });
        };
        let mut reservation = self.reserve_with(|allocator, shard| {
            Ok((allocator.reserve_in(shard, class, shape)?, shape.block_bytes))
        })?;
        if shape.has_header() {
            reservation[..HEADER_BYTES as usize].fill(0);
        }
        Ok(reservation)
    }

    /// Adds a class of blocks to the heap, for good, or finds the one of that shape. A heap has 255
    /// classes at most, including some 130 initial ones.
    ///
    /// # Errors
    /// `Error::Misuse` for an impossible shape, and when there is no room for another class;
    /// `Error::TooLarge`; `Error::Poisoned`; those of the medium.
    pub fn register_class(&self, shape: ClassShape) -> Result<ClassId> {
        self.refuse_child()?;
        self.allocator().register(&shape.entry()?)
    }

    fn reserve_with(
        &self,
        reserve: impl FnOnce(BlockAllocator<'_>, &mut Shard) -> Result<((u64, BlockLocation), u64)>,
    ) -> Result<Reservation> {
        self.refuse_child()?;
        let mut thread_cache = self.thread_caches.enter(thread_number());
        let thread_cache = &mut *thread_cache;
        let Some(shares) = &mut thread_cache.shares else {
            self.journal.writable()?;
            return Err(Error::Misuse { what: "the heap was closed; open it again" });
        };
        let ((block, place), bytes) = reserve(self.allocator(), &mut thread_cache.shard)?;
        let share = shares.take();
        match self.space.image.pointer(block, bytes) {
            Ok(start) => {
                let len = bytes as usize;
                // SAFETY: the block was just taken from a shard or from the free pages, which hand
                // out each block only once; `pointer` checked that its bytes exist, and the share
                // keeps the space that they are in.
                unsafe { Reservation::new(share, block, place, start, len) }
            }
            Err(error) => {
                self.space.take_back(Word::of(place));
                Err(error)
            }
        }
    }

    /// As [`Heap::reserve`], all of it zero.
    ///
    /// # Errors
    /// As [`Heap::reserve`].
    pub fn reserve_zeroed(&self, bytes: u64) -> Result<Reservation> {
        let mut reservation = self.reserve(bytes)?;
        reservation.fill(0);
        Ok(reservation)
    }

    /// Publishes reservations, all or none: their offsets are blocks from then on. Uses them up
    /// even if it fails. Waits for a running transaction.
    ///
    /// # Errors
    /// `Error::Misuse` for one of another heap, within a transaction of the same thread, after
    /// [`Heap::close`]; `Error::Poisoned`; those of the medium, including out of space. Unless
    /// poisoned, nothing was published.
    pub fn publish(
        &self,
        durability: Durability,
        mut reservations: impl AsMut<[Reservation]>,
    ) -> Result<()> {
        let reservations = reservations.as_mut();
        if reservations.iter().any(|reservation| !reservation.is_of(&self.space)) {
            return Err(Error::Misuse { what: "a reservation is published once, in its own heap" });
        }
        let sequence = self.act(Request::Publish(reservations))?;
        hand_over(reservations);
        sequence.map_or(Ok(()), |sequence| self.journal.finish(sequence, durability))
    }

    /// Frees a block. Its bytes stay until no reader can see them any more. Waits for a running
    /// transaction.
    ///
    /// # Errors
    /// `Error::InvalidPointer` unless an allocated block starts there, also when another thread
    /// frees it; `Error::Misuse` within a transaction of the same thread and after [`Heap::close`];
    /// `Error::Poisoned`; those of the medium. Unless poisoned, it was not freed.
    pub fn free(&self, durability: Durability, block: u64) -> Result<()> {
        let sequence = self.act(Request::Free(block))?;
        sequence.map_or(Ok(()), |sequence| self.journal.finish(sequence, durability))
    }

    /// Does a request by a commit that it may share: returns its record, or a later one, if there
    /// was anything to do.
    #[inline]
    fn act(&self, request: Request<'_>) -> Result<Option<u64>> {
        self.prepare_write()?;
        if let Some(mut permit) = self.writer_queue.try_wait() {
            return self.act_now(&mut permit, Some(request));
        }
        self.act_later(request)
    }

    /// Does a request while another thread holds the writer lock: the next holder does it along, or
    /// this thread becomes the next holder.
    #[cold]
    fn act_later(&self, request: Request<'_>) -> Result<Option<u64>> {
        let classes = &self.space.classes;
        let ticket = self.requests.post(|batch, ticket| batch.post(classes, request, ticket));
        if let Some(ticket) = ticket {
            let is_done = || self.requests.is_done(ticket);
            if let Some(mut permit) = self.writer_queue.wait_unless(is_done)
                && !is_done()
            {
                self.act_now(&mut permit, None)?;
            }
            match self.requests.outcome(ticket) {
                Ok(sequence) => return Ok(Some(sequence)),
                Err(Refusal::Wrong(error)) => return Err(error),
                Err(Refusal::Alone) => {}
            }
        }
        self.act_now(&mut self.writer_queue.wait(), Some(request))
    }

    /// Does a request under the writer lock, together with all posted requests.
    fn act_now(&self, writer: &mut Writer, own: Option<Request<'_>>) -> Result<Option<u64>> {
        self.refuse_closed()?;
        let done = self.combine(writer, own);
        if writer.retired >= RETIRED_MIN {
            self.recycle_retired(writer);
        }
        done
    }

    /// Does the posted requests and `own` with one record, and answers them. If that fails, each
    /// goes on alone, `own` at once.
    fn combine(&self, writer: &mut Writer, own: Option<Request<'_>>) -> Result<Option<u64>> {
        let Writer { batch, retired, .. } = writer;
        let classes = &self.space.classes;
        batch.clear();
        // A large request may have to wait for room in the log, and other requests should not wait
        // with it.
        let is_large = own.as_ref().is_some_and(|own| own.bytes() > POSTED_BYTES_MAX);
        let mut taken = if is_large { None } else { self.requests.take(batch) };
        own.iter().for_each(|own| batch.add(classes, *own, OWN));
        let mut done = self.commit(batch, retired);
        if done.is_err() && taken.take().is_some() {
            batch.clear();
            own.iter().for_each(|own| batch.add(classes, *own, OWN));
            done = self.commit(batch, retired);
        }
        let refused = batch.refused.iter().position(|(ticket, _)| *ticket == OWN);
        let refused = refused.map(|at| batch.refused.swap_remove(at).1);
        if let Some(taken) = taken {
            taken.finish(done.as_ref().ok().copied().flatten(), &mut batch.refused);
        }
        refused.map_or(done, Err)
    }

    /// Appends one record for a batch, then applies it to memory. Frees that are impossible are
    /// added to `refused`.
    ///
    /// # Errors
    /// Those of appending a record; then nothing changed.
    fn commit(&self, batch: &mut Batch, retired: &mut usize) -> Result<Option<u64>> {
        // Held from the check of the freed blocks until they are free: a caller's offset may lead
        // anywhere, and runs stay what they are while this is held.
        let mut arena = (!batch.frees.is_empty()).then(|| self.space.arena());
        if let Some(arena) = &mut arena {
            self.verify_frees(arena, batch);
        }
        let Batch { record, changes, .. } = batch;
        changes.coalesce();
        changes.put(record);
        if record.is_empty() {
            return Ok(None);
        }
        if let Err(error) = changes.touch(&self.space) {
            record.trim();
            return Err(error);
        }
        let journal = self.journal.writable()?;
        let appended = journal.append(record);
        record.trim();
        let sequence = appended?;
        let unwound = Unwound(journal);
        changes.apply(&self.space);
        if let Some(arena) = &mut arena {
            *retired += changes.retire(&self.space, arena, sequence);
        }
        std::mem::forget(unwound);
        changes.trim();
        Ok(Some(sequence))
    }

    /// Adds to the changes those frees of a batch that free a block.
    fn verify_frees(&self, arena: &mut Arena, batch: &mut Batch) {
        let Batch { changes, frees, refused, .. } = batch;
        // Frees of one block become neighbours, ordered by their tickets.
        frees.sort_unstable();
        let mut last = None;
        for (block, ticket) in frees.drain(..) {
            let is_twice = last == Some(block);
            let verified = if is_twice { Err(freed(block)) } else { self.verify(arena, block) };
            match verified {
                Ok(place) => changes.free(&self.space.classes, Word::of(place)),
                Err(error) => refused.push((ticket, error)),
            }
            last = Some(block);
        }
    }

    /// The location of a block that can be freed.
    #[inline]
    fn verify(&self, arena: &mut Arena, block: u64) -> Result<BlockLocation> {
        let image = &self.space.image;
        let place = self.blocks().locate(image, block)?;
        if !image.is_allocated(&self.space.classes, place)? {
            return Err(freed(block));
        }
        self.allocator().verify_freed(arena, place)?;
        Ok(place)
    }

    /// Makes reusable what was freed without a transaction, if the image is unused right now, or if
    /// too much waits.
    #[cold]
    fn recycle_retired(&self, writer: &mut Writer) {
        let image = match self.space.image.try_write() {
            None if writer.retired >= RETIRED_MAX => self.space.image.write(),
            None => return,
            Some(image) => image,
        };
        self.recycle(&image);
        writer.retired = 0;
    }
}

fn freed(block: u64) -> Error {
    Error::InvalidPointer { offset: block, what: "is already free" }
}

#[cfg(test)]
mod tests;
