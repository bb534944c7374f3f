//! Counters of a journal.

/// Counters of a journal, since it was opened if not said otherwise.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct JournalStats {
    /// Sequence number of the last record appended.
    pub last_sequence: u64,
    /// Highest sequence number known durable.
    pub durable_sequence: u64,
    /// Sequence number of the last record in the pool.
    pub applied_sequence: u64,
    /// Bytes of frames appended.
    pub log_appended_bytes: u64,
    /// Bytes of frames that are not in the pool yet.
    pub log_used_bytes: u64,
    /// Bytes of frames that are in the pool, except for blocks reserved by
    /// [`Write::reserve_held`](crate::Write::reserve_held) that are held back, and that the log
    /// keeps for these.
    pub log_held_bytes: u64,
    /// Bytes of all log files.
    pub log_allocated_bytes: u64,
    /// Records appended.
    pub records: u64,
    /// Syncs of log files.
    pub syncs: u64,
    /// Number of the newest checkpoint. Every start of the log takes one more, or two.
    pub checkpoints: u64,
    /// Bytes of pages, of data and of descriptors, that checkpoints and recovery wrote to the pool.
    pub pool_written_bytes: u64,
    /// Fences of the processor, where memory is the medium; else 0, as the next.
    pub fences: u64,
    /// Cache lines flushed.
    pub flushed_lines: u64,
}
