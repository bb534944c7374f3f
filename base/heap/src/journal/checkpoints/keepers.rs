//! What keeps pages of the pool before a batch overwrites them.
//!
//! Purpose: savepoints need them durably, readers in other processes until they end.
//! Invariants: pages are kept for savepoints before the batch's table of doubt is written: so a
//! page that a table names, and a crash may have torn, was kept. For readers they are kept behind
//! it. A savepoint never stops the store: where there is no space for its pages, it is given up.
//! Thread safety: one thread at a time writes batches.

use std::sync::Arc;

use adamant_medium::storage::Directory;

use crate::error::Result;
use crate::image::pool_file::PoolFile;
use crate::journal::checkpoints::old_pages::Keeper;
use crate::journal::savepoints::registry::Registry;
use crate::layout::PAGE_BYTES;

/// Keeps pages for savepoints, and for readers in other processes.
#[derive(Clone, Debug)]
pub(in crate::journal) struct Keepers {
    pub(in crate::journal) readers: Keeper,
    pub(in crate::journal) savepoints: Arc<Registry>,
}

impl Keepers {
    /// Those of the store in a directory, which is open for writing, and has this pool; at most
    /// `reader_bytes_max` bytes are kept for readers.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn new(
        store: &Arc<dyn Directory>,
        pool: &PoolFile,
        reader_bytes_max: u64,
    ) -> Result<Self> {
        let savepoints = Arc::new(Registry::open(store, pool, true)?);
        Ok(Self { readers: Keeper::new(store, reader_bytes_max), savepoints })
    }

    /// Keeps the present contents of pages, by heap offset and in the order of the file, durably,
    /// for all savepoints. Without space readers are given up first, then the oldest savepoint, and
    /// so on.
    ///
    /// # Errors
    /// Those of the medium. Then no such page may be overwritten.
    pub(in crate::journal) fn keep_for_savepoints(
        &self,
        pool: &PoolFile,
        pages: &[u64],
    ) -> Result<()> {
        loop {
            match self.savepoints.keep(pool, pages) {
                Err(error) if error.is_out_of_space() => {
                    if !self.readers.give_up() && !self.savepoints.lose_oldest()? {
                        return Ok(());
                    }
                }
                kept => return kept,
            }
        }
    }

    /// The same for data pages by number, of which there may be more than in a batch.
    ///
    /// # Errors
    /// As [`Keepers::keep_for_savepoints`].
    pub(in crate::journal) fn keep_range(
        &self,
        pool: &PoolFile,
        start: u64,
        end: u64,
    ) -> Result<()> {
        if !self.savepoints.has_any() {
            return Ok(());
        }
        let pages: Vec<u64> = (start..end.min(pool.pages_backed())).collect();
        let offsets: Vec<u64> = pages.iter().map(|page| page * PAGE_BYTES).collect();
        self.keep_for_savepoints(pool, &offsets)
    }
}
