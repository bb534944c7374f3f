//! Planned faults of tests where no medium can fail: none, in a normal build.
//!
//! Purpose: asking costs nothing: the answer is a constant, and code that depends on it is not
//! compiled. Thread safety: a pure function.

/// Whether the block that is about to be reserved is refused for want of space: never.
#[inline(always)]
pub const fn refuses_reservation() -> bool {
    false
}
