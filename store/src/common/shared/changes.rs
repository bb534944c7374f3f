//! Transactions that change keys of keyspaces.
//!
//! Purpose: keeps what open snapshots see of the keys, records the changes if the store does, and
//! counts them.
//! Invariants: what is kept and recorded belongs to the transaction, and is undone with it.
//! Thread safety: any thread.

use std::cell::Cell;

use adamant_heap::durability::Durability;
use adamant_heap::{HeldWritePermit, Transaction};

use super::{KeyVisitor, OpenStore};
use crate::common::history::{Recording, take_recorded};
use crate::common::lent_values::Lent;
use crate::error::Result;

thread_local! {
    /// The last commit of this thread that was recorded, and the opening of the store that it is
    /// in.
    static OWN_COMMIT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

impl OpenStore {
    /// Like [`OpenStore::transaction`], for a transaction that changes keys: `keys` passes them all
    /// to each closure that it gets. What open snapshots see of them is kept. Waits for the writer
    /// lock unless it gets a permit.
    pub(crate) fn change<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let body = |transaction: &mut Transaction<'_>| {
            let done = body(transaction)?;
            self.record_keys(transaction, &keys)?;
            Ok(done)
        };
        self.change_recorded(permit, durability, &keys, body)
    }

    /// Like [`OpenStore::change`], for a `body` that records what it changes.
    pub(crate) fn change_recorded<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.change_after(permit, durability, self.versions.any(), keys, |_| Ok(()), body)
    }

    /// Like [`OpenStore::change_recorded`], after a check under the exclusive lock. With `lends`,
    /// large values of the keys are borrowed before, which saves copying them for snapshots.
    pub(crate) fn change_after<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        lends: bool,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
        check: impl FnOnce(&mut Transaction<'_>) -> Result<()>,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let lent = self.lend_large(lends, &keys)?;
        let done = self.transaction_in(permit, durability, |transaction| {
            check(transaction)?;
            self.keep_versions(transaction, &lent, &keys)?;
            body(transaction)
        })?;
        note_writes(keys);
        Ok(done)
    }

    /// Like [`OpenStore::change`], of so many bytes, which may share its commit with those of other
    /// threads: any of them may run `body`, and may run it again after it was undone.
    pub(crate) fn change_combined<T: Send>(
        &self,
        durability: Durability,
        bytes: usize,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()> + Sync,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        self.check_writes()?;
        let lent = self.lend_large(self.versions.any(), &keys)?;
        let begun = self.metrics.begin(durability);
        let bytes = if self.history.is_on() { 2 * bytes } else { bytes };
        let done = self.heap.transaction_combined(durability, bytes, |transaction| {
            self.check_not_closed()?;
            // Of a commit that failed.
            take_recorded();
            self.keep_versions(transaction, &lent, &keys)?;
            let done = body(transaction)?;
            self.record_keys(transaction, &keys)?;
            // Another thread may be running this.
            Ok((done, take_recorded()))
        });
        let done = done.map(|(done, recorded)| {
            self.note_recorded(recorded);
            note_writes(&keys);
            done
        });
        self.end(&begun, done)
    }

    /// Records the keys that a body has changed, with the values that it left. As
    /// [`OpenStore::record`].
    #[inline]
    pub(crate) fn record_keys(
        &self,
        transaction: &mut Transaction<'_>,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
    ) -> Result<()> {
        self.record(transaction, |recording, transaction| {
            keys(&mut |state, key| recording.key(transaction, state, key))
        })
    }

    /// Records a commit, if changes are recorded. To be called once in a transaction, at its end.
    #[inline]
    pub(crate) fn record(
        &self,
        transaction: &mut Transaction<'_>,
        say: impl FnOnce(&mut Recording<'_>, &mut Transaction<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(mut recording) = self.history.begin(transaction, &self.catalogue)? else {
            return Ok(());
        };
        say(&mut recording, transaction)?;
        recording.finish(transaction)
    }

    /// A commit of this thread was recorded, under that number; 0: none was.
    #[inline]
    pub(super) fn note_recorded(&self, number: u64) {
        if number != 0 {
            OWN_COMMIT.set((self.opening, number));
            self.history.notify();
        }
    }

    /// The number of this thread's last commit that was recorded; `None`: there is none, or it was
    /// in another store.
    pub(crate) fn own_commit(&self) -> Option<u64> {
        let (opening, number) = OWN_COMMIT.get();
        (opening == self.opening).then_some(number)
    }

    /// Borrows large values of keys before they are changed, if `lends`.
    #[inline]
    fn lend_large(
        &self,
        lends: bool,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
    ) -> Result<Lent> {
        let mut lent = Lent::default();
        if !lends {
            return Ok(lent);
        }
        let view = self.view()?;
        keys(&mut |state, key| match state.map(&view, &self.catalogue)?.tree() {
            Some(tree) => lent.add(&view, tree, key),
            None => Ok(()),
        })?;
        Ok(lent)
    }

    /// Keeps what open snapshots see of keys that are about to change.
    #[inline]
    fn keep_versions(
        &self,
        transaction: &mut Transaction<'_>,
        lent: &Lent,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Some(mut recorder) = self.versions.recorder() {
            keys(&mut |state, key| {
                let map = state.map(transaction, &self.catalogue)?;
                let Some(tree) = map.tree() else { return Ok(()) };
                let lend = |value: &[u8], block| Ok(lent.get(value, block));
                recorder.keep(transaction, (state.id, tree), key, lend)
            })?;
            recorder.finish();
        }
        Ok(())
    }
}

/// Counts the keys of a commit, for each keyspace.
pub(crate) fn note_writes(keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>) {
    let noted = keys(&mut |state, _| {
        state.counts().note_writes(1);
        Ok(())
    });
    debug_assert!(noted.is_ok(), "counting does not fail");
}
