//! A directory whose files are encrypted.
//!
//! Purpose: everything that is stored in a directory, encrypted without its knowing. Names, locks
//! and lengths are not.
//! Invariants: all files of a store are encrypted by one data key, which the key file in the
//! store's directory holds encrypted by the user's.
//! Thread safety: any thread.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::cipher::{Cipher, FileHead, FileId, is_zero};
use super::file::{EncryptedFile, Shared, State};
use super::key::EncryptionKey;
use super::key_file::DataKey;
pub use super::key_file::KEY_NAME;
use super::key_file::{KEY_NEW_NAME, NEWER_FORMAT};
use super::layout::{
    Geometry, HEAD_BYTES, HEAD_KEY_ID, HEAD_MAGIC, HEAD_OFFSETS, HEAD_TAG, ID_BYTES,
};
use crate::error::{Error, Result};
use crate::storage::{Directory, File, Lock, unsupported};

/// A directory, encrypted.
#[derive(Clone, Debug)]
pub struct EncryptedDirectory {
    inner: Arc<dyn Directory>,
    keys: Arc<Keys>,
}

/// What the directories of a store share.
struct Keys {
    /// Its record changes when another key takes the place of the user's.
    data_key: Mutex<DataKey>,
    /// The identity of the data key.
    id: [u8; ID_BYTES],
    shared: Arc<Shared>,
    /// Of the files that are open.
    states: Mutex<HashMap<FileId, Weak<State>>>,
}

impl EncryptedDirectory {
    /// The directory of an encrypted store, with plain contents; `None` if it has no key file.
    ///
    /// # Errors
    /// `Error::WrongKey` for another key, `Error::NotAuthentic` for a damaged key file; those of
    /// the medium.
    pub fn open(inner: Arc<dyn Directory>, key: &EncryptionKey) -> Result<Option<Self>> {
        Self::open_for(inner, key, false)
    }

    /// The same beside another process that may write there: what looks changed is read again for
    /// some milliseconds, since it may be half written.
    ///
    /// # Errors
    /// As [`EncryptedDirectory::open`].
    pub fn open_beside(inner: Arc<dyn Directory>, key: &EncryptionKey) -> Result<Option<Self>> {
        Self::open_for(inner, key, true)
    }

    fn open_for(
        inner: Arc<dyn Directory>,
        key: &EncryptionKey,
        is_beside: bool,
    ) -> Result<Option<Self>> {
        let data_key = DataKey::read(key, inner.as_ref())?;
        data_key.map(|data_key| Self::with(inner, data_key, is_beside)).transpose()
    }

    /// An empty directory as that of an encrypted store, with a new data key. The key file is
    /// durable on return, except for the name of the directory.
    ///
    /// # Errors
    /// Those of the medium.
    pub fn create(inner: Arc<dyn Directory>, key: &EncryptionKey) -> Result<Self> {
        refuse_key_file(inner.as_ref())?;
        let data_key = DataKey::new(key, inner.as_ref())?;
        data_key.write(inner.as_ref())?;
        Self::with(inner, data_key, false)
    }

    /// An empty directory as that of a copy of this store: with the same data key, and the same key
    /// that opens it, so that files of one can be linked into the other.
    ///
    /// # Errors
    /// Those of the medium.
    pub fn create_alike(&self, inner: Arc<dyn Directory>) -> Result<Self> {
        refuse_key_file(inner.as_ref())?;
        let data_key = self.data_key().clone();
        data_key.write(inner.as_ref())?;
        Self::with(inner, data_key, false)
    }

    /// Has another key open this store, whose directory this is: the key file is replaced in one
    /// step. The data key stays, so this costs two syncs, whatever the size of the store. O(1).
    ///
    /// # Errors
    /// Those of the medium; the old key may open the store then, or the new one.
    pub fn replace_key(&self, key: &EncryptionKey) -> Result<()> {
        let mut data_key = self.data_key();
        let replaced = data_key.clone().wrapped(key, self.inner.as_ref())?;
        replaced.write(self.inner.as_ref())?;
        *data_key = replaced;
        Ok(())
    }

    /// The key that opens this store, even if another one did when it was opened.
    pub fn key(&self) -> EncryptionKey {
        self.data_key().key.clone()
    }

    fn data_key(&self) -> MutexGuard<'_, DataKey> {
        self.keys.data_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(inner: Arc<dyn Directory>, data_key: DataKey, is_beside: bool) -> Result<Self> {
        let cipher = Cipher::new(&data_key.bytes, inner.as_ref())?;
        let (id, data_key) = (data_key.id, Mutex::new(data_key));
        let shared = Arc::new(Shared { cipher, is_beside, changed: AtomicU32::new(0) });
        let states = Mutex::default();
        Ok(Self { inner, keys: Arc::new(Keys { data_key, id, shared, states }) })
    }

    /// Another directory of the same store.
    fn of(&self, inner: Arc<dyn Directory>) -> Self {
        Self { inner, keys: Arc::clone(&self.keys) }
    }

    fn file(&self, inner: Arc<dyn File>, head: FileHead) -> Arc<dyn File> {
        let mut states = self.keys.states.lock().unwrap_or_else(PoisonError::into_inner);
        if states.len() == states.capacity() {
            // Before it grows, so that closed files are removed each time it doubles.
            states.retain(|_, state| state.strong_count() > 0);
        }
        let known = states.get(&head.id).and_then(Weak::upgrade);
        // Files without heads are not the same file.
        let known = known.filter(|_| head.id != [0; ID_BYTES]);
        let state = known.unwrap_or_else(|| {
            let state = Arc::default();
            states.insert(head.id, Arc::downgrade(&state));
            state
        });
        let shared = Arc::clone(&self.keys.shared);
        Arc::new(EncryptedFile::new(inner, shared, state, head))
    }

    /// The head of a file.
    fn head_of(&self, file: &dyn File) -> Result<FileHead> {
        let mut head = [0; HEAD_BYTES as usize];
        if file.len()? >= HEAD_BYTES {
            file.read_at(&mut head, 0)?;
        }
        if is_zero(&head) {
            // A crash left a file without a durable byte: nothing that it has can be opened.
            return Ok(FileHead { id: [0; ID_BYTES], geometry: Geometry::Sectors });
        }
        let records = HEAD_OFFSETS.iter().filter_map(|&at| head[at..].first_chunk());
        let mut authentic = records.filter(|record: &&[u8; HEAD_TAG.end]| {
            let is_ours = record.starts_with(&HEAD_MAGIC) && record[HEAD_KEY_ID] == self.keys.id;
            is_ours && self.keys.shared.cipher.is_authentic_head(record)
        });
        let Some(record) = authentic.next() else {
            return Err(Error::NotAuthentic { path: file.path().into(), offset: 0 });
        };
        // In all versions the head is authenticated in the same way.
        FileHead::of(record).ok_or_else(|| {
            let source = std::io::Error::new(std::io::ErrorKind::Unsupported, NEWER_FORMAT);
            Error::io("open", file.path(), None, 0, source)
        })
    }

    fn create_with(&self, name: &str, geometry: Geometry) -> Result<Arc<dyn File>> {
        let file = self.inner.create(name)?;
        let mut head = FileHead { id: [0; ID_BYTES], geometry };
        let made = self.inner.random(&mut head.id).and_then(|()| {
            let mut bytes = [0; HEAD_BYTES as usize];
            let sealed = self.keys.shared.cipher.head(&self.keys.id, &head);
            for at in HEAD_OFFSETS {
                bytes[at..][..sealed.len()].copy_from_slice(&sealed);
            }
            file.write_at(&bytes, 0)
        });
        if let Err(error) = made {
            // As if it had not been created. Best effort: without a head it is an empty file.
            let _ = self.inner.remove(name);
            return Err(error);
        }
        Ok(self.file(file, head))
    }
}

/// Fails for a directory that has a key file: what it encrypts would be lost with it.
fn refuse_key_file(directory: &dyn Directory) -> Result<()> {
    match directory.open(KEY_NAME)? {
        None => Ok(()),
        Some(file) => {
            let source = std::io::ErrorKind::AlreadyExists.into();
            Err(Error::io("create", file.path(), None, 0, source))
        }
    }
}

/// Says nothing about the key.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Directory for EncryptedDirectory {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn open(&self, name: &str) -> Result<Option<Arc<dyn File>>> {
        let Some(file) = self.inner.open(name)? else { return Ok(None) };
        let head = self.head_of(file.as_ref())?;
        Ok(Some(self.file(file, head)))
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>> {
        self.create_with(name, Geometry::Sectors)
    }

    fn create_once(&self, name: &str) -> Result<Arc<dyn File>> {
        self.create_with(name, Geometry::Pages)
    }

    fn rename(&self, source: &str, target: &str) -> Result<()> {
        self.inner.rename(source, target)
    }

    fn renames_open(&self) -> bool {
        self.inner.renames_open()
    }

    fn exchange(&self, one: &str, other: &str) -> Result<()> {
        self.inner.exchange(one, other)
    }

    fn link(&self, name: &str, target: &dyn Directory) -> Result<bool> {
        // A file can be linked to where the same key opens it.
        let target = (target as &dyn Any).downcast_ref::<Self>();
        match target.filter(|target| target.keys.id == self.keys.id) {
            Some(target) => self.inner.link(name, target.inner.as_ref()),
            None => Err(unsupported("link", self.path(), name)),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn remove_all(&self, name: &str) -> Result<()> {
        self.inner.remove_all(name)
    }

    /// All but the key file: what is in here is plain.
    fn list(&self) -> Result<Vec<String>> {
        let mut names = self.inner.list()?;
        names.retain(|name| ![KEY_NAME, KEY_NEW_NAME].contains(&name.as_str()));
        Ok(names)
    }

    #[track_caller]
    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>> {
        Ok(Arc::new(self.of(self.inner.subdirectory(name)?)))
    }

    fn open_again(&self) -> Result<Option<Arc<dyn Directory>>> {
        let again = self.inner.open_again()?;
        Ok(again.map(|again| Arc::new(self.of(again)) as Arc<dyn Directory>))
    }

    fn close(&self) {
        self.inner.close();
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.inner.lock(name)
    }

    fn lock_shared(&self, name: &str) -> Result<Box<dyn Lock>> {
        self.inner.lock_shared(name)
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        self.inner.random(buffer)
    }
}
