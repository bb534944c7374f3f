//! Bounds of the private memory of an image.

/// Below this a bound is tight: each page counts that is private without having been stored to.
const TIGHT_BYTES: u64 = 1 << 30;

/// Bounds of the memory of a heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Of dirty memory; `u64::MAX` if there is none.
    pub(crate) memory_bytes_max: u64,
    /// Of memory on huge pages.
    pub(crate) huge_bytes_max: u64,
}

impl Bounds {
    /// No bound.
    pub(crate) const NONE: Self = Self { memory_bytes_max: u64::MAX, huge_bytes_max: 0 };

    /// Whether private memory is given back.
    pub(crate) fn are_any(self) -> bool {
        self.memory_bytes_max < u64::MAX || self.huge_bytes_max > 0
    }

    /// Whether no more is to become private than has to.
    pub(crate) fn are_tight(self) -> bool {
        self.memory_bytes_max < TIGHT_BYTES || self.huge_bytes_max > 0
    }
}
