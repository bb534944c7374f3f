//! Planted mistakes: none, in a normal build.
//!
//! Purpose: checking for a planted mistake costs nothing: the answer is a constant, and code that
//! depends on it is not compiled. Thread safety: a pure function.

/// Whether the mistake of that name is planted: never.
#[inline(always)]
pub const fn is_planted(_name: &str) -> bool {
    false
}
