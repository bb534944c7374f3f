//! The raft log in a store of its own: entries, the vote, and other durable state.
//!
//! Purpose: implements openraft's log by calls that block.
//! Invariants: the entries are all those after the last purged one, without a hole. State that must
//! survive a power cut (entries, votes, truncation, the current state machine) is durable on
//! return. State that may be lost (the committed number, a purge) is written without waiting:
//! commits of one store are recovered as a prefix, so it is never there without what came before.
//! openraft 0.9 requests a purge of entries that the state machine does not have, before the
//! snapshot that replaces them is installed. Such a purge is kept in memory until the installation,
//! and then written with the record that completes it. A crash in between leaves the old log. So no
//! entry is written after a hole: it waits for the snapshot.
//! Thread safety: any thread; openraft makes one write at a time.

use std::ops::Bound;
use std::path::Path;
use std::time::{Duration, Instant};

use adamant::{Durability, Keyspace, Store};
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::layout::{
    COMMITTED, DIRECTORY, ENTRIES, FORMAT, IDENTITY, Identity, META, PURGED, STATE_NUMBER,
    STATE_NUMBER_FIRST, VOTE, entry_index, entry_key,
};
use crate::record;
use crate::types::{Entry, LogId, Vote};

/// How long an entry waits for the installation of the snapshot before it. After that it fails,
/// which stops the node.
const INSTALL_PATIENCE: Duration = Duration::from_secs(600);

/// The log of a node.
#[derive(Debug)]
pub(crate) struct Log {
    store: Store,
    entries: Keyspace,
    meta: Keyspace,
    ahead: Mutex<Ahead>,
    /// Signalled when `ahead` has changed.
    settled: Condvar,
}

/// Purged entries that are not applied yet.
#[derive(Debug, Default)]
struct Ahead {
    purged: Option<LogId>,
    /// The expected snapshot could not be installed.
    is_given_up: bool,
}

impl Log {
    /// Makes a store the log of a new node, in a directory of that number. Durable on return.
    pub(crate) fn create(store: &Store, node_id: u64, directory_id: u64) -> Result<()> {
        store.keyspace(ENTRIES)?;
        let meta = store.keyspace(META)?;
        let mut batch = store.batch();
        batch.durability(Durability::Sync);
        let identity = Identity { format: FORMAT, node_id };
        batch.put(&meta, IDENTITY, record::encode(IDENTITY, &identity)?)?;
        batch.put(&meta, DIRECTORY, record::encode(DIRECTORY, &directory_id)?)?;
        let number = record::encode(STATE_NUMBER, &STATE_NUMBER_FIRST)?;
        batch.put(&meta, STATE_NUMBER, number)?;
        Ok(batch.commit()?)
    }

    /// Opens the log in a store, and verifies that it is complete and belongs to that node.
    pub(crate) fn open(store: Store, node_id: u64, path: &Path) -> Result<Self> {
        let keyspace = |name| match store.open_keyspace(name) {
            Err(adamant::Error::UnknownKeyspace { .. }) => {
                Err(Error::damaged("the raft log", format!("a keyspace {name:?}"), "none"))
            }
            other => Ok(other?),
        };
        let (entries, meta) = (keyspace(ENTRIES)?, keyspace(META)?);
        let (ahead, settled) = (Mutex::default(), Condvar::new());
        let log = Self { store, entries, meta, ahead, settled };
        let identity: Identity = log.needed(IDENTITY)?;
        if identity.format != FORMAT {
            let (expected, found) = (FORMAT, identity.format);
            return Err(Error::Format { path: path.into(), expected, found });
        }
        if identity.node_id != node_id {
            let (expected, found) = (node_id, identity.node_id);
            return Err(Error::OtherNode { path: path.into(), expected, found });
        }
        log.directory_id()?;
        log.state_number()?;
        log.vote()?;
        log.committed()?;
        log.finish_purge()?;
        log.check_entries()?;
        Ok(log)
    }

    /// Appends entries, in one commit. Durable on return.
    pub(crate) fn append(&self, entries: &[Entry]) -> Result<()> {
        let Some(first) = entries.first() else { return Ok(()) };
        let _ahead = self.wait_for_no_hole(first.log_id.index)?;
        let mut batch = self.store.batch();
        batch.durability(Durability::Sync);
        for entry in entries {
            let key = entry_key(entry.log_id.index);
            batch.put(&self.entries, key, record::encode(key, entry)?)?;
        }
        Ok(batch.commit()?)
    }

    /// Waits until no snapshot is missing between the existing entries and a new one.
    fn wait_for_no_hole(&self, index: u64) -> Result<MutexGuard<'_, Ahead>> {
        let deadline = Instant::now() + INSTALL_PATIENCE;
        let mut ahead = self.ahead.lock();
        while ahead.purged.is_some() && index > self.next_on_disk()? {
            if ahead.is_given_up || self.settled.wait_until(&mut ahead, deadline).timed_out() {
                return Err(Error::NotInstalled { entry: index });
            }
        }
        Ok(ahead)
    }

    fn next_on_disk(&self) -> Result<u64> {
        let last = self.last_behind(self.get(PURGED)?)?;
        Ok(last.map_or(0, |last| last.index + 1))
    }

    /// The existing entries from `start` up to `end`, excluded; stops after `bytes_max` bytes.
    pub(crate) fn read(
        &self,
        start: u64,
        end: Bound<u64>,
        bytes_max: Option<u64>,
    ) -> Result<Vec<Entry>> {
        let first = self.purged()?.map_or(0, |purged| purged.index + 1);
        let start = Bound::Included(entry_key(start.max(first)));
        let mut entries = Vec::new();
        let mut bytes = 0;
        for pair in self.entries.range((start, end.map(entry_key))) {
            let (key, value) = pair?;
            entries.push(decode_entry(&key, &value)?);
            bytes += value.len() as u64;
            if bytes_max.is_some_and(|max| bytes >= max) {
                break;
            }
        }
        Ok(entries)
    }

    /// The last entry that is or was there.
    pub(crate) fn last(&self) -> Result<Option<LogId>> {
        self.last_behind(self.purged()?)
    }

    fn last_behind(&self, purged: Option<LogId>) -> Result<Option<LogId>> {
        let Some((key, value)) = self.entries.last()? else { return Ok(purged) };
        // A purge that a crash interrupted leaves entries that count as purged.
        let last = decode_entry(&key, &value)?.log_id;
        Ok(match purged {
            Some(purged) if purged.index >= last.index => Some(purged),
            _ => Some(last),
        })
    }

    /// Removes an entry and all after it, in one commit: in several, a crash would leave a hole.
    /// Durable on return.
    pub(crate) fn truncate(&self, index: u64) -> Result<()> {
        let mut batch = self.store.batch();
        batch.durability(Durability::Sync);
        for key in self.entries.range(entry_key(index)..).keys() {
            batch.delete(&self.entries, key?)?;
        }
        match batch.is_empty() {
            true => Ok(()),
            false => Ok(batch.commit()?),
        }
    }

    /// Removes all entries up to one, without waiting: leftovers do no harm. `is_applied` tells
    /// whether the state machine has it durably: otherwise it is purged in memory only.
    pub(crate) fn purge(
        &self,
        log_id: LogId,
        is_applied: impl FnOnce() -> Result<bool>,
    ) -> Result<()> {
        let mut ahead = self.ahead.lock();
        if self.purged_with(&ahead)?.is_some_and(|purged| purged.index >= log_id.index) {
            return Ok(());
        }
        if !is_applied()? {
            ahead.purged = Some(log_id);
            return Ok(());
        }
        ahead.purged = None;
        self.put(PURGED, &log_id, Durability::Buffered)?;
        drop(ahead);
        // Some thousand entries a commit, from the first on: the next opening finishes what a crash
        // leaves, which is not visible before.
        self.remove_through(log_id.index)
    }

    /// Makes another state machine's store current, which has applied entries up to `applied`. It
    /// is durable before `switch` is called, together with what was purged ahead.
    pub(crate) fn switch_state(
        &self,
        number: u64,
        applied: Option<LogId>,
        switch: impl FnOnce(),
    ) -> Result<()> {
        let mut ahead = self.ahead.lock();
        let purged = ahead.purged.filter(|purged| Some(*purged) <= applied);
        let mut batch = self.store.batch();
        batch.durability(Durability::Sync);
        batch.put(&self.meta, STATE_NUMBER, record::encode(STATE_NUMBER, &number)?)?;
        if let Some(purged) = purged {
            batch.put(&self.meta, PURGED, record::encode(PURGED, &purged)?)?;
        }
        batch.commit()?;
        switch();
        let Some(purged) = purged else { return Ok(()) };
        ahead.purged = None;
        self.settled.notify_all();
        drop(ahead);
        self.remove_through(purged.index)
    }

    /// Tells threads that wait for a snapshot that none will come.
    pub(crate) fn give_up(&self) {
        self.ahead.lock().is_given_up = true;
        self.settled.notify_all();
    }

    fn remove_through(&self, index: u64) -> Result<()> {
        let entries = self.entries.with_durability(Durability::Buffered);
        Ok(entries.delete_range(..=entry_key(index))?)
    }

    fn finish_purge(&self) -> Result<()> {
        match self.purged()? {
            Some(purged) => self.remove_through(purged.index),
            None => Ok(()),
        }
    }

    /// Whether the entries are those after the last purged one, without a hole. O(1).
    fn check_entries(&self) -> Result<()> {
        let (Some(first), Some(last)) = (self.entries.first()?, self.entries.last()?) else {
            return Ok(());
        };
        let first = decode_entry(&first.0, &first.1)?.log_id.index;
        let last = decode_entry(&last.0, &last.1)?.log_id.index;
        let start = self.purged()?.map_or(0, |purged| purged.index + 1);
        let (expected, found) = ((last + 1).saturating_sub(start), self.entries.len()?);
        if first != start || found != expected {
            return Err(Error::damaged(
                "the raft log",
                format!("{expected} entries from {start} to {last}"),
                format!("{found}, the first of them {first}"),
            ));
        }
        Ok(())
    }

    /// Saves the vote. Durable on return.
    pub(crate) fn save_vote(&self, vote: &Vote) -> Result<()> {
        self.put(VOTE, vote, Durability::Sync)
    }

    pub(crate) fn vote(&self) -> Result<Option<Vote>> {
        self.get(VOTE)
    }

    /// Saves the committed number. Not waited for: it can be learned again.
    pub(crate) fn save_committed(&self, committed: Option<LogId>) -> Result<()> {
        self.put(COMMITTED, &committed, Durability::Buffered)
    }

    pub(crate) fn committed(&self) -> Result<Option<LogId>> {
        Ok(self.get(COMMITTED)?.flatten())
    }

    /// The last entry that was purged.
    pub(crate) fn purged(&self) -> Result<Option<LogId>> {
        self.purged_with(&self.ahead.lock())
    }

    fn purged_with(&self, ahead: &Ahead) -> Result<Option<LogId>> {
        Ok(self.get(PURGED)?.max(ahead.purged))
    }

    /// The number of the node's directory.
    pub(crate) fn directory_id(&self) -> Result<u64> {
        self.needed(DIRECTORY)
    }

    /// The number of the current state machine's store.
    pub(crate) fn state_number(&self) -> Result<u64> {
        self.needed(STATE_NUMBER)
    }

    /// Fails if the device has failed.
    pub(crate) fn check_writable(&self) -> Result<()> {
        Ok(self.store.check_writable()?)
    }

    pub(crate) fn close(&self) -> Result<()> {
        self.give_up();
        Ok(self.store.clone().close()?)
    }

    fn put<T: Serialize>(&self, key: &str, value: &T, durability: Durability) -> Result<()> {
        let record = record::encode(key, value)?;
        Ok(self.meta.with_durability(durability).put(key, record)?)
    }

    fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let Some(record) = self.meta.get(key)? else { return Ok(None) };
        record::decode(|| format!("the record {key:?} of the raft log"), key, &record).map(Some)
    }

    fn needed<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        let missing = || Error::damaged("the raft log", format!("a record {key:?}"), "none");
        self.get(key)?.ok_or_else(missing)
    }
}

fn decode_entry(key: &[u8], record: &[u8]) -> Result<Entry> {
    let Some(index) = entry_index(key) else {
        let found = format!("one of {} bytes", key.len());
        return Err(Error::damaged("the raft log", "a key of 8 bytes", found));
    };
    let entry: Entry = record::decode(|| format!("entry {index} of the raft log"), key, record)?;
    if entry.log_id.index != index {
        let found = format!("entry {}", entry.log_id.index);
        return Err(Error::damaged(format!("entry {index} of the raft log"), "that entry", found));
    }
    Ok(entry)
}
