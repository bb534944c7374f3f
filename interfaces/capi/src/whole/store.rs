//! Opening and closing stores, and operations on a whole store.

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use adamant::Store;

use crate::border::code::{ADAMANT_MISUSE, ADAMANT_NOT_FOUND, ADAMANT_OK};
use crate::border::failure::{Failure, Result, run};
use crate::border::options::{OptionsHandle, options_of};
use crate::border::pointers::{Changed, In, Opaque, Out, Taken};
use crate::border::value::{Content as ValueContent, Value};

/// An open store. To be closed by adamant_close and freed by adamant_store_free.
pub enum StoreHandle {}

impl Opaque for StoreHandle {
    type Content = Content;
    const KIND: u32 = 0xADA1_0003;
    const NAME: &'static str = "a store";
}

/// The store of a handle, which adamant_refresh replaces.
#[derive(Debug)]
pub struct Content {
    store: Mutex<Store>,
    /// The process that opened it.
    process: u32,
}

impl Content {
    pub(crate) fn new(store: Store) -> Self {
        Self { store: Mutex::new(store), process: std::process::id() }
    }

    /// Locks it, which takes a moment, but beside a refresh. A lock that another thread held at a
    /// fork stays locked in the child for ever.
    pub(crate) fn hold(&self) -> Result<MutexGuard<'_, Store>> {
        match self.store.try_lock() {
            Ok(held) => Ok(held),
            Err(_) => {
                self.refuse_child()?;
                Ok(self.store.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }

    /// Fails in the child of a fork. Most calls of the store do so themselves.
    pub(crate) fn refuse_child(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let words = "the store was opened before a fork, and this is the child: open it after the \
                     fork, in one of the two";
        Err(Failure::new(ADAMANT_MISUSE, words))
    }
}

impl In<StoreHandle> {
    /// The store, as the last refresh left it.
    pub(crate) fn store(&self) -> Result<Store> {
        Ok(self.get()?.hold()?.clone())
    }
}

/// A path of any bytes.
#[cfg(unix)]
pub(crate) fn path_of(text: &CStr) -> Result<&Path> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(text.to_bytes())))
}

/// A path in UTF-8: those of this system are text.
#[cfg(not(unix))]
pub(crate) fn path_of(text: &CStr) -> Result<&Path> {
    let path = text.to_str().map(Path::new);
    path.map_err(|error| {
        let words = format!("expected a path in UTF-8, found {text:?}: {error}");
        Failure::invalid(words)
    })
}

/// Opens the store in the directory at a path, with options; NULL for the default ones. It is
/// created if there is none. After a crash this recovers what was committed.
///
/// Fails with ADAMANT_LOCKED if somebody has it open, ADAMANT_NOT_A_STORE if something else is
/// there, ADAMANT_MISSING if nothing is there and nothing is to be created; ADAMANT_KEY_NEEDED,
/// ADAMANT_WRONG_KEY or ADAMANT_NOT_ENCRYPTED if the store is encrypted otherwise than the options
/// say.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_open(
    path: In<c_char>,
    options: In<OptionsHandle>,
    store: Out<*mut StoreHandle>,
) -> c_int {
    run(|| {
        store.need_handle()?;
        let path = path_of(path.text("path")?)?;
        store.give(Content::new(Store::open_with(path, options_of(&options)?)?));
        Ok(ADAMANT_OK)
    })
}

/// Opens a new store in memory, which is gone when it is closed: for tests.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_open_in_memory(store: Out<*mut StoreHandle>) -> c_int {
    run(|| {
        store.need_handle()?;
        store.give(Content::new(Store::in_memory()?));
        Ok(ADAMANT_OK)
    })
}

/// The path that a store was opened at, as a value to be freed by adamant_value_free;
/// ADAMANT_NOT_FOUND for one in memory.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_store_path(store: In<StoreHandle>, path: Out<*mut Value>) -> c_int {
    run(|| {
        path.need_handle()?;
        let store = store.store()?;
        let Some(found) = store.path() else { return Ok(ADAMANT_NOT_FOUND) };
        path.give(ValueContent::copy(found.as_os_str().as_encoded_bytes()));
        Ok(ADAMANT_OK)
    })
}

/// Brings all commits to the files and closes the store, so that the next opening has nothing to
/// recover. From then on each use of it, of its keyspaces, cursors and so on is ADAMANT_CLOSED; the
/// handles are still to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_close(store: Changed<StoreHandle>) -> c_int {
    run(|| {
        store.store()?.close()?;
        Ok(ADAMANT_OK)
    })
}

/// Frees the handle of a store; NULL is none. One that was not closed is closed when its last
/// keyspace, batch, cursor, snapshot and transaction are freed, but of a failure nobody is told.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_store_free(store: Taken<StoreHandle>) {
    run(|| store.free().map(|()| ADAMANT_OK));
}

/// Makes all that was committed survive power loss, whatever its commits waited for.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_sync(store: Changed<StoreHandle>) -> c_int {
    run(|| {
        store.store()?.sync()?;
        Ok(ADAMANT_OK)
    })
}

/// Makes the store as small and as fast to read as it can be, while others read and write: compacts
/// all keyspaces, and gives the space that this frees back to the file system. Until it is done it
/// takes as much space again as all entries.
///
/// Fails with ADAMANT_OUT_OF_SPACE if there is none; nothing is lost then.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_compact(store: Changed<StoreHandle>) -> c_int {
    run(|| {
        store.store()?.compact()?;
        Ok(ADAMANT_OK)
    })
}

/// Makes a copy of the store at a path where nothing is, while others read and write. It appears
/// there whole and verified, or not at all.
///
/// Fails with ADAMANT_TARGET if something is there.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_backup(store: In<StoreHandle>, path: In<c_char>) -> c_int {
    run(|| {
        store.store()?.backup(path_of(path.text("path")?)?)?;
        Ok(ADAMANT_OK)
    })
}

/// As adamant_backup, but the files of keyspaces of the engine lsm become hard links if the copy is
/// on the same file system: they never change, so that takes no time and no space. Damage of the
/// device hits both stores.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_backup_linked(store: In<StoreHandle>, path: In<c_char>) -> c_int {
    run(|| {
        store.store()?.backup_linked(path_of(path.text("path")?)?)?;
        Ok(ADAMANT_OK)
    })
}

/// As adamant_backup, but only of what the store has otherwise than a backup, the parent, which is
/// in the same directory: one of adamant_backup, or of this. The new one is read, restored and used
/// as a parent together with those that it stands on, so all of them must stay where they are;
/// adamant_open opens it with ADAMANT_OPTION_READ_ONLY.
///
/// Fails with ADAMANT_INVALID if the parent is no backup or elsewhere, ADAMANT_MISSING if one of
/// the backups is missing, ADAMANT_NOT_A_STORE if one was written since, ADAMANT_TARGET if
/// something is at the path.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_backup_since(
    store: In<StoreHandle>,
    parent: In<c_char>,
    path: In<c_char>,
) -> c_int {
    run(|| {
        let parent = path_of(parent.text("path of the parent")?)?;
        store.store()?.backup_since(parent, path_of(path.text("path")?)?)?;
        Ok(ADAMANT_OK)
    })
}

/// Copies a backup, or any store that nobody has open, to a path where nothing is, and verifies it
/// on the way.
///
/// Fails with ADAMANT_TARGET if something is there, ADAMANT_DAMAGED if the backup is not whole.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_restore(backup: In<c_char>, path: In<c_char>) -> c_int {
    run(|| {
        let backup = path_of(backup.text("path of the backup")?)?;
        adamant::restore(backup, path_of(path.text("path")?)?)?;
        Ok(ADAMANT_OK)
    })
}

/// As adamant_restore, for a backup that is opened with these options, such as an encrypted one:
/// the copy is encrypted by the same key.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_restore_with(
    backup: In<c_char>,
    path: In<c_char>,
    options: In<OptionsHandle>,
) -> c_int {
    run(|| {
        let backup = path_of(backup.text("path of the backup")?)?;
        let path = path_of(path.text("path")?)?;
        adamant::restore_with(backup, path, options_of(&options)?)?;
        Ok(ADAMANT_OK)
    })
}
