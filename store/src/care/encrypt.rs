//! Encryption of a store that is there, and other keys for one that is encrypted.
//!
//! Purpose: the key that opens a store is replaced at once; what encrypts its files, by writing the
//! store anew.
//! Invariants: a crash leaves the store as it was, or as it is to be.

use std::path::Path;
use std::sync::Arc;

use crate::care::compact::{Compacted, anew};
use crate::encryption::{EncryptionKey, decrypted, replace_key};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::store::handle::Store;
use crate::store::open::{directory_at, resolved};
use crate::store::replacement::LOCK_NAME;

impl Store {
    /// Whether the files of this store are encrypted.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::{EncryptionKey, Options, Store};
    ///
    /// let key = EncryptionKey::random()?;
    /// let store = Store::open_with(&path, Options::new().encryption_key(key))?;
    /// assert!(store.is_encrypted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_encrypted(&self) -> bool {
        // With a key nothing else is opened; an increment is encrypted file by file.
        self.shared.options().key.is_some()
    }

    /// Has another key open this store from now on, instead of the one that did: O(1), two syncs.
    /// The files stay as they are, encrypted by the store's data key, which the new key encrypts.
    /// Backups keep the key that they were made with. Someone who has the old key and an old copy
    /// of the file `key` can read the files of today: if that may be, [`encrypt`] the store anew.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::{EncryptionKey, Options, Store};
    ///
    /// let (monday, friday) = (EncryptionKey::random()?, EncryptionKey::random()?);
    /// let store = Store::open_with(&path, Options::new().encryption_key(monday.clone()))?;
    /// store.rekey(&friday)?;
    /// store.close()?;
    /// assert!(Store::open_with(&path, Options::new().encryption_key(monday)).is_err());
    /// Store::open_with(&path, Options::new().encryption_key(friday))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotEncrypted`], a store that is open for reading only, those of the storage
    /// backend; then the old key opens the store, or, after a failure of the last step, the new
    /// one.
    pub fn rekey(&self, new: &EncryptionKey) -> Result<()> {
        self.check_writable()?;
        let heap = self.shared.heap()?;
        match replace_key(heap.directory().as_ref(), new)? {
            true => Ok(()),
            false => Err(Error::NotEncrypted { path: heap.path().into() }),
        }
    }
}

/// As [`Store::rekey`], for a store that is closed, or an increment.
///
/// # Errors
/// [`Error::WrongKey`] if `old` does not open it, [`Error::Locked`] if it is open; as
/// [`Store::rekey`].
pub fn rekey(path: impl AsRef<Path>, old: &EncryptionKey, new: &EncryptionKey) -> Result<()> {
    let path = resolved(path.as_ref())?;
    let inner = directory_at(&path, &Options::new().create(false))?;
    let open = || decrypted(Arc::clone(&inner), (Some(old), false), |_| true);
    // First without the lock: its file is made only in what is a store of this key.
    open()?;
    let _lock = inner.lock(LOCK_NAME)?;
    let directory = open()?;
    replace_key(directory.as_ref(), new).map(drop)
}

/// Makes a closed store anew that is encrypted by the key in `new_options`, or is not if there is
/// none; `options` open the store as it is. Its files are encrypted by a new data key. Takes space
/// and time as [`compact`](crate::compact); the old files are removed, which does not erase them
/// from a device. If the process ends before that, they are beside the store: as
/// `NAME.compacting`, or `NAME.being-replaced`.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.adamant");
/// use adamant::{EncryptionKey, Options, Store};
///
/// Store::open(&path)?.keyspace("patients")?.put("4711", "Smith")?;
/// let key = EncryptionKey::random()?;
/// let encrypted = Options::new().encryption_key(key);
/// adamant::encrypt(&path, Options::new(), encrypted.clone())?;
/// let store = Store::open_with(&path, encrypted)?;
/// assert_eq!(store.keyspace("patients")?.get("4711")?, Some("Smith".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`compact`](crate::compact).
pub fn encrypt(
    path: impl AsRef<Path>,
    options: Options,
    new_options: Options,
) -> Result<Compacted> {
    anew(path.as_ref(), options, new_options)
}
