//! Transactions: begin, read, write, reserve, savepoint, abort. The commit is in `commit.rs`.
//!
//! Purpose: change the image so that either all of it becomes one record or none of it happened.
//! Invariants: while a transaction lives it has the turn to write and the image's exclusive
//! lock; dropping it without a commit restores every byte and every reservation. Words of the
//! allocator change in the image only after the record was appended, so there are none to restore.
//! Lock order: writer, then image, then those of `space.rs`.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_wire::le::u64_at;
use adamant_wire::mutants::is_planted;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::access::{Read, Write};
use crate::before::Before;
use crate::blocks::{Blocks, object};
use crate::class::{ClassId, HEADER_BYTES};
use crate::error::{Error, Result};
use crate::image::{Exclusive, root_offset};
use crate::lanes::Undo;
use crate::layout::{DIRECTORY_ROOT, ROOT_COUNT, ROOT_OFFSET, ROOT_WORDS};
use crate::marked::Word;
use crate::place::{Original, Place};
use crate::ptr::Ptr;
use crate::reservation::Reservation;
use crate::shadow::Shadow;
use crate::supply::Supply;
use crate::turns::Turn;
use crate::writer::{Hook, Level, Writer};

/// The words of the roots, as if they were a block.
const ROOTS: u64 = ROOT_OFFSET + ROOT_WORDS;
const ROOTS_BYTES: u64 = 8 * ROOT_COUNT as u64;

/// A heap transaction. Reads see its own writes.
#[derive(Debug)]
pub struct Transaction<'h> {
    pub(crate) blocks: Blocks<'h>,
    pub(crate) supply: Supply<'h>,
    /// Let go of before the turn ends: who has the next one would wait for it.
    pub(crate) image: Exclusive<'h>,
    pub(crate) writer: Turn<'h, Writer>,
    /// Undo journal: what saves the old bytes of what is changed in place.
    pub(crate) undo: Option<Undo<'h>>,
    /// Whether a savepoint put bytes back in place that undo entries protect: flushed, not fenced.
    pub(crate) has_put_back: bool,
    pub(crate) depth: usize,
    pub(crate) done: bool,
    /// The block that was written last and its bytes, unless this transaction reserved it: a node
    /// is mostly written several times in a row. It stays a block until the transaction has ended.
    pub(crate) last: (u64, u64),
    /// Undo journal: the block that was written last and its copy in the innermost level.
    pub(crate) last_copy: (u64, Option<Shadow>),
    /// Looks at blocks while there were copies. Some may be missing: several threads may look.
    pub(crate) looks: AtomicU64,
    /// Undo journal: whether it changes small blocks in place, too, and has no copies.
    pub(crate) is_in_place: bool,
    /// The block that was reserved last, which is mostly written next.
    newest: (u64, Place),
    /// Whether it lets readers in: then what it changes is copied before.
    pub(crate) lets_in: bool,
    /// What it copied for them, when it has ended. Behind the turn: it may take a while to free.
    pub(crate) copied: Before,
}

impl<'h> Transaction<'h> {
    pub(crate) fn new(
        blocks: Blocks<'h>,
        supply: Supply<'h>,
        writer: Turn<'h, Writer>,
        image: Exclusive<'h>,
    ) -> Self {
        let newest = (0, Place::Extent { page: 0, pages: 0 });
        let (undo, last, last_copy) = (None, (0, 0), (0, None));
        let (depth, done, has_put_back) = (0, false, false);
        Self {
            blocks,
            supply,
            writer,
            image,
            undo,
            has_put_back,
            depth,
            done,
            last,
            last_copy,
            looks: AtomicU64::new(0),
            is_in_place: false,
            newest,
            lets_in: false,
            copied: Before::default(),
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
        self.last_copy.1 = None;
        if self.writer.levels.len() == self.depth {
            self.writer.levels.push(Level::default());
        }
        let depth = self.depth;
        self.writer.levels[depth].shadows_mark = self.writer.shadows.mark();
        let mut savepoint = Savepoint { transaction: self, merged: false };
        let result = work(&mut savepoint)?;
        savepoint.merge();
        Ok(result)
    }

    /// Has `hook` called when this transaction has committed, with its sequence number, unless it is
    /// undone, or the savepoint that this is called in. For what lives in memory beside the heap: it
    /// changes with the commit and not without it. Hooks are called in the order in which they were
    /// given, before anybody else sees the commit and before it is durable; they must not use the
    /// heap, whose locks are held, and should be short.
    ///
    /// A panic of a hook goes on to the caller of the transaction, which has committed by then; hooks
    /// behind it are not called.
    pub fn on_commit(&mut self, hook: impl FnOnce(u64) + Send + Sync + 'static) {
        let depth = self.depth;
        self.writer.levels[depth].hooks.push(Hook(Box::new(hook)));
    }

    /// The word of root `index`; 0 when it was never set.
    pub fn root(&self, index: usize) -> u64 {
        match self.shadow(Original::roots(ROOTS, ROOTS_BYTES)) {
            Some(roots) => u64_at(roots, 8 * index).unwrap_or(0),
            None => self.image.root(index),
        }
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
        let bytes = match self.supply.journal.lanes() {
            None => self.track(offset, 8, true)?,
            Some(lanes) => {
                let roots = Some(Original::roots(ROOTS, ROOTS_BYTES));
                self.write_planned(lanes, ROOTS, roots, (offset - ROOTS, 8), false)?
            }
        };
        bytes.copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// `len` bytes of a block or a root for writing, saved first, and noted for the record if `log`
    /// says so.
    pub(crate) fn track(&mut self, offset: u64, len: u64, log: bool) -> Result<&mut [u8]> {
        if len == 0 {
            return Ok(&mut []);
        }
        let depth = self.depth;
        self.writer.levels[depth].ranges.declare(&self.image, offset, len, log)?;
        self.supply.space.settled.settle(offset, len);
        self.image.bytes_mut(offset, len)
    }

    /// Reserves a block of at least `bytes` bytes. O(1) from a run with free blocks.
    fn reserve_block(&mut self, bytes: u64) -> Result<u64> {
        let (block, place) = self.supply.reserve(&mut self.writer.shard, bytes)?;
        self.add_fresh(block, place)
    }

    /// Reserves a block of a registered class. Its contents are unspecified, but for the header,
    /// which is zero.
    ///
    /// # Errors
    /// `Error::Misuse` for a class that this heap does not have; as [`Write::reserve`].
    pub fn reserve_in(&mut self, class: ClassId) -> Result<u64> {
        let Some((class, shape)) = self.blocks.classes.registered(class) else {
            return Err(Error::Misuse { what: "a class is registered before it is reserved in" });
        };
        let (block, place) = self.supply.reserve_in(&mut self.writer.shard, class, shape)?;
        self.add_fresh(block, place)?;
        if shape.has_header() {
            self.write(block, 0, HEADER_BYTES as usize)?.fill(0);
        }
        Ok(block)
    }

    /// Makes a reservation a block of this transaction, with all of the bytes asked for: it is
    /// published by the commit, and given back if there is none. Returns its heap offset.
    ///
    /// # Errors
    /// `Error::Misuse` when it is of another heap; it is given back to that one.
    pub fn publish(&mut self, mut reservation: Reservation) -> Result<u64> {
        if !reservation.is_of(self.supply.space) {
            return Err(Error::Misuse { what: "a reservation is published once, in its own heap" });
        }
        let (place, written) = (reservation.place(), reservation.written_len() as u64);
        reservation.mark();
        reservation.hand_over(None);
        let depth = self.depth;
        let fresh = &mut self.writer.levels[depth].fresh;
        fresh.insert(place);
        fresh.raise(place, written);
        Ok(reservation.offset())
    }

    /// Notes a reserved block. Its pages may hold other blocks too, so where pages are verified
    /// when first touched, that is now, before the block is written.
    fn add_fresh(&mut self, block: u64, place: Place) -> Result<u64> {
        if let Some(first_touch) = self.blocks.first_touch
            && let Err(error) = first_touch.block(&self.image, block, place.bytes())
        {
            self.cancel(Word::of(place));
            return Err(error);
        }
        let depth = self.depth;
        self.writer.levels[depth].fresh.insert(place);
        self.newest = (block, place);
        Ok(block)
    }

    /// Takes fresh blocks back; the caller removed them from their level.
    fn cancel(&mut self, word: Word) {
        if let Place::Run { run, class, index, .. } = word.place
            && self.writer.shard.give_back(class, run, index / 64, word.mask)
        {
            return;
        }
        self.supply.space.take_back(word);
    }

    /// Undoes the innermost level.
    fn undo_level(&mut self) {
        if self.image.fork().is_child() {
            // A closure forked: here is nothing that was changed.
            return;
        }
        let depth = self.depth;
        self.last_copy.1 = None;
        let gives_way = self.can_undo_in_pieces();
        let writer = &mut *self.writer;
        let level = &mut writer.levels[depth];
        self.has_put_back |= self.undo.is_some() && !level.ranges.is_empty();
        let persist = self.supply.journal.persist();
        let restored = if is_planted("R5.a-refused-commit-stays") {
            Ok(())
        } else {
            level.ranges.restore(&mut self.image, persist, gives_way)
        };
        if let Err(error) = restored {
            // Saved lines lie in pages that exist, and pages never go away; were it otherwise,
            // memory would no longer be what was committed.
            self.supply.journal.poison(error);
        }
        if gives_way {
            // What is left is of no interest to them: blocks that nothing leads to, and memory of
            // the writer's own.
            self.image.let_in();
        }
        let mut fresh = std::mem::take(&mut level.fresh);
        writer.shadows.truncate(level.shadows_mark);
        level.clear();
        for word in fresh.words() {
            self.cancel(word);
        }
        fresh.clear();
        self.writer.levels[depth].fresh = fresh;
        self.image.shut_out();
        if depth == 0 {
            self.end_undo();
        }
    }

    /// Hands what a savepoint did to the level around it.
    fn merge_level(&mut self) {
        let depth = self.depth;
        let mut inner = std::mem::take(&mut self.writer.levels[depth]);
        self.depth = depth - 1;
        self.last_copy.1 = None;
        let writer = &mut *self.writer;
        let outer = &mut writer.levels[depth - 1];
        inner.ranges.merge_into(&mut outer.ranges);
        inner.unused.merge_into(&mut outer.unused);
        inner.in_place.merge_into(&mut outer.in_place);
        outer.hooks.append(&mut inner.hooks);
        let classes = self.blocks.classes;
        let mark = inner.shadows_mark;
        writer.shadows.merge(&mut inner.shadows, &mut outer.shadows, mark, classes);
        inner.fresh.merge_into(&mut outer.fresh, classes);
        for (_, place) in inner.freed.words().flat_map(|word| word.blocks(classes)) {
            let outer = &mut self.writer.levels[depth - 1];
            if outer.fresh.remove(place) {
                self.cancel(Word::of(place));
            } else {
                outer.freed.insert(place);
            }
        }
        inner.freed.clear();
        self.writer.levels[depth] = inner;
    }

    /// Where the block at `block` lies, and which level reserved it, if one did. O(1).
    #[inline]
    pub(crate) fn find(&self, block: u64) -> Result<(Place, Option<usize>)> {
        let (newest, place) = self.newest;
        if block == newest && self.writer.levels[self.depth].fresh.contains(place) {
            return Ok((place, Some(self.depth)));
        }
        let place = match self.blocks.place(&self.image, block) {
            Ok(place) => place,
            // On the medium a fresh extent is not even there.
            Err(error) => return self.fresh_extent(block).ok_or(error),
        };
        let mut levels = self.writer.levels[..=self.depth].iter();
        let level = levels.rposition(|level| level.fresh.contains(place));
        if level.is_none() {
            self.blocks.judge(&self.image, block, place)?;
        }
        Ok((place, level))
    }

    #[cold]
    fn fresh_extent(&self, block: u64) -> Option<(Place, Option<usize>)> {
        let levels = self.writer.levels[..=self.depth].iter().enumerate();
        levels.rev().find_map(|(level, known)| Some((known.fresh.extent(block)?, Some(level))))
    }

    /// As [`Write::write`], for bytes that the caller overwrites without looking: what is handed out
    /// need not be what the block held. Spares copying it where memory is the medium.
    ///
    /// # Errors
    /// As [`Write::write`].
    #[inline]
    pub fn write_uninit(&mut self, block: u64, at: usize, len: usize) -> Result<&mut [u8]> {
        self.write_range(block, at, len, true)
    }

    #[inline]
    pub(crate) fn write_range(
        &mut self,
        block: u64,
        at: usize,
        len: usize,
        is_uninit: bool,
    ) -> Result<&mut [u8]> {
        let (at, len) = (at as u64, len as u64);
        match at.checked_add(len) {
            Some(end) if self.is_last(block) && end <= self.last.1 => {
                self.track_in(block, self.last.1, (at, len), true)
            }
            Some(end) => match self.last_copy {
                (copied, Some(copy)) if copied == block && len > 0 && copy.has(end) => {
                    Ok(self.writer.shadows.write(copy, at as usize, len as usize))
                }
                _ => self.write_first(block, (at, len), end, is_uninit),
            },
            None => Err(too_short(block)),
        }
    }

    /// As [`Transaction::write_range`], of a block that is not the one that was written last.
    fn write_first(
        &mut self,
        block: u64,
        (at, len): (u64, u64),
        end: u64,
        is_uninit: bool,
    ) -> Result<&mut [u8]> {
        if let Some(bytes) = self.plain(block) {
            if end > bytes {
                return Err(too_short(block));
            }
            self.last = (block, bytes);
            return self.track_in(block, bytes, (at, len), true);
        }
        if let Some(lanes) = self.supply.journal.lanes()
            && let Some(original) = self.original(block)
        {
            if end > original.bytes {
                return Err(too_short(block));
            }
            return self.write_planned(lanes, block, Some(original), (at, len), is_uninit);
        }
        let (place, reserved) = self.find(block)?;
        if end > place.bytes() {
            return Err(too_short(block));
        }
        if let Some(level) = reserved {
            // Of a level around this one: counts as written when it was reserved.
            self.writer.levels[level].fresh.raise(place, end);
            if level == self.depth {
                return self.image.bytes_mut(block + at, len);
            }
            return self.track_in(block, place.bytes(), (at, len), false);
        }
        self.supply.lent.refuse(place)?;
        match self.supply.journal.lanes() {
            Some(lanes) => {
                let original = Original::of(block, place);
                self.write_planned(lanes, block, original, (at, len), is_uninit)
            }
            None => {
                self.last = (block, place.bytes());
                self.track_in(block, place.bytes(), (at, len), true)
            }
        }
    }

    /// Whether a block is the one that was written last, in place and with nothing but memory to
    /// take care of.
    #[inline]
    pub(crate) fn is_last(&self, block: u64) -> bool {
        block == self.last.0 && self.supply.journal.lanes().is_none()
    }

    /// Whether a block may be written in place without asking once more: not where memory is the
    /// medium, nor while any is lent, which is looked for among those (S2).
    #[inline]
    fn may_remember(&self) -> bool {
        self.supply.journal.lanes().is_none() && !self.supply.lent.has_any()
    }

    /// The bytes of a block that this transaction did not reserve and may write in place, if it is
    /// one that nearly all are. `None` says nothing.
    #[inline]
    fn plain(&self, block: u64) -> Option<u64> {
        let is_other = block == self.newest.0 || self.blocks.first_touch.is_some();
        if is_other || !self.may_remember() {
            return None;
        }
        let (run, index, bytes) = self.image.run_index(self.blocks.classes, block)?;
        let levels = &self.writer.levels[..=self.depth];
        let is_fresh = levels.iter().any(|level| level.fresh.contains_at(run, index));
        (!is_fresh).then_some(bytes)
    }

    /// A block that this transaction did not reserve, if it is one that nearly all are. `None` says
    /// nothing.
    #[inline]
    fn original(&self, block: u64) -> Option<Original> {
        let is_other = block == self.newest.0
            || self.blocks.first_touch.is_some()
            || self.supply.lent.has_any();
        if is_other {
            return None;
        }
        let original = self.image.run_original(self.blocks.classes, block)?;
        let levels = &self.writer.levels[..=self.depth];
        let (run, index) = (original.run, original.index);
        let is_fresh = levels.iter().any(|level| level.fresh.contains_at(run, index));
        (!is_fresh).then_some(original)
    }

    /// Frees such a block. Its copy is forgotten: what a level around this one wrote to its own is left
    /// out by the commit.
    fn free_original(&mut self, original: Original) -> Result<()> {
        let Original { offset, run, index, class, .. } = original;
        let levels = &self.writer.levels[..=self.depth];
        let is_freed = levels.iter().any(|level| level.freed.contains_at(run, index));
        if is_freed || !self.image.is_allocated_in(self.blocks.classes, run, class, index)? {
            return Err(Error::InvalidPointer { offset, what: "is already free" });
        }
        let level = &mut self.writer.levels[self.depth];
        level.freed.insert(original.place());
        level.shadows.remove(original);
        if self.last_copy.0 == offset {
            self.last_copy.1 = None;
        }
        Ok(())
    }

    /// Makes a block the one that was written last, if it may be that: false for one that this
    /// transaction reserved, where memory is the medium, and while blocks are lent.
    fn look_up(&mut self, block: u64) -> Result<bool> {
        if let Some(bytes) = self.plain(block) {
            self.last = (block, bytes);
            return Ok(true);
        }
        if !self.may_remember() {
            return Ok(false);
        }
        let (place, reserved) = self.find(block)?;
        if reserved.is_some() {
            return Ok(false);
        }
        self.last = (block, place.bytes());
        Ok(true)
    }

    /// As [`Transaction::track`], of a range within a block.
    #[inline]
    fn track_in(
        &mut self,
        block: u64,
        bytes: u64,
        (at, len): (u64, u64),
        log: bool,
    ) -> Result<&mut [u8]> {
        if len == 0 {
            return Ok(&mut []);
        }
        let ranges = &mut self.writer.levels[self.depth].ranges;
        if ranges.declare_in(&self.image, (block, bytes), (block + at, len), log)? {
            self.supply.space.settled.settle(block + at, len);
            if self.lets_in {
                self.keep_block(block, bytes)?;
            }
        }
        self.image.bytes_mut(block + at, len)
    }

    /// The copy of a block, where this transaction has made any, or the block.
    #[inline]
    fn block_or_copy(&self, block: u64) -> Result<&[u8]> {
        // A locked addition would take longer than the look.
        self.looks.store(self.looks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if let (copied, Some(copy)) = self.last_copy
            && copied == block
        {
            return Ok(self.writer.shadows.bytes(copy));
        }
        let is_known = self.blocks.first_touch.is_none();
        match self.image.run_original(self.blocks.classes, block).filter(|_| is_known) {
            Some(original) => match self.shadow(original) {
                Some(copy) => Ok(copy),
                None => self.image.bytes(block, original.bytes),
            },
            None => self.block_or_copy_anywhere(block),
        }
    }

    #[cold]
    fn block_or_copy_anywhere(&self, block: u64) -> Result<&[u8]> {
        let place = self.image.locate(self.blocks.classes, block);
        let original = place.ok().and_then(|place| Original::of(block, place));
        match original.and_then(|original| self.shadow(original)) {
            Some(copy) => Ok(copy),
            None => self.block_anywhere(block),
        }
    }

    /// A block that is not one of the few that `Blocks::run_block` knows.
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
        self.end_pieces();
        self.writer.trim();
    }
}

#[cold]
pub(crate) fn too_short(block: u64) -> Error {
    Error::InvalidPointer { offset: block, what: "is shorter than what is written" }
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
        if self.writer.shadows.mark() > 0 {
            return self.block_or_copy(block);
        }
        match self.blocks.run_block(&self.image, block) {
            Some(bytes) => Ok(bytes),
            None => self.block_anywhere(block),
        }
    }

    #[inline]
    fn read<T: FromBytes + Immutable + KnownLayout>(&self, ptr: Ptr<T>) -> Result<&T> {
        object(self.block(ptr.offset())?, ptr.offset())
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
        self.write_range(block, at, len, false)
    }

    fn reserve_held(&mut self, bytes: u64) -> Result<u64> {
        self.reserve_and_hold(bytes)
    }

    fn keep_log(&mut self, bytes: u64) -> Result<()> {
        self.supply.journal.keep_log(bytes)
    }

    #[inline]
    fn write_unused(&mut self, block: u64, at: usize, len: usize) -> Result<&mut [u8]> {
        self.write_in_place_unsaved(block, at as u64, len as u64)
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
        let is_plain = self.is_last(block) || self.look_up(block)?;
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
        // A byte or two: a copy whose length is not known beforehand would be a call.
        for (target, source) in target.iter_mut().zip(&value.to_le_bytes()[first..]) {
            *target = *source;
        }
        Ok(())
    }

    fn free(&mut self, block: u64) -> Result<()> {
        let depth = self.depth;
        if let Some(original) = self.original(block) {
            return self.free_original(original);
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
            return Err(Error::InvalidPointer { offset: block, what: "is already free" });
        }
        let level = &mut self.writer.levels[depth];
        level.freed.insert(place);
        Ok(())
    }
}

const _: () = {
    // Its reads may be spread over threads.
    const fn is_sync<T: Sync>() {}
    is_sync::<Transaction<'_>>();
};
