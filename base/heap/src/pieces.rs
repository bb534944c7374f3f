//! Transactions in pieces: large ones that let readers in while they work.
//!
//! Purpose: a view waits for a piece of a transaction, some 50 us, and not for all of it. Views that are
//! let in see the heap as the last commit left it (`before.rs`); the record is built and appended while
//! they are in, since that changes nothing.
//! Invariants: readers are inside only while the transaction changes nothing that they see: whatever
//! changes blocks shuts them out first; words of the allocator may change if nothing leads to their blocks. Nobody else enters: no other transaction, and none of the commits without
//! one. What readers see does not change until the transaction has ended, one way or the other.

use adamant_slice::Slice;
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::access::Read;
use crate::blocks::{Blocks, object};
use crate::error::Result;
use crate::image::Exclusive;
use crate::layout::ROOT_COUNT;
use crate::lent::Lent;
use crate::ptr::Ptr;
use crate::tx::Transaction;
use crate::view::lend;

/// Blocks of more bytes are not copied: no reader is let in after one was changed in place.
const COPY_BYTES_MAX: u64 = 1 << 20;

/// Lines, and words of bitmaps, that a piece changes at most, about.
const PIECE_WORDS: usize = 4096;

impl Transaction<'_> {
    /// Copies what is changed from now on, up to so many bytes, so that readers can be let in.
    pub(crate) fn begin_pieces(&mut self, bytes_max: u64) {
        self.lets_in = true;
        self.image.before_mut().begin(bytes_max);
    }

    /// Whether views can be let in; where not, they wait until the transaction has ended: what it has
    /// changed by now takes more bytes than it may copy.
    pub fn can_give_way(&self) -> bool {
        self.lets_in && self.image.before().is_whole()
    }

    /// Lets the views in that wait, if any do; whether it did. They see the heap as it was before the
    /// transaction. To be called now and then in a [transaction in
    /// pieces](crate::Heap::transaction_in_pieces), when the data structures in the heap are whole; it
    /// does nothing in others. A load, and where somebody waits the time that their views live.
    pub fn give_way(&mut self) -> bool {
        if !self.can_give_way() {
            return false;
        }
        let is_short = self.is_short_of_memory();
        if !is_short && !self.image.are_readers_waiting() {
            return false;
        }
        self.image.let_in();
        if is_short {
            self.take_memory();
        }
        // What was written last may be lent by now.
        self.last = (0, 0);
        self.image.shut_out();
        true
    }

    /// Lets no view in any more until the transaction has ended.
    pub fn keep_out(&mut self) {
        if self.lets_in {
            self.image.before_mut().give_up();
        }
    }

    /// The heap as it was before the transaction, if that can be told: see
    /// [`Transaction::can_give_way`].
    pub fn earlier(&mut self) -> Option<Earlier<'_>> {
        // It may lend what was written last.
        self.last = (0, 0);
        let (blocks, image, lent) = (self.blocks, &self.image, self.supply.lent);
        self.can_give_way().then_some(Earlier { blocks, image, lent })
    }

    /// Lets readers in until the record is appended: from here on nothing changes.
    pub(crate) fn let_in_to_the_end(&mut self) {
        if self.can_give_way() {
            self.image.before_mut().set_ceiling(self.supply.journal.last_sequence());
            self.image.let_in();
        }
    }

    /// Whether the next piece may have to wait for memory: for its own, or that of fresh blocks.
    fn is_short_of_memory(&self) -> bool {
        self.writer.levels[self.depth].is_short_of(PIECE_WORDS)
            || self.supply.is_short_of_touched(self.writer.touched)
    }

    /// Takes that memory, with readers in: to make an index of half a million lines twice as large takes
    /// some 5 ms, and so may the first touch of 2 MiB on a virtual machine.
    fn take_memory(&mut self) {
        let depth = self.depth;
        self.writer.levels[depth].make_room(PIECE_WORDS);
        if self.supply.is_short_of_touched(self.writer.touched) {
            self.writer.touched = self.supply.touch_ahead(self.writer.touched);
        }
    }

    /// Shows what the transaction has changed, and lets readers in for the rest of the commit: words of
    /// blocks that it freed, to which nothing leads any more and which are not reusable yet, and
    /// memory of its own. A batch that replaced a million values has some 50 ms of that.
    pub(crate) fn let_in_afterwards(&mut self) {
        // Hooks come before anybody sees the commit.
        if self.writer.levels[0].hooks.is_empty() {
            self.end_pieces();
            self.image.let_in_afterwards();
        }
    }

    /// What was there before is of no interest any more.
    pub(crate) fn end_pieces(&mut self) {
        if self.lets_in {
            self.copied = std::mem::take(self.image.before_mut());
            self.lets_in = false;
        }
    }

    /// Copies a block before its first change.
    #[cold]
    pub(crate) fn keep_block(&mut self, block: u64, bytes: u64) -> Result<()> {
        if bytes > COPY_BYTES_MAX {
            self.image.before_mut().give_up();
            return Ok(());
        }
        self.image.keep_before(block, bytes)
    }

    /// Copies the words of the roots before one of them changes.
    pub(crate) fn keep_roots(&mut self) {
        if self.lets_in {
            let roots = std::array::from_fn::<u64, ROOT_COUNT, _>(|index| self.image.root(index));
            self.image.before_mut().keep_roots(roots);
        }
    }
}

/// The heap as it was before a transaction in pieces, for whoever runs it.
#[derive(Debug)]
pub struct Earlier<'t> {
    blocks: Blocks<'t>,
    image: &'t Exclusive<'t>,
    lent: &'t Lent,
}

impl Earlier<'_> {
    /// As [`View::lend`](crate::View::lend).
    ///
    /// # Errors
    /// As [`View::lend`](crate::View::lend).
    pub fn lend(&self, block: u64, len: usize) -> Result<Slice> {
        // SAFETY: a transaction has the image exclusively.
        unsafe { lend(self.blocks, self.image, Some(self.image.before()), self.lent, (block, len)) }
    }
}

impl Read for Earlier<'_> {
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
    pub fn shut_out(&mut self) {
        self.0.image.shut_out();
    }

    /// As [`Transaction::give_way`].
    pub fn give_way(&mut self) -> bool {
        self.0.give_way()
    }

    /// As [`Transaction::earlier`].
    pub fn earlier(&mut self) -> Option<Earlier<'_>> {
        self.0.earlier()
    }
}
