//! Durability levels of a commit.

/// The failures that a commit survives once it has returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Power loss: the record is on the device.
    #[default]
    Sync,
    /// The death of the process: the record is with the operating system.
    Buffered,
    /// Nothing yet: the record stays in memory for a bounded time and number of bytes.
    Deferred,
}
