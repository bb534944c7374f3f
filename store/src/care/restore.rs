//! Restoring a store from a backup.
//!
//! Purpose: copies a backup to a store's path, after a check.
//! Invariants: a damaged backup is not restored; the store appears under its name whole and
//! durable, or not at all.

use std::path::Path;

use crate::error::{Error, Result};
use crate::options::Options;
use crate::store::handle::Store;

/// The suffix of a store's name while it is restored.
const UNFINISHED_SUFFIX: &str = ".restoring";

/// Verifies every checksum and every structure of a backup, and copies it to a free path or an
/// empty directory. The backup is opened for reading only and stays as it is. The copy has an
/// identity of its own; until it is whole and durable it is called `NAME.restoring`. O(pool).
///
/// ```
/// use adamant::Store;
///
/// # let directory = tempfile::tempdir()?;
/// # let (path, backup) = (directory.path().join("a"), directory.path().join("b"));
/// let store = Store::open(&path)?;
/// store.keyspace("settings")?.put("colour", "green")?;
/// store.backup(&backup)?;
/// # drop(store);
/// std::fs::remove_dir_all(&path)?;
///
/// adamant::restore(&backup, &path)?;
/// let store = Store::open(&path)?;
/// assert_eq!(store.keyspace("settings")?.get("colour")?, Some("green".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Missing`] or [`Error::NotAStore`] if there is no backup, [`Error::NotWhole`] if it is
/// damaged; as [`Store::backup`](crate::Store::backup) for the copy.
pub fn restore(backup: impl AsRef<Path>, path: impl AsRef<Path>) -> Result<()> {
    restore_with(backup, path, Options::new())
}

/// As [`restore`], for a backup that is opened with these options, such as an encrypted one: the
/// copy is encrypted by the same key.
///
/// # Errors
/// As [`restore`].
pub fn restore_with(
    backup: impl AsRef<Path>,
    path: impl AsRef<Path>,
    options: Options,
) -> Result<()> {
    let (backup, path) = (backup.as_ref(), path.as_ref());
    let store = Store::open_with(backup, options.read_only(true))?;
    let report = store.check()?;
    if let Some(first) = report.findings.first() {
        return Err(Error::NotWhole {
            path: backup.into(),
            findings: report.findings.len() as u64,
            first: first.to_string(),
        });
    }
    store.refuse_inside(path)?;
    // Only an empty directory can be removed so; the copy refuses any other.
    let _ = std::fs::remove_dir(path);
    store.copy_to(path, UNFINISHED_SUFFIX, false)?;
    store.close()
}
