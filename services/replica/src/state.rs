//! The state machine in a store of its own: users' keyspaces, and the number of the last applied
//! entry.
//!
//! Purpose: applies runs of entries, each as one commit with the number of its last entry; reads.
//! Invariants: the content of the store is exactly that of an empty one after the entries up to
//! `applied`, after any crash. Applying does not wait for the device: the log has what a power cut
//! undoes, because it is purged only after [`State::sync`]; and since commits are recovered as a
//! prefix, `applied` says where to resume.
//! Thread safety: any thread reads; applying has a lock.

use std::collections::HashMap;
use std::iter::Flatten;
use std::ops::Bound;
use std::option::IntoIter;

use adamant::{
    Deadline, Durability, Expiring, Iter, KeyBounds, Keyspace, KeyspaceInfo, Slice, Store,
    Transaction,
};
use openraft::EntryPayload;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::layout::{APPLIED, APPLIED_META, KIND, MEMBERSHIP, RESERVED};
use crate::record;
use crate::request::{Change, Refusal, Request, Response};
use crate::types::{Entry, LogId, Membership};

/// The content of a node's state machine. It changes as entries are applied; one obtained before a
/// snapshot was installed stays as it was then.
#[derive(Debug)]
pub struct State {
    store: Store,
    meta: Keyspace,
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    applied: Applied,
    keyspaces: Keyspaces,
}

/// Keyspaces into which something was put. None is ever dropped.
#[derive(Debug, Default)]
struct Keyspaces {
    /// Whether they have expiring entries, as the log says, however many of its entries are applied
    /// at once.
    is_ending: HashMap<String, bool>,
    /// Those that changes have named since the store was opened.
    plain: HashMap<String, Keyspace>,
    ending: HashMap<String, Expiring>,
}

/// The progress of a state machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) log_id: Option<LogId>,
    pub(crate) membership: Membership,
}

/// Why a request is undone.
enum Undone {
    Different { change: u64, found: Option<Vec<u8>> },
    Store(adamant::Error),
}

impl From<adamant::Error> for Undone {
    fn from(error: adamant::Error) -> Self {
        Self::Store(error)
    }
}

impl State {
    /// Makes a store the state machine of a new node. Durable on return.
    pub(crate) fn create(store: &Store) -> Result<()> {
        let meta = store.keyspace(APPLIED_META)?;
        let Applied { log_id, membership } = Applied::default();
        let mut batch = store.batch();
        batch.durability(Durability::Sync);
        batch.put(&meta, APPLIED, record::encode(APPLIED, &log_id)?)?;
        batch.put(&meta, MEMBERSHIP, record::encode(MEMBERSHIP, &membership)?)?;
        Ok(batch.commit()?)
    }

    /// The state machine in a store.
    pub(crate) fn open(store: Store) -> Result<Self> {
        let meta = match store.open_keyspace(APPLIED_META) {
            Err(adamant::Error::UnknownKeyspace { .. }) => {
                return Err(Error::damaged("the state machine", "a keyspace of its own", "none"));
            }
            other => other?,
        };
        let applied =
            Applied { log_id: needed(&meta, APPLIED)?, membership: needed(&meta, MEMBERSHIP)? };
        let writer = Mutex::new(Writer { applied, keyspaces: Keyspaces::load(&meta)? });
        Ok(Self { store, meta, writer })
    }

    /// The value of a key, as of what this node has applied. May wait for the device.
    ///
    /// # Errors
    /// Those of the store.
    pub fn get(&self, keyspace: &str, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        match self.keyspace(keyspace)? {
            Some(keyspace) => Ok(keyspace.get(key)?),
            None => Ok(None),
        }
    }

    /// The entries of a range of keys, in their order. May wait for the device.
    ///
    /// # Errors
    /// Those of the store.
    pub fn range(&self, keyspace: &str, range: impl KeyBounds) -> Result<Flatten<IntoIter<Iter>>> {
        let keyspace = self.keyspace(keyspace)?;
        Ok(keyspace.map(|keyspace| keyspace.range(range)).into_iter().flatten())
    }

    /// The users' keyspaces, by name.
    ///
    /// # Errors
    /// Those of the store.
    pub fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        let mut all = self.store.keyspaces()?;
        all.retain(|keyspace| !keyspace.name.starts_with(RESERVED));
        Ok(all)
    }

    /// The number of the last entry that was applied.
    pub fn applied_index(&self) -> Option<u64> {
        self.writer.lock().applied.log_id.map(|log_id| log_id.index)
    }

    fn keyspace(&self, name: &str) -> Result<Option<Keyspace>> {
        if name.starts_with(RESERVED) {
            return Ok(None);
        }
        match self.store.open_keyspace(name) {
            Err(adamant::Error::UnknownKeyspace { .. }) => Ok(None),
            other => Ok(Some(other?)),
        }
    }

    pub(crate) fn applied(&self) -> Applied {
        self.writer.lock().applied.clone()
    }

    /// The state machine's store, read-only. A write to it would make the node differ from the
    /// others.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Makes everything durable that was applied.
    pub(crate) fn sync(&self) -> Result<()> {
        Ok(self.store.sync()?)
    }

    pub(crate) fn close(&self) -> Result<()> {
        Ok(self.store.clone().close()?)
    }

    /// Applies entries, in one commit with the number of the last of them. It survives the death of
    /// the process, but a power cut only after a later sync.
    pub(crate) fn apply(&self, entries: &[Entry]) -> Result<Vec<Response>> {
        let mut writer = self.writer.lock();
        let mut applied = writer.applied.clone();
        // Each creation is a commit of its own, before the one that matters: repeating it does
        // nothing.
        let new = writer.keyspaces.open(&self.store, entries)?;
        let mut transaction = self.store.begin_exclusive()?;
        transaction.durability(Durability::Buffered);
        let mut responses = Vec::with_capacity(entries.len());
        for entry in entries {
            applied.step_to(entry.log_id)?;
            responses.push(match &entry.payload {
                EntryPayload::Blank => Response::Done,
                EntryPayload::Normal(request) => {
                    apply_request(&mut transaction, &writer.keyspaces, request)?
                }
                EntryPayload::Membership(membership) => {
                    applied.membership = Membership::new(Some(entry.log_id), membership.clone());
                    Response::Done
                }
            });
        }
        for name in new {
            let key = format!("{KIND}{name}");
            let kind = record::encode(&key, &writer.keyspaces.is_ending[&name])?;
            transaction.put(&self.meta, &key, kind)?;
        }
        let log_id = record::encode(APPLIED, &applied.log_id)?;
        transaction.put(&self.meta, APPLIED, log_id)?;
        if applied.membership != writer.applied.membership {
            let membership = record::encode(MEMBERSHIP, &applied.membership)?;
            transaction.put(&self.meta, MEMBERSHIP, membership)?;
        }
        transaction.commit()?;
        writer.applied = applied;
        Ok(responses)
    }
}

impl Applied {
    fn step_to(&mut self, log_id: LogId) -> Result<()> {
        if let Some(applied) = self.log_id.filter(|applied| applied.index >= log_id.index) {
            let (applied, found) = (applied.to_string(), log_id.to_string());
            return Err(Error::Order { applied, found });
        }
        self.log_id = Some(log_id);
        Ok(())
    }
}

impl Keyspaces {
    /// Loads the keyspaces whose kind is known.
    fn load(meta: &Keyspace) -> Result<Self> {
        let mut keyspaces = Self::default();
        for pair in meta.prefix(KIND) {
            let (key, kind) = pair?;
            let place = || format!("the record {:?} of the state machine", key.escape_ascii());
            let is_ending = record::decode(place, &*key, &kind)?;
            let name = String::from_utf8_lossy(&key[KIND.len()..]).into_owned();
            keyspaces.is_ending.insert(name, is_ending);
        }
        Ok(keyspaces)
    }

    /// Opens the keyspaces that requests name, and creates those into which they put something.
    /// Returns those whose kind is new.
    fn open(&mut self, store: &Store, entries: &[Entry]) -> Result<Vec<String>> {
        let mut new = Vec::new();
        for entry in entries {
            let EntryPayload::Normal(request) = &entry.payload else { continue };
            if request.check().is_err() {
                continue;
            }
            for change in request.changes() {
                let name = change.keyspace();
                if change.puts() && !self.is_ending.contains_key(name) {
                    self.is_ending.insert(name.to_owned(), change.is_ending());
                    new.push(name.to_owned());
                }
                self.open_one(store, name)?;
            }
        }
        Ok(new)
    }

    /// Only keyspaces into which something was put. Each creation is a commit of its own: repeating
    /// it does nothing.
    fn open_one(&mut self, store: &Store, name: &str) -> Result<()> {
        match self.is_ending.get(name) {
            Some(true) if !self.ending.contains_key(name) => {
                self.ending.insert(name.to_owned(), store.expiring(name)?);
            }
            Some(false) if !self.plain.contains_key(name) => {
                self.plain.insert(name.to_owned(), store.keyspace(name)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Why a put is refused. A removal in such a case finds nothing: a put of a later entry in the
    /// same run must make no difference.
    fn fault(&self, change: &Change) -> Option<String> {
        let name = change.keyspace();
        let is_ending = *self.is_ending.get(name).filter(|_| change.puts())?;
        let kind = |is_ending| if is_ending { "that end" } else { "that do not end" };
        (is_ending != change.is_ending()).then(|| {
            let (expected, found) = (kind(change.is_ending()), kind(is_ending));
            format!("expected {name:?} to be a keyspace of entries {expected}, found {found}")
        })
    }
}

/// Applies all of a request, or nothing.
fn apply_request(
    transaction: &mut Transaction,
    keyspaces: &Keyspaces,
    request: &Request,
) -> Result<Response> {
    if let Err(refusal) = request.check() {
        return Ok(Response::Refused(refusal));
    }
    let numbered = || (0..).zip(request.changes());
    let mut faults = numbered().filter_map(|(change, what)| Some((change, keyspaces.fault(what)?)));
    if let Some((change, reason)) = faults.next() {
        return Ok(Response::Refused(Refusal { change, reason }));
    }
    let done = transaction.savepoint(|transaction| {
        for (number, change) in numbered() {
            let name = change.keyspace();
            match (keyspaces.ending.get(name), change.is_ending()) {
                (Some(keyspace), true) => apply_ending(transaction, keyspace, change)?,
                // Nothing was ever put into it.
                (None, true) => {}
                (_, false) => {
                    apply_change(transaction, keyspaces.plain.get(name), number, change)?;
                }
            }
        }
        Ok::<(), Undone>(())
    });
    match done {
        Ok(()) => Ok(Response::Done),
        Err(Undone::Different { change, found }) => Ok(Response::Different { change, found }),
        Err(Undone::Store(error)) => Err(error.into()),
    }
}

fn apply_change(
    transaction: &mut Transaction,
    keyspace: Option<&Keyspace>,
    number: u64,
    change: &Change,
) -> std::result::Result<(), Undone> {
    let Some(keyspace) = keyspace else {
        // Nothing was ever put into it.
        return match change {
            Change::Compare { expected: Some(_), .. } => {
                Err(Undone::Different { change: number, found: None })
            }
            _ => Ok(()),
        };
    };
    match change {
        Change::Put { key, value, .. } => transaction.put(keyspace, key, value)?,
        Change::Delete { key, .. } => transaction.delete(keyspace, key)?,
        Change::DeleteRange { start, end, .. } => {
            let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            remove_range(transaction, keyspace, (Bound::Included(&start[..]), end))?;
        }
        Change::Compare { key, expected, .. } => {
            let found = transaction.get(keyspace, key)?;
            if found.as_deref() != expected.as_deref() {
                let found = found.map(|found| found.to_vec());
                return Err(Undone::Different { change: number, found });
            }
        }
        Change::PutEnding { .. }
        | Change::DeleteEnding { .. }
        | Change::Expire { .. }
        | Change::ClearEnding { .. } => {}
    }
    Ok(())
}

/// Applies a change of expiring entries; it does not depend on any clock of this node.
fn apply_ending(
    transaction: &mut Transaction,
    keyspace: &Expiring,
    change: &Change,
) -> adamant::Result<()> {
    match change {
        Change::PutEnding { key, value, deadline, .. } => {
            let deadline = deadline.map(Deadline::from_millis);
            keyspace.within(transaction).put(key, value, deadline)?;
        }
        Change::DeleteEnding { key, .. } => {
            keyspace.within(transaction).delete(key)?;
        }
        &Change::Expire { now, entries_max, .. } => {
            let entries_max = usize::try_from(entries_max).unwrap_or(usize::MAX);
            let keyspace = keyspace.with_clock(move || now);
            keyspace.within(transaction).remove_expired(entries_max)?;
        }
        Change::ClearEnding { .. } => {
            keyspace.within(transaction).clear()?;
        }
        Change::Put { .. }
        | Change::Delete { .. }
        | Change::DeleteRange { .. }
        | Change::Compare { .. } => {}
    }
    Ok(())
}

fn remove_range(
    transaction: &mut Transaction,
    keyspace: &Keyspace,
    range: impl KeyBounds,
) -> adamant::Result<()> {
    let keys = transaction.range(keyspace, range).keys();
    let keys = keys.collect::<adamant::Result<Vec<Slice>>>()?;
    for key in keys {
        transaction.delete(keyspace, key)?;
    }
    Ok(())
}

fn needed<T: DeserializeOwned>(meta: &Keyspace, key: &str) -> Result<T> {
    let Some(record) = meta.get(key)? else {
        return Err(Error::damaged("the state machine", format!("a record {key:?}"), "none"));
    };
    record::decode(|| format!("the record {key:?} of the state machine"), key, &record)
}
