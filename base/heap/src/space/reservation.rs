//! Reservations: allocated blocks that their owner fills and no reader sees.
//!
//! Purpose: own writable bytes of the heap, to be filled on any thread and published by a
//! transaction or alone. Dropping a reservation frees the block; a crash does the same.
//! Invariants: until it is published no reader gets a reference to its bytes (`state.rs`), so the
//! reservation may hold the only one, without any lock. It keeps the memory mapped and the
//! directory locked (S5), whatever becomes of the heap. After publication it has no bytes any more
//! (S2).
//! Thread safety: owners are counted by an atomic. A thread cache takes shares by the hundred and
//! hands them out itself: a locked instruction for each would be a fifth of a reservation.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adamant_medium::storage::Lock;
use parking_lot::Mutex;

use crate::error::Result;
use crate::image::block_location::BlockLocation;
use crate::space::block_bits::Word;
use crate::space::state::Space;

/// Shares that a thread cache takes at once.
const SHARES_TAKEN: usize = 128;

/// The lock on the directory, until it is released or the last owner drops this.
pub(crate) type HeldLock = Mutex<Option<Box<dyn Lock>>>;

/// The state that a reservation keeps alive.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) space: Arc<Space>,
    _lock: Arc<HeldLock>,
}

impl Holder {
    pub(crate) fn new(space: Arc<Space>, lock: Arc<HeldLock>) -> Arc<Self> {
        Arc::new(Self { space, _lock: lock })
    }
}

/// A holder and its share count. Each thread cache has one of its own, so that threads do not share
/// the cache line of the count.
#[derive(Debug)]
struct Kept {
    shares: AtomicUsize,
    holder: Arc<Holder>,
}

/// A share of what is kept alive.
#[derive(Debug)]
pub(crate) struct Share(NonNull<Kept>);

// SAFETY: a counted reference to a value that is `Send` and `Sync`.
unsafe impl Send for Share {}
// SAFETY: as above; a shared `Share` only reads.
unsafe impl Sync for Share {}

impl Share {
    #[inline]
    fn space(&self) -> &Space {
        // SAFETY: the value lives at least as long as this share.
        let kept = unsafe { self.0.as_ref() };
        &kept.holder.space
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        release(self.0, 1);
    }
}

/// Releases shares of the caller, and drops what is kept with the last ones. Returns whether they
/// were the last.
fn release(kept: NonNull<Kept>, shares: usize) -> bool {
    // SAFETY: the value lives at least as long as the caller's shares.
    let count = unsafe { &kept.as_ref().shares };
    let is_last = count.fetch_sub(shares, Ordering::Release) == shares;
    if is_last {
        // Everything that others did with it happened before. Not a fence: the thread sanitizer
        // cannot follow one.
        count.load(Ordering::Acquire);
        // SAFETY: made by `Shares::new` from a box, and no share is left.
        drop(unsafe { Box::from_raw(kept.as_ptr()) });
    }
    is_last
}

/// The shares that a thread cache has not handed out; at least one.
#[derive(Debug)]
pub(crate) struct Shares {
    kept: NonNull<Kept>,
    spare: usize,
}

// SAFETY: counted references to a value that is `Send` and `Sync`.
unsafe impl Send for Shares {}

impl Shares {
    pub(crate) fn new(holder: Arc<Holder>) -> Self {
        let kept = Box::new(Kept { shares: AtomicUsize::new(1), holder });
        Self { kept: NonNull::from(Box::leak(kept)), spare: 1 }
    }

    /// Hands out a share.
    #[inline]
    pub(crate) fn take(&mut self) -> Share {
        if self.spare == 1 {
            // SAFETY: the value lives at least as long as the share that is left.
            let count = unsafe { &self.kept.as_ref().shares };
            count.fetch_add(SHARES_TAKEN, Ordering::Relaxed);
            self.spare += SHARES_TAKEN;
        }
        self.spare -= 1;
        Share(self.kept)
    }

    /// Releases them; returns whether none of the shares handed out is left.
    pub(crate) fn end(self) -> bool {
        let (kept, spare) = (self.kept, self.spare);
        std::mem::forget(self);
        release(kept, spare)
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        release(self.kept, self.spare);
    }
}

/// The location of a reserved block, in few bytes: reservations are moved often.
#[derive(Clone, Copy, Debug)]
struct Spot {
    /// First page of the run, or of the extent.
    page: u32,
    /// The block's number in the run, or the pages of the extent.
    number: u32,
    /// Bytes of a block of the run; 0 for an extent.
    bytes: u32,
    class: u8,
}

impl Spot {
    #[inline]
    fn new(place: BlockLocation) -> Self {
        // A heap has at most 2^28 pages.
        match place {
            BlockLocation::Run { run, class, index, bytes, .. } => {
                Self { page: run as u32, number: index as u32, bytes: bytes as u32, class }
            }
            BlockLocation::Extent { page, pages } => {
                Self { page: page as u32, number: pages as u32, bytes: 0, class: 0 }
            }
        }
    }

    #[inline]
    fn place(self) -> BlockLocation {
        let Self { page, number, bytes, class } = self;
        let (page, number) = (u64::from(page), u64::from(number));
        if bytes == 0 {
            return BlockLocation::Extent { page, pages: number };
        }
        BlockLocation::Run { run: page, class, index: number, bytes: bytes.into(), is_open: false }
    }
}

const _: () = assert!(crate::layout::HEAP_BYTES_MAX / crate::layout::PAGE_BYTES <= 1 << 31);

/// A reserved block: writable bytes of the heap that no record contains and no reader sees.
///
/// Its contents are unspecified until written: if the caller never borrowed the bytes mutably, only
/// the allocation becomes durable. Dropped without being published, it leaves no trace. After
/// publication it has no bytes any more: they are read as those of any block.
pub struct Reservation {
    /// `None` after publication.
    share: Option<Share>,
    bytes: NonNull<u8>,
    len: usize,
    block: u64,
    spot: Spot,
    /// Whether the caller may have written to it.
    is_written: bool,
}

// SAFETY: the bytes belong to this value alone (see the head of this file), whatever thread has it,
// and `Holder` is `Send` and `Sync`.
unsafe impl Send for Reservation {}
// SAFETY: `&Reservation` gives out `&[u8]` only.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// The owner of a block that was just taken from the arena.
    ///
    /// # Errors
    /// `Error::Damaged` for a page of it that is not what was written: it may hold other blocks,
    /// too. Those of the medium. Then the block was given back.
    ///
    /// # Safety
    /// `bytes` are the `len` bytes of the block at the start of `place`, in memory that `share`
    /// keeps mapped; no other owner was given the block.
    #[inline]
    pub(crate) unsafe fn new(
        share: Share,
        block: u64,
        place: BlockLocation,
        bytes: NonNull<u8>,
        len: usize,
    ) -> Result<Self> {
        debug_assert!(len as u64 <= place.bytes(), "the block holds what was asked for");
        let spot = Spot::new(place);
        debug_assert_eq!(spot.place(), place, "nothing is cut off");
        if let Some(states) = share.space().image.bounded() {
            // From now on its pages may be stored to at any time (R6).
            states.hold(block, place.bytes());
        }
        let reservation = Self { share: Some(share), bytes, len, block, spot, is_written: false };
        if let Some(share) = &reservation.share {
            // Held first: otherwise a page that was just verified could be evicted.
            share.space().image.touch(block, len as u64)?;
        }
        Ok(reservation)
    }

    /// The heap offset that the block will have after publication.
    pub fn offset(&self) -> u64 {
        self.block
    }

    pub(crate) fn place(&self) -> BlockLocation {
        self.spot.place()
    }

    /// Bytes that become durable with it.
    #[inline]
    pub(crate) fn written_len(&self) -> usize {
        if self.is_written { self.len } else { 0 }
    }

    /// Whether this is an unpublished block of that space.
    #[inline]
    pub(crate) fn is_of(&self, space: &Space) -> bool {
        self.share.as_ref().is_some_and(|share| std::ptr::eq(share.space(), space))
    }

    /// Ends the hold on the pages: no more stores to the bytes follow.
    #[inline]
    fn let_go(&self) {
        if let Some(states) = self.share.as_ref().and_then(|s| s.space().image.bounded()) {
            states.let_go(self.block, self.place().bytes());
        }
    }
}

/// Hands blocks over to a transaction or to readers. Call it while holding the writer lock under
/// which the record names their bytes, or after that.
#[inline]
pub(crate) fn hand_over(reservations: &mut [Reservation]) {
    let mut shares: Option<(NonNull<Kept>, usize)> = None;
    for reservation in reservations {
        let Some(share) = reservation.share.take() else { continue };
        reservation.len = 0;
        if let Some(states) = share.space().image.bounded() {
            states.let_go(reservation.block, reservation.place().bytes());
        }
        // The shares of one thread cache are released at once.
        let kept = share.0;
        std::mem::forget(share);
        shares = match shares {
            Some((known, count)) if known == kept => Some((known, count + 1)),
            others => {
                others.map(|(known, count)| release(known, count));
                Some((kept, 1))
            }
        };
    }
    shares.map(|(kept, count)| release(kept, count));
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut image = self.share.iter().map(|share| &share.space().image);
        if image.any(|image| image.fork().is_child()) {
            // The block is the parent's to free. Its locks may be held by threads that do not exist
            // here.
            return;
        }
        self.let_go();
        if let Some(share) = &self.share {
            share.space().take_back(Word::of(self.place()));
        }
    }
}

impl Deref for Reservation {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the caller of `new` promised that many initialised bytes, which the share keeps
        // mapped and which belong to this value alone; after `hand_over` the length is 0.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }
}

impl DerefMut for Reservation {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.is_written = true;
        // SAFETY: as above, and the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, len, .. } = self;
        f.debug_struct("Reservation").field("offset", block).field("len", len).finish()
    }
}
