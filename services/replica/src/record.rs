//! Checksummed records: values in postcard's format with a checksum that covers their place.
//!
//! Purpose: a get of a store trusts its page. State on which raft relies is verified at each read,
//! so that damage is an error, and never a vote or entry that was not written.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::layout::CHECKSUM_BYTES;

fn checksum(place: &[u8], body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    crc32c::crc32c_append(crc32c::crc32c(place), body).to_le_bytes()
}

/// Encodes the record of a value at a key.
///
/// # Errors
/// The value has no encoding.
pub(crate) fn encode<T: Serialize>(key: impl AsRef<[u8]>, value: &T) -> Result<Vec<u8>> {
    let encoded = postcard::to_stdvec(value);
    let mut record = encoded.map_err(|error| Error::Encoding { found: error.to_string() })?;
    let checksum = checksum(key.as_ref(), &record);
    record.extend_from_slice(&checksum);
    Ok(record)
}

/// Decodes the record at a key; `place` names it in messages.
///
/// # Errors
/// [`Error::Damaged`].
pub(crate) fn decode<T: DeserializeOwned>(
    place: impl FnOnce() -> String,
    key: impl AsRef<[u8]>,
    record: &[u8],
) -> Result<T> {
    let Some((body, found)) = record.split_last_chunk::<CHECKSUM_BYTES>() else {
        let found = format!("{} bytes", record.len());
        return Err(Error::damaged(place(), "a record with its checksum", found));
    };
    let expected = checksum(key.as_ref(), body);
    if *found != expected {
        let word = |bytes| format!("checksum {:08x}", u32::from_le_bytes(bytes));
        return Err(Error::damaged(place(), word(expected), word(*found)));
    }
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => {
            let found = format!("{} bytes more", rest.len());
            Err(Error::damaged(place(), "a record of its type", found))
        }
        Err(error) => Err(Error::damaged(place(), "a record of its type", error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, record: &[u8]) -> Result<(u64, String)> {
        decode(|| "here".into(), key, record)
    }

    #[test]
    fn every_flipped_bit_and_another_place_is_damage() {
        let value = (7_u64, "seven".to_owned());
        let record = encode("key", &value).unwrap();
        assert_eq!(read("key", &record).unwrap(), value);
        assert!(read("other", &record).unwrap_err().is_damaged());
        for bit in 0..record.len() * 8 {
            let mut damaged = record.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = read("key", &damaged).unwrap_err();
            assert!(error.is_damaged() && error.to_string().contains("here"), "{error}");
        }
        for len in 0..record.len() {
            assert!(read("key", &record[..len]).unwrap_err().is_damaged(), "{len} bytes");
        }
    }

    #[test]
    fn a_record_of_another_type_is_damage() {
        let record = encode("key", &(7_u64, "seven".to_owned(), 1_u8)).unwrap();
        assert!(read("key", &record).unwrap_err().to_string().contains("1 bytes more"));
        let record = encode("key", &7_u64).unwrap();
        assert!(read("key", &record).unwrap_err().is_damaged());
    }
}
