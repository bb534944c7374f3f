//! The compression of the values of a keyspace that is kept by a tree, as it is chosen.
//!
//! Thread safety: values.

use std::fmt;
use std::str::FromStr;

use adamant_lsm::{Compression, Error as LsmError};

/// Bytes of the shortest value that is compressed by default: below, an eighth is rarely saved.
const BYTES_MIN: u32 = 128;

/// How a keyspace of the engines `bplus`, `btree`, `critbit` and `redblack` compresses its values:
/// one by one, those from a length on, where that saves an eighth.
///
/// Readers get plain values; a value that is stored compressed is decompressed for each of them: by
/// LZ4 some 0.5 us for 1 KB of text, by zstd some 2 us. Values that stay as they are take a byte
/// more and are borrowed as in any keyspace. See
/// [`KeyspaceOptions::value_compression`](crate::KeyspaceOptions::value_compression) for new
/// keyspaces and [`Store::compress_values`](crate::Store::compress_values) for what is there.
///
/// ```
/// use adamant::{Compression, ValueCompression};
///
/// let fast = ValueCompression::from(Compression::Lz4);
/// assert_eq!((fast.compression(), fast.bytes_min()), (Compression::Lz4, 128));
/// let small = ValueCompression::from(Compression::zstd()).with_bytes_min(300);
/// assert_eq!(small.to_string(), "zstd:3, from 300");
/// assert_eq!("zstd, from 300".parse::<ValueCompression>()?, small);
/// # Ok::<(), adamant::LsmError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueCompression {
    compression: Compression,
    bytes_min: u32,
}

impl ValueCompression {
    /// The same for values from this many bytes on. Default: 128.
    #[must_use]
    pub const fn with_bytes_min(mut self, bytes: u32) -> Self {
        self.bytes_min = bytes;
        self
    }

    /// The method, and the level of zstd.
    pub const fn compression(self) -> Compression {
        self.compression
    }

    /// Bytes of the shortest value that is compressed.
    pub const fn bytes_min(self) -> u32 {
        self.bytes_min
    }

    /// Whether values are stored plain, as if there were no option.
    pub(crate) fn is_none(self) -> bool {
        self.compression == Compression::None
    }

    /// Fails if this build is without it, or there is no such level.
    ///
    /// # Errors
    /// `LsmError::InvalidOption`.
    pub(crate) fn check(self) -> Result<(), LsmError> {
        match self.compression.refusal() {
            None => Ok(()),
            Some(expected) => Err(LsmError::InvalidOption {
                option: "value_compression",
                expected: expected.into(),
                found: self.compression.to_string(),
            }),
        }
    }
}

impl From<Compression> for ValueCompression {
    fn from(compression: Compression) -> Self {
        Self { compression, bytes_min: BYTES_MIN }
    }
}

impl fmt::Display for ValueCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.compression, self.bytes_min) {
            (compression @ Compression::None, _) | (compression, BYTES_MIN) => compression.fmt(f),
            (compression, bytes) => write!(f, "{compression}, from {bytes}"),
        }
    }
}

impl FromStr for ValueCompression {
    type Err = LsmError;

    /// Reads what `Display` gives: a compression, and then, where it is not 128, `from` and the
    /// bytes of the shortest value.
    fn from_str(text: &str) -> Result<Self, LsmError> {
        let Some((compression, end)) = text.split_once(',') else {
            return text.trim().parse().map(|compression: Compression| compression.into());
        };
        let bytes = end.trim().strip_prefix("from ").and_then(|bytes| bytes.trim().parse().ok());
        let bytes = bytes.ok_or_else(|| LsmError::InvalidOption {
            option: "value_compression",
            expected: "a compression, or one and bytes as in \"lz4, from 200\"".into(),
            found: format!("{text:?}"),
        })?;
        Ok(Self::from(compression.trim().parse::<Compression>()?).with_bytes_min(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_read_as_it_is_written() {
        for compression in [Compression::Lz4, Compression::Zstd(1), Compression::Zstd(22)] {
            for bytes in [0, 1, 128, 5000, u32::MAX] {
                let chosen = ValueCompression::from(compression).with_bytes_min(bytes);
                assert_eq!(chosen.to_string().parse::<ValueCompression>().unwrap(), chosen);
            }
        }
        assert!("none".parse::<ValueCompression>().unwrap().is_none());
        for wrong in ["", "lz5", "lz4, 200", "lz4, from", "lz4, from -1", "from 200", "lz4, last"] {
            let error = wrong.parse::<ValueCompression>().expect_err(wrong).to_string();
            assert!(error.contains("expected"), "{error}");
        }
        assert!(ValueCompression::from(Compression::Zstd(23)).check().is_err());
    }
}
