//! Options of a copy between stores.

use adamant::Engine;

/// How a store is copied.
#[derive(Clone, Debug, Default)]
pub struct CopyOptions {
    pub(super) replace: bool,
    pub(super) engine: Option<Engine>,
}

impl CopyOptions {
    /// Replaces nothing, and keeps the engine of each keyspace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to drop existing keyspaces of a target on objects. Their content is gone as soon as
    /// the copy begins.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// The engine of all keyspaces of a target on a machine. Default: the one that each had when it
    /// was copied to objects, `lsm` if it never was.
    #[must_use]
    pub fn engine(mut self, engine: Option<Engine>) -> Self {
        self.engine = engine;
        self
    }
}
