//! Options of a journal.

use crate::journal::records::layout::LOG_FILE_BYTES_MIN;

/// Bytes of log at least: four of the smallest files, so that one can be recycled while the others
/// are written.
pub(in crate::journal) const LOG_BYTES_MIN: u64 = 4 * LOG_FILE_BYTES_MIN;

/// Options of a journal.
#[derive(Clone, Debug)]
pub(crate) struct JournalOptions {
    /// Bytes of all log files at most, 4 MiB at least; only a record that alone needs more may
    /// exceed it, until it is in the pool.
    pub(crate) log_bytes_max: u64,
    /// Bytes of the log that are kept for extents that checkpoints hold back, at most, and at most
    /// half of the log.
    pub(crate) held_bytes_max: u64,
    /// Whether background threads make checkpoints, prepare log files and sync deferred commits.
    /// Without them it happens within the calls, and a deferred commit waits for the next call that
    /// writes.
    pub(crate) background: bool,
    /// Milliseconds after which a deferred commit is made durable.
    pub(crate) deferred_ms_max: u64,
    /// Bytes of deferred records kept in memory at most, give or take one record.
    pub(crate) deferred_bytes_max: u64,
    /// Bytes of pages that opening keeps in memory at most.
    pub(crate) recovery_bytes_max: u64,
    /// Bytes of pages kept for readers in other processes at most.
    pub(crate) reader_bytes_max: u64,
    /// The number above which a new heap numbers its commits.
    pub(crate) commits_before: u64,
}

/// The same, where nothing bounds memory: more of it would make opening no faster.
pub(crate) const RECOVERY_BYTES: u64 = 64 << 20;

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            log_bytes_max: 128 << 20,
            held_bytes_max: u64::MAX,
            background: true,
            deferred_ms_max: 100,
            deferred_bytes_max: 1 << 20,
            recovery_bytes_max: RECOVERY_BYTES,
            reader_bytes_max: 1 << 30,
            commits_before: 0,
        }
    }
}
