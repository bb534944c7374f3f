//! Offline compaction of a store.
//!
//! Purpose: after many removals the pool has holes and half-empty nodes all over. All entries are
//! loaded in order into a new store, which fills its nodes and then replaces the old one.
//! Invariants: the new store is whole and durable before it takes the place of the old one
//! (`store/replacement.rs`): a crash at any moment leaves one of the two under the store's name, or
//! has the next opening see to that. The old one is gone before its lock is released, so no other
//! process opens it.
//! Thread safety: holds the lock of the store throughout, so no other process has it open. Windows
//! renames nothing that is open: there it is an error if another process commits meanwhile.

use std::path::Path;
use std::sync::Arc;

use adamant_medium::storage::Directory;

use crate::care::rebuild::rebuild;
use crate::care::unfinished::{Unfinished, parent_of};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::store::handle::Store;
use crate::store::open::resolved;
use crate::store::replacement::COMPACTING_SUFFIX;

/// The bytes on the device of a store's files, before and after compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Before.
    pub bytes_before: u64,
    /// After.
    pub bytes_after: u64,
}

impl Store {
    /// Makes the store as small and as fast to read as it can be, while it is used: compacts each
    /// keyspace ([`Keyspace::compact`](crate::Keyspace::compact)), and gives the space that this
    /// frees back to the file system ([`Store::shrink`]). Space that snapshots or borrowed values
    /// need stays until they are dropped.
    ///
    /// The pool file may keep its length, with holes in it where data was; [`compact`] makes a new
    /// one, but needs the store closed. O(n log n) in the entries; until it is done it
    /// takes as much space again as all trees, whose entries may lie among each other.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// let store = adamant::Store::open(&path)?;
    /// let visits = store.keyspace("visits")?;
    /// visits.extend((0..1000).map(|n| (format!("{n:03}"), "")))?;
    /// visits.delete_range("100"..)?;
    /// store.compact()?;
    /// assert_eq!(visits.len()?, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::compact`](crate::Keyspace::compact), of the first keyspace that fails, and
    /// [`Store::shrink`]. Nothing is lost, the other keyspaces are compacted, and space was given
    /// back.
    pub fn compact(&self) -> Result<()> {
        let mut done = Ok(());
        for keyspace in self.keyspaces()? {
            match self.open_stored(&keyspace.name).and_then(|keyspace| keyspace.compact()) {
                // Dropped meanwhile.
                Err(Error::UnknownKeyspace { .. } | Error::KeyspaceDropped { .. }) => {}
                other => done = done.and(other),
            }
        }
        done.and(self.shrink().map(drop))
    }
}

/// Makes the files of a store as small as its contents, by loading all entries into a new store
/// that replaces it. The store must not be open. Takes as much space as the contents, and some
/// 4 MiB, beside the store, until it is done. A crash leaves the old store or the new one, whole;
/// the leftover beside it is called `NAME.compacting`, and the next call removes it. O(n).
///
/// Where the file system cannot exchange two names in one step (on Windows and FreeBSD), the old
/// store is called `NAME.being-replaced` for an instant. If the process ends then, whatever opens
/// the store next, other than for reading only, gives it its name back first. If it ends a moment
/// later, the old store is still there under that name, beside the new one: remove it.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.adamant");
///
/// let store = adamant::Store::open(&path)?;
/// let files = store.keyspace("files")?;
/// files.put("large", vec![7; 8 << 20])?;
/// files.delete("large")?;
/// store.close()?;
/// let compacted = adamant::compact(&path)?;
/// assert!(compacted.bytes_after <= compacted.bytes_before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Missing`] or [`Error::NotAStore`] if there is no store, [`Error::Locked`] if it is
/// open, [`Error::HasSavepoints`] if it has persistent savepoints, [`Error::OtherObjects`] if its
/// heap holds more than keyspaces; [`Error::TargetExists`] if an earlier replacement left
/// `NAME.being-replaced`; no space, damage. On Windows also if a process that only reads has it
/// open. The store is then unchanged.
pub fn compact(path: impl AsRef<Path>) -> Result<Compacted> {
    compact_with(path, Options::new())
}

/// As [`compact`], for a store that is opened with these options, such as an encrypted one: the new
/// store has another data key then, encrypted by the same key.
///
/// # Errors
/// As [`compact`].
pub fn compact_with(path: impl AsRef<Path>, options: Options) -> Result<Compacted> {
    let new_options = options.clone();
    anew(path.as_ref(), options, new_options)
}

/// Makes a store anew, opened with `options` and made with `new_options`.
pub(crate) fn anew(path: &Path, options: Options, new_options: Options) -> Result<Compacted> {
    let path = resolved(path)?;
    let store = Store::open_with(&path, options.create(false))?;
    let names: Vec<_> = store.savepoints()?.into_iter().map(|savepoint| savepoint.name).collect();
    if !names.is_empty() {
        return Err(Error::HasSavepoints { path, names });
    }
    let (parent, name) = parent_of(&path)?;
    let unfinished = rebuild_beside(&store, parent, &name, new_options.create(true))?;
    let bytes_before = bytes_of(&path);
    unfinished.replace(store)?;
    Ok(Compacted { bytes_before, bytes_after: bytes_of(&path) })
}

/// Loads all entries of the store with this name into a new one beside it, which is closed.
pub(crate) fn rebuild_beside(
    store: &Store,
    parent: Arc<dyn Directory>,
    name: &str,
    options: Options,
) -> Result<Unfinished> {
    let unfinished = Unfinished::beside(parent, name, COMPACTING_SUFFIX)?;
    let commits_before = store.shared.heap()?.last_commit();
    let options = Options { commits_before, ..options };
    let target = Store::open_directory(unfinished.directory()?, options)?;
    rebuild(&store.shared, &target)?;
    // The pool grew ahead of its contents.
    target.shrink()?;
    target.close()?;
    Ok(unfinished)
}

/// Bytes on the device of the files in a store's directory, including tables and blob files of the
/// engine `lsm`; unreadable ones count as zero.
fn bytes_of(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(std::result::Result::ok);
    // Links are not followed: their targets are no part of a store.
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_of(&entry.path()),
        found => found.map_or(0, |found| allocated_bytes(&found)),
    };
    entries.map(bytes).sum()
}

/// The system counts in blocks of 512 bytes, whatever the block size of the file system.
#[cfg(unix)]
fn allocated_bytes(found: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(found) * 512
}

/// No file of ours has holes there.
#[cfg(not(unix))]
fn allocated_bytes(found: &std::fs::Metadata) -> u64 {
    found.len()
}
