//! Actions: reserve, publish, free and set a word without a transaction, from any thread.
//!
//! Purpose: commits of one record each that need neither the writer's seat nor, but for a word,
//! the image to themselves. Bits of one word are coalesced, however many blocks are published.
//! Invariants: a block is freed under a claim, so two threads that free it are one success and one
//! error. Words of the allocator change after the record was appended. What is freed here comes
//! back when somebody has had the image exclusively (`Heap::recycle`).
//! Thread safety: any thread. A thread that has a view must call none of these but `reserve`.

use std::sync::atomic::Ordering;

use crate::class::{ClassId, ClassShape, HEADER_BYTES};
use crate::desk::AtDesk;
use crate::direct::Direct;
use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::lanes::Fresh;
use crate::marked::Word;
use crate::place::Place;
use crate::reservation::Reservation;
use crate::shard::Shard;
use crate::supply::Supply;
use crate::thread::thread_number;

/// Freed blocks of one desk that wait for somebody to have the image exclusively. From so many on the
/// thread tries to have it.
const RETIRED_MIN: usize = 256;
/// Beyond that many it waits for it.
const RETIRED_MAX: usize = 8192;

impl Heap {
    /// Reserves a block of at least `bytes` bytes (1 to 2^40), to be filled on any thread. No
    /// fence, no record, no waiting for readers or the writer: some 25 ns, but where a new run is
    /// made. Its contents are unspecified.
    ///
    /// # Errors
    /// `Error::TooLarge`; those of the medium when the pool cannot grow. `Error::Misuse` after
    /// [`Heap::close`] and in the child of a fork.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation> {
        self.reserve_with(|supply, shard| Ok((supply.reserve(shard, bytes)?, bytes)))
    }

    /// As [`Heap::reserve`], a block of a registered class: the header, if it has one, is zero.
    ///
    /// # Errors
    /// `Error::Misuse` for a class that this heap does not have; as [`Heap::reserve`].
    pub fn reserve_in(&self, class: ClassId) -> Result<Reservation> {
        let Some((class, shape)) = self.space.classes.registered(class) else {
            return Err(Error::Misuse { what: "a class is registered before it is reserved in" });
        };
        let mut reservation = self.reserve_with(|supply, shard| {
            Ok((supply.reserve_in(shard, class, shape)?, shape.block_bytes))
        })?;
        if shape.has_header() {
            reservation[..HEADER_BYTES as usize].fill(0);
        }
        Ok(reservation)
    }

    /// Adds a class of blocks to the heap, for good, or finds the one of that shape. A heap has 255
    /// classes at most, of which it brings some 130.
    ///
    /// # Errors
    /// `Error::Misuse` for a shape that cannot be, and when there is no room for another class;
    /// `Error::TooLarge`; `Error::Poisoned`; those of the medium.
    pub fn register_class(&self, shape: ClassShape) -> Result<ClassId> {
        self.refuse_child()?;
        self.supply().register(&shape.entry()?)
    }

    fn reserve_with(
        &self,
        reserve: impl FnOnce(Supply<'_>, &mut Shard) -> Result<((u64, Place), u64)>,
    ) -> Result<Reservation> {
        self.refuse_child()?;
        let mut desk = self.desks.sit_down(thread_number());
        let desk = &mut *desk;
        let Some(shares) = &mut desk.shares else {
            return Err(if self.journal.is_read_only() {
                Error::ReadOnly
            } else {
                Error::Misuse { what: "the heap was closed; open it again" }
            });
        };
        let ((block, place), bytes) = reserve(self.supply(), &mut desk.shard)?;
        let share = shares.take();
        let first_touch = self.blocks().first_touch;
        // The pages may hold other blocks too, so they are verified before this one is written.
        let verified = first_touch
            .map_or(Ok(()), |verify| verify.block(&self.space.image, block, place.bytes()));
        match verified.and_then(|()| self.space.image.pointer(block, bytes)) {
            Ok(start) => {
                let len = bytes as usize;
                // SAFETY: the block was just taken from a shard or from the free pages, which give
                // out each but once; `pointer` checked that its bytes exist, and the share keeps
                // the space that they are in.
                Ok(unsafe { Reservation::new(share, block, place, start, len) })
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

    /// Publishes reservations, all or none, in one record: their offsets are blocks from then on.
    /// Fails or not, they are used up.
    ///
    /// # Errors
    /// `Error::Misuse` for one of another heap, within a transaction of the same thread, after
    /// [`Heap::close`]; `Error::Poisoned`; those of the medium, out of space among them. Unless
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
        let mut seated = self.enter()?;
        let desk = &mut *seated;
        let image = &self.space.image;
        desk.changes.clear();
        desk.record.clear();
        let mut direct = self.journal.persist().map(|persist| Direct::new(persist, image, None));
        for reservation in reservations.iter() {
            desk.changes.add(&self.space.classes, Word::of(reservation.place()));
            let (offset, len) = (reservation.offset(), reservation.written_len());
            if len == 0 {
                continue;
            }
            match &mut direct {
                Some(direct) => direct.add(offset, len as u64, &mut desk.record)?,
                None => {
                    reservation.mark();
                    desk.record.bytes(offset, reservation);
                }
            }
        }
        let fresh = direct.map(|direct| direct.finish(&mut desk.record, false));
        let fresh = fresh.unwrap_or(Ok(Fresh::Durable))?;
        desk.changes.coalesce();
        desk.changes.put(&mut desk.record);
        if desk.record.is_empty() {
            return Ok(());
        }
        let appended = self.journal.append_commit(&desk.record, fresh, &mut None, image);
        if appended.is_err() {
            desk.record.trim();
        }
        let appended = appended?;
        let sequence = appended.sequence;
        if let (Some(lanes), Fresh::Shared(_)) = (self.journal.lanes(), fresh) {
            lanes.note_unproven();
        }
        // Before the change, which waits for the fence: until then there is time for this.
        for reservation in reservations {
            reservation.hand_over(desk.shares.as_mut());
        }
        desk.changes.apply(&self.space);
        self.journal.applied(appended, &desk.record, image);
        desk.record.trim();
        drop(seated);
        self.journal.finish(sequence, durability)
    }

    /// Frees a block. Its bytes stay until nobody can look at them any more.
    ///
    /// # Errors
    /// `Error::InvalidPointer` unless an allocated block starts there, also when another thread
    /// frees it; `Error::Misuse` within a transaction of the same thread and after
    /// [`Heap::close`]; `Error::Poisoned`; those of the medium. Unless poisoned, it was not freed.
    pub fn free(&self, durability: Durability, block: u64) -> Result<()> {
        let mut desk = self.enter()?;
        let taken = &mut *desk;
        let image = &self.space.image;
        let freed = || Error::InvalidPointer { offset: block, what: "is already free" };
        // First the claim, so that what is found then is what is there until it is let go: an extent
        // has no bit to look at once more.
        let claim = self.desks.claim(block).ok_or_else(freed)?;
        let place = self.blocks().locate(image, block)?;
        if !image.is_allocated(&self.space.classes, place)? {
            return Err(freed());
        }
        if !taken.has_judged(place) {
            self.supply().judge_freed(&mut self.space.arena(), place)?;
            taken.note_judged(place);
        }
        taken.changes.clear();
        taken.record.clear();
        taken.changes.free(&self.space.classes, Word::of(place));
        taken.changes.put(&mut taken.record);
        let appended = self.journal.append(&taken.record, image)?;
        let sequence = appended.sequence;
        // Before the change, which waits for the fence: until then there is time for this.
        taken.retired.extend(taken.changes.freed().map(|freed| (sequence, freed)));
        self.retires.store(true, Ordering::Relaxed);
        taken.changes.apply(&self.space);
        self.journal.applied(appended, &taken.record, image);
        let retired = taken.retired.len();
        drop(claim);
        drop(desk);
        if retired >= RETIRED_MIN {
            self.recycle_retired(retired >= RETIRED_MAX);
        }
        self.journal.finish(sequence, durability)
    }

    /// Makes reusable what was freed without a transaction, if nobody looks at the image, or `must`.
    #[cold]
    fn recycle_retired(&self, must: bool) {
        match self.space.image.try_write() {
            Some(image) => self.recycle(&image),
            None if must => self.recycle(&self.space.image.write()),
            None => {}
        }
    }

    /// Sets the little-endian word at byte `at` (a multiple of 8) of a block. Waits for views and
    /// for a running transaction, as they have references to the bytes.
    ///
    /// # Errors
    /// `Error::InvalidPointer` unless an allocated block starts there that has such a word; else
    /// as [`Heap::free`].
    pub fn set_word(
        &self,
        durability: Durability,
        block: u64,
        at: usize,
        value: u64,
    ) -> Result<()> {
        self.prepare()?;
        let mut image = self.space.image.write();
        self.refuse_closed()?;
        let place = self.blocks().locate(&image, block)?;
        let is_there = (at as u64).checked_add(8).is_some_and(|end| end <= place.bytes());
        if !at.is_multiple_of(8) || !is_there || !image.is_allocated(&self.space.classes, place)? {
            return Err(Error::InvalidPointer { offset: block, what: "has no such word" });
        }
        self.lent.refuse(place)?;
        let mut desk = self.desks.sit_down(thread_number());
        let word = block + at as u64;
        desk.record.clear();
        desk.record.bytes(word, &value.to_le_bytes());
        let appended = self.journal.append(&desk.record, &image)?;
        let sequence = appended.sequence;
        self.space.settled.settle(word, 8);
        image.bytes_mut(word, 8)?.copy_from_slice(&value.to_le_bytes());
        self.journal.applied(appended, &desk.record, &image);
        drop(desk);
        drop(image);
        self.journal.finish(sequence, durability)
    }

    /// What every commit does first.
    fn prepare(&self) -> Result<()> {
        self.refuse_child()?;
        if self.has_turn() {
            return Err(Error::Misuse {
                what: "not within a transaction: it would wait for itself; use the transaction",
            });
        }
        self.journal.wait_for_space()?;
        self.keeper.wait();
        Ok(())
    }

    /// Begins a commit beside others: a desk, and the image shared.
    #[inline]
    fn enter(&self) -> Result<AtDesk<'_>> {
        self.prepare()?;
        let desk = self.desks.enter(thread_number());
        self.refuse_closed()?;
        Ok(desk)
    }
}
