//! Encryption keys: what a caller opens an encrypted store with.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use zeroize::Zeroizing;

use super::layout::KEY_BYTES;
use crate::error::{Error, Result};

/// Bytes that are read of what is to be a key: its digits, and blanks around them.
const TEXT_BYTES_MAX: u64 = 1024;

/// A key of 256 bits, which must come from a good source of randomness: it is no password. It
/// encrypts the store's data key, so it can be replaced without writing the store anew. Its memory
/// is overwritten when the last clone is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKey(Zeroizing<[u8; KEY_BYTES]>);

impl EncryptionKey {
    /// A key of these bytes.
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(*bytes))
    }

    /// The key in a text or in raw bytes: 64 hexadecimal digits, with blanks around them or not, or
    /// exactly 32 bytes. `None` for anything else.
    ///
    /// ```
    /// use adamant_medium::encrypted::key::EncryptionKey;
    ///
    /// let text = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
    /// assert!(EncryptionKey::parse(text.as_bytes()).is_some());
    /// assert!(EncryptionKey::parse(b"secret").is_none());
    /// ```
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if let Ok(raw) = bytes.try_into() {
            return Some(Self::from_bytes(raw));
        }
        let (digits, rest) = bytes.trim_ascii().as_chunks::<2>();
        if digits.len() != KEY_BYTES || !rest.is_empty() {
            return None;
        }
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        for (byte, [high, low]) in key.iter_mut().zip(digits) {
            *byte = (digit(*high)? << 4) | digit(*low)?;
        }
        Some(Self(key))
    }

    /// The key in a file, as [`EncryptionKey::parse`] reads it.
    ///
    /// # Errors
    /// `Error::Io`, of kind `InvalidData` if the file holds no key.
    pub fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| unread(path, error))?;
        Self::read_from(file, path)
    }

    /// As [`EncryptionKey::read`], for what a reader gives; errors call it by the name.
    ///
    /// # Errors
    /// As [`EncryptionKey::read`].
    pub fn read_from(reader: impl Read, name: &Path) -> Result<Self> {
        // With room for all: a buffer that grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(TEXT_BYTES_MAX as usize + 1));
        let read = reader.take(TEXT_BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(|error| unread(name, error))?;
        Self::parse(&bytes).ok_or_else(|| {
            let words = format!(
                "expected 64 hexadecimal digits or 32 bytes, found {} bytes of something else",
                bytes.len()
            );
            unread(name, io::Error::new(io::ErrorKind::InvalidData, words))
        })
    }

    /// A new key, from the system's source of randomness.
    ///
    /// # Errors
    /// `Error::Io` if that fails.
    pub fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(bytes.as_mut_slice()).map_err(|error| {
            Error::io("ask for random bytes for", Path::new("a key"), None, 0, error.into())
        })?;
        Ok(Self(bytes))
    }

    /// The key as 64 hexadecimal digits.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

/// Says nothing about the key.
impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey")
    }
}

fn unread(name: &Path, error: io::Error) -> Error {
    Error::io("read the key in", name, None, 0, error)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
