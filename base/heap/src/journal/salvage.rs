//! Reading what is left of a damaged log.
//!
//! Purpose: the records after the newest checkpoint, up to the first that is not whole. Where
//! recovery stops because something durable is gone, this says so and gives what is before it.
//! Invariants: nothing is written. Nothing of a record is handed out before its commit frame was
//! found valid.
//! Thread safety: runs alone, under the store's lock.

use std::sync::Arc;

use adamant_medium::storage::Directory;
use adamant_wire::frame::log_seed;

use super::files::Used;
use super::log_file::{self, LogFile};
use super::recover::Scan;
use super::tail::{Tail, start_of};
use crate::error::{Error, Result};
use crate::layout::Checkpoint;
use crate::pool_file::PoolFile;

/// Finds the records that follow a checkpoint. `note` is told of what is wrong with the log.
///
/// # Errors
/// Those of the medium.
pub(crate) fn find_tail(
    pool: &PoolFile,
    newest: &Checkpoint,
    directory: &dyn Directory,
    note: &mut dyn FnMut(Error),
) -> Result<Option<Tail>> {
    if newest.position.get() == 0 {
        return Ok(None);
    }
    let (files, headless) = files_of(pool, newest.generation.get(), directory, note)?;
    let start = start_of(newest);
    let seed = log_seed(pool.uuid(), newest.generation.get());
    let scan = Scan { files: &files, seed, durable: newest.durable.get(), last: start };
    let (end, damage) = scan.judge_end(&headless)?;
    damage.map(note);
    Ok(Some(Tail { files, seed, start, end }))
}

/// The log files of a generation, by ordinal, and those without a header.
fn files_of(
    pool: &PoolFile,
    generation: u64,
    directory: &dyn Directory,
    note: &mut dyn FnMut(Error),
) -> Result<(Vec<Used>, Vec<Arc<LogFile>>)> {
    let (mut files, mut headless) = (Vec::new(), Vec::new());
    for file in log_file::list(directory)? {
        match file.read_header(pool.uuid()) {
            Ok(Some(header)) if header.generation.get() == generation => files.push(Used {
                ordinal: header.ordinal.get(),
                previous: header.previous.get(),
                file: Arc::new(file),
            }),
            Ok(Some(_)) => {}
            Ok(None) => headless.push(Arc::new(file)),
            Err(Error::Medium(error)) => return Err(error.into()),
            Err(error) => note(error),
        }
    }
    files.sort_by_key(|used| used.ordinal);
    Ok((files, headless))
}

/// Identities that log files name: what the pool's may be, if its header is lost.
///
/// # Errors
/// Those of the medium.
pub(crate) fn identities(directory: &dyn Directory) -> Result<Vec<[u8; 16]>> {
    let mut found = Vec::new();
    for file in log_file::list(directory)? {
        let uuid = file.read_any_header()?.map(|header| header.uuid);
        found.extend(uuid.filter(|uuid| !found.contains(uuid)));
    }
    Ok(found)
}
