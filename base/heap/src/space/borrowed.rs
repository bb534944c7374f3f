//! Borrowed blocks: slices of the heap's memory that outlive the view they were made under.
//!
//! Purpose: hand out a large value without a copy. Its block is frozen until its last slice is
//! dropped (S2), and its memory lives as long (S5), even after the heap was closed.
//! Invariants: a borrowed block is not overwritten in place (`Transaction::write` refuses it) and,
//! once freed, not reused (`Arena::release` skips it). It is lent under the heap's shared lock;
//! overwriting and release happen under the exclusive lock. So safe code cannot reach bytes that
//! change, whatever a damaged pool or a forged pointer leads to. Only the block itself is kept:
//! other blocks freed meanwhile are reused as usual.
//! Thread safety: a mutex around a small map. Slices are dropped without it: a loan is over when
//! its lender is alone, and the next check finds that out.

use std::collections::HashMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adamant_slice::{Lender, Slice};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::image::block_location::BlockLocation;
use crate::space::reservation::Holder;

/// Idle lenders kept for the next loan, so that a get of a large value allocates nothing.
const SPARE_MAX: usize = 16;

/// The most loans that a commit checks.
const SETTLED_MAX: usize = 64;

/// A block: the first page of its run or extent, and its number in the run.
type Key = (u64, u64);

fn key_of(place: BlockLocation) -> Key {
    match place {
        BlockLocation::Run { run, index, .. } => (run, index),
        BlockLocation::Extent { page, .. } => (page, 0),
    }
}

/// All loans of a heap.
pub(crate) struct BorrowedBlocks {
    books: Mutex<Books>,
    /// Whether there may be a loan. Spares writers the lock.
    any: AtomicBool,
}

/// A block of which slices may be left.
struct Loan {
    lender: Lender,
    /// Its heap offset, and its end.
    start: u64,
    end: u64,
}

struct Books {
    /// Kept alive by lenders; `None` once the heap is closed.
    holder: Option<Arc<Holder>>,
    loans: HashMap<Key, Loan>,
    spare: Vec<Lender>,
    /// The number of loans at which the next `sweep` runs.
    swept_at: usize,
}

impl Books {
    /// Removes the loans that are over.
    fn sweep(&mut self) {
        let Self { loans, spare, .. } = self;
        for (_, loan) in loans.extract_if(|_, loan| loan.lender.is_alone()) {
            if spare.len() < SPARE_MAX {
                spare.push(loan.lender);
            }
        }
        self.swept_at = (2 * self.loans.len()).max(SPARE_MAX);
    }
}

impl BorrowedBlocks {
    /// No loans yet, of memory that `holder` keeps.
    pub(crate) fn new(holder: Arc<Holder>) -> Self {
        let books = Books {
            holder: Some(holder),
            loans: HashMap::with_capacity(2 * SPARE_MAX),
            spare: Vec::with_capacity(SPARE_MAX),
            swept_at: SPARE_MAX,
        };
        Self { books: Mutex::new(books), any: AtomicBool::new(false) }
    }

    /// Lends bytes of the block that starts at a heap offset, as a slice.
    ///
    /// # Errors
    /// `Error::TooLarge` for more bytes than a slice can have; `Error::Misuse` once the heap is
    /// closed.
    ///
    /// # Safety
    /// `bytes` are bytes of that block, in memory that the holder keeps. The block is allocated and
    /// published, and the image is held shared: no writer overwrites it or makes it reusable
    /// meanwhile.
    pub(crate) unsafe fn lend(
        &self,
        start: u64,
        place: BlockLocation,
        bytes: NonNull<[u8]>,
    ) -> Result<Slice> {
        let mut books = self.books.lock();
        if books.loans.len() >= books.swept_at {
            books.sweep();
        }
        let Books { holder, loans, spare, .. } = &mut *books;
        let Some(holder) = holder else {
            return Err(Error::Misuse { what: "the heap was closed; open it again" });
        };
        let end = start + place.bytes();
        let new = || {
            let lender = spare.pop().unwrap_or_else(|| Lender::new(Arc::clone(holder)));
            Loan { lender, start, end }
        };
        let loan = loans.entry(key_of(place)).or_insert_with(new);
        // The entry may be an ended loan of a former block with this key.
        (loan.start, loan.end) = (start, end);
        let lender = &mut loan.lender;
        // Stored before the shared lock on the image is released: the next exclusive holder sees
        // it.
        self.any.store(true, Ordering::Relaxed);
        // SAFETY: readable while the holder lives, which the lender owns. Not changed while the
        // loan is in the books, where it stays until this lender is alone: all code that writes
        // published blocks or makes freed ones reusable calls `is_on_loan` first, under the
        // exclusive lock.
        unsafe { lender.lend(bytes) }.map_err(|_| Error::TooLarge {
            bytes: bytes.len() as u64,
            bytes_max: adamant_slice::SLICE_BYTES_MAX as u64,
        })
    }

    /// Refuses to overwrite a borrowed block (S2). Call it with the image held exclusively: then no
    /// new slice is made meanwhile.
    ///
    /// # Errors
    /// `Error::Misuse`.
    #[inline]
    pub(crate) fn refuse(&self, place: BlockLocation) -> Result<()> {
        if self.is_lent(place) {
            return Err(Error::Misuse {
                what: "a block that is borrowed as a slice cannot be overwritten; write a new block, \
                       or drop the slice",
            });
        }
        Ok(())
    }

    /// Whether a slice of a block is left. Call it as [`BorrowedBlocks::refuse`].
    #[inline]
    pub(crate) fn is_lent(&self, place: BlockLocation) -> bool {
        self.has_any() && self.is_on_loan(key_of(place))
    }

    /// Whether a slice of any block may be left.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Whether a slice of the block with this key is left; an extent has number 0. Call it as
    /// [`BorrowedBlocks::refuse`].
    #[cold]
    pub(crate) fn is_on_loan(&self, key: (u64, u64)) -> bool {
        let mut books = self.books.lock();
        let Some(loan) = books.loans.get(&key) else { return false };
        if !loan.lender.is_alone() {
            return true;
        }
        let over = books.loans.remove(&key);
        if books.spare.len() < SPARE_MAX {
            books.spare.extend(over.map(|loan| loan.lender));
        }
        self.any.store(!books.loans.is_empty(), Ordering::Relaxed);
        false
    }

    /// The heap ranges of the blocks of which a slice may be left, in order. Call it as
    /// [`BorrowedBlocks::refuse`]. O(loans).
    pub(crate) fn ranges(&self, found: &mut Vec<(u64, u64)>) {
        found.clear();
        if self.has_any() {
            let mut books = self.books.lock();
            books.sweep();
            found.extend(books.loans.values().map(|loan| (loan.start, loan.end)));
            found.sort_unstable();
        }
    }

    /// Removes the loans that are over if there are few, so that writers need not check.
    #[cold]
    pub(crate) fn settle(&self) {
        let mut books = self.books.lock();
        if books.loans.len() <= SETTLED_MAX {
            books.sweep();
            self.any.store(!books.loans.is_empty(), Ordering::Relaxed);
        }
    }

    /// Closes the books: no more loans. Slices that are left keep the memory and the directory
    /// lock.
    pub(crate) fn close(&self) {
        let mut books = self.books.lock();
        books.holder = None;
        books.spare.clear();
        books.loans.clear();
    }
}

impl fmt::Debug for BorrowedBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BorrowedBlocks").field("any", &self.any).finish_non_exhaustive()
    }
}
