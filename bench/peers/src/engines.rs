//! Adapters: one file for each peer, and what they share.

#[cfg(feature = "canopydb")]
pub mod canopydb;
pub mod fjall2;
pub mod fjall3;
#[cfg(feature = "libmdbx")]
pub mod libmdbx;
pub mod lmdb;
pub mod null;
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "sled")]
pub mod sled;
#[cfg(feature = "sqlite")]
pub mod sqlite;

use std::fs;
use std::path::Path;

use adamant_bench::harness::engine::{Direction, Space};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::measure::disk_bytes;

/// Bytes of a peer's cache: more than any dataset, so that nobody reads the disk for want of it.
pub const CACHE_BYTES: u64 = 1 << 30;

/// Visits so many entries of a range, from its end backwards where `direction` says so; how many
/// there were.
pub(crate) fn visit_some<T>(
    range: impl DoubleEndedIterator<Item = T>,
    direction: Direction,
    limit: u64,
    mut visit: impl FnMut(T) -> Result<()>,
) -> Result<u64> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut count = 0;
    let mut visit = |entry| {
        count += 1;
        visit(entry)
    };
    match direction {
        Direction::Ascending => range.take(limit).try_for_each(&mut visit)?,
        Direction::Descending => range.rev().take(limit).try_for_each(&mut visit)?,
    }
    Ok(count)
}

/// Whether a file is part of a log, by its extension.
pub(crate) fn is_log_file(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// Bytes on the disk of all under `directory`, those of log files apart.
pub(crate) fn space_of(directory: &Path, is_log: &dyn Fn(&Path) -> bool) -> Result<Option<Space>> {
    let mut space = Space { data_bytes: 0, log_bytes: 0 };
    add_space(directory, is_log, &mut space)?;
    Ok(Some(space))
}

fn add_space(path: &Path, is_log: &dyn Fn(&Path) -> bool, space: &mut Space) -> Result<()> {
    if path.is_dir() && !is_log(path) {
        for entry in fs::read_dir(path)? {
            add_space(&entry?.path(), is_log, space)?;
        }
    } else if is_log(path) {
        space.log_bytes += disk_bytes(path)?;
    } else {
        space.data_bytes += disk_bytes(path)?;
    }
    Ok(())
}
