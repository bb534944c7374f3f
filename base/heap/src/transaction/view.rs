//! A view: a reader's shared access to the heap.

use std::ptr::NonNull;

use adamant_slice::Slice;

use crate::error::{Error, Result};
use crate::image::before_images::BeforeImages;
use crate::image::mapping::Image;
use crate::image::mapping::guards::Shared;
use crate::objects::access::Read;
use crate::space::blocks::Blocks;
use crate::space::borrowed::BorrowedBlocks;

/// The heap as the last commit left it.
///
/// While a view lives no commit becomes visible, so it should be short-lived: a transaction waits
/// for it, and other [views](crate::Heap::view) queue behind that transaction, but not [brief
/// ones](crate::Heap::brief_view). A chunked transaction admits views while it works: they see
/// nothing of it. The thread that has a view must neither begin a transaction nor ask the heap for
/// a second view, a pin, figures or a check: if a commit already waits for this view, these calls
/// may wait behind that commit for ever.
#[derive(Debug)]
pub struct View<'h> {
    blocks: Blocks<'h>,
    image: Shared<'h>,
    borrowed: &'h BorrowedBlocks,
}

impl<'h> View<'h> {
    pub(crate) fn new(blocks: Blocks<'h>, image: Shared<'h>, borrowed: &'h BorrowedBlocks) -> Self {
        Self { blocks, image, borrowed }
    }

    /// The word of root `index`; 0 when it was never set.
    pub fn root(&self, index: usize) -> u64 {
        let before = self.image.before().and_then(|before| before.root(index));
        before.unwrap_or_else(|| self.image.root(index))
    }

    /// Whether a [chunked transaction](crate::Heap::chunked_transaction) has admitted this view:
    /// the view shows nothing of what that transaction has done so far.
    pub fn is_early(&self) -> bool {
        self.image.before().is_some()
    }

    /// Whether a transaction waits for this view to be dropped, as far as is known now. A caller
    /// that reads much can drop the view now and then to let it in.
    #[inline]
    pub fn is_waited_for(&self) -> bool {
        self.image.is_waited_for()
    }

    /// Sequence number of the last commit that the view shows, if a later one exists.
    pub(crate) fn ceiling(&self) -> Option<u64> {
        self.image.before()?.ceiling()
    }

    /// Lends the first `len` bytes of a block, without a copy unless they are few, for as long as a
    /// slice of them lives: it outlives the view and even the heap, whose memory it keeps and whose
    /// directory it keeps locked. The block can be freed meanwhile, and is reused when the last
    /// slice is gone; it cannot be overwritten, which is an error. O(1), some 50 ns.
    ///
    /// # Errors
    /// `Error::InvalidPointer` unless an allocated block of that many bytes starts there;
    /// `Error::TooLarge` when a slice cannot have that many.
    pub fn lend(&self, block: u64, len: usize) -> Result<Slice> {
        // SAFETY: a view holds the image shared.
        unsafe { lend(self.blocks, &self.image, self.image.before(), self.borrowed, (block, len)) }
    }
}

/// A slice of the first bytes of a block: borrowed, or copied if the block has changed since the
/// state that the view shows.
///
/// # Errors
/// As [`View::lend`].
///
/// # Safety
/// The image is held, shared or exclusively, so that no other thread writes published blocks
/// meanwhile or makes freed ones reusable; `borrowed` is of the same heap.
pub(crate) unsafe fn lend(
    blocks: Blocks<'_>,
    image: &Image,
    before: Option<&BeforeImages>,
    borrowed: &BorrowedBlocks,
    (block, len): (u64, usize),
) -> Result<Slice> {
    let place = blocks.locate(image, block)?;
    let wrong = |what| Error::InvalidPointer { offset: block, what };
    if !image.is_allocated(blocks.classes, place)? {
        return Err(wrong("is not allocated"));
    }
    if len as u64 > place.bytes() {
        return Err(wrong("is shorter than what is lent"));
    }
    if let Some(copy) = before.and_then(|before| before.block(block)) {
        // The image has newer bytes, so they cannot be borrowed.
        return Ok(Slice::from(copy.get(..len).unwrap_or_default()));
    }
    let start = image.pointer(block, len as u64)?;
    let bytes = NonNull::slice_from_raw_parts(start, len);
    // SAFETY: the bytes were just found in the image, which the holder of `borrowed` keeps, in an
    // allocated block at `place`. The caller promises that the image is held.
    unsafe { borrowed.lend(block, place, bytes) }
}

impl Read for View<'_> {
    #[inline]
    fn block(&self, block: u64) -> Result<&[u8]> {
        if let Some(before) = self.image.before()
            && let Some(copy) = before.block(block)
        {
            return Ok(copy);
        }
        self.blocks.block(&self.image, block)
    }

    #[inline]
    fn prefetch(&self, offset: u64) {
        self.image.prefetch(offset);
    }
}
