//! Cursors: durable positions in the feed of changes, by name.
//!
//! Purpose: a reader that begins anew goes on where it was; one that writes to the same store moves
//! its cursor in the commit of its results, and so takes each commit exactly once.
//! Invariants: a cursor is an entry of the keyspace of the history; moving it is no change.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use crate::batch::builder::Batch;
use crate::bounds::Direction;
use crate::common::history::cursor_key;
use crate::common::shared::{KeyVisitor, Shared};
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::limits::check_name;
use crate::store::handle::Store;
use crate::transaction::handle::Transaction;

/// The keyspace of the history, in which cursors lie.
fn history_of(shared: &Arc<Shared>) -> Result<Keyspace> {
    let state = shared.history().state().ok_or(Error::ChangesNotRecorded)?;
    Ok(Keyspace::new(shared, state))
}

fn number_of(value: &[u8]) -> Result<u64> {
    let bytes = value.try_into().map_err(|_| Error::Damaged {
        what: format!("expected a cursor of 8 bytes in the history of changes, found {value:?}"),
    })?;
    Ok(u64::from_le_bytes(bytes))
}

impl Store {
    /// Sets a cursor: the number of the last commit of the [feed](Store::changes) that its owner is
    /// done with. One commit, as durable as the store's are; it is not in the feed. To move it
    /// together with other changes: [`Batch::set_cursor`], [`Transaction::set_cursor`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// store.record_changes(Some(1 << 20))?;
    /// store.keyspace("jobs")?.put("1", "sweep")?;
    /// let mut changes = store.changes(store.cursor("worker")?.unwrap_or(0))?;
    /// while let Some(commit) = changes.try_next()? {
    ///     println!("{commit:?}");
    ///     store.set_cursor("worker", commit.number)?;
    /// }
    /// assert_eq!(store.cursor("worker")?, Some(store.last_change()?));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The name is empty or has more than 255 bytes; [`Error::ChangesNotRecorded`]; otherwise as
    /// [`Keyspace::put`].
    pub fn set_cursor(&self, name: &str, number: u64) -> Result<()> {
        self.write_cursor(name, Some(number))
    }

    /// Removes a cursor, if there is one. Like [`Store::set_cursor`].
    ///
    /// # Errors
    /// As [`Store::set_cursor`].
    pub fn remove_cursor(&self, name: &str) -> Result<()> {
        self.write_cursor(name, None)
    }

    fn write_cursor(&self, name: &str, number: Option<u64>) -> Result<()> {
        check_name(name)?;
        let history = history_of(&self.shared)?;
        let key = cursor_key(name);
        let keys = |each: &mut KeyVisitor<'_>| each(&history.state, &key);
        self.shared.change(None, self.shared.durability(), keys, |transaction| {
            let map = history.state.map(transaction, self.shared.catalogue())?;
            map.write(
                transaction,
                &key,
                number.map(u64::to_le_bytes).as_ref().map(<[u8; 8]>::as_slice),
            )
        })
    }

    /// The number that a cursor was set to; `None` if there is none of that name. O(log n).
    ///
    /// # Errors
    /// [`Error::ChangesNotRecorded`]; otherwise as [`Keyspace::get`].
    pub fn cursor(&self, name: &str) -> Result<Option<u64>> {
        check_name(name)?;
        let value = history_of(&self.shared)?.get(cursor_key(name))?;
        value.map(|value| number_of(&value)).transpose()
    }

    /// All cursors, by name. O(cursors).
    ///
    /// # Errors
    /// As [`Store::cursor`].
    pub fn cursors(&self) -> Result<Vec<(String, u64)>> {
        let history = history_of(&self.shared)?;
        let view = self.shared.long_view()?;
        let map = history.state.map(&view, self.shared.catalogue())?;
        let (first, end) = (cursor_key(""), [cursor_key("")[0] + 1]);
        let range = (Bound::Excluded(&first[..]), Bound::Excluded(&end[..]));
        let mut found = Vec::new();
        if let Some(tree) = map.tree() {
            tree.scan(&view, Direction::Up, range, usize::MAX, |key, value| {
                let name = String::from_utf8_lossy(&key[1..]).into_owned();
                found.push(number_of(&value).map(|number| (name, number)));
                ControlFlow::Continue(())
            })?;
        }
        found.into_iter().collect()
    }
}

impl Batch {
    /// Sets a cursor of the feed of changes at the commit: see [`Store::set_cursor`].
    ///
    /// # Errors
    /// The name is empty or has more than 255 bytes; [`Error::ChangesNotRecorded`].
    pub fn set_cursor(&mut self, name: &str, number: u64) -> Result<()> {
        check_name(name)?;
        let history = history_of(&self.shared)?;
        self.put(&history, cursor_key(name), number.to_le_bytes())
    }
}

impl Transaction {
    /// Sets a cursor of the feed of changes at the commit: see [`Store::set_cursor`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Error;
    ///
    /// let (jobs, done) = (store.keyspace("jobs")?, store.keyspace("done")?);
    /// store.record_changes(Some(1 << 20))?;
    /// jobs.put("1", "sweep")?;
    /// let commit = store.changes(0)?.try_next()?.expect("it was recorded");
    /// store.transaction(|tx| {
    ///     tx.put(&done, "1", "swept")?;
    ///     tx.set_cursor("worker", commit.number)
    /// })?;
    /// assert_eq!(store.cursor("worker")?, Some(1));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The name is empty or has more than 255 bytes; [`Error::ChangesNotRecorded`].
    pub fn set_cursor(&mut self, name: &str, number: u64) -> Result<()> {
        check_name(name)?;
        let history = history_of(self.shared())?;
        self.put_own(&history, &cursor_key(name), &number.to_le_bytes())
    }
}
