//! Encryption at rest: which directories are encrypted, and by which key.
//!
//! Purpose: everything above works on plain directories. A build without the feature `encryption`
//! has no keys, and refuses encrypted stores by name.
//! Thread safety: any thread.

use std::sync::Arc;

#[cfg(feature = "encryption")]
pub use adamant_medium::encrypted::key::EncryptionKey;
use adamant_medium::storage::Directory;

use crate::error::{Error, Result};

/// The file that makes a directory the one of an encrypted store.
pub(crate) const KEY_NAME: &str = "key";

/// A build without encryption has no keys.
#[cfg(not(feature = "encryption"))]
#[derive(Clone, Debug)]
pub(crate) enum EncryptionKey {}

/// A directory of a store, an increment or neither, with plain contents, and whether another
/// process may write there.
///
/// # Errors
/// [`Error::KeyNeeded`], [`Error::WrongKey`], [`Error::NotEncrypted`]; damage of the key file;
/// those of the medium.
pub(crate) fn decrypted(
    directory: Arc<dyn Directory>,
    (key, is_beside): (Option<&EncryptionKey>, bool),
    is_store: impl Fn(&[String]) -> bool,
) -> Result<Arc<dyn Directory>> {
    if is_encrypted(&directory) {
        return Ok(directory);
    }
    let names = directory.list()?;
    let has_key = names.iter().any(|name| name == KEY_NAME);
    let path = || directory.path().into();
    match key {
        Some(key) if has_key => opened(directory, key, is_beside),
        Some(_) if is_store(&names) => Err(Error::NotEncrypted { path: path() }),
        None if has_key && is_store(&names) => Err(Error::KeyNeeded { path: path() }),
        _ => Ok(directory),
    }
}

#[cfg(feature = "encryption")]
mod with_feature {
    use std::any::Any;
    use std::sync::Arc;

    use adamant_medium::encrypted::directory::EncryptedDirectory;
    use adamant_medium::storage::Directory;

    use super::EncryptionKey;
    use crate::error::Result;

    fn of(directory: &dyn Directory) -> Option<&EncryptedDirectory> {
        (directory as &dyn Any).downcast_ref()
    }

    /// Whether the files of a directory are encrypted.
    pub(crate) fn is_encrypted(directory: &Arc<dyn Directory>) -> bool {
        of(directory.as_ref()).is_some()
    }

    pub(super) fn opened(
        directory: Arc<dyn Directory>,
        key: &EncryptionKey,
        is_beside: bool,
    ) -> Result<Arc<dyn Directory>> {
        let open = match is_beside {
            true => EncryptedDirectory::open_beside,
            false => EncryptedDirectory::open,
        };
        Ok(match open(Arc::clone(&directory), key)? {
            Some(encrypted) => Arc::new(encrypted),
            None => directory,
        })
    }

    /// An empty directory for a store, encrypted if there is a key. Another thread or process must
    /// not do the same meanwhile.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn created(
        directory: Arc<dyn Directory>,
        key: Option<&EncryptionKey>,
    ) -> Result<Arc<dyn Directory>> {
        Ok(match key {
            Some(key) => Arc::new(EncryptedDirectory::create(directory, key)?),
            None => directory,
        })
    }

    /// An empty directory for a copy of a store, encrypted as that is; one that shows an encrypted
    /// store without being it, as an increment does, is by the same key.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn created_alike(
        directory: Arc<dyn Directory>,
        store: &dyn Directory,
        key: Option<&EncryptionKey>,
    ) -> Result<Arc<dyn Directory>> {
        match of(store) {
            Some(store) => Ok(Arc::new(store.create_alike(directory)?)),
            None => created(directory, key),
        }
    }

    /// The key that opens an encrypted store.
    pub(crate) fn key_of(store: &dyn Directory) -> Option<EncryptionKey> {
        of(store).map(EncryptedDirectory::key)
    }

    /// Has another key open a store that is open.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn replace_key(store: &dyn Directory, key: &EncryptionKey) -> Result<bool> {
        of(store)
            .map_or(Ok(false), |store| store.replace_key(key).map(|()| true))
            .map_err(Into::into)
    }
}

#[cfg(not(feature = "encryption"))]
mod without_feature {
    use std::sync::Arc;

    use adamant_medium::storage::Directory;

    use super::EncryptionKey;
    use crate::error::Result;

    pub(crate) fn is_encrypted(_: &Arc<dyn Directory>) -> bool {
        false
    }

    pub(crate) fn key_of(_: &dyn Directory) -> Option<EncryptionKey> {
        None
    }

    pub(super) fn opened(
        _: Arc<dyn Directory>,
        key: &EncryptionKey,
        _: bool,
    ) -> Result<Arc<dyn Directory>> {
        match *key {}
    }

    pub(crate) fn created(
        directory: Arc<dyn Directory>,
        _: Option<&EncryptionKey>,
    ) -> Result<Arc<dyn Directory>> {
        Ok(directory)
    }

    pub(crate) fn created_alike(
        directory: Arc<dyn Directory>,
        _: &dyn Directory,
        _: Option<&EncryptionKey>,
    ) -> Result<Arc<dyn Directory>> {
        Ok(directory)
    }
}

#[cfg(feature = "encryption")]
use with_feature::opened;
#[cfg(feature = "encryption")]
pub(crate) use with_feature::{created, created_alike, is_encrypted, key_of, replace_key};
#[cfg(not(feature = "encryption"))]
use without_feature::opened;
#[cfg(not(feature = "encryption"))]
pub(crate) use without_feature::{created, created_alike, is_encrypted, key_of};
