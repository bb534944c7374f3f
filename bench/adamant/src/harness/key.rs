//! Keys: short byte strings without an allocation, so that making one costs next to nothing.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// Maximum bytes of a key; with its length it fills a cache line.
pub const KEY_BYTES_MAX: usize = 63;

/// A key.
#[derive(Clone, Copy)]
pub struct Key {
    len: u8,
    bytes: [u8; KEY_BYTES_MAX],
}

impl Key {
    /// A key of these bytes.
    ///
    /// # Panics
    /// If they are more than `KEY_BYTES_MAX`.
    pub fn new(bytes: &[u8]) -> Self {
        let mut key = Self { len: 0, bytes: [0; KEY_BYTES_MAX] };
        key.append(bytes);
        key
    }

    /// Appends bytes.
    ///
    /// # Panics
    /// If they become more than `KEY_BYTES_MAX`.
    pub fn append(&mut self, bytes: &[u8]) {
        let start = usize::from(self.len);
        let end = start + bytes.len();
        assert!(end <= KEY_BYTES_MAX, "a key of {end} bytes, at most {KEY_BYTES_MAX} are possible");
        self.bytes[start..end].copy_from_slice(bytes);
        self.len = end as u8;
    }
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.escape_ascii())
    }
}
