//! Cursors: entries by key, one after the other, in both directions.
//!
//! Purpose: the store's iterators go from both ends to the middle; a cursor of C is positioned on
//! an entry and goes either way from there. It has an iterator for its last direction, and opens
//! another one at its position when it turns round. Values are read lazily, when C asks for them.
//! Invariants: a step gives the nearest entry on its side, of those that exist when it gets there.
//! A cursor of a transaction pre-reads some entries, which count as read; each write of the
//! transaction discards them.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::{Arc, Mutex};

use adamant::{Slice, Snapshot};

use crate::border::code::{ADAMANT_END, ADAMANT_NOT_FOUND, ADAMANT_OK};
use crate::border::failure::{Result, run};
use crate::border::hold::hold;
use crate::border::pointers::{self, Changed, In, Opaque, Out, Range, Taken};
use crate::border::range::Bounds;
use crate::expiring::{ExpiringHandle, millis_of};
use crate::views::position::{Direction, Position};
use crate::views::snapshot::SnapshotHandle;
use crate::views::transaction::{State, TransactionHandle};
use crate::views::walk::{Found, Map, Walk};
use crate::whole::keyspace::KeyspaceHandle;

/// Entries that a cursor of a transaction pre-reads at first, and at most.
const AHEAD_ENTRIES_MIN: usize = 4;
const AHEAD_ENTRIES_MAX: usize = 64;

/// Goes through the entries of a keyspace by key, both ways. It stays good while the keyspace is
/// written to. For one thread at a time. To be freed by adamant_cursor_free.
pub enum CursorHandle {}

impl Opaque for CursorHandle {
    type Content = Mutex<Cursor>;
    const KIND: u32 = 0xADA1_0009;
    const NAME: &'static str = "a cursor";
}

/// The content of a cursor.
#[derive(Debug)]
pub struct Cursor {
    source: Source,
    map: Map,
    bounds: Bounds,
    position: Position,
    /// The current entry, and its value if that was read: both are lent.
    current: Option<(Found, Option<Slice>)>,
}

/// The entries of a cursor, and its pre-read ones.
#[derive(Debug)]
enum Source {
    Store { snapshot: Option<Snapshot>, iter: Option<(Direction, Walk)> },
    Transaction { state: Arc<Mutex<State>>, ahead: Ahead },
}

/// Pre-read entries.
#[derive(Debug)]
struct Ahead {
    direction: Direction,
    entries: VecDeque<Found>,
    entries_max: usize,
    /// The transaction's number of writes at the pre-read; `None`: nothing was pre-read yet.
    writes: Option<u64>,
}

impl Cursor {
    fn new(source: Source, map: Map, range: &In<Range>) -> Result<Mutex<Self>> {
        let (position, current) = (Position::Nowhere, None);
        let bounds = Bounds::of(range)?;
        Ok(Mutex::new(Self { source, map, bounds, position, current }))
    }

    /// Moves to the next entry in a direction.
    fn step(&mut self, direction: Direction) -> Result<bool> {
        let found = match &mut self.source {
            Source::Store { snapshot, iter } => {
                let known = iter.take().filter(|(known, _)| *known == direction);
                let known = known.map(|(_, walk)| walk).or_else(|| {
                    let rest = self.position.rest(direction, &self.bounds)?;
                    Some(self.map.walk(snapshot.as_ref(), &rest))
                });
                let mut found = None;
                if let Some(mut known) = known {
                    found = known.next(direction)?;
                    *iter = found.is_some().then_some((direction, known));
                }
                found
            }
            Source::Transaction { state, ahead } => {
                let mut state = hold(state)?;
                let rest = self.position.rest(direction, &self.bounds);
                ahead.next(&mut state, &self.map, direction, rest)?
            }
        };
        self.position = match &found {
            Some(entry) => Position::At(entry.key().clone()),
            None => Position::end(direction),
        };
        self.current = found.map(|entry| (entry, None));
        Ok(self.current.is_some())
    }

    /// The value of the current entry, if there is one.
    fn value(&mut self) -> Result<Option<&Slice>> {
        let Some((entry, value)) = &mut self.current else { return Ok(None) };
        if value.is_none() {
            *value = Some(entry.value()?);
        }
        Ok(value.as_ref())
    }

    /// Moves it to another position.
    fn place(&mut self, position: Position) {
        self.position = position;
        self.current = None;
        match &mut self.source {
            Source::Store { iter, .. } => *iter = None,
            Source::Transaction { ahead, .. } => ahead.writes = None,
        }
    }
}

impl Ahead {
    fn new() -> Self {
        let (entries, entries_max) = (VecDeque::new(), AHEAD_ENTRIES_MIN);
        Self { direction: Direction::Up, entries, entries_max, writes: None }
    }

    /// The first entry of `rest` in a direction.
    fn next(
        &mut self,
        state: &mut State,
        map: &Map,
        direction: Direction,
        rest: Option<Bounds>,
    ) -> Result<Option<Found>> {
        let writes = state.writes;
        let transaction = state.open()?;
        if self.direction != direction || self.writes != Some(writes) {
            self.entries.clear();
            self.entries_max = AHEAD_ENTRIES_MIN;
        }
        if self.entries.is_empty()
            && let Some(rest) = rest
        {
            self.entries = map.first(transaction, &rest, (direction, self.entries_max))?;
            self.entries_max = (self.entries_max * 2).min(AHEAD_ENTRIES_MAX);
            (self.direction, self.writes) = (direction, Some(writes));
        }
        Ok(self.entries.pop_front())
    }
}

/// Gives a cursor on a map, in its current state or as a snapshot sees it.
fn give(
    cursor: &Out<*mut CursorHandle>,
    snapshot: Option<&In<SnapshotHandle>>,
    map: Map,
    range: &In<Range>,
) -> Result<c_int> {
    let snapshot = match snapshot {
        Some(snapshot) => Some(snapshot.get()?.snapshot.clone()),
        None => None,
    };
    cursor.give(Cursor::new(Source::Store { snapshot, iter: None }, map, range)?);
    Ok(ADAMANT_OK)
}

/// Gives a cursor on a map as a transaction sees it.
fn give_within(
    cursor: &Out<*mut CursorHandle>,
    transaction: &In<TransactionHandle>,
    map: Map,
    range: &In<Range>,
) -> Result<c_int> {
    let state = Arc::clone(transaction.get()?);
    let source = Source::Transaction { state, ahead: Ahead::new() };
    cursor.give(Cursor::new(source, map, range)?);
    Ok(ADAMANT_OK)
}

/// A cursor on what a keyspace holds when it comes by; the range may be NULL: all keys. It stands
/// nowhere at first: adamant_cursor_next gives the first entry, adamant_cursor_previous the last
/// one.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_cursor_new(
    keyspace: In<KeyspaceHandle>,
    range: In<Range>,
    cursor: Out<*mut CursorHandle>,
) -> c_int {
    run(|| {
        cursor.need_handle()?;
        give(&cursor, None, Map::Plain(keyspace.keyspace()?.clone()), &range)
    })
}

/// A cursor on what a keyspace held at the moment of a snapshot, which may be freed before it.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_cursor(
    snapshot: In<SnapshotHandle>,
    keyspace: In<KeyspaceHandle>,
    range: In<Range>,
    cursor: Out<*mut CursorHandle>,
) -> c_int {
    run(|| {
        cursor.need_handle()?;
        give(&cursor, Some(&snapshot), Map::Plain(keyspace.keyspace()?.clone()), &range)
    })
}

/// A cursor on what a transaction sees, its own writes too. What it gives counts as read, and up to
/// 64 entries more, which it takes ahead. It ends with the transaction: ADAMANT_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_cursor(
    transaction: In<TransactionHandle>,
    keyspace: In<KeyspaceHandle>,
    range: In<Range>,
    cursor: Out<*mut CursorHandle>,
) -> c_int {
    run(|| {
        cursor.need_handle()?;
        give_within(&cursor, &transaction, Map::Plain(keyspace.keyspace()?.clone()), &range)
    })
}

/// A cursor on the entries that are not over at this moment, as adamant_cursor_new. When the entry
/// ends on which it stands, adamant_cursor_deadline says. An entry that cannot be read is an error
/// each time that the cursor comes to it, since its deadline lies before its value:
/// adamant_cursor_seek goes past it.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_cursor(
    expiring: In<ExpiringHandle>,
    range: In<Range>,
    cursor: Out<*mut CursorHandle>,
) -> c_int {
    run(|| {
        cursor.need_handle()?;
        give(&cursor, None, Map::ending(expiring.get()?), &range)
    })
}

/// A cursor on the entries that a snapshot sees and that are not over at this moment, as
/// adamant_snapshot_cursor.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_expiring_cursor(
    snapshot: In<SnapshotHandle>,
    expiring: In<ExpiringHandle>,
    range: In<Range>,
    cursor: Out<*mut CursorHandle>,
) -> c_int {
    run(|| {
        cursor.need_handle()?;
        give(&cursor, Some(&snapshot), Map::ending(expiring.get()?), &range)
    })
}

/// A cursor on the entries that a transaction sees and that are not over at this moment, as
/// adamant_transaction_cursor.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_expiring_cursor(
    transaction: In<TransactionHandle>,
    expiring: In<ExpiringHandle>,
    range: In<Range>,
    cursor: Out<*mut CursorHandle>,
) -> c_int {
    run(|| {
        cursor.need_handle()?;
        give_within(&cursor, &transaction, Map::ending(expiring.get()?), &range)
    })
}

/// Goes to the next entry and lends it, until the cursor moves or is freed. ADAMANT_END behind the
/// last one, where it stays: from there adamant_cursor_previous gives the last one. `value` may be
/// NULL: then a large value of the engine lsm is not read. If it cannot be read the cursor stands
/// on its entry all the same, and goes on from there.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_cursor_next(
    cursor: Changed<CursorHandle>,
    key: Out<pointers::Slice>,
    value: Out<pointers::Slice>,
) -> c_int {
    run(|| go(&cursor, Direction::Up, &key, &value))
}

/// Goes to the entry before and lends it, as adamant_cursor_next. ADAMANT_END before the first one.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_cursor_previous(
    cursor: Changed<CursorHandle>,
    key: Out<pointers::Slice>,
    value: Out<pointers::Slice>,
) -> c_int {
    run(|| go(&cursor, Direction::Down, &key, &value))
}

fn go(
    cursor: &In<CursorHandle>,
    direction: Direction,
    key: &Out<pointers::Slice>,
    value: &Out<pointers::Slice>,
) -> Result<c_int> {
    key.need("key")?;
    let mut cursor = hold(cursor.get()?)?;
    if !cursor.step(direction)? {
        return Ok(ADAMANT_END);
    }
    if let Some((entry, _)) = &cursor.current {
        key.lend(entry.key());
    }
    if !value.is_null()
        && let Some(found) = cursor.value()?
    {
        value.lend(found);
    }
    Ok(ADAMANT_OK)
}

/// Lends the value of the entry on which the cursor stands, as it was when the cursor came there,
/// until it moves or is freed: for who looked at the key first. ADAMANT_NOT_FOUND if it stands on
/// none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_cursor_value(
    cursor: In<CursorHandle>,
    value: Out<pointers::Slice>,
) -> c_int {
    run(|| {
        value.need("value")?;
        let mut cursor = hold(cursor.get()?)?;
        let Some(found) = cursor.value()? else { return Ok(ADAMANT_NOT_FOUND) };
        value.lend(found);
        Ok(ADAMANT_OK)
    })
}

/// When the entry ends on which the cursor stands; ADAMANT_NEVER for one that does not, as all of a
/// keyspace without deadlines. ADAMANT_NOT_FOUND if it stands on none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_cursor_deadline(
    cursor: In<CursorHandle>,
    deadline_ms: Out<u64>,
) -> c_int {
    run(|| {
        deadline_ms.need("deadline")?;
        let cursor = hold(cursor.get()?)?;
        let Some((entry, _)) = &cursor.current else { return Ok(ADAMANT_NOT_FOUND) };
        deadline_ms.set(millis_of(entry.deadline()));
        Ok(ADAMANT_OK)
    })
}

/// Goes to just before a key, whether it is there or not: adamant_cursor_next gives it, or the
/// first one above it, adamant_cursor_previous the last one below it.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_cursor_seek(
    cursor: Changed<CursorHandle>,
    key: pointers::Slice,
) -> c_int {
    run(|| {
        let key = Slice::from(key.bytes()?);
        hold(cursor.get()?)?.place(Position::Before(key));
        Ok(ADAMANT_OK)
    })
}

/// Goes to where it stood at first: nowhere.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_cursor_rewind(cursor: Changed<CursorHandle>) -> c_int {
    run(|| {
        hold(cursor.get()?)?.place(Position::Nowhere);
        Ok(ADAMANT_OK)
    })
}

/// Frees a cursor; NULL is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_cursor_free(cursor: Taken<CursorHandle>) {
    run(|| cursor.free().map(|()| ADAMANT_OK));
}
