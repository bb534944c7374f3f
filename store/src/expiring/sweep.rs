//! The background sweep: removes expired entries, step by step.
//!
//! Purpose: entries expire without a call of [`Expiring::remove_expired`](super::Expiring): a
//! thread sleeps until the earliest deadline of the keyspaces that were opened, and removes what
//! has passed it. By the system's clock alone.
//! Invariants: a step is one commit that removes an entry together with the row of its deadline, or
//! a row that belongs to no entry. It finds them under the write permit, so it never removes an
//! entry that has got another deadline. A lost step loses nothing: the next sweep does it again.
//! Thread safety: a step holds the write permit for at most [`STEP_ENTRIES_MAX`] rows, found in
//! memory as a first look has read them; then writers have at least as long for themselves.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::{Duration, Instant};

use adamant_heap::durability::Durability;
use adamant_heap::{Transaction, events};
use adamant_slice::Slice;
use tracing::{debug, warn};

use super::deadline::{Deadline, deadline_of, rows_end};
use crate::bounds::{Direction, KeyRange};
use crate::clock::system_millis;
use crate::common::shared::{KeyVisitor, OpenStore, Shared};
use crate::common::sweeper::{Sweeper, SweptPair};
use crate::engine::scan::ScanOptions;
use crate::error::{Error, Result};
use crate::layout::DEADLINE_BYTES;

/// Rows that a step removes at most: some 5 ms of the write permit in a store that is in memory.
pub(super) const STEP_ENTRIES_MAX: usize = 500;
/// How long a step waits for the write permit before it asks whether the store is being closed.
const PERMIT_WAIT: Duration = Duration::from_millis(50);
/// The least pause between two steps.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The least sleep where nothing has expired, so that entries that expire one after the other are
/// removed together.
const SLEEP_MIN: Duration = Duration::from_millis(100);
/// The longest sleep: commits do not wake the thread, however soon what they write expires.
const SLEEP_MAX: Duration = Duration::from_secs(3);
/// How long a keyspace is left alone after a sweep of it has failed.
const RETRY: Duration = Duration::from_secs(30);

/// Lets the background sweep remove what expires in a keyspace, if this store has it.
pub(super) fn watch(shared: &Shared, pair: SweptPair) {
    let options = shared.options();
    if options.only_reads() || !options.background || !options.sweep_expired {
        return;
    }
    let watched = shared.sweeper().watch(pair, || {
        let (open, mut failures) = (Arc::clone(shared.open_store()), BTreeMap::new());
        Box::new(move |sweeper| sweep(&open, sweeper, &mut failures))
    });
    if let Err(error) = watched {
        // Nothing is wrong but that entries stay; the next handle tries again.
        warn!(target: events::STORE, %error, "the thread that sweeps could not be started");
    }
}

/// What a step has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It removed so many rows. There may be more.
    Removed(usize),
    /// Nothing has expired; the earliest deadline, if there is one.
    Nothing(Option<Deadline>),
    /// Another thread held the write permit for too long.
    Busy,
}

/// One look at all keyspaces, and as many steps as they need; returns how long to wait before the
/// next one. `failures` has the keyspaces that failed, and when.
pub(super) fn sweep(
    open: &OpenStore,
    sweeper: &Sweeper,
    failures: &mut BTreeMap<u64, Instant>,
) -> Duration {
    let mut wait = SLEEP_MAX;
    failures.retain(|_, failed| failed.elapsed() < RETRY);
    for pair in sweeper.pairs() {
        if failures.contains_key(&pair.entries.id) {
            continue;
        }
        match sweep_one(open, sweeper, &pair) {
            Ok(earlier) => wait = wait.min(earlier),
            Err(Error::Closed) => return SLEEP_MAX,
            Err(Error::KeyspaceDropped { .. } | Error::WrongKind { .. }) => sweeper.forget(&pair),
            Err(error) => {
                let keyspace = &*pair.entries.name;
                warn!(
                    target: events::STORE,
                    %error, keyspace, "removing expired entries failed; it will be tried again"
                );
                failures.insert(pair.entries.id, Instant::now());
            }
        }
    }
    wait
}

/// Steps through a keyspace until nothing in it has expired; returns how long to sleep.
fn sweep_one(open: &OpenStore, sweeper: &Sweeper, pair: &SweptPair) -> Result<Duration> {
    while !sweeper.is_stopped() {
        let (begun, now) = (Instant::now(), system_millis());
        let stepped = match step(open, pair, now, STEP_ENTRIES_MAX) {
            Err(error) if open.makes_room_for(&error, true) => {
                step(open, pair, now, STEP_ENTRIES_MAX)
            }
            stepped => stepped,
        };
        match stepped? {
            Step::Removed(rows) => {
                debug!(target: events::STORE, keyspace = &*pair.entries.name, rows, "swept");
                // Writers have the permit for as long as this had it, at least.
                std::thread::sleep(begun.elapsed().clamp(PAUSE_MIN, PERMIT_WAIT));
            }
            Step::Nothing(next) => {
                let millis = next.map_or(u64::MAX, |next| next.millis().saturating_sub(now));
                return Ok(Duration::from_millis(millis).clamp(SLEEP_MIN, SLEEP_MAX));
            }
            Step::Busy => {}
        }
    }
    Ok(SLEEP_MAX)
}

/// Removes expired entries, at most so many, in one commit of the durability `Deferred`.
pub(super) fn step(
    open: &OpenStore,
    pair: &SweptPair,
    now: u64,
    entries_max: usize,
) -> Result<Step> {
    // Without the permit: most looks find nothing, and what is on the device is read here.
    if find(open, pair, now, entries_max)?.is_empty() {
        return next_deadline(open, pair).map(Step::Nothing);
    }
    let Some(permit) = open.take_write_permit_within(PERMIT_WAIT)? else {
        return Ok(Step::Busy);
    };
    let expired = find(open, pair, now, entries_max)?;
    if expired.is_empty() {
        // Another thread has removed them meanwhile.
        return Ok(Step::Removed(0));
    }
    let keys = |each: &mut KeyVisitor<'_>| {
        for (row, has_entry) in &expired {
            each(&pair.deadlines, row)?;
            if *has_entry {
                each(&pair.entries, key_of(row))?;
            }
        }
        Ok(())
    };
    open.change(Some(permit), Durability::Deferred, keys, |transaction: &mut Transaction<'_>| {
        let entries = pair.entries.map(transaction, open.catalogue())?;
        let deadlines = pair.deadlines.map(transaction, open.catalogue())?;
        for (row, has_entry) in &expired {
            if *has_entry {
                entries.write(transaction, key_of(row), None)?;
            }
            deadlines.write(transaction, row, None)?;
        }
        Ok(())
    })?;
    if let Some(policy) = open.open_cache_policy(pair.entries.id) {
        let keys = expired.iter().filter(|(_, has_entry)| *has_entry);
        let is_there = |key: &[u8]| {
            let view = open.view()?;
            pair.entries.map(&view, open.catalogue())?.contains(view, key, None)
        };
        policy.forget_removed(keys.map(|(row, _)| key_of(row)), is_there)?;
    }
    Ok(Step::Removed(expired.len()))
}

/// The first rows whose deadline has passed, at most so many, and whether each has its entry: a row
/// without one can remain from a crash during a drop of the keyspace.
fn find(
    open: &OpenStore,
    pair: &SweptPair,
    now: u64,
    entries_max: usize,
) -> Result<Vec<(Slice, bool)>> {
    let end = rows_end(now);
    let end = end.as_ref().map_or(Bound::Unbounded, |end| Bound::Excluded(&end[..]));
    let mut found = Vec::new();
    for row in rows(open, pair, end, entries_max)? {
        let deadline = deadline_of(&pair.deadlines.name, &row)?;
        let view = open.view()?;
        let entries = pair.entries.map(&view, open.catalogue())?;
        let of_entry = |stored: &[u8]| deadline_of(&pair.entries.name, stored);
        let of_entry = entries.get_with(view, key_of(&row), None, of_entry)?.transpose()?;
        found.push((row, of_entry == Some(deadline)));
    }
    Ok(found)
}

/// The first rows before `end`, at most so many.
fn rows(
    open: &OpenStore,
    pair: &SweptPair,
    end: Bound<&[u8]>,
    entries_max: usize,
) -> Result<Vec<Slice>> {
    let (mut rows, mut rest) = (Vec::new(), KeyRange::new(&(Bound::Unbounded, end)));
    while let Some(range) = rest.take().filter(|_| rows.len() < entries_max) {
        let view = open.view()?;
        let deadlines = pair.deadlines.map(&view, open.catalogue())?;
        let options = ScanOptions {
            direction: Direction::Up,
            bounds: range.bounds(),
            entries_min: entries_max - rows.len(),
            with_values: false,
        };
        let bound = deadlines.scan(view, &options, None, |row, _| {
            rows.push(Slice::from(row));
            match rows.len() < entries_max {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        rest = bound.and_then(|bound| range.rest(Direction::Up, bound));
    }
    Ok(rows)
}

fn next_deadline(open: &OpenStore, pair: &SweptPair) -> Result<Option<Deadline>> {
    let first = rows(open, pair, Bound::Unbounded, 1)?;
    first.first().map_or(Ok(None), |row| deadline_of(&pair.deadlines.name, row))
}

/// The key of a row's entry.
fn key_of(row: &[u8]) -> &[u8] {
    &row[DEADLINE_BYTES.min(row.len())..]
}
