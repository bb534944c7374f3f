//! Where blocks lie.
//!
//! Purpose: what `Image::locate` answers, and what is kept of it for a copy.
//! Thread safety: plain numbers.

use crate::layout::PAGE_BYTES;

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Block `index` of the run that starts at page `run`.
    Run {
        /// First page of the run.
        run: u64,
        /// Its class.
        class: u8,
        /// Which block.
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

impl Place {
    /// Bytes that the block can hold.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Run { bytes, .. } => *bytes,
            Self::Extent { pages, .. } => pages * PAGE_BYTES,
        }
    }
}

/// What a transaction can copy: a block of a run, or the words of the roots. In plain numbers: a
/// [`Place`] that was just made and is handed on costs some 5 ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Original {
    /// Its heap offset.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// First page of the run; 0: the roots.
    pub(crate) run: u64,
    pub(crate) index: u64,
    pub(crate) class: u8,
}

impl Original {
    /// The block at a place, if it is in a run: no copy is made of an extent.
    #[inline]
    pub(crate) fn of(offset: u64, place: Place) -> Option<Self> {
        match place {
            Place::Run { run, class, index, bytes, .. } => {
                Some(Self { offset, bytes, run, index, class })
            }
            Place::Extent { .. } => None,
        }
    }

    /// The words of the roots.
    pub(crate) fn roots(offset: u64, bytes: u64) -> Self {
        Self { offset, bytes, run: 0, index: 0, class: 0 }
    }

    /// Where the block lies.
    #[inline]
    pub(crate) fn place(self) -> Place {
        let Self { bytes, run, index, class, .. } = self;
        Place::Run { run, class, index, bytes, is_open: false }
    }
}
