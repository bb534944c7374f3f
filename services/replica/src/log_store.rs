//! openraft's log storage.
//!
//! Purpose: passes each call to the log, on a thread where it may block.
//! Thread safety: clones read beside the one that writes.

use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

use openraft::storage::{LogFlushed, LogState, RaftLogStorage};
use openraft::{ErrorSubject, ErrorVerb, OptionalSend, RaftLogReader};

use crate::error::Result;
use crate::log::Log;
use crate::node::Node;
use crate::types::{Entry, LogId, StorageError, Types, Vote};

/// Bytes of entries of one read for a node that is behind: they go into one message.
const ENTRIES_BYTES_MAX: u64 = 4 << 20;

/// The raft log of a node, in openraft's interface.
#[derive(Clone, Debug)]
pub struct LogStore {
    node: Node,
}

impl Node {
    /// The raft log, for `openraft::Raft::new`.
    pub fn log_store(&self) -> LogStore {
        LogStore { node: self.clone() }
    }
}

impl LogStore {
    async fn with<T: Send + 'static>(
        &self,
        subject: ErrorSubject<u64>,
        verb: ErrorVerb,
        call: impl FnOnce(&Log) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, StorageError> {
        self.node.blocking(subject, verb, move |node| call(node.log())).await
    }

    async fn read(
        &self,
        start: u64,
        end: Bound<u64>,
        bytes_max: Option<u64>,
    ) -> std::result::Result<Vec<Entry>, StorageError> {
        let read = move |log: &Log| log.read(start, end, bytes_max);
        self.with(ErrorSubject::Logs, ErrorVerb::Read, read).await
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> std::result::Result<Vec<Entry>, StorageError> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = range.end_bound().cloned();
        self.read(start, end, None).await
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> std::result::Result<Vec<Entry>, StorageError> {
        self.read(start, Bound::Excluded(end), Some(ENTRIES_BYTES_MAX)).await
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> std::result::Result<LogState<Types>, StorageError> {
        let state = |log: &Log| {
            Ok(LogState { last_purged_log_id: log.purged()?, last_log_id: log.last()? })
        };
        self.with(ErrorSubject::Logs, ErrorVerb::Read, state).await
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> std::result::Result<(), StorageError> {
        let vote = *vote;
        let save = move |log: &Log| log.save_vote(&vote);
        self.with(ErrorSubject::Vote, ErrorVerb::Write, save).await
    }

    async fn read_vote(&mut self) -> std::result::Result<Option<Vote>, StorageError> {
        self.with(ErrorSubject::Vote, ErrorVerb::Read, Log::vote).await
    }

    async fn save_committed(
        &mut self,
        committed: Option<LogId>,
    ) -> std::result::Result<(), StorageError> {
        let save = move |log: &Log| log.save_committed(committed);
        self.with(ErrorSubject::Logs, ErrorVerb::Write, save).await
    }

    async fn read_committed(&mut self) -> std::result::Result<Option<LogId>, StorageError> {
        self.with(ErrorSubject::Logs, ErrorVerb::Read, Log::committed).await
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<Types>,
    ) -> std::result::Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        // openraft 0.9 waits for the callback before it does anything else, so returning earlier
        // gains nothing: entries that came together are one commit and one flush.
        let append = move |log: &Log| log.append(&entries);
        self.with(ErrorSubject::Logs, ErrorVerb::Write, append).await?;
        callback.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> std::result::Result<(), StorageError> {
        let truncate = move |log: &Log| log.truncate(log_id.index);
        self.with(ErrorSubject::Log(log_id), ErrorVerb::Delete, truncate).await
    }

    async fn purge(&mut self, log_id: LogId) -> std::result::Result<(), StorageError> {
        let purge = move |node: &Node| node.purge(log_id);
        self.node.blocking(ErrorSubject::Log(log_id), ErrorVerb::Delete, purge).await
    }
}
