//! Expiring entries in snapshots and transactions.

use std::ffi::c_int;

use adamant::expiring::ExpiringTransaction;

use crate::border::code::{ADAMANT_NOT_FOUND, ADAMANT_OK};
use crate::border::failure::{Result, run};
use crate::border::hold::hold;
use crate::border::pointers::{Changed, In, Out, Slice};
use crate::expiring::{ExpiringHandle, deadline_of, millis_of};
use crate::views::snapshot::SnapshotHandle;
use crate::views::transaction::TransactionHandle;
use crate::whole::keyspace::found;

/// Lends the value that a key had, as adamant_snapshot_get, and says when it ends;
/// ADAMANT_NOT_FOUND if it had none, or one that is over by now: time goes on for a snapshot too.
/// `value` and `deadline_ms` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_expiring_get(
    snapshot: In<SnapshotHandle>,
    expiring: In<ExpiringHandle>,
    key: Slice,
    value: Out<Slice>,
    deadline_ms: Out<u64>,
) -> c_int {
    run(|| {
        let content = snapshot.get()?;
        let seen = expiring.get()?.at(&content.snapshot);
        let Some((had, ends)) = seen.get_with_deadline(key.bytes()?)? else {
            return Ok(ADAMANT_NOT_FOUND);
        };
        deadline_ms.set(millis_of(ends));
        if !value.is_null() {
            content.lend(had, &value);
        }
        Ok(ADAMANT_OK)
    })
}

/// How many entries there were that are not over by now.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_expiring_len(
    snapshot: In<SnapshotHandle>,
    expiring: In<ExpiringHandle>,
    entries: Out<u64>,
) -> c_int {
    run(|| {
        entries.need("number of entries")?;
        entries.set(expiring.get()?.at(&snapshot.get()?.snapshot).len()?);
        Ok(ADAMANT_OK)
    })
}

/// Lends the value of a key, until the transaction is freed, and says when it ends;
/// ADAMANT_NOT_FOUND if it has none that is not over. `value` and `deadline_ms` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_expiring_get(
    transaction: In<TransactionHandle>,
    expiring: In<ExpiringHandle>,
    key: Slice,
    value: Out<Slice>,
    deadline_ms: Out<u64>,
) -> c_int {
    run(|| {
        let mut state = hold(transaction.get()?)?;
        let seen = expiring.get()?.within(state.open()?).get_with_deadline(key.bytes()?)?;
        let Some((had, ends)) = seen else { return Ok(ADAMANT_NOT_FOUND) };
        deadline_ms.set(millis_of(ends));
        if !value.is_null() {
            state.lend(had, &value);
        }
        Ok(ADAMANT_OK)
    })
}

/// Changes entries within a transaction.
fn change<T>(
    transaction: &In<TransactionHandle>,
    expiring: &In<ExpiringHandle>,
    work: impl FnOnce(&mut ExpiringTransaction<'_>) -> Result<T>,
) -> Result<T> {
    let mut state = hold(transaction.get()?)?;
    let done = work(&mut expiring.get()?.within(state.open()?))?;
    // Its cursors have to discard pre-read entries.
    state.writes += 1;
    Ok(done)
}

/// Sets the value of a key, and when it expires, as adamant_expiring_put. What was there counts as
/// read.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_expiring_put(
    transaction: Changed<TransactionHandle>,
    expiring: In<ExpiringHandle>,
    key: Slice,
    value: Slice,
    deadline_ms: u64,
) -> c_int {
    run(|| {
        change(&transaction, &expiring, |all| {
            Ok(all.put(key.bytes()?, value.bytes()?, deadline_of(deadline_ms))?)
        })?;
        Ok(ADAMANT_OK)
    })
}

/// Deletes a key, as adamant_expiring_delete. What was there counts as read.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_expiring_delete(
    transaction: Changed<TransactionHandle>,
    expiring: In<ExpiringHandle>,
    key: Slice,
) -> c_int {
    run(|| {
        change(&transaction, &expiring, |all| Ok(all.delete(key.bytes()?)?))?;
        Ok(ADAMANT_OK)
    })
}

/// Like adamant_transaction_expiring_put, and says what was there, as adamant_expiring_insert.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_expiring_insert(
    transaction: Changed<TransactionHandle>,
    expiring: In<ExpiringHandle>,
    key: Slice,
    value: Slice,
    deadline_ms: u64,
    replaced: Out<c_int>,
) -> c_int {
    run(|| {
        let was_there = change(&transaction, &expiring, |all| {
            Ok(all.insert(key.bytes()?, value.bytes()?, deadline_of(deadline_ms))?)
        })?;
        replaced.set(c_int::from(was_there));
        Ok(ADAMANT_OK)
    })
}

/// Gives an entry another deadline, as adamant_expiring_set_deadline.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_expiring_set_deadline(
    transaction: Changed<TransactionHandle>,
    expiring: In<ExpiringHandle>,
    key: Slice,
    deadline_ms: u64,
) -> c_int {
    run(|| {
        change(&transaction, &expiring, |all| {
            Ok(found(all.set_deadline(key.bytes()?, deadline_of(deadline_ms))?))
        })
    })
}

/// Like adamant_transaction_expiring_delete, and says what was there, as adamant_expiring_remove.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_expiring_remove(
    transaction: Changed<TransactionHandle>,
    expiring: In<ExpiringHandle>,
    key: Slice,
) -> c_int {
    run(|| change(&transaction, &expiring, |all| Ok(found(all.remove(key.bytes()?)?))))
}

/// Takes entries away that are over, as adamant_expiring_remove_expired.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_expiring_remove_expired(
    transaction: Changed<TransactionHandle>,
    expiring: In<ExpiringHandle>,
    entries_max: usize,
    removed: Out<u64>,
) -> c_int {
    run(|| {
        let count = change(&transaction, &expiring, |all| Ok(all.remove_expired(entries_max)?))?;
        removed.set(count);
        Ok(ADAMANT_OK)
    })
}
