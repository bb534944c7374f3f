//! Text: a slice of valid UTF-8.
//!
//! Purpose: the type of names and messages.
//! Invariants: the bytes are UTF-8, checked once, when the text is made.
//! Thread safety: as the slice's.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Deref, RangeBounds};

use crate::error::{Error, Result};
use crate::slice::{Slice, resolve};

/// An immutable string of up to 4 GiB - 1, in 24 bytes; clones and parts share as a `Slice` does.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text {
    bytes: Slice,
}

impl Text {
    /// A copy of `text`.
    ///
    /// # Panics
    /// If it has more than `SLICE_BYTES_MAX` bytes; `Text::try_from(Slice::try_new(..)?)` does not.
    pub fn new(text: &str) -> Self {
        Self { bytes: Slice::from(text) }
    }

    /// Text that lives forever: borrowed, not copied; works in constants.
    ///
    /// # Panics
    /// If it has more than `SLICE_BYTES_MAX` bytes (in a constant: does not compile).
    pub const fn from_static(text: &'static str) -> Self {
        Self { bytes: Slice::from_static(text.as_bytes()) }
    }

    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        // SAFETY: every constructor takes or checks UTF-8, and the bytes never change.
        unsafe { core::str::from_utf8_unchecked(self.bytes.as_bytes()) }
    }

    /// The bytes, shared.
    pub fn as_slice(&self) -> &Slice {
        &self.bytes
    }

    /// The bytes.
    pub fn into_slice(self) -> Slice {
        self.bytes
    }

    /// The part `range` of the bytes; shares the memory unless it fits inline. O(1). `None` if it
    /// leaves the text or cuts a character.
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Option<Self> {
        let range = resolve(&range, self.len())?;
        let whole = self.is_char_boundary(range.start) && self.is_char_boundary(range.end);
        whole.then(|| Self { bytes: self.bytes.slice(range) })
    }
}

impl TryFrom<Slice> for Text {
    type Error = Error;

    /// Checks that the bytes are UTF-8; copies nothing.
    fn try_from(bytes: Slice) -> Result<Self> {
        match core::str::from_utf8(&bytes) {
            Ok(_) => Ok(Self { bytes }),
            Err(error) => Err(Error::NotUtf8 { valid_bytes: error.valid_up_to() as u64 }),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self { bytes: Slice::from(text) }
    }
}

impl From<Text> for Slice {
    fn from(text: Text) -> Self {
        text.bytes
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.as_str().to_owned()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd<str> for Text {
    fn partial_cmp(&self, other: &str) -> Option<Ordering> {
        Some(self.as_str().cmp(other))
    }
}
