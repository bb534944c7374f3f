//! Transactions in pieces: large ones that let readers in while they work.
//!
//! Purpose: a view waits for a piece of a transaction, some 50 us, and not for all of it. Views that are
//! let in see the heap as the last commit left it (`before_images.rs`); the record is built and appended while
//! they are in, since that changes nothing. Blocks are copied for them when the first view waits, not
//! when they change: the list of old bytes says what they were, and mostly no view comes.
//! Invariants: readers are inside only while the transaction changes nothing that they see: what changes
//! blocks shuts them out first; words of the allocator may change if nothing leads to their blocks. No
//! other transaction enters, and none of the commits without one. Before they are let in, each block
//! that has changed has its copy. What readers see does not change until the transaction has ended,
//! one way or the other.

use adamant_slice::Slice;
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::error::Result;
use crate::image::mapping::Exclusive;
use crate::layout::ROOT_COUNT;
use crate::objects::access::Read;
use crate::ptr::Ptr;
use crate::space::blocks::{Blocks, object};
use crate::space::borrowed::BorrowedBlocks;
use crate::transaction::scratch::Writer;
use crate::transaction::tx::Transaction;
use crate::transaction::view::lend;

/// Blocks of more bytes are not copied: no reader is let in after one was changed in place.
const COPY_BYTES_MAX: u64 = 1 << 20;

/// Ranges, and words of bitmaps, that a piece changes at most, about.
const PIECE_WORDS: usize = 4096;

/// Blocks that are copied so that views may come while the transaction waits for memory, though none does
/// yet: some 20 us.
const COPIED_AHEAD_MAX: usize = 128;

impl Transaction<'_> {
    /// Remembers which blocks change from now on, so that readers can be let in: as long as their copies
    /// take no more than so many bytes.
    pub(crate) fn begin_chunks(&mut self, bytes_max: u64) {
        self.admits_readers = true;
        self.image.before_mut().begin(bytes_max);
    }

    /// Whether views can be let in; where not, they wait until the transaction has ended: what it has
    /// changed by now takes more bytes than it may copy.
    pub fn can_yield(&self) -> bool {
        self.admits_readers && self.image.before().is_whole()
    }

    /// Lets the views in that wait, if any do; whether it did. They see the heap as it was before the
    /// transaction. To be called now and then in a [transaction in
    /// pieces](crate::Heap::transaction_in_pieces), when the data structures in the heap are whole; it
    /// does nothing in others. A load, and where somebody waits the time that their views live.
    pub fn yield_to_readers(&mut self) -> bool {
        if !self.can_yield() {
            return false;
        }
        let (is_short, is_waited_for) =
            (self.is_short_of_memory(), self.image.are_readers_waiting());
        let copies_few = self.writer.changed.len() <= COPIED_AHEAD_MAX;
        let admits_readers = (is_waited_for || is_short && copies_few) && self.admit_readers();
        if is_short {
            self.take_memory();
        }
        if admits_readers {
            // What was written last may be lent by now.
            self.last = (0, 0);
            self.image.drain_readers();
        }
        admits_readers
    }

    /// Lets readers in, who see the heap as it was before, until the next change; whether it did. To be
    /// called where `can_yield` says so.
    fn admit_readers(&mut self) -> bool {
        self.keep_changed();
        let is_whole = self.image.before().is_whole();
        if is_whole {
            self.image.admit_readers();
        }
        is_whole
    }

    /// Copies the blocks that have changed, as they were before. O(n log n) for n ranges written since the
    /// last time.
    fn keep_changed(&mut self) {
        let Writer { changed, levels, .. } = &mut *self.writer;
        if changed.is_empty() {
            return;
        }
        changed.sort_unstable();
        changed.dedup();
        let image = &mut self.image;
        // One that has a copy has it as it was.
        changed.retain(|&(block, bytes)| image.keep_before(block, bytes));
        let before = image.before_mut();
        for level in levels[..=self.depth].iter_mut().rev() {
            level.ranges.newest_first_once(|start, old| {
                let block = changed.partition_point(|(block, _)| *block <= start);
                if let Some((block, _)) = block.checked_sub(1).and_then(|at| changed.get(at)) {
                    before.patch(*block, start - block, old);
                }
            });
        }
        changed.clear();
    }

    /// Lets no view in any more until the transaction has ended.
    pub fn refuse_readers(&mut self) {
        if self.admits_readers {
            self.image.before_mut().give_up();
        }
    }

    /// The heap as it was before the transaction, if that can be told: see
    /// [`Transaction::can_yield`].
    pub fn earlier(&mut self) -> Option<BeforeView<'_>> {
        // It may lend what was written last.
        self.last = (0, 0);
        if self.can_yield() {
            self.keep_changed();
        }
        let (blocks, image, borrowed) = (self.blocks, &self.image, self.allocator.borrowed);
        self.can_yield().then_some(BeforeView { blocks, image, borrowed })
    }

    /// From here on nothing changes until the record is appended: readers that are let in may stay.
    pub(crate) fn end_changes(&mut self) {
        if self.can_yield() {
            self.image.before_mut().set_ceiling(self.allocator.journal.last_sequence());
        }
    }

    /// Lets readers that wait in until the record is appended. Behind `end_changes`.
    #[inline]
    pub(crate) fn admit_until_appended(&mut self) {
        if self.can_yield() && self.image.are_readers_waiting() {
            self.admit_readers();
        }
    }

    /// Whether the next piece may have to wait for memory: for its own, or that of fresh blocks.
    fn is_short_of_memory(&self) -> bool {
        self.writer.levels[self.depth].is_short_of(PIECE_WORDS)
            || self.allocator.is_short_of_touched(self.writer.touched)
    }

    /// Takes that memory, with readers in: to make an index of half a million lines twice as large takes
    /// some 5 ms, and so may the first touch of 2 MiB on a virtual machine.
    fn take_memory(&mut self) {
        let depth = self.depth;
        self.writer.levels[depth].make_room(PIECE_WORDS);
        if self.allocator.is_short_of_touched(self.writer.touched) {
            self.writer.touched = self.allocator.touch_ahead(self.writer.touched);
        }
    }

    /// Shows what the transaction has changed, and lets readers in for the rest of the commit: words of
    /// blocks that it freed, to which nothing leads any more and which are not reusable yet, and
    /// memory of its own. A batch that replaced a million values has some 50 ms of that.
    pub(crate) fn admit_after_commit(&mut self) {
        // Hooks come before anybody sees the commit.
        if self.writer.levels[0].hooks.is_empty() {
            self.end_chunks();
            self.image.admit_after_commit();
        }
    }

    /// What was there before is of no interest any more.
    pub(crate) fn end_chunks(&mut self) {
        if self.admits_readers {
            self.copied = std::mem::take(self.image.before_mut());
            self.writer.changed.clear();
            self.admits_readers = false;
        }
    }

    /// A block is about to change.
    #[cold]
    pub(crate) fn note_changed(&mut self, block: u64, bytes: u64) {
        if bytes > COPY_BYTES_MAX {
            self.image.before_mut().give_up();
        }
        let changed = &mut self.writer.changed;
        if changed.last() != Some(&(block, bytes)) && self.image.before().is_whole() {
            changed.push((block, bytes));
        }
    }

    /// Whether readers may come in while a level is undone: for those that wait, or where it is much.
    pub(crate) fn yields_undone(&mut self) -> bool {
        let is_much = self.writer.levels[self.depth].ranges.is_much();
        if !self.can_yield() || !is_much && !self.image.are_readers_waiting() {
            return false;
        }
        self.keep_changed();
        self.can_yield()
    }

    /// Copies the words of the roots before one of them changes.
    pub(crate) fn keep_roots(&mut self) {
        if self.admits_readers {
            let roots = std::array::from_fn::<u64, ROOT_COUNT, _>(|index| self.image.root(index));
            self.image.before_mut().keep_roots(roots);
        }
    }
}

/// The heap as it was before a transaction in pieces, for whoever runs it.
#[derive(Debug)]
pub struct BeforeView<'t> {
    blocks: Blocks<'t>,
    image: &'t Exclusive<'t>,
    borrowed: &'t BorrowedBlocks,
}

impl BeforeView<'_> {
    /// As [`View::lend`](crate::View::lend).
    ///
    /// # Errors
    /// As [`View::lend`](crate::View::lend).
    pub fn lend(&self, block: u64, len: usize) -> Result<Slice> {
        // SAFETY: a transaction has the image exclusively.
        unsafe {
            lend(self.blocks, self.image, Some(self.image.before()), self.borrowed, (block, len))
        }
    }
}

impl Read for BeforeView<'_> {
    fn block(&self, block: u64) -> Result<&[u8]> {
        match self.image.before().block(block) {
            Some(copy) => Ok(copy),
            None => self.blocks.block(self.image, block),
        }
    }

    fn read<T: FromBytes + Immutable + KnownLayout>(&self, ptr: Ptr<T>) -> Result<&T> {
        object(self.block(ptr.offset())?, ptr.offset())
    }

    fn prefetch(&self, offset: u64) {
        self.image.prefetch(offset);
    }
}

/// A transaction in pieces whose record is appended: it cannot fail any more, and nobody sees it yet.
#[derive(Debug)]
pub struct Ending<'t, 'h>(&'t mut Transaction<'h>);

/// What is to be done in a transaction in pieces whose record is appended.
pub(crate) type Last<'l> = Option<Box<dyn FnOnce(&mut Ending<'_, '_>) + 'l>>;

impl<'t, 'h> Ending<'t, 'h> {
    pub(crate) fn of(transaction: &'t mut Transaction<'h>) -> Self {
        Self(transaction)
    }

    /// Keeps views out from now on.
    pub fn drain_readers(&mut self) {
        self.0.image.drain_readers();
    }

    /// As [`Transaction::yield_to_readers`].
    pub fn yield_to_readers(&mut self) -> bool {
        self.0.yield_to_readers()
    }

    /// As [`Transaction::earlier`].
    pub fn earlier(&mut self) -> Option<BeforeView<'_>> {
        self.0.earlier()
    }
}
