//! The builder: a mutable buffer that becomes a slice.
//!
//! Purpose: to make a slice in place, without a second copy.
//! Invariants: a builder never shares memory: when it is made of a slice, it is the only user. All
//! memory that it hands out is initialised, with zeros at first. Freezing the builder copies the
//! prefix of the slice; after that its bytes cannot change. Inline bytes from `len` on are zeros.
//! Thread safety: like a `Vec<u8>`.

use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::error::Result;
use crate::shared::Block;
use crate::slice::{INLINE_BYTES_MAX, SLICE_BYTES_MAX, Slice, check_length};

/// Bytes reserved at most for an iterator's size hint.
const HINT_BYTES_MAX: usize = 65_536;

/// Writes bytes once, then becomes a `Slice`.
///
/// ```
/// use adamant_slice::Builder;
///
/// let mut builder = Builder::zeroed(5)?;
/// builder[..2].copy_from_slice(b"ab");
/// builder.append(b"and more, beyond twenty")?;
/// assert_eq!(builder.freeze(), b"ab\0\0\0and more, beyond twenty");
/// # Ok::<(), adamant_slice::Error>(())
/// ```
#[derive(Default)]
pub struct Builder {
    room: Room,
    len: usize,
}

enum Room {
    Inline([u8; INLINE_BYTES_MAX]),
    Block(Block),
}

impl Default for Room {
    fn default() -> Self {
        Self::Inline([0; INLINE_BYTES_MAX])
    }
}

impl Room {
    /// Zeros; at least `capacity`, which must be at most `SLICE_BYTES_MAX`.
    fn zeroed(capacity: usize) -> Self {
        if capacity <= INLINE_BYTES_MAX {
            return Self::default();
        }
        Self::Block(Block::zeroed(capacity as u32))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Block(block) => block.bytes(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Block(block) => block.bytes_mut(),
        }
    }
}

impl Builder {
    /// An empty builder; allocates nothing before the 21st byte.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty builder with room for `capacity` bytes.
    ///
    /// # Errors
    /// `TooLong` when that is more than `SLICE_BYTES_MAX`.
    pub fn with_capacity(capacity: usize) -> Result<Self> {
        check_length(capacity)?;
        Ok(Self { room: Room::zeroed(capacity), len: 0 })
    }

    /// A builder that holds `len` zeros, to be written over.
    ///
    /// # Errors
    /// `TooLong` when that is more than `SLICE_BYTES_MAX`.
    pub fn zeroed(len: usize) -> Result<Self> {
        check_length(len)?;
        Ok(Self { room: Room::zeroed(len), len })
    }

    /// Appends `bytes`; amortised O(1) per byte.
    ///
    /// # Errors
    /// `TooLong` when all would be more than `SLICE_BYTES_MAX`; then nothing was appended.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let len = self.len.saturating_add(bytes.len());
        check_length(len)?;
        let capacity = self.room.bytes().len();
        if len > capacity {
            let wanted = len.max(capacity.saturating_mul(2)).min(SLICE_BYTES_MAX);
            let mut room = Room::zeroed(wanted);
            room.bytes_mut()[..self.len].copy_from_slice(&self.room.bytes()[..self.len]);
            self.room = room;
        }
        self.room.bytes_mut()[self.len..len].copy_from_slice(bytes);
        self.len = len;
        Ok(())
    }

    /// The finished slice. Copies nothing beyond 20 bytes; the slice keeps memory that was reserved
    /// and not used.
    pub fn freeze(self) -> Slice {
        match self.room {
            Room::Inline(bytes) => Slice::inline(self.len, bytes),
            Room::Block(block) => Slice::from_block(block, self.len),
        }
    }
}

impl Slice {
    /// Reopens the bytes for writing, without a copy beyond 20 bytes. If other slices use the
    /// memory, or it is not the slice's own (static, or an owner's), the slice comes back: the
    /// bytes of a slice never change.
    ///
    /// ```
    /// use adamant_slice::Slice;
    ///
    /// let slice = Slice::new(b"twenty-one bytes and more");
    /// let clone = slice.clone();
    /// let slice = slice.into_builder().unwrap_err();
    /// drop(clone);
    /// let mut builder = slice.into_builder().unwrap();
    /// builder[0] = b'T';
    /// assert_eq!(builder.freeze(), b"Twenty-one bytes and more");
    /// ```
    ///
    /// # Errors
    /// The slice, unchanged.
    pub fn into_builder(self) -> core::result::Result<Builder, Self> {
        let len = self.len();
        if self.is_inline() {
            let mut bytes = [0; INLINE_BYTES_MAX];
            bytes[..len].copy_from_slice(&self);
            return Ok(Builder { room: Room::Inline(bytes), len });
        }
        let start = self.as_ptr().addr();
        let mut block = self.into_block()?;
        // The slice may have been a part: from now on all of the block is the builder's.
        let skipped = start - block.start().addr().get();
        block.bytes_mut().copy_within(skipped..skipped + len, 0);
        Ok(Builder { room: Room::Block(block), len })
    }
}

impl TryFrom<Slice> for Builder {
    type Error = Slice;

    /// As `Slice::into_builder`.
    fn try_from(slice: Slice) -> core::result::Result<Self, Slice> {
        slice.into_builder()
    }
}

impl Deref for Builder {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.room.bytes()[..self.len]
    }
}

impl DerefMut for Builder {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.room.bytes_mut()[..self.len]
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Builder(b\"{}\")", self.escape_ascii())
    }
}

impl Extend<u8> for Builder {
    /// # Panics
    /// If all would be more than `SLICE_BYTES_MAX`.
    fn extend<Bytes: IntoIterator<Item = u8>>(&mut self, bytes: Bytes) {
        for byte in bytes {
            if let Err(error) = self.append(&[byte]) {
                panic!("{error}");
            }
        }
    }
}

impl FromIterator<u8> for Slice {
    /// # Panics
    /// If there are more than `SLICE_BYTES_MAX`.
    fn from_iter<Bytes: IntoIterator<Item = u8>>(bytes: Bytes) -> Self {
        let bytes = bytes.into_iter();
        let capacity = bytes.size_hint().0.min(HINT_BYTES_MAX);
        let mut builder = Builder { room: Room::zeroed(capacity), len: 0 };
        builder.extend(bytes);
        builder.freeze()
    }
}
