//! Creation of a pool and its log in an empty directory.
//!
//! Purpose: either there is a pool with a log, durably, or the directory is free to try again.
//! Thread safety: runs alone, under the store's lock.

use std::sync::Arc;

use adamant_medium::storage::Directory;

use super::handle::Journal;
use crate::error::Result;
use crate::image::pool_file::PoolFile;
use crate::journal::records::files::Files;
use crate::journal::records::log_file::{remove_abandoned, remove_if_there};
use crate::journal::records::options::JournalOptions;
use crate::layout::{LOG_NAME, LOG_NEW_NAME, POOL_NAME, POOL_NEW_NAME};

impl Journal {
    /// Creates pool and log in a directory without a pool, durably. `initial_pages` are whole
    /// pages with their heap offsets.
    ///
    /// # Errors
    /// `Error::Unsupported` when a log with records lies there; those of the medium.
    pub(crate) fn create(
        directory: &Arc<dyn Directory>,
        options: JournalOptions,
        initial_pages: &[(u64, &[u8])],
        data_pages: u64,
    ) -> Result<Self> {
        name_log_again(directory.as_ref())?;
        let made = create_named(directory, options, initial_pages, data_pages);
        if made.is_err() {
            // The sync of that name may have failed. The name would look durable from then on,
            // and the next sync would not write it: commits would go to a store that is gone after
            // a power cut. Best effort: if this fails too, the device is unusable.
            let _ = directory.rename(POOL_NAME, POOL_NEW_NAME);
        }
        made
    }
}

fn create_named(
    directory: &Arc<dyn Directory>,
    options: JournalOptions,
    initial_pages: &[(u64, &[u8])],
    data_pages: u64,
) -> Result<Journal> {
    let log_directory = directory.subdirectory(LOG_NAME)?;
    let mut uuid = [0; 16];
    directory.random(&mut uuid)?;
    remove_abandoned(log_directory.as_ref())?;
    let files = Files::new(log_directory, options.log_bytes_max, Vec::new());
    files.prepare_first()?;
    remove_if_there(directory.as_ref(), POOL_NEW_NAME)?;
    let file = directory.create(POOL_NEW_NAME)?;
    PoolFile::create(file, uuid, data_pages, initial_pages, options.commits_before)?;
    // The pool is durable before its name. A log that has no name yet holds nothing.
    directory.rename(POOL_NEW_NAME, POOL_NAME)?;
    directory.sync()?;
    Ok(Journal::open(directory, options)?.0)
}

/// Renames a log directory that a failed creation left, unless it is in use. Its name may look
/// durable since a sync failed on it, and only a new rename writes it again.
///
/// # Errors
/// `Error::Unsupported` when a log with records lies there; those of the medium.
fn name_log_again(directory: &dyn Directory) -> Result<()> {
    let names = directory.list()?;
    let has = |name: &str| names.iter().any(|known| known == name);
    if has(LOG_NAME) {
        // The pool of that creation may have had its name, and was taken back: it must not come
        // back when a power cut finds its log half created.
        directory.sync()?;
        remove_abandoned(directory.subdirectory(LOG_NAME)?.as_ref())?;
        directory.rename(LOG_NAME, LOG_NEW_NAME)?;
    } else if !has(LOG_NEW_NAME) {
        return Ok(());
    }
    // Or a power cut undid the second rename the last time.
    directory.rename(LOG_NEW_NAME, LOG_NAME)?;
    // Before there is a pool: opening a pool does not look for a log of the other name.
    Ok(directory.sync()?)
}
