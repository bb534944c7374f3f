//! Block locations: where a block lies in the pool.
//!
//! Purpose: the answers of `Image::locate`.
//! Thread safety: plain numbers.

use crate::layout::PAGE_BYTES;

/// The location of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockLocation {
    /// Block `index` of the run that starts at page `run`.
    Run {
        /// First page of the run.
        run: u64,
        /// Its class.
        class: u8,
        /// Index of the block in the run.
        index: u64,
        /// Bytes of a block.
        bytes: u64,
        /// Whether threads without the image's exclusive lock reserve blocks of the run.
        is_open: bool,
    },
    /// An extent.
    Extent {
        /// Its first page.
        page: u64,
        /// Its pages.
        pages: u64,
    },
}

impl BlockLocation {
    /// Bytes that the block can hold.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Run { bytes, .. } => *bytes,
            Self::Extent { pages, .. } => pages * PAGE_BYTES,
        }
    }
}

/// The location of a block of a run that is not open, in plain numbers: passing on a
/// [`BlockLocation`] that was just made costs some 10 ns, as its parts are written separately and
/// then read as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InRun {
    /// First page of the run.
    pub(crate) run: u64,
    pub(crate) class: u8,
    /// Index of the block in the run.
    pub(crate) index: u64,
    /// Bytes of a block.
    pub(crate) bytes: u64,
}

impl InRun {
    /// The same as a [`BlockLocation`].
    #[inline]
    pub(crate) fn place(self) -> BlockLocation {
        let Self { run, class, index, bytes } = self;
        BlockLocation::Run { run, class, index, bytes, is_open: false }
    }
}
