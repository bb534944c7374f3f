//! Kinds of images: how the pages of a pool get into memory.

use adamant_medium::address::region::page_bytes;

use crate::layout::PAGE_BYTES;

/// How the pages of a pool get into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageKind {
    /// The pool file is mapped. The system reads a page when it is first touched, and takes the
    /// memory of unchanged ones back when it needs it. A read that fails there raises a signal. It
    /// takes a system of pages of 4 KiB; elsewhere, and on file systems without mappings, the image
    /// is filled.
    Mapped,
    /// A page is read into memory of the process by a call when it is first asked for, and verified
    /// against its checksum: a failed read is an error, and no value is returned that is not what
    /// was written. All that was read counts towards [`Options::memory_bytes_max`].
    ///
    /// [`Options::memory_bytes_max`]: crate::Options::memory_bytes_max
    Filled,
}

impl Default for ImageKind {
    /// Mapped on Linux.
    fn default() -> Self {
        match cfg!(all(target_os = "linux", not(adamant_filled_image))) {
            true => Self::Mapped,
            false => Self::Filled,
        }
    }
}

impl ImageKind {
    /// Whether the image of this system is filled.
    pub(crate) fn is_filled(self) -> bool {
        self == Self::Filled || page_bytes() > PAGE_BYTES
    }
}
