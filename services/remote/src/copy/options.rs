//! Options of a copy between stores.

use adamant::{EncryptionKey, Engine};

use super::source::{CACHE_BYTES_MAX, MEMORY_BYTES_MAX};

/// How a store is copied.
#[derive(Clone, Debug, Default)]
pub struct CopyOptions {
    pub(super) replace: bool,
    pub(super) engine: Option<Engine>,
    pub(super) key: Option<EncryptionKey>,
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

    /// The key of the store on a machine: opens a source, and encrypts a target. Objects are not
    /// encrypted by it. Default: none.
    #[must_use]
    pub fn encryption_key(mut self, key: Option<EncryptionKey>) -> Self {
        self.key = key;
        self
    }

    /// Options of a store on a machine that is copied or filled.
    pub(super) fn local(&self) -> adamant::Options {
        let options = adamant::Options::new()
            .memory_bytes_max(MEMORY_BYTES_MAX)
            .cache_bytes_max(CACHE_BYTES_MAX)
            // A copy has what there was, whether its time is over or not.
            .sweep_expired(false);
        self.key.iter().cloned().fold(options, adamant::Options::encryption_key)
    }
}
