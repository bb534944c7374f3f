//! Counted memory: blocks of bytes, and external owners.
//!
//! Purpose: the memory behind a slice of more than 20 bytes.
//! Invariants: the count is the number of `Shared`; the last one frees. A `Block` is the only way
//! to write, is not yet shared, and all its bytes are initialised from the start. Once it has
//! become a `Shared` its bytes never change.
//! Thread safety: the count is atomic; `Shared` may be cloned and dropped by any thread, because
//! bytes are frozen and owners are `Send + Sync`.
//!
//! ```text
//! block          | count u32 | bytes u32 > 0 | bytes ...           |
//! Owned<Owner>   | count u32 | 0             | vtable | the owner  |
//! ```

use alloc::alloc::{alloc, alloc_zeroed, dealloc, handle_alloc_error};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::mem;
use core::ptr::{self, NonNull};

use crate::few::copy_many;
use crate::sync::{AtomicU32, Ordering};

/// From here on a count is stuck: code that clones this often leaks, which is safe, where wrapping
/// to zero would free memory in use. No process lives to see it without leaking slices on purpose.
const COUNT_STUCK_MIN: u32 = 1 << 31;
/// The value of a stuck count: too far from both ends for racing threads to get there.
const COUNT_STUCK: u32 = 3 << 30;

/// From this size on the allocator provides the zeros, as it may know of memory that was never
/// used. Below, writing them is cheaper than asking: glibc serves `calloc` beside its caches (20
/// ns).
const FRESH_BYTES_MIN: u32 = 64 << 10;

/// The start of everything counted.
#[derive(Debug)]
pub(crate) struct Header {
    /// The number of `Shared`.
    count: AtomicU32,
    /// Bytes of the block that follow; 0 for an external owner, because no block is empty.
    bytes: u32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Header>() == 8, "what a slice costs beside its 24 bytes");

/// An external owner of bytes.
#[repr(C)]
struct Owned<Owner> {
    header: Header,
    vtable: &'static Vtable,
    owner: Owner,
}

/// Operations on an owner of an erased type.
struct Vtable {
    /// Drops and frees the `Owned` at this header, to which no other reference exists.
    free: unsafe fn(NonNull<Header>),
    /// The same, but returns the owner; present when it is a `Vec<u8>`.
    into_vec: Option<unsafe fn(NonNull<Header>) -> Vec<u8>>,
}

/// # Safety
/// `header` must be that of a live `Owned<Owner>` to which no other reference exists.
unsafe fn free_owned<Owner>(header: NonNull<Header>) {
    // SAFETY: by the contract above, and `Owned` is made by `Box` only (`External::with`).
    drop(unsafe { Box::from_raw(header.cast::<Owned<Owner>>().as_ptr()) });
}

/// # Safety
/// `header` must be that of a live `Owned<Vec<u8>>` to which no other reference exists.
unsafe fn owned_into_vec(header: NonNull<Header>) -> Vec<u8> {
    // SAFETY: by the contract above, and `Owned` is made by `Box` only (`External::with`).
    let owned = unsafe { Box::from_raw(header.cast::<Owned<Vec<u8>>>().as_ptr()) };
    owned.owner
}

/// The vtable of any owner.
const fn vtable_of<Owner>() -> &'static Vtable {
    &Vtable { free: free_owned::<Owner>, into_vec: None }
}

/// Layout of a block of `bytes` bytes.
#[inline]
fn block_layout(bytes: u32) -> Layout {
    let size = size_of::<Header>() + bytes as usize;
    Layout::from_size_align(size, align_of::<Header>()).expect("at most SLICE_BYTES_MAX")
}

/// A block that is not shared yet, with all its bytes initialised.
pub(crate) struct Block {
    header: NonNull<Header>,
    bytes: u32,
}

// SAFETY: a block is plain memory of which this value is the only owner.
unsafe impl Send for Block {}
// SAFETY: behind `&Block` bytes can only be read.
unsafe impl Sync for Block {}

impl Block {
    /// A block of `bytes` zeros; at least 1.
    #[inline]
    pub(crate) fn zeroed(bytes: u32) -> Self {
        if bytes >= FRESH_BYTES_MIN {
            let layout = block_layout(bytes);
            // SAFETY: the layout has a size above 0, that of the header.
            let memory = unsafe { alloc_zeroed(layout) };
            return Self::begin(memory, layout, bytes);
        }
        let block = Self::unwritten(bytes as usize);
        // SAFETY: the block has that many bytes after its header.
        unsafe { ptr::write_bytes(block.start().as_ptr(), 0, bytes as usize) };
        block
    }

    /// A block with a copy of `bytes`, which must be 1 to `SLICE_BYTES_MAX`.
    #[inline]
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        let block = Self::unwritten(bytes.len());
        // SAFETY: the block has room for all of `bytes`, and is too new to overlap.
        unsafe { copy_many(bytes, block.start().as_ptr()) };
        block
    }

    /// A block with the concatenation of both parts, which must have 1 to `SLICE_BYTES_MAX` bytes.
    pub(crate) fn fused(left: &[u8], right: &[u8]) -> Self {
        let block = Self::unwritten(left.len() + right.len());
        let start = block.start().as_ptr();
        // SAFETY: the block has room for both parts after the header, and is too new to overlap.
        unsafe { ptr::copy_nonoverlapping(left.as_ptr(), start, left.len()) };
        // SAFETY: `left.len()` is at most the length of the block.
        let rest = unsafe { start.add(left.len()) };
        // SAFETY: as for the left part.
        unsafe { ptr::copy_nonoverlapping(right.as_ptr(), rest, right.len()) };
        block
    }

    /// A block of `bytes` bytes that are not initialised yet: the caller initialises them next.
    #[inline]
    fn unwritten(bytes: usize) -> Self {
        let bytes = u32::try_from(bytes).expect("at most SLICE_BYTES_MAX");
        assert!(bytes > 0, "a length of 0 marks an external owner");
        let layout = block_layout(bytes);
        // SAFETY: the layout has a size above 0, that of the header.
        let memory = unsafe { alloc(layout) };
        Self::begin(memory, layout, bytes)
    }

    #[inline]
    fn begin(memory: *mut u8, layout: Layout, bytes: u32) -> Self {
        let Some(header) = NonNull::new(memory.cast::<Header>()) else {
            handle_alloc_error(layout);
        };
        // SAFETY: freshly allocated with the layout of a block, which starts with a header.
        unsafe { header.write(Header { count: AtomicU32::new(1), bytes }) };
        Self { header, bytes }
    }

    /// A block that was shared and has one user again.
    ///
    /// # Safety
    /// `header` must begin a block, and its only count is given to this.
    #[inline]
    unsafe fn from_alone(header: NonNull<Header>) -> Self {
        // SAFETY: alive, by the contract above.
        let bytes = unsafe { header.as_ref() }.bytes;
        Self { header, bytes }
    }

    /// The first byte; valid for all bytes of the block while a count is held.
    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: every block has a header and at least one byte after it.
        unsafe { self.header.add(1) }.cast()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the constructors initialise the bytes, and we own the block.
        unsafe { core::slice::from_raw_parts(self.start().as_ptr(), self.bytes as usize) }
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; and no other reference to the block exists before `into_shared`.
        unsafe { core::slice::from_raw_parts_mut(self.start().as_ptr(), self.bytes as usize) }
    }

    /// Freezes the bytes.
    #[inline]
    pub(crate) fn into_shared(self) -> Shared {
        let shared = Shared { header: self.header };
        mem::forget(self);
        shared
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        drop(Shared { header: self.header });
    }
}

/// An external owner that was just taken over, and its bytes.
pub(crate) struct External {
    shared: Shared,
    /// Valid, and unchanged, while a count is held.
    bytes: NonNull<[u8]>,
}

impl External {
    /// Takes over an owner.
    pub(crate) fn new<Owner>(owner: Owner) -> Self
    where
        Owner: AsRef<[u8]> + Send + Sync + 'static,
    {
        Self::with(owner, vtable_of::<Owner>())
    }

    /// Takes over a vector, which `Shared::into_vec` can get back.
    pub(crate) fn of_vec(owner: Vec<u8>) -> Self {
        const VTABLE: &Vtable =
            &Vtable { free: free_owned::<Vec<u8>>, into_vec: Some(owned_into_vec) };
        Self::with(owner, VTABLE)
    }

    /// `vtable` must be for this very type of owner.
    fn with<Owner>(owner: Owner, vtable: &'static Vtable) -> Self
    where
        Owner: AsRef<[u8]> + Send + Sync + 'static,
    {
        let header = Header { count: AtomicU32::new(1), bytes: 0 };
        let owned = NonNull::from(Box::leak(Box::new(Owned { header, vtable, owner })));
        // From here on a panic in `as_ref` drops the owner.
        let shared = Shared { header: owned.cast() };
        // SAFETY: the owner lives in its box, unmoved and only borrowed, until the count is 0.
        let owned = unsafe { owned.as_ref() };
        let bytes = NonNull::from(owned.owner.as_ref());
        Self { shared, bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: borrowed from the owner, which lives as long as we count.
        unsafe { self.bytes.as_ref() }
    }

    pub(crate) fn into_shared(self) -> Shared {
        self.shared
    }
}

/// One user of counted memory.
#[derive(Debug)]
pub(crate) struct Shared {
    header: NonNull<Header>,
}

impl Shared {
    /// Takes over an owner whose bytes are found in some other way.
    pub(crate) fn of_owner<Owner>(owner: Owner) -> Self
    where
        Owner: Send + Sync + 'static,
    {
        let header = Header { count: AtomicU32::new(1), bytes: 0 };
        let owned = Box::new(Owned { header, vtable: vtable_of::<Owner>(), owner });
        Self { header: NonNull::from(Box::leak(owned)).cast() }
    }

    /// One user more.
    pub(crate) fn another(&self) -> Self {
        // SAFETY: we hold a count.
        unsafe { Self::count_one_more(self.header) };
        Self { header: self.header }
    }

    /// Whether this is the only count. If so, no other can appear before `self` is used again, and
    /// all that other users did happened before.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        self.header().count.load(Ordering::Acquire) == 1
    }

    /// Gives up the count without lowering it.
    #[inline]
    pub(crate) fn into_header(self) -> NonNull<Header> {
        let header = self.header;
        mem::forget(self);
        header
    }

    /// The inverse of `into_header`.
    ///
    /// # Safety
    /// `header` must come from `into_header` (or a clone counted for), each count being used once.
    #[inline]
    pub(crate) unsafe fn from_header(header: NonNull<Header>) -> Self {
        Self { header }
    }

    /// Counts one more user of the memory that `header` begins.
    ///
    /// # Safety
    /// At least one count must be held for the duration of the call.
    #[inline]
    pub(crate) unsafe fn count_one_more(header: NonNull<Header>) {
        // SAFETY: a count is held, so the header is alive.
        let header = unsafe { header.as_ref() };
        // Relaxed is enough: a thread that clones already holds a count of its own.
        if header.count.fetch_add(1, Ordering::Relaxed) >= COUNT_STUCK_MIN {
            // Racing threads may count a little further on; there is room for 2^30 of them.
            header.count.store(COUNT_STUCK, Ordering::Relaxed);
        }
    }

    /// The vector taken over by `External::of_vec`, when this is its only user.
    pub(crate) fn into_vec(self) -> core::result::Result<Vec<u8>, Self> {
        if self.header().bytes != 0 || !self.is_alone() {
            return Err(self);
        }
        match self.vtable().into_vec {
            // SAFETY: `into_vec` is there for a `Vec<u8>` only; ours is the only count, and it is
            // given up here.
            Some(into_vec) => Ok(unsafe { into_vec(self.into_header()) }),
            None => Err(self),
        }
    }

    /// The block, when this is its only user: it can be written again.
    pub(crate) fn into_block(self) -> core::result::Result<Block, Self> {
        if self.header().bytes == 0 || !self.is_alone() {
            return Err(self);
        }
        // SAFETY: a header with bytes begins a block, and ours is the only count.
        Ok(unsafe { Block::from_alone(self.into_header()) })
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: alive as long as we count.
        unsafe { self.header.as_ref() }
    }

    /// Only for external owners.
    fn vtable(&self) -> &'static Vtable {
        assert!(self.header().bytes == 0, "blocks have no vtable");
        // The type of the owner doesn't matter: `Owned` is `repr(C)` and the vtable before it.
        let owned = self.header.cast::<Owned<()>>();
        // SAFETY: a header with 0 bytes begins an `Owned`, alive as long as we count.
        let vtable = unsafe { &raw const (*owned.as_ptr()).vtable };
        // SAFETY: as above; it was written when the `Owned` was made.
        unsafe { vtable.read() }
    }

    /// Resets a stuck count to its stuck value.
    #[cold]
    fn stick(&self) {
        self.header().count.store(COUNT_STUCK, Ordering::Relaxed);
    }

    /// Frees memory without users.
    #[inline(never)]
    fn free(&mut self) {
        let bytes = self.header().bytes;
        if bytes == 0 {
            let free = self.vtable().free;
            // SAFETY: the vtable is of this owner's type, and no count is left.
            unsafe { free(self.header) };
        } else {
            // SAFETY: no count is left, so the header is never read again; this drops loom's
            // atomics.
            unsafe { self.header.drop_in_place() };
            // SAFETY: allocated by `Block` with this very layout, and no count is left.
            unsafe { dealloc(self.header.as_ptr().cast(), block_layout(bytes)) };
        }
    }
}

impl Drop for Shared {
    #[inline]
    fn drop(&mut self) {
        // Most slices have one user all their life: detecting that costs a load, where counting
        // down costs 5 ns. No other user can appear, since only our own count could be cloned.
        let seen = self.header().count.load(Ordering::Acquire);
        if seen == 1 {
            self.free();
        } else if seen >= COUNT_STUCK_MIN {
            self.stick();
        // Release: all our reads happen before the last user frees.
        } else if self.header().count.fetch_sub(1, Ordering::Release) == 1 {
            // Pairs with the Release of the other users: all their reads happen before we free.
            self.header().count.load(Ordering::Acquire);
            self.free();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_runs_over_sticks_instead_of_freeing() {
        let shared = Block::copy_of(b"bytes that must stay").into_shared();
        shared.header().count.store(COUNT_STUCK_MIN - 1, Ordering::Relaxed);
        for _ in 0..4 {
            // SAFETY: we hold a count.
            unsafe { Shared::count_one_more(shared.header) };
        }
        assert!(shared.header().count.load(Ordering::Relaxed) >= COUNT_STUCK);
        let header = shared.header;
        for _ in 0..4 {
            // SAFETY: counted for above.
            drop(unsafe { Shared::from_header(header) });
        }
        assert_eq!(shared.header().count.load(Ordering::Relaxed), COUNT_STUCK);
        shared.header().count.store(1, Ordering::Relaxed);
    }

    #[test]
    fn a_vector_comes_back_only_to_its_only_user() {
        let external = External::of_vec(alloc::vec![7; 100]);
        assert_eq!(external.bytes(), [7; 100]);
        let shared = external.into_shared();
        // SAFETY: we hold a count.
        unsafe { Shared::count_one_more(shared.header) };
        // SAFETY: counted for above.
        let other = unsafe { Shared::from_header(shared.header) };
        let shared = shared.into_vec().expect_err("there are two users");
        drop(other);
        assert_eq!(shared.into_vec().expect("one user is left"), [7; 100]);
        assert!(External::new([1_u8; 30]).into_shared().into_vec().is_err());
    }
}
