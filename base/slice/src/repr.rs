//! The 24 bytes.
//!
//! Purpose: the two forms of a slice behind functions that are safe to call.
//! Invariants: `len <= INLINE_BYTES_MAX` if and only if the inline form holds, and then all bytes
//! after the first `len` are zero; in the other form `prefix` is the first 4 of the bytes. In both
//! the first 8 bytes are the length and the first 4 bytes of content, padded with zeros.
//! Thread safety: immutable after construction; may be sent and shared (see `shared.rs`).
//!
//! ```text
//!          0     4        8                16               24
//! inline   | len | up to 20 bytes, then zeros                |
//! heap     | len | prefix | pointer to bytes | header or null |
//! ```
//!
//! A null header means bytes that live forever. There is no niche for `Option`: every value of the
//! length is a valid one, and inline bytes may be anything.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::mem;
use core::ops::Range;
use core::ptr::NonNull;

use crate::few::{equal, few_bytes};
use crate::shared::{Block, External, Header, Shared};

/// Bytes that need no allocation.
pub(crate) const INLINE_BYTES_MAX: usize = crate::few::FEW_BYTES_MAX;
/// Bytes at most: 4 GiB - 1, or what an address space of 32 bits has room for.
pub(crate) const SLICE_BYTES_MAX: usize =
    if usize::BITS > 32 { u32::MAX as usize } else { isize::MAX as usize - 64 };
/// Bytes that both forms hold in the value.
const PREFIX_BYTES: usize = 4;

#[derive(Clone, Copy)]
#[repr(C)]
struct Inline {
    len: u32,
    bytes: [u8; INLINE_BYTES_MAX],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Heap {
    len: u32,
    prefix: [u8; PREFIX_BYTES],
    bytes: NonNull<u8>,
    header: Option<NonNull<Header>>,
}

/// The common head of both forms.
#[derive(Clone, Copy)]
#[repr(C)]
struct Head {
    len: u32,
    prefix: [u8; PREFIX_BYTES],
}

/// The inline form by words, as they lie in memory.
#[derive(Clone, Copy)]
#[repr(C)]
struct Words {
    head: Head,
    rest: [u64; 2],
}

#[derive(Clone, Copy)]
#[repr(C)]
union Forms {
    head: Head,
    head_word: u64,
    inline: Inline,
    inline_words: Words,
    heap: Heap,
}

/// A slice in one of its two forms.
pub(crate) struct Repr {
    forms: Forms,
}

const _: () = assert!(size_of::<Repr>() == 24);
const _: () = assert!(size_of::<Inline>() == 24, "no padding: it is compared as words");
const _: () = assert!(size_of::<Words>() == 24, "no padding: it is all of the inline form");
const _: () = assert!(size_of::<Heap>() <= 24);
const _: () = assert!(INLINE_BYTES_MAX >= PREFIX_BYTES);

// SAFETY: the bytes never change, the count is atomic, owners are `Send`, statics are `Sync`.
unsafe impl Send for Repr {}
// SAFETY: as for `Send`; owners are `Sync` too.
unsafe impl Sync for Repr {}

impl Repr {
    /// The first `len` of `bytes`, the rest of which must be zeros.
    #[inline]
    pub(crate) const fn inline(len: u32, bytes: [u8; INLINE_BYTES_MAX]) -> Self {
        Self { forms: Forms { inline: Inline { len, bytes } } }
    }

    /// A copy of at most `INLINE_BYTES_MAX` bytes. It is assembled in registers: bytes stored one
    /// by one and then loaded as words, as every clone does, would wait for each other.
    #[inline]
    fn inline_copy(bytes: &[u8]) -> Self {
        let len = bytes.len() as u32;
        let (prefix, rest) = few_bytes(bytes);
        Self { forms: Forms { inline_words: Words { head: Head { len, prefix }, rest } } }
    }

    /// A copy; at most `SLICE_BYTES_MAX` bytes.
    #[inline]
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        if bytes.len() <= INLINE_BYTES_MAX {
            return Self::inline_copy(bytes);
        }
        Self::whole_block(Block::copy_of(bytes), bytes)
    }

    /// Copies both parts into one slice; together at most `SLICE_BYTES_MAX`.
    pub(crate) fn fused(left: &[u8], right: &[u8]) -> Self {
        let len = left.len() + right.len();
        if len <= INLINE_BYTES_MAX {
            let mut bytes = [0; INLINE_BYTES_MAX];
            bytes[..left.len()].copy_from_slice(left);
            bytes[left.len()..len].copy_from_slice(right);
            return Self::inline(len as u32, bytes);
        }
        Self::from_block(Block::fused(left, right), len)
    }

    /// All of a block, which holds more than `INLINE_BYTES_MAX` bytes, equal to `bytes`.
    #[inline]
    fn whole_block(block: Block, bytes: &[u8]) -> Self {
        let (len, prefix, start) = (bytes.len() as u32, prefix_of(bytes), block.start());
        let header = Some(block.into_shared().into_header());
        Self { forms: Forms { heap: Heap { len, prefix, bytes: start, header } } }
    }

    /// The first `len` bytes of a block, which they may not exceed.
    #[inline]
    pub(crate) fn from_block(block: Block, len: usize) -> Self {
        let bytes = &block.bytes()[..len];
        if len <= INLINE_BYTES_MAX {
            return Self::inline_copy(bytes);
        }
        let start = block.start();
        let prefix = prefix_of(bytes);
        let header = Some(block.into_shared().into_header());
        Self { forms: Forms { heap: Heap { len: len as u32, prefix, bytes: start, header } } }
    }

    /// Bytes that live forever; a copy when they fit inline.
    pub(crate) const fn from_static(bytes: &'static [u8]) -> Self {
        assert!(bytes.len() <= SLICE_BYTES_MAX, "a slice holds at most 4 GiB - 1 bytes");
        let len = bytes.len() as u32;
        if bytes.len() <= INLINE_BYTES_MAX {
            let mut inline = [0; INLINE_BYTES_MAX];
            let (room, _) = inline.split_at_mut(bytes.len());
            room.copy_from_slice(bytes);
            return Self::inline(len, inline);
        }
        let prefix = [bytes[0], bytes[1], bytes[2], bytes[3]];
        // SAFETY: the pointer of a reference is not null.
        let start = unsafe { NonNull::new_unchecked(bytes.as_ptr().cast_mut()) };
        Self { forms: Forms { heap: Heap { len, prefix, bytes: start, header: None } } }
    }

    /// The part `range` of an owner's bytes, within them and at most `SLICE_BYTES_MAX` long.
    pub(crate) fn from_external(external: External, range: Range<usize>) -> Self {
        let part = &external.bytes()[range];
        assert!(part.len() <= SLICE_BYTES_MAX, "the caller checks lengths");
        if part.len() <= INLINE_BYTES_MAX {
            return Self::inline_copy(part);
        }
        let len = part.len() as u32;
        let prefix = prefix_of(part);
        let bytes = NonNull::from(part).cast();
        let header = Some(external.into_shared().into_header());
        Self { forms: Forms { heap: Heap { len, prefix, bytes, header } } }
    }

    /// Bytes that a lender keeps; a copy when they fit inline.
    ///
    /// # Safety
    /// `bytes`, at most `SLICE_BYTES_MAX`, can be read and do not change while the lender's owner
    /// lives.
    pub(crate) unsafe fn lent(shared: &Shared, bytes: NonNull<[u8]>) -> Self {
        // SAFETY: the caller's promise, and the owner lives at least as long as `shared`.
        let part = unsafe { bytes.as_ref() };
        assert!(part.len() <= SLICE_BYTES_MAX, "the caller checks lengths");
        if part.len() <= INLINE_BYTES_MAX {
            return Self::inline_copy(part);
        }
        let (len, prefix) = (part.len() as u32, prefix_of(part));
        let header = Some(shared.another().into_header());
        Self { forms: Forms { heap: Heap { len, prefix, bytes: bytes.cast(), header } } }
    }

    #[inline]
    fn head(&self) -> Head {
        // SAFETY: both forms begin with a head.
        unsafe { self.forms.head }
    }

    /// Length and prefix as one word, equal if and only if both are.
    #[inline]
    fn head_word(&self) -> u64 {
        // SAFETY: both forms begin with a head of 8 initialised bytes.
        unsafe { self.forms.head_word }
    }

    /// The first 4 bytes, padded with zeros, as a number that is ordered as they are.
    #[inline]
    fn prefix_number(&self) -> u32 {
        u32::from_le_bytes(self.head().prefix).swap_bytes()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.head().len as usize
    }

    #[inline]
    pub(crate) fn is_inline(&self) -> bool {
        self.len() <= INLINE_BYTES_MAX
    }

    /// The counted header, if there is one.
    #[inline]
    fn header(&self) -> Option<NonNull<Header>> {
        if self.is_inline() {
            return None;
        }
        // SAFETY: not inline, so the heap form holds.
        unsafe { self.forms.heap.header }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        let len = self.len();
        let start = if len <= INLINE_BYTES_MAX {
            let forms = (&raw const self.forms).cast::<u8>();
            // SAFETY: inline bytes follow the length, within the 24 bytes.
            unsafe { forms.add(size_of::<u32>()) }
        } else {
            // SAFETY: not inline, so the heap form holds.
            unsafe { self.forms.heap.bytes }.as_ptr().cast_const()
        };
        // SAFETY: `len` initialised bytes, in ourselves or in memory that the count (or its being
        // static) keeps alive, and that never changes.
        unsafe { core::slice::from_raw_parts(start, len) }
    }

    /// The bytes, if they are more than `INLINE_BYTES_MAX`.
    #[inline]
    fn heap_bytes(&self) -> &[u8] {
        debug_assert!(!self.is_inline(), "inline bytes have no pointer");
        // SAFETY: not inline, so the heap form holds.
        let heap = unsafe { self.forms.heap };
        // SAFETY: as in `bytes`.
        unsafe { core::slice::from_raw_parts(heap.bytes.as_ptr(), heap.len as usize) }
    }

    /// The part `range`, or `None` if it leaves the bytes; shares the memory unless it fits inline.
    #[inline]
    pub(crate) fn part(&self, range: Range<usize>) -> Option<Self> {
        let part = self.bytes().get(range)?;
        if part.len() <= INLINE_BYTES_MAX {
            return Some(Self::inline_copy(part));
        }
        // More than 20 bytes cannot come from an inline form: this is a part of a heap form.
        // SAFETY: so the heap form holds.
        let header = unsafe { self.forms.heap.header };
        if let Some(header) = header {
            // SAFETY: we hold a count.
            unsafe { Shared::count_one_more(header) };
        }
        let heap = Heap {
            len: part.len() as u32,
            prefix: prefix_of(part),
            bytes: NonNull::from(part).cast(),
            header,
        };
        Some(Self { forms: Forms { heap } })
    }

    /// Whether both have the same bytes.
    #[inline]
    pub(crate) fn equals(&self, other: &Self) -> bool {
        if self.head_word() != other.head_word() {
            return false;
        }
        if self.is_inline() {
            // SAFETY: the inline form holds, and has no padding.
            let ours = unsafe { self.forms.inline_words }.rest;
            // SAFETY: the lengths are equal, so the inline form holds there too.
            let theirs = unsafe { other.forms.inline_words }.rest;
            return ours == theirs;
        }
        equal(self.heap_bytes(), other.heap_bytes())
    }

    /// The order of the bytes. Padding a shorter prefix with zeros keeps the order: where padded
    /// prefixes differ, either both bytes are real, or the shorter string begins the longer one and
    /// its padding is below the longer one's byte. So it is with all inline bytes; where they are
    /// equal with their padding, the shorter string begins the longer one.
    #[inline]
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match self.prefix_number().cmp(&other.prefix_number()) {
            Ordering::Equal => {}
            different => return different,
        }
        let lens = (self.len(), other.len());
        if lens.0 <= INLINE_BYTES_MAX && lens.1 <= INLINE_BYTES_MAX {
            // SAFETY: the inline form holds, and has no padding.
            let ours = unsafe { self.forms.inline_words }.rest.map(u64::from_be);
            // SAFETY: as above.
            let theirs = unsafe { other.forms.inline_words }.rest.map(u64::from_be);
            return ours.cmp(&theirs).then(lens.0.cmp(&lens.1));
        }
        self.bytes().cmp(other.bytes())
    }

    /// The bytes as a vector: without a copy when they are all that is used of one.
    pub(crate) fn into_vec(self) -> Vec<u8> {
        let start = self.bytes().as_ptr().addr();
        let len = self.len();
        match self.into_alone(Shared::into_vec) {
            Ok(mut vec) => {
                let skipped = start - vec.as_ptr().addr();
                vec.truncate(skipped + len);
                vec.drain(..skipped);
                vec
            }
            Err(this) => this.bytes().to_vec(),
        }
    }

    /// The block that the bytes begin, or are in, when this is its only user.
    pub(crate) fn into_block(self) -> Result<Block, Self> {
        self.into_alone(Shared::into_block)
    }

    /// The result of `take` on the counted memory, if there is any and it succeeds.
    fn into_alone<T>(self, take: impl FnOnce(Shared) -> Result<T, Shared>) -> Result<T, Self> {
        let Some(header) = self.header() else { return Err(self) };
        let this = mem::ManuallyDrop::new(self);
        // SAFETY: the count of `this` moves to `shared`; `this` is not dropped.
        let shared = unsafe { Shared::from_header(header) };
        take(shared).map_err(|shared| {
            // Its count goes back.
            shared.into_header();
            mem::ManuallyDrop::into_inner(this)
        })
    }
}

impl Clone for Repr {
    #[inline]
    fn clone(&self) -> Self {
        if let Some(header) = self.header() {
            // SAFETY: we hold a count.
            unsafe { Shared::count_one_more(header) };
        }
        Self { forms: self.forms }
    }
}

impl Drop for Repr {
    #[inline]
    fn drop(&mut self) {
        if let Some(header) = self.header() {
            // SAFETY: our count, used nowhere else since we are being dropped.
            drop(unsafe { Shared::from_header(header) });
        }
    }
}

/// The first bytes of at least `PREFIX_BYTES`.
#[inline]
fn prefix_of(bytes: &[u8]) -> [u8; PREFIX_BYTES] {
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}
