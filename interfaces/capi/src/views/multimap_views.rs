//! Multimaps in snapshots and transactions.

use std::ffi::c_int;
use std::ops::Bound;

use adamant::Slice as Bytes;
use adamant::multimap::MultimapTransaction;

use crate::border::code::ADAMANT_OK;
use crate::border::failure::{Result, run};
use crate::border::hold::hold;
use crate::border::pointers::{Changed, In, Out, Slice};
use crate::border::value::Value;
use crate::multimap::{MultimapHandle, bound_above, give};
use crate::views::snapshot::SnapshotHandle;
use crate::views::transaction::TransactionHandle;
use crate::whole::keyspace::found;

/// Whether a key had a value: ADAMANT_OK or ADAMANT_NOT_FOUND. O(log n).
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_multimap_contains(
    snapshot: In<SnapshotHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| {
        let seen = multimap.get()?.at(&snapshot.get()?.snapshot);
        Ok(found(seen.contains(key.bytes()?, value.bytes()?)?))
    })
}

/// How many values a key had, which are counted.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_multimap_count(
    snapshot: In<SnapshotHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    values: Out<u64>,
) -> c_int {
    run(|| {
        values.need("number of values")?;
        values.set(multimap.get()?.at(&snapshot.get()?.snapshot).count(key.bytes()?)?);
        Ok(ADAMANT_OK)
    })
}

/// How many pairs of a key and a value there were.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_multimap_len(
    snapshot: In<SnapshotHandle>,
    multimap: In<MultimapHandle>,
    pairs: Out<u64>,
) -> c_int {
    run(|| {
        pairs.need("number of pairs")?;
        pairs.set(multimap.get()?.at(&snapshot.get()?.snapshot).len()?);
        Ok(ADAMANT_OK)
    })
}

/// The lowest value that a key had above another value, as adamant_multimap_next_value: a copy, to
/// be freed by adamant_value_free.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_multimap_next_value(
    snapshot: In<SnapshotHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    above: Slice,
    value: Out<*mut Value>,
) -> c_int {
    run(|| {
        value.need_handle()?;
        let range = (bound_above(&above)?, Bound::Unbounded);
        let seen = multimap.get()?.at(&snapshot.get()?.snapshot);
        give(&value, seen.values_range(key.bytes()?, range).next().transpose())
    })
}

/// The lowest key above another one that had a value, as adamant_multimap_next_key: a copy, to be
/// freed by adamant_value_free.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_snapshot_multimap_next_key(
    snapshot: In<SnapshotHandle>,
    multimap: In<MultimapHandle>,
    above: Slice,
    key: Out<*mut Value>,
) -> c_int {
    run(|| {
        key.need_handle()?;
        let range = (bound_above(&above)?, Bound::Unbounded);
        let seen = multimap.get()?.at(&snapshot.get()?.snapshot);
        give(&key, seen.keys(range).next().transpose())
    })
}

/// Reads pairs within a transaction.
fn read<T>(
    transaction: &In<TransactionHandle>,
    multimap: &In<MultimapHandle>,
    work: impl FnOnce(&mut MultimapTransaction<'_, Bytes, Bytes>) -> Result<T>,
) -> Result<T> {
    let mut state = hold(transaction.get()?)?;
    work(&mut multimap.get()?.within(state.open()?))
}

/// Changes pairs within a transaction.
fn change<T>(
    transaction: &In<TransactionHandle>,
    multimap: &In<MultimapHandle>,
    work: impl FnOnce(&mut MultimapTransaction<'_, Bytes, Bytes>) -> Result<T>,
) -> Result<T> {
    let mut state = hold(transaction.get()?)?;
    let done = work(&mut multimap.get()?.within(state.open()?))?;
    // Its cursors have to discard pre-read entries.
    state.writes += 1;
    Ok(done)
}

/// Gives a key a value, whether it has that or not, without reading it: so it cannot conflict.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_multimap_put(
    transaction: Changed<TransactionHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| {
        change(&transaction, &multimap, |all| Ok(all.put(key.bytes()?, value.bytes()?)?))?;
        Ok(ADAMANT_OK)
    })
}

/// Takes a value from a key, whether it has that or not, without reading it: so it cannot conflict.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_multimap_delete(
    transaction: Changed<TransactionHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| {
        change(&transaction, &multimap, |all| Ok(all.delete(key.bytes()?, value.bytes()?)?))?;
        Ok(ADAMANT_OK)
    })
}

/// Like adamant_transaction_multimap_put, and says what was there, as adamant_multimap_insert.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_multimap_insert(
    transaction: Changed<TransactionHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    value: Slice,
    is_new: Out<c_int>,
) -> c_int {
    run(|| {
        let inserted =
            change(&transaction, &multimap, |all| Ok(all.insert(key.bytes()?, value.bytes()?)?))?;
        is_new.set(c_int::from(inserted));
        Ok(ADAMANT_OK)
    })
}

/// Like adamant_transaction_multimap_delete, and says what was there, as adamant_multimap_remove.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_multimap_remove(
    transaction: Changed<TransactionHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| {
        change(&transaction, &multimap, |all| Ok(found(all.remove(key.bytes()?, value.bytes()?)?)))
    })
}

/// Takes all values from a key, as adamant_multimap_remove_all. All that it has count as read.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_multimap_remove_all(
    transaction: Changed<TransactionHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    values: Out<u64>,
) -> c_int {
    run(|| {
        let count = change(&transaction, &multimap, |all| Ok(all.remove_all(key.bytes()?)?))?;
        values.set(count);
        Ok(ADAMANT_OK)
    })
}

/// Whether a key has a value: ADAMANT_OK or ADAMANT_NOT_FOUND. O(log n).
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_multimap_contains(
    transaction: In<TransactionHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| {
        read(&transaction, &multimap, |all| Ok(found(all.contains(key.bytes()?, value.bytes()?)?)))
    })
}

/// How many values a key has, which are counted and count as read.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_multimap_count(
    transaction: In<TransactionHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    values: Out<u64>,
) -> c_int {
    run(|| {
        values.need("number of values")?;
        values.set(read(&transaction, &multimap, |all| Ok(all.count(key.bytes()?)?))?);
        Ok(ADAMANT_OK)
    })
}

/// How many pairs of a key and a value there are. All of them count as read.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_multimap_len(
    transaction: In<TransactionHandle>,
    multimap: In<MultimapHandle>,
    pairs: Out<u64>,
) -> c_int {
    run(|| {
        pairs.need("number of pairs")?;
        pairs.set(read(&transaction, &multimap, |all| Ok(all.len()?))?);
        Ok(ADAMANT_OK)
    })
}

/// The lowest value of a key above another value, as adamant_multimap_next_value: a copy, to be
/// freed by adamant_value_free. That there is none between the two counts as read.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_multimap_next_value(
    transaction: In<TransactionHandle>,
    multimap: In<MultimapHandle>,
    key: Slice,
    above: Slice,
    value: Out<*mut Value>,
) -> c_int {
    run(|| {
        value.need_handle()?;
        let range = (bound_above(&above)?, Bound::Unbounded);
        read(&transaction, &multimap, |all| {
            let next = all.values_range(key.bytes()?, range).next().transpose();
            give(&value, next)
        })
    })
}

/// The lowest key above another one that has a value, as adamant_multimap_next_key: a copy, to be
/// freed by adamant_value_free.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_transaction_multimap_next_key(
    transaction: In<TransactionHandle>,
    multimap: In<MultimapHandle>,
    above: Slice,
    key: Out<*mut Value>,
) -> c_int {
    run(|| {
        key.need_handle()?;
        let range = (bound_above(&above)?, Bound::Unbounded);
        read(&transaction, &multimap, |all| {
            let next = all.keys(range).next().transpose();
            give(&key, next)
        })
    })
}
