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

impl Durability {
    /// The stronger of two: the one that survives more.
    #[must_use]
    pub fn or_stronger(self, other: Self) -> Self {
        match (self, other) {
            (Self::Sync, _) | (_, Self::Sync) => Self::Sync,
            (Self::Buffered, _) | (_, Self::Buffered) => Self::Buffered,
            (Self::Deferred, Self::Deferred) => Self::Deferred,
        }
    }
}
