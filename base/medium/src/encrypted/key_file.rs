//! The key file: the data key of a store, encrypted by the user's key (envelope encryption).
//!
//! Purpose: the user's key can be replaced without writing the store anew.
//! Invariants: the file is replaced in one step. It has its record twice; either opens the store.

use adamant_wire::checksum::crc32c;
use zeroize::Zeroizing;

use super::cipher::Cipher;
use super::key::EncryptionKey;
use super::layout::{
    FORMAT_VERSION, ID_BYTES, KEY_BYTES, KEY_CHECKSUM, KEY_FILE_BYTES, KEY_ID, KEY_MAGIC,
    KEY_NONCE, KEY_OFFSETS, KEY_RECORD_BYTES, KEY_TAG, KEY_VERSION, KEY_WRAPPED,
};
use crate::error::{Error, Result};
use crate::storage::Directory;

/// The name of the key file in the directory of a store.
pub const KEY_NAME: &str = "key";
/// The reason why a file of a later version cannot be read.
pub(super) const NEWER_FORMAT: &str = "expected encrypted files of format 1, found another format; \
                                       open it with the version of this program that wrote it";
/// Its name while it is written.
pub(super) const KEY_NEW_NAME: &str = "key.new";

/// A data key, and the record that holds it encrypted.
#[derive(Clone)]
pub(super) struct DataKey {
    pub(super) id: [u8; ID_BYTES],
    pub(super) bytes: Zeroizing<[u8; KEY_BYTES]>,
    /// The user's key, which opens the record.
    pub(super) key: EncryptionKey,
    record: [u8; KEY_RECORD_BYTES],
}

impl DataKey {
    /// A new one, encrypted by the user's key.
    ///
    /// # Errors
    /// Those of the directory's source of randomness.
    pub(super) fn new(key: &EncryptionKey, directory: &dyn Directory) -> Result<Self> {
        let (mut id, mut bytes) = ([0; ID_BYTES], Zeroizing::new([0; KEY_BYTES]));
        directory.random(&mut id)?;
        directory.random(bytes.as_mut_slice())?;
        let record = [0; KEY_RECORD_BYTES];
        Self { id, bytes, key: key.clone(), record }.wrapped(key, directory)
    }

    /// The same data key, encrypted by another key.
    ///
    /// # Errors
    /// As [`DataKey::new`].
    pub(super) fn wrapped(
        mut self,
        key: &EncryptionKey,
        directory: &dyn Directory,
    ) -> Result<Self> {
        self.key = key.clone();
        let record = &mut self.record;
        *record = [0; KEY_RECORD_BYTES];
        record[..KEY_MAGIC.len()].copy_from_slice(&KEY_MAGIC);
        record[KEY_VERSION].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        record[KEY_ID].copy_from_slice(&self.id);
        let mut wrapped = Zeroizing::new(*self.bytes);
        let cipher = Cipher::new(key.bytes(), directory)?;
        let (nonce, tag) = cipher.seal(&record[..KEY_NONCE.start], wrapped.as_mut_slice());
        record[KEY_NONCE].copy_from_slice(&nonce);
        record[KEY_TAG].copy_from_slice(&tag);
        record[KEY_WRAPPED].copy_from_slice(wrapped.as_slice());
        let checksum = crc32c(0, &record[..KEY_CHECKSUM.start]);
        record[KEY_CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        Ok(self)
    }

    /// The data key of a store; `None` where there is no key file.
    ///
    /// # Errors
    /// `Error::WrongKey` if the key is another one, `Error::NotAuthentic` if both records are
    /// damaged; those of the medium.
    pub(super) fn read(key: &EncryptionKey, directory: &dyn Directory) -> Result<Option<Self>> {
        let Some(file) = directory.open(KEY_NAME)? else { return Ok(None) };
        let (mut is_whole, mut failed) = (false, None);
        for offset in KEY_OFFSETS {
            let mut record = [0; KEY_RECORD_BYTES];
            match file.read_at(&mut record, offset as u64) {
                Err(Error::Truncated { .. }) => continue,
                // The device may have the other one.
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
                Ok(()) => {}
            }
            let checksum = crc32c(0, &record[..KEY_CHECKSUM.start]).to_le_bytes();
            if record[KEY_CHECKSUM] != checksum || !record.starts_with(&KEY_MAGIC) {
                continue;
            }
            let version = record[KEY_VERSION].try_into().map_or(0, u32::from_le_bytes);
            if version != FORMAT_VERSION {
                let source = std::io::Error::new(std::io::ErrorKind::Unsupported, NEWER_FORMAT);
                return Err(Error::io("read the key in", file.path(), None, 0, source));
            }
            is_whole = true;
            if let Some(found) = Self::unwrap(record, key, directory)? {
                return Ok(Some(found));
            }
        }
        let path = file.path().into();
        Err(match (is_whole, failed) {
            (true, _) => Error::WrongKey { path },
            (false, Some(error)) => error,
            (false, None) => Error::NotAuthentic { path, offset: 0 },
        })
    }

    fn unwrap(
        record: [u8; KEY_RECORD_BYTES],
        key: &EncryptionKey,
        directory: &dyn Directory,
    ) -> Result<Option<Self>> {
        let cipher = Cipher::new(key.bytes(), directory)?;
        let (mut id, mut bytes) = ([0; ID_BYTES], Zeroizing::new([0; KEY_BYTES]));
        id.copy_from_slice(&record[KEY_ID]);
        bytes.copy_from_slice(&record[KEY_WRAPPED]);
        let (Ok(nonce), Ok(tag)) = (record[KEY_NONCE].try_into(), record[KEY_TAG].try_into())
        else {
            return Ok(None);
        };
        let sealed = (&record[..KEY_NONCE.start], nonce, tag);
        let is_open = cipher.open(sealed, bytes.as_mut_slice());
        Ok(is_open.then(|| Self { id, bytes, key: key.clone(), record }))
    }

    /// Writes the key file durably, in place of another one or not.
    ///
    /// # Errors
    /// Those of the medium; the one that was there then still is.
    pub(super) fn write(&self, directory: &dyn Directory) -> Result<()> {
        if directory.open(KEY_NEW_NAME)?.is_some() {
            directory.remove(KEY_NEW_NAME)?;
        }
        let file = directory.create(KEY_NEW_NAME)?;
        let mut bytes = [0; KEY_FILE_BYTES];
        for offset in KEY_OFFSETS {
            bytes[offset..][..KEY_RECORD_BYTES].copy_from_slice(&self.record);
        }
        file.write_at(&bytes, 0)?;
        file.sync()?;
        drop(file);
        let is_first = directory.open(KEY_NAME)?.is_none();
        directory.rename(KEY_NEW_NAME, KEY_NAME)?;
        let synced = directory.sync();
        if synced.is_err() && is_first {
            // The name looks durable from now on, and the next sync would not write it: a store
            // that is made here would lose its key by a power cut. Best effort: if this fails, too,
            // the device is unusable.
            let _ = directory.rename(KEY_NAME, KEY_NEW_NAME);
        }
        synced
    }
}
