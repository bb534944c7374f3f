//! Making a store as small as what it holds.
//!
//! Purpose: after many removals the pool has holes and half-empty nodes all over. All entries are loaded
//! into a new store, in order, which fills its nodes; it then takes the place of the old one.
//! Invariants: the new store is whole and durable before it is exchanged with the old one, by one
//! step of the file system: so a crash at any moment leaves one of the two under the store's name. The
//! old one is gone before its lock is released, so nobody opens it who came too late.
//! Thread safety: holds the lock of the store throughout: nobody has it open.

use std::path::Path;
use std::sync::Arc;

use adamant_medium::storage::Directory;

use crate::care::rebuild::rebuild;
use crate::care::unfinished::{Unfinished, parent_of};
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::options::Options;
use crate::store::handle::Store;
use crate::store::open::resolved;

/// What is added to a store's name while its successor is written.
const UNFINISHED_SUFFIX: &str = ".compacting";

/// Bytes that the files of a store took on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Before.
    pub bytes_before: u64,
    /// After.
    pub bytes_after: u64,
}

/// Makes the files of a store as small as its contents, by loading all entries into a new one that
/// takes its place. Nobody may have the store open. Takes as much space as the contents, and some 4
/// MiB, beside the store, until it is done. A crash leaves the old store or the new one, whole; what it
/// leaves beside it is called `NAME.compacting`, and removed by the next call. O(n).
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.adamant");
///
/// let store = adamant::Store::open(&path)?;
/// let files = store.keyspace("files")?;
/// files.insert("large", vec![7; 8 << 20])?;
/// files.remove("large")?;
/// store.close()?;
/// let compacted = adamant::compact(&path)?;
/// assert!(compacted.bytes_after <= compacted.bytes_before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Missing`] or [`Error::NotAStore`] for what is no store, [`Error::Locked`] if it is open,
/// [`Error::OtherObjects`] if its heap holds more than keyspaces; no space, damage, a file system
/// that cannot exchange two directories in one step. The store is then as it was.
pub fn compact(path: impl AsRef<Path>) -> Result<Compacted> {
    let path = resolved(path.as_ref())?;
    let store = Store::open_with(&path, Options::new().create(false))?;
    let (parent, name) = parent_of(&path)?;
    let unfinished = rebuild_beside(&store, parent, &name, Options::new())?;
    let bytes_before = bytes_of(&path);
    unfinished.replace()?;
    drop(store);
    Ok(Compacted { bytes_before, bytes_after: bytes_of(&path) })
}

/// Loads all entries of a store of that name into a new one beside it, which is closed.
pub(crate) fn rebuild_beside(
    store: &Store,
    parent: Arc<dyn Directory>,
    name: &str,
    options: Options,
) -> Result<Unfinished> {
    let unfinished = Unfinished::beside(parent, name, UNFINISHED_SUFFIX)?;
    let target = Store::open_directory(unfinished.directory()?, options)?;
    rebuild(&store.shared, &target)?;
    // The pool grew ahead of what was loaded.
    target.shrink()?;
    target.close()?;
    Ok(unfinished)
}

/// Bytes that the files in a directory of a store take on the device, tables and blob files of the
/// engine `lsm` among them; what cannot be read counts as none.
fn bytes_of(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(std::result::Result::ok);
    // Links are not followed: what they lead to is no part of a store.
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_of(&entry.path()),
        // The system counts in blocks of 512 bytes, whatever those of the file system are.
        found => found.map_or(0, |found| found.blocks() * 512),
    };
    entries.map(bytes).sum()
}
