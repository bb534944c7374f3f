//! Transactions: begin, read, write, reserve, savepoint, abort. The commit is in `commit.rs`.
//!
//! Purpose: change the image so that either all of it becomes one record or none of it happened.
//! Invariants: while a transaction lives it holds the write permit and the image's exclusive lock;
//! dropping it without a commit restores every byte and every reservation. Allocator words change
//! in the image only after the record was appended, so there are none to restore.
//! Lock order: writer, then image, then those of `state.rs`.

use std::ops::{Deref, DerefMut, Range};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::{Error, Result};
use crate::image::before_images::BeforeImages;
use crate::image::block_location::{BlockLocation, InRun};
use crate::image::class::{ClassId, HEADER_BYTES};
use crate::image::mapping::guards::Exclusive;
use crate::image::mapping::words::root_offset;
use crate::latch::writer_queue::WritePermit;
use crate::layout::DIRECTORY_ROOT;
use crate::objects::access::{Read, Write};
use crate::ptr::Ptr;
use crate::space::allocator::BlockAllocator;
use crate::space::block_bits::Word;
use crate::space::blocks::Blocks;
use crate::space::reservation::{Reservation, hand_over};
use crate::space::shard::Shard;
use crate::transaction::ranges::Kind;
use crate::transaction::scratch::{Hook, Level, Writer};

/// A heap transaction. Reads see its own writes.
#[derive(Debug)]
pub struct Transaction<'h> {
    pub(crate) blocks: Blocks<'h>,
    pub(crate) allocator: BlockAllocator<'h>,
    /// Dropped before the write permit: the next writer would wait for it.
    pub(crate) image: Exclusive<'h>,
    pub(crate) writer: WritePermit<'h, Writer>,
    pub(crate) depth: usize,
    pub(crate) done: bool,
    /// The block that was written last and its bytes, unless this transaction reserved it: a node
    /// is mostly written several times in a row. It stays a block until the transaction ends.
    pub(crate) last: (u64, u64),
    /// The block that was reserved last, which is mostly written next.
    newest: (u64, BlockLocation),
    /// Whether it reserves blocks side by side.
    is_packing: bool,
    /// Whether it admits readers: then it copies blocks before they change.
    pub(crate) admits_readers: bool,
    /// The copies it made for readers, when it has ended. Dropped after the write permit: freeing
    /// them may take a while.
    pub(crate) copied: BeforeImages,
}

impl<'h> Transaction<'h> {
    pub(crate) fn new(
        blocks: Blocks<'h>,
        allocator: BlockAllocator<'h>,
        writer: WritePermit<'h, Writer>,
        image: Exclusive<'h>,
    ) -> Self {
        Self {
            blocks,
            allocator,
            writer,
            image,
            depth: 0,
            done: false,
            last: (0, 0),
            newest: (0, BlockLocation::Extent { page: 0, pages: 0 }),
            is_packing: false,
            admits_readers: false,
            copied: BeforeImages::default(),
        }
    }

    /// Runs `work` so that it can fail alone: on `Err` or panic everything that it did is undone,
    /// and the transaction goes on as if it had not been called. Costs nothing by itself.
    ///
    /// # Errors
    /// What `work` returns.
    pub fn savepoint<T, E>(
        &mut self,
        work: impl FnOnce(&mut Self) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E>
    where
        E: From<Error>,
    {
        self.depth += 1;
        if self.writer.levels.len() == self.depth {
            self.writer.levels.push(Level::default());
        }
        let mut savepoint = Savepoint { transaction: self, merged: false };
        let result = work(&mut savepoint)?;
        savepoint.merge();
        Ok(result)
    }

    /// Calls `hook` with the sequence number when this transaction has committed, unless the
    /// transaction, or the savepoint in which this is called, is undone. For state in memory beside
    /// the heap: it changes with the commit and not without it. Hooks are called in the order in
    /// which they were given, before any other thread sees the commit and before it is durable;
    /// they must not use the heap, whose locks are held, and should be short.
    ///
    /// A panic of a hook goes on to the caller of the transaction, which has committed by then; the
    /// hooks after it are not called.
    pub fn on_commit(&mut self, hook: impl FnOnce(u64) + Send + Sync + 'static) {
        let depth = self.depth;
        self.writer.levels[depth].hooks.push(Hook(Box::new(hook)));
    }

    /// The word of root `index`; 0 when it was never set.
    pub fn root(&self, index: usize) -> u64 {
        self.image.root(index)
    }

    /// Sets the word of root `index`.
    ///
    /// # Errors
    /// `Error::Misuse` when there is no such root, and for the last one, which is the heap's own.
    pub fn set_root(&mut self, index: usize, value: u64) -> Result<()> {
        if index == DIRECTORY_ROOT {
            return Err(Error::Misuse {
                what: "root 15 is the directory of named roots; use one of 0 to 14, or a name",
            });
        }
        self.set_root_word(index, value)
    }

    /// Sets the word of any root.
    pub(crate) fn set_root_word(&mut self, index: usize, value: u64) -> Result<()> {
        let offset = root_offset(index)?;
        self.keep_roots();
        self.save(offset..offset + 8, Kind::Logged)?.copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// Reserves blocks side by side from here on, after those of the last transaction that did so:
    /// in new runs, not among the blocks of others, while the device has space for that. For
    /// compaction, which moves the blocks of a structure in its order, and so empties their old
    /// runs.
    pub fn pack(&mut self) {
        self.is_packing = true;
    }

    /// Ends that, and makes the room that is left beside these blocks available to others.
    pub fn end_packing(&mut self) {
        self.is_packing = false;
        self.allocator.give_up_packing(&mut self.writer.packing);
    }

    fn shard(&mut self) -> &mut Shard {
        if self.is_packing { &mut self.writer.packing } else { &mut self.writer.shard }
    }

    /// Reserves a block of at least `bytes` bytes. O(1) from a run with free blocks.
    fn reserve_block(&mut self, bytes: u64) -> Result<u64> {
        let (block, place) = self.allocator.reserve(self.shard(), bytes)?;
        self.add_fresh(block, place);
        Ok(block)
    }

    /// Reserves a block of a registered class. Its contents are unspecified, except for the header,
    /// which is zero.
    ///
    /// # Errors
    /// `Error::Misuse` for a class that this heap does not have; as [`Write::reserve`].
    pub fn reserve_in(&mut self, class: ClassId) -> Result<u64> {
        let Some((class, shape)) = self.blocks.classes.registered(class) else {
            return Err(Error::Misuse { what: "a class is registered before it is reserved in" });
        };
        let (block, place) = self.allocator.reserve_in(self.shard(), class, shape)?;
        self.add_fresh(block, place);
        if shape.has_header() {
            self.write(block, 0, HEADER_BYTES as usize)?.fill(0);
        }
        Ok(block)
    }

    /// Makes a reservation a block of this transaction, with all of the bytes asked for: the commit
    /// publishes it; without a commit it is freed. Returns its heap offset.
    ///
    /// # Errors
    /// `Error::Misuse` when it is of another heap; it is given back to that one.
    pub fn publish(&mut self, mut reservation: Reservation) -> Result<u64> {
        if !reservation.is_of(self.allocator.space) {
            return Err(Error::Misuse { what: "a reservation is published once, in its own heap" });
        }
        let (place, written) = (reservation.place(), reservation.written_len() as u64);
        hand_over(std::slice::from_mut(&mut reservation));
        let depth = self.depth;
        let fresh = &mut self.writer.levels[depth].fresh;
        fresh.insert(place);
        fresh.raise(place, written);
        Ok(reservation.offset())
    }

    /// Notes a reserved block.
    fn add_fresh(&mut self, block: u64, place: BlockLocation) {
        let depth = self.depth;
        self.writer.levels[depth].fresh.insert(place);
        self.newest = (block, place);
    }

    /// Gives reserved blocks back; the caller removed them from their level.
    fn cancel(&mut self, word: Word) {
        if let BlockLocation::Run { run, class, index, .. } = word.place
            && self.shard().give_back(class, run, index / 64, word.mask)
        {
            return;
        }
        self.allocator.space.take_back(word);
    }

    /// Undoes the innermost level.
    fn undo_level(&mut self) {
        if self.image.fork().is_child() {
            // The closure forked: nothing was changed in this process.
            return;
        }
        let depth = self.depth;
        // Readers see the copies.
        let yields = self.yields_undone();
        let level = &mut self.writer.levels[depth];
        if let Err(error) = level.ranges.restore(&mut self.image, yields) {
            // Saved ranges lie in pages that exist, and pages never go away. If this fails all the
            // same, memory no longer holds what was committed.
            if let Ok(journal) = self.allocator.journal.writable() {
                journal.poison(error);
            }
        }
        if yields {
            // The rest does not affect readers: blocks that nothing leads to, and the writer's own
            // memory.
            self.image.admit_readers();
        }
        let mut fresh = std::mem::take(&mut level.fresh);
        level.clear();
        for word in fresh.words() {
            self.cancel(word);
        }
        fresh.clear();
        self.writer.levels[depth].fresh = fresh;
        self.image.drain_readers();
    }

    /// Merges what a savepoint did into the level around it.
    fn merge_level(&mut self) {
        let depth = self.depth;
        self.depth = depth - 1;
        let classes = self.blocks.classes;
        let (outer, inner) = self.writer.levels.split_at_mut(depth);
        let (Some(outer), Some(inner)) = (outer.last_mut(), inner.first_mut()) else { return };
        inner.ranges.merge_into(&mut outer.ranges, depth - 1);
        outer.hooks.append(&mut inner.hooks);
        inner.fresh.merge_into(&mut outer.fresh, classes);
        let mut freed = std::mem::take(&mut inner.freed);
        for (_, place) in freed.words().flat_map(|word| word.blocks(classes)) {
            let outer = &mut self.writer.levels[depth - 1];
            if outer.fresh.remove(place) {
                self.cancel(Word::of(place));
            } else {
                outer.freed.insert(place);
            }
        }
        freed.clear();
        self.writer.levels[depth].freed = freed;
    }

    /// The location of the block at `block`, and the level that reserved it, if one did. O(1).
    #[inline]
    pub(crate) fn find(&self, block: u64) -> Result<(BlockLocation, Option<usize>)> {
        let (newest, place) = self.newest;
        if block == newest && self.writer.levels[self.depth].fresh.contains(place) {
            return Ok((place, Some(self.depth)));
        }
        let place = match self.blocks.place(&self.image, block) {
            Ok(place) => place,
            // The commit has yet to write the descriptor of a newly allocated extent.
            Err(error) => return self.fresh_extent(block).ok_or(error),
        };
        let mut levels = self.writer.levels[..=self.depth].iter();
        let level = levels.rposition(|level| level.fresh.contains(place));
        if level.is_none() {
            self.blocks.verify(&self.image, block, place)?;
        }
        Ok((place, level))
    }

    #[cold]
    fn fresh_extent(&self, block: u64) -> Option<(BlockLocation, Option<usize>)> {
        let levels = self.writer.levels[..=self.depth].iter().enumerate();
        levels.rev().find_map(|(level, known)| Some((known.fresh.extent(block)?, Some(level))))
    }

    /// The bytes of a block for writing, when it is not the one that was written last.
    fn write_first(&mut self, block: u64, (at, len): (u64, u64), end: u64) -> Result<&mut [u8]> {
        if let Some(InRun { bytes, .. }) = self.plain(block) {
            if end > bytes {
                return Err(too_short(block));
            }
            self.last = (block, bytes);
            return self.track_in(block, bytes, (at, len), Kind::Logged);
        }
        let (place, reserved) = self.find(block)?;
        if end > place.bytes() {
            return Err(too_short(block));
        }
        if let Some(level) = reserved {
            // Reserved by an outer level: the bytes go into the record with the block.
            self.writer.levels[level].fresh.raise(place, end);
            if level == self.depth {
                return self.image.bytes_mut(block + at, len);
            }
            let kind = Kind::Reserved(level as u32);
            return self.track_in(block, place.bytes(), (at, len), kind);
        }
        self.allocator.borrowed.refuse(place)?;
        self.last = (block, place.bytes());
        self.track_in(block, place.bytes(), (at, len), Kind::Logged)
    }

    /// The fast path for nearly all blocks: the location of a block that this transaction did not
    /// reserve and may write in place without a further check. Not while any block is borrowed:
    /// then the slow path checks the loans (S2). `None` decides nothing.
    #[inline]
    fn plain(&self, block: u64) -> Option<InRun> {
        let is_other = block == self.newest.0
            || self.blocks.verifies_first_touch
            || self.allocator.borrowed.has_any();
        if is_other {
            return None;
        }
        let found = self.image.in_run(self.blocks.classes, block)?;
        let levels = &self.writer.levels[..=self.depth];
        let is_fresh = levels.iter().any(|level| level.fresh.contains_at(found.run, found.index));
        (!is_fresh).then_some(found)
    }

    /// Frees a block that `plain` found.
    #[inline]
    fn free_plain(&mut self, block: u64, found: InRun) -> Result<()> {
        let levels = &self.writer.levels[..=self.depth];
        let is_freed = levels.iter().any(|level| level.freed.contains_at(found.run, found.index));
        if is_freed || !self.image.is_allocated_in(self.blocks.classes, found)? {
            return Err(already_free(block));
        }
        self.writer.levels[self.depth].freed.insert(found.place());
        Ok(())
    }

    /// Makes a block the one that was written last, if possible: false for a block that this
    /// transaction reserved, and while blocks are borrowed.
    fn look_up(&mut self, block: u64) -> Result<bool> {
        if let Some(found) = self.plain(block) {
            self.last = (block, found.bytes);
            return Ok(true);
        }
        if self.allocator.borrowed.has_any() {
            return Ok(false);
        }
        let (place, reserved) = self.find(block)?;
        if reserved.is_some() {
            return Ok(false);
        }
        self.last = (block, place.bytes());
        Ok(true)
    }

    /// A range of a block for writing, saved first.
    #[inline]
    pub(crate) fn track_in(
        &mut self,
        block: u64,
        bytes: u64,
        (at, len): (u64, u64),
        kind: Kind,
    ) -> Result<&mut [u8]> {
        let range = block + at..block + at + len;
        if self.admits_readers && !self.writer.levels[self.depth].ranges.has(&range, kind) {
            self.note_changed(block, bytes);
        }
        self.save(range, kind)
    }

    /// Any range for writing, saved first. If its page is refused nothing is saved, as restoring
    /// must not fail.
    #[inline]
    fn save(&mut self, range: Range<u64>, kind: Kind) -> Result<&mut [u8]> {
        let bytes = self.image.bytes_mut(range.start, range.end - range.start)?;
        let ranges = &mut self.writer.levels[self.depth].ranges;
        if !ranges.has(&range, kind) && !range.is_empty() {
            ranges.save(range, bytes, kind);
        }
        Ok(bytes)
    }

    /// A block that `Blocks::run_block` does not find.
    #[cold]
    fn block_anywhere(&self, block: u64) -> Result<&[u8]> {
        let (place, _) = self.find(block)?;
        self.image.bytes(block, place.bytes())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        loop {
            self.undo_level();
            if self.depth == 0 {
                break;
            }
            self.depth -= 1;
        }
        self.end_chunks();
        self.writer.trim();
    }
}

#[cold]
pub(crate) fn too_short(block: u64) -> Error {
    Error::InvalidPointer { offset: block, what: "is shorter than what is written" }
}

#[cold]
fn already_free(block: u64) -> Error {
    Error::InvalidPointer { offset: block, what: "is already free" }
}

/// A savepoint in progress: undone when dropped, unless it was merged.
struct Savepoint<'t, 'h> {
    transaction: &'t mut Transaction<'h>,
    merged: bool,
}

impl Savepoint<'_, '_> {
    fn merge(mut self) {
        self.merged = true;
        self.transaction.merge_level();
    }
}

impl<'h> Deref for Savepoint<'_, 'h> {
    type Target = Transaction<'h>;

    fn deref(&self) -> &Transaction<'h> {
        self.transaction
    }
}

impl<'h> DerefMut for Savepoint<'_, 'h> {
    fn deref_mut(&mut self) -> &mut Transaction<'h> {
        self.transaction
    }
}

impl Drop for Savepoint<'_, '_> {
    fn drop(&mut self) {
        if !self.merged {
            self.transaction.undo_level();
            self.transaction.depth -= 1;
        }
    }
}

impl Read for Transaction<'_> {
    #[inline]
    fn block(&self, block: u64) -> Result<&[u8]> {
        match self.blocks.run_block(&self.image, block) {
            Some(bytes) => Ok(bytes),
            None => self.block_anywhere(block),
        }
    }

    #[inline]
    fn prefetch(&self, offset: u64) {
        self.image.prefetch(offset);
    }
}

impl Write for Transaction<'_> {
    fn reserve(&mut self, bytes: u64) -> Result<u64> {
        self.reserve_block(bytes)
    }

    #[inline]
    fn write(&mut self, block: u64, at: usize, len: usize) -> Result<&mut [u8]> {
        let (at, len) = (at as u64, len as u64);
        match at.checked_add(len) {
            Some(end) if block == self.last.0 && end <= self.last.1 => {
                self.track_in(block, self.last.1, (at, len), Kind::Logged)
            }
            Some(end) => self.write_first(block, (at, len), end),
            None => Err(too_short(block)),
        }
    }

    fn reserve_held(&mut self, bytes: u64) -> Result<u64> {
        self.reserve_and_hold(bytes)
    }

    fn keep_log(&mut self, bytes: u64) -> Result<()> {
        self.allocator.journal.writable()?.keep_log(bytes)
    }

    #[inline]
    fn write_unused(&mut self, block: u64, at: usize, len: usize) -> Result<&mut [u8]> {
        self.write_in_place_unsaved(block, at as u64, len as u64)
    }

    #[inline]
    fn overwrite(&mut self, block: u64, at: usize, len: usize) -> Result<Option<&mut [u8]>> {
        self.overwrite_in_place(block, at, len)
    }

    #[inline]
    fn reserved_bytes(&self, bytes: u64) -> u64 {
        self.blocks.classes.block_bytes(bytes)
    }

    fn write_as<T: FromBytes + IntoBytes + Immutable + KnownLayout>(
        &mut self,
        ptr: Ptr<T>,
    ) -> Result<&mut T> {
        let bytes = self.write(ptr.offset(), 0, size_of::<T>())?;
        T::mut_from_bytes(bytes).map_err(|_| Error::InvalidPointer {
            offset: ptr.offset(),
            what: "is misaligned for its type",
        })
    }

    #[inline]
    fn update_u64(&mut self, block: u64, at: usize, value: u64) -> Result<()> {
        let is_plain = block == self.last.0 || self.look_up(block)?;
        let bytes =
            if is_plain { self.image.bytes(block, self.last.1)? } else { self.block(block)? };
        let old = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
        let Some(old) = old.copied() else { return Err(too_short(block)) };
        let difference = value ^ u64::from_le_bytes(old);
        if difference == 0 {
            return Ok(());
        }
        let first = (difference.trailing_zeros() / 8) as usize;
        let last = (63 - difference.leading_zeros()) as usize / 8;
        let target = self.write(block, at + first, last + 1 - first)?;
        // A byte or two: a copy of a length unknown at compile time would be a call.
        for (target, source) in target.iter_mut().zip(&value.to_le_bytes()[first..]) {
            *target = *source;
        }
        Ok(())
    }

    fn free(&mut self, block: u64) -> Result<()> {
        let depth = self.depth;
        if let Some(found) = self.plain(block) {
            return self.free_plain(block, found);
        }
        let (place, reserved) = self.find(block)?;
        if reserved == Some(depth) {
            self.writer.levels[depth].fresh.remove(place);
            self.cancel(Word::of(place));
            return Ok(());
        }
        let levels = &self.writer.levels[..=depth];
        let is_freed = levels.iter().any(|level| level.freed.contains(place));
        let is_there = reserved.is_some() || self.image.is_allocated(self.blocks.classes, place)?;
        if is_freed || !is_there {
            return Err(already_free(block));
        }
        self.writer.levels[depth].freed.insert(place);
        Ok(())
    }
}

const _: () = {
    // Its reads may be spread over threads.
    const fn is_sync<T: Sync>() {}
    is_sync::<Transaction<'_>>();
};
