//! Transactions: begin, read, write, savepoint, abort. Reserving is in `reserve.rs`, the commit
//! in `commit.rs`.
//!
//! Purpose: change the image so that either all of it becomes one record or none of it happened.
//! Invariants: while a transaction lives it holds the writer's seat and the image's exclusive
//! lock; dropping it without a commit restores every byte and every reservation. Bits of the
//! allocator change in the image only after the record was appended.
//! Lock order: writer, then image, then whatever the journal locks inside `append`.

use std::ops::{Deref, DerefMut};

use parking_lot::{MutexGuard, RwLockWriteGuard};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::access::{Read, Write};
use crate::blocks::Blocks;
use crate::error::{Error, Result};
use crate::image::{Image, Place};
use crate::journal::Journal;
use crate::layout::{DESCRIPTOR_BYTES, DIRECTORY_ROOT, PAGE_BYTES, ZONE_PAGES};
use crate::layout::{KIND_FREE, KIND_RUN, ROOT_COUNT, ROOT_OFFSET, descriptor_offset};
use crate::ptr::Ptr;
use crate::settled::Settled;
use crate::writer::{Level, Writer};

/// Byte of the first root's word in the root page.
const ROOT_WORDS: u64 = 24;

/// A heap transaction. Reads see its own writes.
#[derive(Debug)]
pub struct Transaction<'h> {
    pub(crate) blocks: Blocks<'h>,
    pub(crate) settled: &'h Settled,
    pub(crate) journal: &'h Journal,
    pub(crate) writer: MutexGuard<'h, Writer>,
    pub(crate) image: RwLockWriteGuard<'h, Image>,
    pub(crate) depth: usize,
    pub(crate) done: bool,
}

impl<'h> Transaction<'h> {
    pub(crate) fn new(
        blocks: Blocks<'h>,
        settled: &'h Settled,
        journal: &'h Journal,
        writer: MutexGuard<'h, Writer>,
        image: RwLockWriteGuard<'h, Image>,
    ) -> Self {
        Self { blocks, settled, journal, writer, image, depth: 0, done: false }
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
        savepoint.merge()?;
        Ok(result)
    }

    /// The word of root `index`; 0 when it was never set.
    pub fn root(&self, index: usize) -> u64 {
        self.image.root().ok().and_then(|root| root.roots.get(index)).map_or(0, |word| word.get())
    }

    /// Sets the word of root `index`.
    ///
    /// # Errors
    /// `Error::Misuse` when there is no such root, and for the last one, which is the heap's own.
    pub fn set_root(&mut self, index: usize, value: u64) -> Result<()> {
        if index >= ROOT_COUNT {
            return Err(Error::Misuse { what: "a heap has 16 roots, numbered from 0" });
        }
        if index == DIRECTORY_ROOT {
            return Err(Error::Misuse {
                what: "root 15 is the directory of named roots; use one of 0 to 14, or a name",
            });
        }
        self.set_root_word(index, value)
    }

    /// Sets the word of any root.
    pub(crate) fn set_root_word(&mut self, index: usize, value: u64) -> Result<()> {
        let offset = ROOT_OFFSET + ROOT_WORDS + 8 * index as u64;
        self.track(offset, 8)?.copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// `len` bytes at any heap offset for writing, saved first and noted for the record.
    pub(crate) fn track(&mut self, offset: u64, len: u64) -> Result<&mut [u8]> {
        self.track_as(offset, len, true)
    }

    fn track_as(&mut self, offset: u64, len: u64, log: bool) -> Result<&mut [u8]> {
        if len == 0 {
            return Ok(&mut []);
        }
        let depth = self.depth;
        self.writer.levels[depth].ranges.declare(&self.image, offset, len, log)?;
        self.settled.settle(offset, len);
        self.image.bytes_mut(offset, len)
    }

    /// Takes a fresh block back; the caller removed it from its level.
    pub(crate) fn cancel(&mut self, place: Place) -> Result<()> {
        match place {
            Place::Run { run, index, .. } => self.writer.arena.give_back(run, index),
            Place::Extent { page, pages } => {
                self.clear_extent(page, pages)?;
                self.writer.arena.give_pages(page, pages);
            }
        }
        Ok(())
    }

    /// Makes the descriptors of an extent say that its pages are free.
    pub(crate) fn clear_extent(&mut self, page: u64, pages: u64) -> Result<()> {
        const { assert!(KIND_FREE == 0) };
        self.track(descriptor_offset(page), DESCRIPTOR_BYTES)?.fill(0);
        let mut zone = page / ZONE_PAGES + 1;
        while zone * ZONE_PAGES < page + pages {
            self.track(descriptor_offset(zone * ZONE_PAGES), DESCRIPTOR_BYTES)?.fill(0);
            zone += 1;
        }
        Ok(())
    }

    /// Undoes the innermost level.
    fn undo_level(&mut self) {
        let depth = self.depth;
        let writer = &mut *self.writer;
        let level = &mut writer.levels[depth];
        let restored = level.ranges.restore(&mut self.image);
        if let Err(error) = restored {
            // Saved lines lie in pages that exist, and pages never go away; were it otherwise,
            // memory would no longer be what was committed.
            self.journal.poison(error);
        }
        for (_, fresh) in level.fresh.drain() {
            match fresh.place {
                Place::Run { run, index, .. } => writer.arena.give_back(run, index),
                Place::Extent { page, pages } => writer.arena.give_pages(page, pages),
            }
        }
        for (run, pages) in level.runs.drain(..) {
            writer.arena.remove_run(run);
            writer.arena.give_pages(run, pages);
        }
        level.clear();
    }

    /// Hands what a savepoint did to the level around it.
    fn merge_level(&mut self) -> Result<()> {
        let depth = self.depth;
        let mut inner = std::mem::take(&mut self.writer.levels[depth]);
        self.depth = depth - 1;
        let outer = &mut self.writer.levels[depth - 1];
        inner.ranges.merge_into(&mut outer.ranges);
        outer.runs.append(&mut inner.runs);
        outer.pages_end = outer.pages_end.max(inner.pages_end);
        inner.pages_end = 0;
        for (block, fresh) in inner.fresh.drain() {
            outer.fresh.insert(block, fresh);
        }
        for (block, place) in inner.freed.drain() {
            let outer = &mut self.writer.levels[depth - 1];
            if outer.fresh.remove(block).is_some() {
                self.cancel(place)?;
            } else {
                outer.freed.insert(block, place);
            }
        }
        self.writer.levels[depth] = inner;
        Ok(())
    }

    /// Whether a block was reserved by a level around the innermost one; what is written to it
    /// there counts as written when it was reserved.
    fn note_outer_fresh(&mut self, block: u64, end: u64) -> bool {
        let depth = self.depth;
        self.writer.levels.iter_mut().take(depth).any(|level| match level.fresh.get_mut(block) {
            Some(fresh) => {
                fresh.written = fresh.written.max(end);
                true
            }
            None => false,
        })
    }

    /// Whether the medium says that a block is allocated.
    fn is_allocated(&self, place: Place) -> Result<bool> {
        match place {
            Place::Extent { .. } => Ok(true),
            Place::Run { run, class, index, .. } => {
                // What a damaged descriptor calls a later page of a run may follow none: its
                // bitmap would be somebody's bytes.
                let first = self.image.descriptor(run)?;
                if (first.kind, first.class.get()) != (KIND_RUN, u16::from(class)) {
                    return Ok(false);
                }
                let (word, mask) = self.bit(run, class, index);
                let bytes = self.image.bytes(word, 8)?;
                Ok(adamant_wire::le::u64_at(bytes, 0).is_some_and(|word| word & mask != 0))
            }
        }
    }

    /// Heap offset of the bitmap word of a block, and its bit.
    pub(crate) fn bit(&self, run: u64, class: u8, index: u64) -> (u64, u64) {
        let in_descriptor =
            self.blocks.classes.get(class.into()).is_some_and(|shape| shape.bitmap_in_descriptor);
        if in_descriptor {
            (descriptor_offset(run), 1 << (32 + index))
        } else {
            (run * PAGE_BYTES + index / 64 * 8, 1 << (index % 64))
        }
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
    }
}

/// A savepoint in progress: undone when dropped, unless it was merged.
struct Savepoint<'t, 'h> {
    transaction: &'t mut Transaction<'h>,
    merged: bool,
}

impl Savepoint<'_, '_> {
    fn merge(mut self) -> Result<()> {
        self.merged = true;
        self.transaction.merge_level()
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
        self.blocks.block(&self.image, block)
    }

    #[inline]
    fn read<T: FromBytes + Immutable + KnownLayout>(&self, ptr: Ptr<T>) -> Result<&T> {
        self.blocks.object(&self.image, ptr.offset())
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
        let beyond =
            Error::InvalidPointer { offset: block, what: "is shorter than what is written" };
        let Some(end) = at.checked_add(len) else { return Err(beyond) };
        let depth = self.depth;
        if let Some(fresh) = self.writer.levels[depth].fresh.get_mut(block) {
            if end > fresh.place.bytes() {
                return Err(beyond);
            }
            fresh.written = fresh.written.max(end);
            return self.image.bytes_mut(block + at, len);
        }
        if end > self.blocks.locate(&self.image, block)?.bytes() {
            return Err(beyond);
        }
        let log = depth == 0 || !self.note_outer_fresh(block, end);
        self.track_as(block + at, len, log)
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
        let new = value.to_le_bytes();
        let old = self.block(block)?.get(at..).and_then(|rest| rest.first_chunk::<8>());
        let Some(old) = old.copied() else {
            return Err(Error::InvalidPointer {
                offset: block,
                what: "is shorter than what is written",
            });
        };
        let difference = value ^ u64::from_le_bytes(old);
        if difference == 0 {
            return Ok(());
        }
        let first = (difference.trailing_zeros() / 8) as usize;
        let last = (63 - difference.leading_zeros()) as usize / 8;
        self.write(block, at + first, last + 1 - first)?.copy_from_slice(&new[first..=last]);
        Ok(())
    }

    fn free(&mut self, block: u64) -> Result<()> {
        let depth = self.depth;
        if let Some(fresh) = self.writer.levels[depth].fresh.remove(block) {
            return self.cancel(fresh.place);
        }
        let place = self.blocks.locate(&self.image, block)?;
        let levels = &self.writer.levels[..=depth];
        let freed = levels.iter().any(|level| level.freed.get(block).is_some());
        let fresh = levels.iter().any(|level| level.fresh.get(block).is_some());
        if freed || !(fresh || self.is_allocated(place)?) {
            return Err(Error::InvalidPointer { offset: block, what: "is already free" });
        }
        self.writer.levels[depth].freed.insert(block, place);
        Ok(())
    }
}
