//! Going back to a savepoint: a pool that shows it takes the place of the pool.
//!
//! Purpose: the pool is made anew from what a savepoint shows, as a backup is.
//! Invariants: the old pool stays whole until the new one is durable; one step exchanges them. The
//! log of the old one is of an earlier generation than the new one's checkpoint says, so none of
//! its records is ever replayed over the new one; and none that comes over the old one. Numbers of
//! commits go on: none names two states of a heap.
//! Thread safety: runs alone, under the store's lock; the journal is closed.

use std::sync::Arc;

use adamant_medium::storage::{Directory, File};

use crate::error::Result;
use crate::image::pool_file::{PoolFile, closed_checkpoint};
use crate::journal::checkpoints::checkpoint::CheckpointState;
use crate::journal::records::log_file::remove_if_there;
use crate::journal::recovery::backup::copy_pages;
use crate::journal::savepoints::registry::Registry;
use crate::journal::savepoints::savepoint_file::covers;
use crate::journal::savepoints::view::PoolView;
use crate::layout::{
    Checkpoint, DESCRIPTOR_BYTES, PAGE_BYTES, POOL_NAME, POOL_NEW_NAME, TABLE_BASE, file_offset,
};

/// What is done with the new pool while it is under the name of a new one.
pub(crate) struct Arrival<'a> {
    /// Changes it; returns the heap offsets of the pages that it has written.
    pub(crate) change: &'a dyn Fn() -> Result<Vec<u64>>,
    /// Is asked last, right before the exchange.
    pub(crate) refuse: &'a dyn Fn() -> Result<()>,
}

/// Makes the pool in a directory what a savepoint shows, as a commit behind all that there were;
/// returns its number.
///
/// # Errors
/// Those of `arrival`; `Error::Damaged` for a damaged page of the savepoint; those of the medium.
/// Then the pool is as it was.
pub(in crate::journal) fn go_back(
    directory: &dyn Directory,
    (pool, registry): (&PoolFile, &Registry),
    closed: &CheckpointState,
    view: Arc<PoolView>,
    arrival: &Arrival<'_>,
) -> Result<u64> {
    keep_for_later(pool, registry, &view)?;
    let shown = PoolFile::open(view as Arc<dyn File>)?;
    // Above those of savepoints, too: an earlier version had numbers go back with the pool.
    let sequence = closed.cursor.sequence.max(registry.sequence_max()) + 1;
    remove_if_there(directory, POOL_NEW_NAME)?;
    let made = make(directory, pool.uuid(), &shown, &|pages| Checkpoint {
        number: (closed.number + 1).into(),
        generation: (closed.generation + 1).into(),
        ordinal: closed.cursor.ordinal.into(),
        ..closed_checkpoint(sequence, pages)
    });
    let exchanged = made
        .and_then(|()| (arrival.change)())
        .and_then(|written| keep_written(pool, registry, written))
        .and_then(|()| (arrival.refuse)())
        .and_then(|()| exchange(directory));
    if exchanged.is_err() {
        // Best effort: it is not the pool, and its name says so.
        let _ = remove_if_there(directory, POOL_NEW_NAME);
        return exchanged.map(|()| sequence);
    }
    // A reader that was being opened meanwhile, or was overtaken, may have the old one, and would
    // find nothing new in it for good. Best effort: it holds no lock that anything waits for.
    let _ = pool.retire();
    // The old one; opening the heap removes it, too.
    let _ = remove_if_there(directory, POOL_NEW_NAME);
    Ok(sequence)
}

/// Removes what going back has left when its process ended: a new pool, or the old one, which
/// readers may have.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn remove_left(directory: &dyn Directory) -> Result<()> {
    let left = directory.open(POOL_NEW_NAME).ok().flatten();
    if let Some(old) = left.and_then(|file| PoolFile::open(file).ok()) {
        // As long as the exchange is not durable, a power cut makes it the pool again.
        if let Err(error) = directory.sync() {
            let _ = remove_if_there(directory, POOL_NEW_NAME);
            return Err(error.into());
        }
        // Best effort, as it is in going back.
        let _ = old.retire();
    }
    remove_if_there(directory, POOL_NEW_NAME)
}

/// Keeps all that the pool has otherwise for later savepoints, which read it from the pool so far.
fn keep_for_later(pool: &PoolFile, registry: &Registry, view: &PoolView) -> Result<()> {
    let (data_pages, end) = (view.data_pages(), registry.pages_max().min(pool.pages_backed()));
    let table_pages = |pages: u64| (pages * DESCRIPTOR_BYTES).div_ceil(PAGE_BYTES);
    let tables = table_pages(data_pages)..table_pages(end);
    // That the savepoint's pool does not have.
    let behind = (data_pages..end).map(|page| page * PAGE_BYTES);
    let behind = behind.chain(tables.map(|page| TABLE_BASE + page * PAGE_BYTES));
    let mut pages = view.index().kept_pages();
    pages.extend(behind);
    keep_in_order(pool, registry, pages)
}

/// Keeps what the pool has in place of pages that were written to the new one: those that it has as
/// the savepoint has them were not kept yet.
fn keep_written(pool: &PoolFile, registry: &Registry, mut pages: Vec<u64>) -> Result<()> {
    let end = pool.pages_backed();
    pages.retain(|page| covers(end, *page));
    keep_in_order(pool, registry, pages)
}

/// Keeps pages in the order of the file, each once.
fn keep_in_order(pool: &PoolFile, registry: &Registry, mut pages: Vec<u64>) -> Result<()> {
    pages.sort_unstable_by_key(|page| file_offset(*page));
    pages.dedup();
    registry.keep(pool, &pages)
}

/// Makes the new pool, durably, under the name of a new one.
fn make(
    directory: &dyn Directory,
    uuid: &[u8; 16],
    shown: &PoolFile,
    checkpoint: &dyn Fn(u64) -> Checkpoint,
) -> Result<()> {
    let target = PoolFile::begin(directory.create(POOL_NEW_NAME)?, *uuid)?;
    copy_pages(shown, &target, &mut |_, error| Err(error), &|| Ok(()))?;
    target.grow_with_holes(shown.pages_backed())?;
    target.back_allocated()?;
    target.finish_as(checkpoint(target.pages_backed()))?;
    Ok(directory.sync()?)
}

/// Gives the new pool the name of the old one, durably.
fn exchange(directory: &dyn Directory) -> Result<()> {
    match directory.exchange(POOL_NAME, POOL_NEW_NAME) {
        Ok(()) => {}
        Err(error) if error.is_unsupported() => return replace(directory),
        Err(error) => return Err(error.into()),
    }
    directory.sync().map_err(|error| {
        // Later commits must not be in a pool that a power cut takes away. Best effort.
        let _ = directory.exchange(POOL_NAME, POOL_NEW_NAME).and_then(|()| directory.sync());
        error.into()
    })
}

/// As [`exchange`], where there is no such step. Windows replaces no file that is open: there all
/// that this process has open of the heap is closed, and only its lock stays.
fn replace(directory: &dyn Directory) -> Result<()> {
    let again = if directory.renames_open() { None } else { directory.open_again()? };
    if again.is_some() {
        directory.close();
    }
    let directory = again.as_deref().unwrap_or(directory);
    directory.rename(POOL_NEW_NAME, POOL_NAME)?;
    Ok(directory.sync()?)
}
