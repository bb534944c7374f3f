//! The feed of changes: commits in order, live and from the past.
//!
//! Purpose: reads the history commit by commit, and waits for the next one. Invariants: each commit
//! comes once, whole, in the order of the numbers, without a gap but for what going back undid; a
//! reader that is behind the history, or has seen what was undone, is told.
//! Thread safety: a reader has one owner; any number of them read beside each other and writers.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Bound, ControlFlow, Range};
use std::time::{Duration, Instant};

use adamant_heap::access::Read;

use crate::bounds::Direction;
use crate::common::change::Change;
use crate::common::change_codec::decode;
use crate::common::history::{HistoryHead, part_key, part_of, read_head};
use crate::common::undone_changes::undone_behind;
use crate::engine::map::Map;
use crate::error::{Error, Result};
use crate::store::handle::Store;

/// Commits, and bytes of them, that are read at once.
const COMMITS_MAX: u64 = 256;
const BYTES_MAX: usize = 1 << 20;

/// A commit of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Commit {
    /// Its number: commits are numbered one by one, in the order in which they became visible. No
    /// number is given twice: behind [`go_back`](crate::go_back) they go on above all others.
    pub number: u64,
    /// What it changed: of each key what it left, in any order; what was done to keyspaces, and
    /// moves, as they are.
    pub changes: Vec<Change>,
}

/// Commits in order, from [`Store::changes`]. It keeps the store open.
pub struct Changes {
    store: Store,
    /// The number of the keyspace of the history: one that was begun anew counts anew.
    history: u64,
    after: u64,
    ready: VecDeque<Commit>,
}

impl Store {
    /// The commits behind the one of a number, in order: those of the past that the history has,
    /// and those to come. 0 begins with the first. Needs [`Store::record_changes`].
    ///
    /// Of a store that was opened [beside a writer](Store::open_beside) it gives what the other
    /// process commits: it is a reader of its own then, and follows by itself.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use adamant::{Change, Store};
    ///
    /// let store = Store::in_memory()?;
    /// store.record_changes(Some(64 << 20))?;
    /// let jobs = store.keyspace("jobs")?;
    /// let mut changes = store.changes(store.last_change()?)?;
    /// let worker = std::thread::spawn(move || {
    ///     let commit = changes.next_within(Duration::from_secs(60))?.expect("a job comes");
    ///     assert!(matches!(&commit.changes[0], Change::Put { value, .. } if *value == "sweep"));
    ///     Ok::<_, adamant::Error>(commit.number)
    /// });
    /// jobs.put("1", "sweep")?;
    /// assert_eq!(worker.join().expect("no panic")?, 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ChangesNotRecorded`]; [`Error::ChangesUnknown`] if the history does not have all
    /// commits behind it, or it is of the future, or was undone by [`go_back`](crate::go_back); the
    /// store is closed.
    pub fn changes(&self, after: u64) -> Result<Changes> {
        let mut store = self.clone();
        if self.shared.options().beside_writer {
            let directory = self.shared.heap()?.directory();
            store = Self::open_beside_again(directory, self.shared.options())?;
        }
        let state = store.shared.history().state().ok_or(Error::ChangesNotRecorded)?;
        {
            let view = store.shared.view()?;
            next_behind(after, &view, &*state.map(&view, store.shared.catalogue())?)?;
        }
        Ok(Changes { store, history: state.id, after, ready: VecDeque::new() })
    }
}

/// The numbers from that of the next commit behind one to the end of those that follow each other;
/// none if there is none yet.
///
/// # Errors
/// `Error::ChangesUnknown` unless all commits behind it are there, or if it was undone.
fn next_behind<R: Read>(after: u64, heap: &R, map: &Map) -> Result<Range<u64>> {
    let HistoryHead { first, next, .. } = read_head(heap, map)?;
    let unknown = || Error::ChangesUnknown { after, first, last: next - 1 };
    if after >= next || after + 1 < first {
        return Err(unknown());
    }
    let mut seen = after;
    while let Some(undone) = undone_behind(heap, map, seen)? {
        match undone.left {
            left if seen < left => return Ok(seen + 1..left + 1),
            left if seen == left => seen = undone.last,
            _ => return Err(unknown()),
        }
    }
    Ok(seen + 1..next)
}

impl Changes {
    /// The number of the last commit that was returned, or that the feed began behind.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// The next commit, if it is there. Never waits. O(log n), once for some hundred commits.
    ///
    /// # Errors
    /// [`Error::ChangesUnknown`] if this reader is so far behind that the commit was removed;
    /// [`Error::ChangesNotRecorded`] if recording has ended, even if it was begun anew since;
    /// [`Error::Damaged`]; the store is closed. Of a store beside a writer as [`Store::refresh`].
    pub fn try_next(&mut self) -> Result<Option<Commit>> {
        if self.ready.is_empty() {
            self.read_ahead()?;
            let is_beside = self.store.shared.options().beside_writer;
            if self.ready.is_empty() && is_beside && self.store.refresh()? {
                self.read_ahead()?;
            }
        }
        let commit = self.ready.pop_front();
        if let Some(commit) = &commit {
            self.after = commit.number;
        }
        Ok(commit)
    }

    /// The next commit; waits for it no longer than that, and returns `None` if there is none by
    /// then. A commit ends the wait when it is as durable as its caller asked for. In other
    /// processes: as [`Store::wait_for_change`].
    ///
    /// # Errors
    /// As [`Changes::try_next`].
    pub fn next_within(&mut self, longest: Duration) -> Result<Option<Commit>> {
        let start = Instant::now();
        loop {
            let seen = self.store.shared.history().count();
            if let Some(commit) = self.try_next()? {
                return Ok(Some(commit));
            }
            let left = longest.saturating_sub(start.elapsed());
            if !self.wait(seen, left)? {
                return self.try_next();
            }
        }
    }

    /// Waits until there may be a next commit; whether there may.
    fn wait(&mut self, seen: u64, longest: Duration) -> Result<bool> {
        if !self.store.shared.options().beside_writer {
            return Ok(self.store.shared.history().wait(seen, longest));
        }
        // The next look moves on.
        self.store.wait_for_change(longest)
    }

    /// Reads the next commits, if there are any.
    fn read_ahead(&mut self) -> Result<()> {
        let shared = &self.store.shared;
        let state = shared.history().state().filter(|state| state.id == self.history);
        let state = state.ok_or(Error::ChangesNotRecorded)?;
        let view = shared.long_view()?;
        let map = state.map(&view, shared.catalogue())?;
        let next = next_behind(self.after, &view, &map)?;
        let (first, end) = (next.start, next.end.min(next.start.saturating_add(COMMITS_MAX)));
        let Some(tree) = map.tree().filter(|_| first < end) else { return Ok(()) };
        let keys = (part_key(first, 0), part_key(end, 0));
        let range = (Bound::Included(&keys.0[..]), Bound::Excluded(&keys.1[..]));
        let mut commits: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut bytes = 0;
        tree.scan(&view, Direction::Up, range, usize::MAX, |key, value| {
            let number = part_of(key).map_or(0, |(number, _)| number);
            match commits.last_mut().filter(|(last, _)| *last == number) {
                Some((_, parts)) => parts.extend_from_slice(&value),
                None if bytes >= BYTES_MAX => return ControlFlow::Break(()),
                None => commits.push((number, value.to_vec())),
            }
            bytes += value.len();
            ControlFlow::Continue(())
        })?;
        drop(view);
        for (expected, (number, bytes)) in (first..).zip(commits) {
            if number != expected {
                return Err(Error::Damaged {
                    what: format!(
                        "expected commit {expected} in the history of changes, found {number}; \
                         have changes recorded anew"
                    ),
                });
            }
            self.ready.push_back(Commit { number, changes: decode(number, &bytes)? });
        }
        if self.ready.is_empty() {
            return Err(Error::Damaged {
                what: format!(
                    "expected commit {first} in the history of changes, found none; have changes \
                     recorded anew"
                ),
            });
        }
        Ok(())
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("after", &self.after).finish_non_exhaustive()
    }
}
