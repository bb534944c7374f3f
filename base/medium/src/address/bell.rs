//! A bell: a counter that processes share, by which one ends the waits of others.

use std::fmt::Debug;
use std::time::Duration;

/// A counter that processes share, which end each other's waits by it.
pub trait Bell: Send + Sync + Debug {
    /// Counts, and ends all waits.
    fn ring(&self);
    /// The count; it wraps around.
    fn count(&self) -> u32;
    /// Waits until the count is another one, for no longer than that. It may end earlier.
    fn wait(&self, seen: u32, longest: Duration);
}
