//! The state that a reader reads: the current one, a snapshot, or a transaction.
//!
//! Purpose: implements the reads of a keyspace once, for all three.
//! Invariants: called detached from the interpreter, and no thread waits here for the interpreter's
//! lock; so the locks below cannot be part of a deadlock with it.
//! Thread safety: a snapshot is read by any number of threads, a transaction by one after the
//! other.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use adamant::expiring::Living;
use adamant::{Deadline, Engine, Expiring, Iter, Keys, Slice, Snapshot, Transaction};

use crate::convert::span::Span;
use crate::errors::{Failure, Result};
use crate::mapping::map::Map;
use crate::mapping::scan_batch::ScanBatch;

/// A key and its value; the value is empty if values are not wanted.
pub(crate) type Entry = (Slice, Slice);

/// A snapshot until it is closed.
pub(crate) type OpenSnapshot = RwLock<Option<Snapshot>>;

/// A transaction until it is committed or rolled back.
pub(crate) type OpenTransaction = Mutex<Option<Transaction>>;

/// Bytes of keys and values after which a batch is full, so that large values do not pile up.
const BATCH_BYTES_MAX: usize = 64 << 10;
/// Entries that are counted under one hold of a transaction's lock.
const COUNTED_ENTRIES: usize = 4096;

/// The state to read.
#[derive(Clone)]
pub(crate) enum Place {
    /// The current state.
    Now,
    /// The state when the snapshot was opened.
    At(Arc<OpenSnapshot>),
    /// The state that a transaction sees.
    Within(Arc<OpenTransaction>),
}

/// Takes a lock even if it is poisoned: the data behind it is intact.
pub(crate) fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a closure with a snapshot that is open.
pub(crate) fn with_snapshot<T>(
    snapshot: &OpenSnapshot,
    work: impl FnOnce(&Snapshot) -> adamant::Result<T>,
) -> Result<T> {
    let held = snapshot.read().unwrap_or_else(PoisonError::into_inner);
    Ok(work(held.as_ref().ok_or(Failure::SnapshotClosed)?)?)
}

/// Calls a closure with a transaction that is open.
pub(crate) fn with_transaction<T>(
    transaction: &OpenTransaction,
    work: impl FnOnce(&mut Transaction) -> adamant::Result<T>,
) -> Result<T> {
    Ok(work(hold(transaction).as_mut().ok_or(Failure::TransactionEnded)?)?)
}

impl Place {
    /// The value of a key.
    pub(crate) fn get(&self, map: &Map, key: &[u8]) -> Result<Option<Slice>> {
        match (map, self) {
            (Map::Plain(keyspace), Self::Now) => Ok(keyspace.get(key)?),
            (Map::Plain(keyspace), Self::At(snapshot)) => {
                with_snapshot(snapshot, |it| it.get(keyspace, key))
            }
            (Map::Plain(keyspace), Self::Within(transaction)) => {
                with_transaction(transaction, |it| it.get(keyspace, key))
            }
            (Map::Ending(expiring), _) => Ok(self.ending(expiring, key)?.map(|(value, _)| value)),
        }
    }

    /// The values of many keys.
    pub(crate) fn multi_get(&self, map: &Map, keys: &[Vec<u8>]) -> Result<Vec<Option<Slice>>> {
        match (map, self) {
            (Map::Plain(keyspace), Self::Now) => Ok(keyspace.multi_get(keys)?),
            (Map::Plain(keyspace), Self::At(snapshot)) => {
                with_snapshot(snapshot, |it| it.multi_get(keyspace, keys))
            }
            (Map::Plain(_), Self::Within(_)) | (Map::Ending(_), _) => {
                keys.iter().map(|key| self.get(map, key)).collect()
            }
        }
    }

    /// Passes the value of a key to a closure, which only copies it; whether there is one.
    pub(crate) fn read(&self, map: &Map, key: &[u8], copy: impl FnOnce(&[u8])) -> Result<bool> {
        if let (Map::Plain(keyspace), Self::Now) = (map, self) {
            return Ok(keyspace.get_briefly(key, copy)?.is_some());
        }
        Ok(self.get(map, key)?.map(|value| copy(&value)).is_some())
    }

    /// The value and the deadline of a key that has not expired.
    pub(crate) fn ending(
        &self,
        expiring: &Expiring,
        key: &[u8],
    ) -> Result<Option<(Slice, Option<Deadline>)>> {
        match self {
            Self::Now => Ok(expiring.get_with_deadline(key)?),
            Self::At(snapshot) => {
                with_snapshot(snapshot, |it| expiring.at(it).get_with_deadline(key))
            }
            Self::Within(transaction) => {
                with_transaction(transaction, |it| expiring.within(it).get_with_deadline(key))
            }
        }
    }

    /// Whether a key has a value.
    pub(crate) fn contains(&self, map: &Map, key: &[u8]) -> Result<bool> {
        match (map, self) {
            (Map::Plain(keyspace), Self::Now) => Ok(keyspace.contains(key)?),
            (Map::Plain(keyspace), Self::At(snapshot)) => {
                with_snapshot(snapshot, |it| it.contains(keyspace, key))
            }
            (Map::Plain(keyspace), Self::Within(transaction)) => {
                with_transaction(transaction, |it| it.contains(keyspace, key))
            }
            (Map::Ending(expiring), Self::Now) => Ok(expiring.contains(key)?),
            (Map::Ending(expiring), _) => Ok(self.ending(expiring, key)?.is_some()),
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self, map: &Map) -> Result<u64> {
        match (map, self) {
            (Map::Plain(keyspace), Self::Now) => Ok(keyspace.len()?),
            (Map::Plain(keyspace), Self::At(snapshot)) => {
                with_snapshot(snapshot, |it| it.len(keyspace))
            }
            (Map::Ending(expiring), Self::Now) => Ok(expiring.len()?),
            (Map::Ending(expiring), Self::At(snapshot)) => {
                with_snapshot(snapshot, |it| expiring.at(it).len())
            }
            (_, Self::Within(_)) => self.count(map, Span::new(None, None, None)),
        }
    }

    /// Whether there is no entry.
    pub(crate) fn is_empty(&self, map: &Map) -> Result<bool> {
        match (map, self) {
            (Map::Plain(keyspace), Self::Now) => Ok(keyspace.is_empty()?),
            (Map::Plain(keyspace), Self::At(snapshot)) => {
                with_snapshot(snapshot, |it| it.is_empty(keyspace))
            }
            (Map::Plain(keyspace), Self::Within(transaction)) => {
                with_transaction(transaction, |it| {
                    Ok(it.iter(keyspace).keys().next().transpose()?.is_none())
                })
            }
            (Map::Ending(_), _) => Ok(self.end(map, false)?.is_none()),
        }
    }

    /// The number of entries in a part of it: a walk over their keys.
    pub(crate) fn count(&self, map: &Map, span: Span) -> Result<u64> {
        let mut walk = self.walk(map, span, false)?;
        let (mut batch, mut entries) = (ScanBatch::default(), 0);
        loop {
            walk.batch(false, COUNTED_ENTRIES, &mut batch)?;
            if batch.len() == 0 {
                return Ok(entries);
            }
            entries += batch.len() as u64;
            batch.clear();
        }
    }

    /// The entry at one end.
    pub(crate) fn end(&self, map: &Map, last: bool) -> Result<Option<Entry>> {
        match (map, self) {
            (Map::Plain(keyspace), Self::Now) if last => Ok(keyspace.last()?),
            (Map::Plain(keyspace), Self::Now) => Ok(keyspace.first()?),
            (Map::Plain(keyspace), Self::At(snapshot)) => {
                with_snapshot(
                    snapshot,
                    |it| {
                        if last { it.last(keyspace) } else { it.first(keyspace) }
                    },
                )
            }
            (Map::Plain(keyspace), Self::Within(transaction)) => {
                with_transaction(transaction, |it| {
                    if last { it.last(keyspace) } else { it.first(keyspace) }
                })
            }
            (Map::Ending(_), _) => {
                let mut found = ScanBatch::default();
                let mut walk = self.walk(map, Span::new(None, None, None), true)?;
                walk.batch(last, 1, &mut found)?;
                Ok(found.pop().map(|(key, value)| (key.into(), value.into())))
            }
        }
    }

    /// A walk over a part of a keyspace, with or without values. It reads nothing before its first
    /// batch.
    pub(crate) fn walk(&self, map: &Map, span: Span, with_values: bool) -> Result<Walk> {
        Ok(match self {
            Self::Now => Walk::Now(match map {
                Map::Plain(keyspace) => {
                    Steps::new(keyspace.range(span.bounds()), keyspace.engine(), with_values)
                }
                Map::Ending(expiring) => Steps::Living(Box::new(expiring.range(span.bounds()))),
            }),
            Self::At(snapshot) => {
                let steps = with_snapshot(snapshot, |it| {
                    Ok(match map {
                        Map::Plain(keyspace) => Steps::new(
                            it.range(keyspace, span.bounds()),
                            keyspace.engine(),
                            with_values,
                        ),
                        Map::Ending(expiring) => {
                            Steps::Living(Box::new(expiring.at(it).range(span.bounds())))
                        }
                    })
                })?;
                Walk::At(steps, Arc::clone(snapshot))
            }
            Self::Within(transaction) => {
                let (transaction, rest) = (Arc::clone(transaction), (map.clone(), span));
                Walk::Within(transaction, Box::new(rest), with_values)
            }
        })
    }
}

/// An iterator of the store, with values or without.
pub(crate) enum Steps {
    /// Of a tree, which lends entries under its lock.
    Lent(Box<Iter>),
    /// Of the engine lsm, which copies entries before it lends them, and more than a few.
    Entries(Box<Iter>),
    Keys(Box<Keys>),
    /// Entries that have not expired: with values, since their deadlines are stored before these.
    Living(Box<Living<Iter>>),
}

impl Steps {
    fn new(iter: Iter, engine: Engine, with_values: bool) -> Self {
        match engine {
            _ if !with_values => Self::Keys(Box::new(iter.keys())),
            Engine::Lsm => Self::Entries(Box::new(iter)),
            _ => Self::Lent(Box::new(iter)),
        }
    }

    fn gather(
        &mut self,
        reverse: bool,
        entries_max: usize,
        into: &mut ScanBatch,
    ) -> adamant::Result<()> {
        match self {
            Self::Lent(iter) => {
                let copy = |key: &[u8], value: &[u8]| {
                    into.push(key, value);
                    let is_full = is_full(into, entries_max);
                    if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                let ended = if reverse { iter.lend_back(copy) } else { iter.lend(copy) };
                ended.map(|_| ())
            }
            Self::Entries(iter) => gather(iter.as_mut(), (reverse, entries_max), into),
            Self::Keys(iter) => gather(&mut iter.map(alone), (reverse, entries_max), into),
            Self::Living(iter) => gather(&mut iter.map(pair), (reverse, entries_max), into),
        }
    }
}

/// A key without a value.
pub(crate) fn alone(key: adamant::Result<Slice>) -> adamant::Result<Entry> {
    Ok((key?, Slice::EMPTY))
}

/// An entry without its deadline.
fn pair(entry: adamant::Result<(Slice, Slice, Option<Deadline>)>) -> adamant::Result<Entry> {
    let (key, value, _) = entry?;
    Ok((key, value))
}

/// A walk over something else than entries of a map.
pub(crate) trait Batches: Send {
    /// As [`Walk::batch`].
    fn batch(&mut self, reverse: bool, entries_max: usize, into: &mut ScanBatch) -> Result<()>;
}

/// A walk over entries, from one end.
pub(crate) enum Walk {
    /// Over the current state.
    Now(Steps),
    /// Over a snapshot, until that is closed.
    At(Steps, Arc<OpenSnapshot>),
    /// Over a transaction: the rest of the range, with values or without. An iterator of the store
    /// would borrow the transaction all the time.
    Within(Arc<OpenTransaction>, Box<(Map, Span)>, bool),
    /// Over what only its owner knows.
    Other(Box<dyn Batches>),
}

impl Walk {
    /// Adds the next entries, about so many at most; none at the end.
    pub(crate) fn batch(
        &mut self,
        reverse: bool,
        entries_max: usize,
        into: &mut ScanBatch,
    ) -> Result<()> {
        match self {
            Self::Now(steps) => Ok(steps.gather(reverse, entries_max, into)?),
            Self::Other(walk) => walk.batch(reverse, entries_max, into),
            Self::At(steps, snapshot) => {
                with_snapshot(snapshot, |_| steps.gather(reverse, entries_max, into))
            }
            Self::Within(transaction, rest, with_values) => {
                let (map, span) = &mut **rest;
                with_transaction(transaction, |it| match map {
                    Map::Plain(keyspace) => {
                        let mut iter = it.range(keyspace, span.bounds());
                        if *with_values {
                            return gather(&mut iter, (reverse, entries_max), into);
                        }
                        gather(&mut iter.keys().map(alone), (reverse, entries_max), into)
                    }
                    Map::Ending(expiring) => {
                        let mut within = expiring.within(it);
                        let iter = within.range(span.bounds());
                        gather(&mut iter.map(pair), (reverse, entries_max), into)
                    }
                })?;
                if let Some((key, _)) = into.last() {
                    span.behind(key, reverse);
                }
                Ok(())
            }
        }
    }
}

fn is_full(entries: &ScanBatch, entries_max: usize) -> bool {
    entries.len() >= entries_max || entries.bytes() >= BATCH_BYTES_MAX
}

/// Adds the next entries, about so many at most.
pub(crate) fn gather(
    iter: &mut impl DoubleEndedIterator<Item = adamant::Result<Entry>>,
    (reverse, entries_max): (bool, usize),
    into: &mut ScanBatch,
) -> adamant::Result<()> {
    while !is_full(into, entries_max) {
        let next = if reverse { iter.next_back() } else { iter.next() };
        let Some(entry) = next else { break };
        let (key, value) = entry?;
        into.push(&key, &value);
    }
    Ok(())
}
