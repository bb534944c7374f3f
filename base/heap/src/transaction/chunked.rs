//! Chunked transactions: large transactions that admit readers while they work.
//!
//! Purpose: a view waits for a chunk of a transaction, some 50 us, and not for all of it. Admitted
//! views see the heap as the last commit left it (`before_images.rs`). The record is built and
//! appended while they are inside, since that changes nothing. Blocks are copied for them when the
//! first view waits, not when they change: the undo list has their old bytes, and mostly no view
//! comes.
//! Invariants: readers are inside only while the transaction changes nothing that they see: code
//! that changes blocks drains the readers first; allocator words may change if nothing leads to
//! their blocks. No other transaction enters, and no commit without a transaction. Before readers
//! are admitted, each changed block has its copy. The view of the readers does not change
//! until the transaction has ended, one way or the other.

use adamant_slice::Slice;

use crate::error::Result;
use crate::image::mapping::guards::Exclusive;
use crate::layout::ROOT_COUNT;
use crate::objects::access::Read;
use crate::space::blocks::Blocks;
use crate::space::borrowed::BorrowedBlocks;
use crate::transaction::scratch::Writer;
use crate::transaction::tx::Transaction;
use crate::transaction::view::lend;

/// Blocks of more bytes are not copied: no reader is admitted after one was changed in place.
const COPY_BYTES_MAX: u64 = 1 << 20;

/// Ranges, and words of bitmaps, that a chunk changes at most, about.
const PIECE_WORDS: usize = 4096;

/// Blocks that are copied so that views may enter while the transaction waits for memory, though
/// none waits yet: some 20 us.
const COPIED_AHEAD_MAX: usize = 128;

impl Transaction<'_> {
    /// Notes which blocks change from now on, so that readers can be admitted, as long as their
    /// copies take no more than `bytes_max` bytes.
    pub(crate) fn begin_chunks(&mut self, bytes_max: u64) {
        self.admits_readers = true;
        self.image.before_mut().begin(bytes_max);
    }

    /// Whether views can be admitted. If not, they wait until the transaction has ended: what it
    /// has changed by now takes more bytes than it may copy.
    pub fn can_yield(&self) -> bool {
        self.admits_readers && self.image.before().is_whole()
    }

    /// Admits the views that wait, if any do; returns whether it did. They see the heap as it was
    /// before the transaction. Call it now and then in a [chunked
    /// transaction](crate::Heap::chunked_transaction), when the data structures in the heap are
    /// consistent; it does nothing in others. Costs a load, and if a view waits the lifetime of the
    /// waiting views.
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
            // A slice of the block that was written last may exist by now.
            self.last = (0, 0);
            self.image.drain_readers();
        }
        admits_readers
    }

    /// Admits readers, who see the heap as it was before, until the next change; returns whether it
    /// did. Call it only if `can_yield` returns true.
    fn admit_readers(&mut self) -> bool {
        self.keep_changed();
        let is_whole = self.image.before().is_whole();
        if is_whole {
            self.image.admit_readers();
        }
        is_whole
    }

    /// Copies the blocks that have changed, as they were before. O(n log n) for n ranges written
    /// since the last call.
    fn keep_changed(&mut self) {
        let Writer { changed, levels, .. } = &mut *self.writer;
        if changed.is_empty() {
            return;
        }
        changed.sort_unstable();
        changed.dedup();
        let image = &mut self.image;
        // A block that has a copy has it as it was before.
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

    /// Admits no more views until the transaction has ended.
    pub fn refuse_readers(&mut self) {
        if self.admits_readers {
            self.image.before_mut().give_up();
        }
    }

    /// The heap as it was before the transaction, if that is known: see [`Transaction::can_yield`].
    pub fn earlier(&mut self) -> Option<BeforeView<'_>> {
        // The view may lend the block that was written last.
        self.last = (0, 0);
        if self.can_yield() {
            self.keep_changed();
        }
        let (blocks, image, borrowed) = (self.blocks, &self.image, self.allocator.borrowed);
        self.can_yield().then_some(BeforeView { blocks, image, borrowed })
    }

    /// From here on nothing changes until the record is appended: admitted readers may stay.
    pub(crate) fn end_changes(&mut self) {
        if self.can_yield() {
            self.image.before_mut().set_ceiling(self.allocator.journal.last_sequence());
        }
    }

    /// Admits waiting readers until the record is appended. Call it after `end_changes`.
    #[inline]
    pub(crate) fn admit_until_appended(&mut self) {
        if self.can_yield() && self.image.are_readers_waiting() {
            self.admit_readers();
        }
    }

    /// Whether the next chunk may have to wait for memory: for its own, or for that of newly
    /// allocated blocks.
    fn is_short_of_memory(&self) -> bool {
        self.writer.levels[self.depth].is_short_of(PIECE_WORDS)
            || self.allocator.is_short_of_touched(self.writer.touched)
    }

    /// Takes that memory, with readers inside: doubling an index of half a million entries takes
    /// some 5 ms, and so may the first touch of 2 MiB on a virtual machine.
    fn take_memory(&mut self) {
        let depth = self.depth;
        self.writer.levels[depth].make_room(PIECE_WORDS);
        if self.allocator.is_short_of_touched(self.writer.touched) {
            self.writer.touched = self.allocator.touch_ahead(self.writer.touched);
        }
    }

    /// Makes the transaction's changes visible, and admits readers for the rest of the commit:
    /// words of blocks that it freed, to which nothing leads any more and which are not reusable
    /// yet, and memory of its own. That takes some 50 ms for a batch that replaced a million
    /// values.
    pub(crate) fn admit_after_commit(&mut self) {
        // Hooks run before any other thread sees the commit.
        if self.writer.levels[0].hooks.is_empty() {
            self.end_chunks();
            self.image.admit_after_commit();
        }
    }

    /// Ends the collection of before-images: no reader needs them any more.
    pub(crate) fn end_chunks(&mut self) {
        if self.admits_readers {
            self.copied = std::mem::take(self.image.before_mut());
            self.writer.changed.clear();
            self.admits_readers = false;
        }
    }

    /// Notes that a block is about to change.
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

    /// Whether readers may enter while a level is undone: if readers wait, or if there is much to
    /// undo.
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

/// The heap as it was before a chunked transaction, for the thread that runs the transaction.
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
        // SAFETY: a transaction holds the image exclusively.
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

    fn prefetch(&self, offset: u64) {
        self.image.prefetch(offset);
    }
}

/// A chunked transaction whose record is appended: it cannot fail any more, and no other thread
/// sees it yet.
#[derive(Debug)]
pub struct Ending<'t, 'h>(&'t mut Transaction<'h>);

/// A callback for a chunked transaction whose record is appended.
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
