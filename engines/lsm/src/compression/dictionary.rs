//! Dictionaries of zstd: bytes that values have in common, for values too short to repeat
//! themselves.
//!
//! Purpose: a dictionary in the forms that zstd works with, made once, and training one from
//! samples.
//! Invariants: bytes that zstd does not take as a dictionary never become one.
//! Thread safety: shared by any number of threads.

use std::fmt;

use super::choice::Compression;
use super::zstd::{self, PreparedDictionary};
use crate::error::Error;

/// Bytes that a dictionary may have.
pub const DICTIONARY_BYTES_MAX: usize = 64 << 10;
/// Samples that training needs at least: with fewer, zstd refuses or the dictionary is of no use.
const SAMPLES_MIN: usize = 8;
/// Bytes of a dictionary that training may make at least: zstd refuses fewer.
const TRAINED_BYTES_MIN: usize = 256;

/// A dictionary of zstd for one level.
pub struct Dictionary {
    bytes: Box<[u8]>,
    prepared: PreparedDictionary,
}

impl Dictionary {
    /// Prepares a dictionary for a compression, which decides the level of what is compressed with
    /// it. O(its bytes), some 0.1 ms; the first compression takes some ms more.
    ///
    /// # Errors
    /// [`Error::InvalidOption`]: the bytes are none, too many or no dictionary, or the compression
    /// is not zstd; [`Error::NotBuilt`] without the feature `zstd`.
    pub fn new(bytes: &[u8], compression: Compression) -> Result<Self, Error> {
        let invalid = |expected: String, found: String| Error::InvalidOption {
            option: "dictionary",
            expected,
            found,
        };
        let Compression::Zstd(level) = compression else {
            return Err(invalid("zstd with a dictionary".into(), compression.to_string()));
        };
        if let Some(expected) = compression.refusal() {
            return Err(invalid(expected.into(), compression.to_string()));
        }
        if bytes.is_empty() || bytes.len() > DICTIONARY_BYTES_MAX {
            let expected = format!("1 to {DICTIONARY_BYTES_MAX} bytes");
            return Err(invalid(expected, format!("{} bytes", bytes.len())));
        }
        let prepared = PreparedDictionary::new(bytes, level.into());
        let prepared = prepared.ok_or_else(|| {
            let found = format!("{} bytes that zstd does not take as one", bytes.len());
            invalid("a dictionary of zstd".into(), found)
        })?;
        Ok(Self { bytes: bytes.into(), prepared })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn prepared(&self) -> &PreparedDictionary {
        &self.prepared
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// Trains a dictionary of at most so many bytes from samples: values as they will be compressed.
/// Some hundred times as many bytes of samples as the dictionary gets are best. O(bytes of all
/// samples), some 10 MB/s.
///
/// # Errors
/// [`Error::InvalidOption`] for fewer than 8 samples, samples that have nothing in common, or a
/// size outside 256 bytes to [`DICTIONARY_BYTES_MAX`]; or without the feature `zstd`.
pub fn train<S: AsRef<[u8]>>(samples: &[S], bytes_max: usize) -> Result<Vec<u8>, Error> {
    let refused = |expected: String, found: String| Error::InvalidOption {
        option: "dictionary",
        expected,
        found,
    };
    if let Some(expected) = Compression::zstd().refusal() {
        return Err(refused(expected.into(), "a dictionary of zstd".into()));
    }
    if !(TRAINED_BYTES_MIN..=DICTIONARY_BYTES_MAX).contains(&bytes_max) {
        let expected = format!("{TRAINED_BYTES_MIN} to {DICTIONARY_BYTES_MAX} bytes");
        return Err(refused(expected, format!("{bytes_max} bytes")));
    }
    if samples.len() < SAMPLES_MIN {
        let expected = format!("{SAMPLES_MIN} samples or more to train a dictionary from");
        return Err(refused(expected, format!("{} samples", samples.len())));
    }
    zstd::train(samples, bytes_max).ok_or_else(|| {
        let found = format!("{} samples that zstd makes no dictionary of", samples.len());
        refused("more samples, which have something in common".into(), found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_dictionary_is_refused() {
        if !Compression::zstd().is_built() {
            return;
        }
        let long = vec![1; DICTIONARY_BYTES_MAX + 1];
        // The first bytes of a dictionary, and no tables behind them.
        let torn = [0x37, 0xA4, 0x30, 0xEC, 9, 9, 9, 9, 9, 9];
        for bytes in [&[][..], &long, &torn] {
            assert!(Dictionary::new(bytes, Compression::zstd()).is_err(), "{}", bytes.len());
        }
        assert!(Dictionary::new(b"text", Compression::Lz4).is_err());
        assert!(train(&[b"text"; 7], 1024).is_err());
        assert!(train(&[b"text"; 99], 10).is_err());
        assert!(train(&[b""; 100], 1024).is_err());
    }
}
