//! Recording changes: beginning, ending, and the numbers of commits.

use std::sync::Arc;

use adamant_heap::Transaction;
use adamant_heap::durability::Durability;

use crate::common::catalogue::kind_of;
use crate::common::history::{HISTORY_NAME, HistoryHead, prune, read_head, write_head};
use crate::common::shared::{List, Shared};
use crate::common::undone_changes::{first_change_behind, skip_to};
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::layout::{KIND_CHANGES, STORE_FORMAT_CHANGES};
use crate::own_options::OwnOptions;
use crate::store::handle::Store;
use crate::store::sync_point::SyncPoint;

impl Store {
    /// Records what each commit changes from now on, in the store, for [`Store::changes`]; whoever
    /// opens it. At most some bytes of history are kept: the oldest commits make room for the
    /// newest one, which is kept whatever it takes. `None` ends it, and removes the history and the
    /// cursors. One commit.
    ///
    /// Each commit then writes its keys and values once more, into a keyspace of the kind
    /// [`Changes`](crate::KeyspaceKind::Changes). Objects of the heap
    /// ([`Transaction::on_heap`](crate::Transaction::on_heap)) are not recorded.
    ///
    /// ```
    /// use adamant::{Change, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// store.record_changes(Some(64 << 20))?;
    /// towns.put("Bern", "134,000")?;
    /// assert_eq!(store.own_change(), Some(1));
    ///
    /// let mut changes = store.changes(0)?;
    /// let commit = changes.try_next()?.expect("it was recorded");
    /// assert_eq!(commit.number, 1);
    /// assert!(matches!(&commit.changes[0], Change::Put { key, .. } if *key == "Bern"));
    /// assert!(changes.try_next()?.is_none());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// A keyspace named `adamant.changes` holds something else; the store is closed or has no
    /// space.
    pub fn record_changes(&self, bytes_max: Option<u64>) -> Result<()> {
        let names = [HISTORY_NAME];
        let unseen =
            self.shared.change_list(
                None,
                Durability::Sync,
                &names,
                |tx, list| match bytes_max {
                    Some(bytes_max) => self.begin_history(tx, bytes_max).map(|()| None),
                    None => self.end_history(tx, list),
                },
            )?;
        self.shared.destroy_retired(unseen.into_iter().collect());
        Ok(())
    }

    fn begin_history(&self, transaction: &mut Transaction<'_>, bytes_max: u64) -> Result<()> {
        let (history, catalogue) = (self.shared.history(), self.shared.catalogue());
        if let Some(state) = history.state() {
            let map = state.map(transaction, catalogue)?;
            let mut head = HistoryHead { bytes_max, ..read_head(transaction, &map)? };
            // The rest goes with the next commits.
            let last = head.next.saturating_sub(1);
            prune(transaction, &map, &mut head, (last, 0))?;
            return write_head(transaction, &map, &head);
        }
        if let Some(entry) = catalogue.find(transaction, HISTORY_NAME)? {
            let kind = kind_of(HISTORY_NAME, &entry)?;
            return Err(Error::WrongKind { name: HISTORY_NAME.into(), found: kind });
        }
        // There may have been one: whoever has a number of it must not take it for one of this.
        let may_follow_another = catalogue.format(transaction)? >= STORE_FORMAT_CHANGES;
        let own = OwnOptions::default();
        let added = (Engine::Bplus, KIND_CHANGES);
        let entry = catalogue.add(transaction, HISTORY_NAME, added, &own)?;
        let state = self.shared.history_state(transaction, &entry)?;
        let map = state.map(transaction, catalogue)?;
        write_head(transaction, &map, &HistoryHead::new(1, bytes_max))?;
        if may_follow_another {
            let last = first_change_behind(self.shared.heap()?.last_commit());
            skip_to(transaction, &map, last)?;
        }
        // With the commit, before any other: each later one is recorded.
        let history = Arc::clone(history);
        transaction.on_commit(move |_| history.set(Some(state)));
        Ok(())
    }

    /// Returns the head of its tree if no snapshot sees that. Of the tree nothing is read: damage
    /// does not keep a history from being ended.
    fn end_history(&self, transaction: &mut Transaction<'_>, list: &List) -> Result<Option<u64>> {
        let (history, catalogue) = (self.shared.history(), self.shared.catalogue());
        let entry = catalogue.find(transaction, HISTORY_NAME)?;
        let Some((entry, state)) = entry.zip(history.state()) else { return Ok(None) };
        let history = Arc::clone(history);
        transaction.on_commit(move |_| history.set(None));
        list.doubt(&entry);
        let map = state.map(transaction, catalogue)?.into_owned();
        catalogue.retire(transaction, HISTORY_NAME, &entry)?;
        if self.shared.versions().any() {
            self.shared.versions().drop_keyspace(entry.id.get(), map);
            return Ok(None);
        }
        Ok(Some(map.head()))
    }

    /// The number of the last commit in the [feed of changes](Store::changes); 0 before the first.
    /// O(log n).
    ///
    /// # Errors
    /// [`Error::ChangesNotRecorded`]; the store is closed.
    pub fn last_change(&self) -> Result<u64> {
        self.shared.history_head().map(|head| head.next - 1)
    }

    /// The number of the last commit in the feed that this thread made, if it was in this store,
    /// since that was opened; `None` if it made none, or one in another store since. Whatever call
    /// made it, and whichever thread ran it: so each caller of a write can tell its own commit. A
    /// call that changed nothing, or failed, leaves the number of the one before. O(1).
    pub fn own_change(&self) -> Option<u64> {
        self.shared.own_commit()
    }

    /// Waits until the commit of a number is as durable as [`Durability::Sync`] makes it. Threads
    /// that wait at the same time share a flush. Only the process that writes can tell.
    ///
    /// # Errors
    /// [`Error::ChangesUnknown`] if there is no such commit yet; one for which
    /// [`Error::is_read_only`] holds if this store was opened for reading, also beside a writer; as
    /// [`Store::sync`].
    pub fn wait_durable(&self, number: u64) -> Result<()> {
        self.check_writable()?;
        let head = self.shared.history_head()?;
        if number >= head.next {
            let (first, last) = (head.first, head.next - 1);
            return Err(Error::ChangesUnknown { after: number, first, last });
        }
        SyncPoint::new(&self.shared)?.wait()
    }
}

impl Shared {
    /// The head of the history.
    pub(crate) fn history_head(&self) -> Result<HistoryHead> {
        let state = self.history().state().ok_or(Error::ChangesNotRecorded)?;
        let view = self.view()?;
        let map = state.map(&view, self.catalogue())?;
        read_head(&view, &map)
    }
}
