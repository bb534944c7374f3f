//! Single entries: each change is a commit of its own.

use std::ffi::c_int;

use adamant::Keyspace;

use crate::border::code::{ADAMANT_NOT_FOUND, ADAMANT_OK, ADAMANT_TOO_SMALL};
use crate::border::failure::{Failure, Result, run};
use crate::border::pointers::{Buffer, Changed, Context, Feeder, In, Out, Range, Reader, Slice};
use crate::border::range::Bounds;
use crate::border::value::{Content, Value};
use crate::whole::keyspace::{KeyspaceHandle, found};

/// Bytes of a value that are copied under the lock, while writers wait: some 5 microseconds.
const UNDER_LOCK_BYTES_MAX: usize = 16 << 10;

/// Calls a closure with a value: a short one under the store's lock, a long one, which the store
/// lends without a copy, under none.
fn look<T>(keyspace: &Keyspace, key: &[u8], mut work: impl FnMut(&[u8]) -> T) -> Result<Option<T>> {
    let short = keyspace
        .get_briefly(key, |value| (value.len() <= UNDER_LOCK_BYTES_MAX).then(|| work(value)))?;
    match short {
        Some(None) => Ok(keyspace.get(key)?.map(|value| work(&value))),
        Some(done) => Ok(done),
        None => Ok(None),
    }
}

/// Sets the value of a key, whether it had one or not. O(log n), and no read of files by the engine
/// lsm.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_put(
    keyspace: Changed<KeyspaceHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| {
        keyspace.keyspace()?.put(key.bytes()?, value.bytes()?)?;
        Ok(ADAMANT_OK)
    })
}

/// Merges an operand with the value of a key, by the merge operator of the keyspace: see
/// adamant_keyspace_options_set_merge_operator. A key without a value gets the operand as its
/// value. O(log n); the engine lsm reads no file for it.
///
/// Fails with ADAMANT_INVALID if the keyspace has no merge operator, or the operator refuses the
/// operand, and with ADAMANT_VALUE_LENGTH if it has more than 1 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_merge(
    keyspace: Changed<KeyspaceHandle>,
    key: Slice,
    operand: Slice,
) -> c_int {
    run(|| {
        keyspace.keyspace()?.merge(key.bytes()?, operand.bytes()?)?;
        Ok(ADAMANT_OK)
    })
}

/// Deletes a key, whether it exists or not. O(log n), and no read of files by the engine lsm.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_delete(keyspace: Changed<KeyspaceHandle>, key: Slice) -> c_int {
    run(|| {
        keyspace.keyspace()?.delete(key.bytes()?)?;
        Ok(ADAMANT_OK)
    })
}

/// Like adamant_put, and says whether there was a value (1) or not (0); `replaced` may be NULL. The
/// engine lsm has to look for the key, which may read the device; for the others it costs no more.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_insert(
    keyspace: Changed<KeyspaceHandle>,
    key: Slice,
    value: Slice,
    replaced: Out<c_int>,
) -> c_int {
    run(|| {
        let was_there = keyspace.keyspace()?.insert(key.bytes()?, value.bytes()?)?;
        replaced.set(c_int::from(was_there));
        Ok(ADAMANT_OK)
    })
}

/// Like adamant_delete, but ADAMANT_NOT_FOUND if the key did not exist. The engine lsm has to look
/// for the key, which may read the device; for the others it costs no more.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_remove(keyspace: Changed<KeyspaceHandle>, key: Slice) -> c_int {
    run(|| Ok(found(keyspace.keyspace()?.remove(key.bytes()?)?)))
}

/// Sets the value of a key that has none, and says whether it did (1); one that is there stays (0).
/// `inserted` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_insert_unique(
    keyspace: Changed<KeyspaceHandle>,
    key: Slice,
    value: Slice,
    inserted: Out<c_int>,
) -> c_int {
    run(|| {
        let is_new = keyspace.keyspace()?.insert_unique(key.bytes()?, value.bytes()?)?;
        inserted.set(c_int::from(is_new));
        Ok(ADAMANT_OK)
    })
}

/// Sets the value of a key, or takes it out, if its value is the expected one, and says whether it
/// did (1) or not (0). Bytes that are not there, adamant_text(NULL), are no value: expected, the
/// key must have none; as the new value, it is taken out. If it was another one, `found` is a copy
/// of that, to be freed by adamant_value_free, or NULL for none. `swapped` and `found` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_compare_and_swap(
    keyspace: Changed<KeyspaceHandle>,
    key: Slice,
    expected: Slice,
    value: Slice,
    swapped: Out<c_int>,
    found: Out<*mut Value>,
) -> c_int {
    run(|| {
        found.set(std::ptr::null_mut());
        let bytes = |slice: &Slice| -> Result<Option<Vec<u8>>> {
            if slice.is_none() { Ok(None) } else { Ok(Some(slice.bytes()?.to_vec())) }
        };
        let (expected, value) = (bytes(&expected)?, bytes(&value)?);
        let outcome = keyspace.keyspace()?.compare_and_swap(key.bytes()?, expected, value)?;
        swapped.set(c_int::from(outcome.is_ok()));
        if let Err(Some(now)) = outcome {
            found.give(Content::copy(&now));
        }
        Ok(ADAMANT_OK)
    })
}

/// Sets the values of keys that ascend, which a function gives one after the other: the fastest way
/// to fill a keyspace, which need not be empty, and the one that leaves it smallest. `entries` and
/// `replaced` say how many there were, and how many of the keys had a value; they may be NULL.
///
/// They are committed in pieces, so that a load which fails leaves some of the first ones. The
/// function may use the store. Fails with ADAMANT_INVALID where a key is not above the one before
/// it.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_load_sorted(
    keyspace: Changed<KeyspaceHandle>,
    feeder: Feeder,
    context: Context,
    entries: Out<u64>,
    replaced: Out<u64>,
) -> c_int {
    run(|| {
        let keyspace = keyspace.keyspace()?;
        let mut next = feeder.with(context)?;
        let mut wrong = Ok(());
        let fed = std::iter::from_fn(|| {
            let (key, value) = next()?;
            let pair = key.bytes().and_then(|key| Ok((key.into(), value.bytes()?.into())));
            pair.map_err(|failure| wrong = Err(failure)).ok()
        });
        let loaded = keyspace.load_sorted::<adamant::Slice, adamant::Slice>(fed)?;
        entries.set(loaded.entries);
        replaced.set(loaded.replaced);
        wrong.map(|()| ADAMANT_OK)
    })
}

/// Takes the entry with the lowest key out, in one commit, and gives copies of its key and its
/// value, each to be freed by adamant_value_free; ADAMANT_NOT_FOUND, and NULL for both, if there is
/// no entry. Threads that do this at the same time get different entries. O(log n); the engine lsm
/// may read the device.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_pop_first(
    keyspace: Changed<KeyspaceHandle>,
    key: Out<*mut Value>,
    value: Out<*mut Value>,
) -> c_int {
    run(|| pop(&keyspace, true, &key, &value))
}

/// Like adamant_pop_first, for the entry with the highest key.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_pop_last(
    keyspace: Changed<KeyspaceHandle>,
    key: Out<*mut Value>,
    value: Out<*mut Value>,
) -> c_int {
    run(|| pop(&keyspace, false, &key, &value))
}

fn pop(
    keyspace: &Changed<KeyspaceHandle>,
    is_first: bool,
    key: &Out<*mut Value>,
    value: &Out<*mut Value>,
) -> Result<c_int> {
    key.need_handle()?;
    value.need_handle()?;
    let keyspace = keyspace.keyspace()?;
    let popped = if is_first { keyspace.pop_first() } else { keyspace.pop_last() }?;
    let Some((popped_key, popped_value)) = popped else { return Ok(ADAMANT_NOT_FOUND) };
    key.give(Content::copy(&popped_key));
    value.give(Content::copy(&popped_value));
    Ok(ADAMANT_OK)
}

/// Deletes all keys of a range, in one commit; NULL for all keys. The engine lsm records the range,
/// the others delete entry by entry, for which a large range takes memory; adamant_clear, which
/// deletes all keys, does not.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_delete_range(
    keyspace: Changed<KeyspaceHandle>,
    range: In<Range>,
) -> c_int {
    run(|| {
        let bounds = Bounds::of(&range)?;
        keyspace.keyspace()?.delete_range(bounds.pair())?;
        Ok(ADAMANT_OK)
    })
}

/// Takes all entries out, in one small commit.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_clear(keyspace: Changed<KeyspaceHandle>) -> c_int {
    run(|| {
        keyspace.keyspace()?.clear()?;
        Ok(ADAMANT_OK)
    })
}

/// Moves the value of a key to a key of the same or another keyspace, without a copy, in one
/// commit; it replaces what is there. ADAMANT_NOT_FOUND if there is nothing to be moved.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_move(
    keyspace: Changed<KeyspaceHandle>,
    key: Slice,
    target: Changed<KeyspaceHandle>,
    new_key: Slice,
) -> c_int {
    run(|| {
        let target = target.keyspace()?;
        let moved = keyspace.keyspace()?.move_to(key.bytes()?, target, new_key.bytes()?)?;
        Ok(found(moved.is_moved()))
    })
}

/// Swaps the values of two keys, of one keyspace or two, without a copy, in one commit;
/// ADAMANT_NOT_FOUND, and nothing is done, if one of them has none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_swap(
    keyspace: Changed<KeyspaceHandle>,
    key: Slice,
    other: Changed<KeyspaceHandle>,
    other_key: Slice,
) -> c_int {
    run(|| {
        let other = other.keyspace()?;
        Ok(found(keyspace.keyspace()?.swap(key.bytes()?, other, other_key.bytes()?)?))
    })
}

/// The value of a key, as a copy to be freed by adamant_value_free; ADAMANT_NOT_FOUND, and NULL for
/// the value, if it has none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_get(
    keyspace: In<KeyspaceHandle>,
    key: Slice,
    value: Out<*mut Value>,
) -> c_int {
    run(|| {
        value.need_handle()?;
        let copied = look(keyspace.keyspace()?, key.bytes()?, Content::copy)?;
        let Some(copied) = copied else { return Ok(ADAMANT_NOT_FOUND) };
        value.give(copied);
        Ok(ADAMANT_OK)
    })
}

/// The values of `count` keys, to `count` places: each a value to be freed by adamant_value_free,
/// or NULL for a key that has none. Each 64 keys are read as of one moment. Where it fails, all
/// places are NULL.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multi_get(
    keyspace: In<KeyspaceHandle>,
    keys: In<Slice>,
    count: usize,
    values: Out<*mut Value>,
) -> c_int {
    run(|| {
        if count == 0 {
            return Ok(ADAMANT_OK);
        }
        values.need("values")?;
        let slices = keys.slices(count)?;
        values.give_all((0..count).map(|_| None).collect());
        let keys: Vec<&[u8]> = slices.iter().map(Slice::bytes).collect::<Result<_>>()?;
        let found = keyspace.keyspace()?.multi_get(keys)?;
        let copies = found.into_iter().map(|value| value.map(|value| Content::copy(&value)));
        values.give_all(copies.collect());
        Ok(ADAMANT_OK)
    })
}

/// An estimate of the entries in a range, and of the bytes of their keys and values, without
/// visiting them; NULL is the whole keyspace. `bytes` may be NULL. In bplus right within some
/// tenths, mostly within some hundredths, and O(log n); in lsm from the indexes of tables, without
/// reading data; in the others right within a tenth of all entries, or counted if they are no more
/// than 1,000.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_estimate(
    keyspace: In<KeyspaceHandle>,
    range: In<Range>,
    entries: Out<u64>,
    bytes: Out<u64>,
) -> c_int {
    run(|| {
        entries.need("number of entries")?;
        let found = keyspace.keyspace()?.estimate(Bounds::of(&range)?.pair())?;
        entries.set(found.entries);
        bytes.set(found.bytes);
        Ok(ADAMANT_OK)
    })
}

/// Copies the value of a key to a buffer, and says how many bytes it has; `value_bytes` may be
/// NULL.
///
/// Fails with ADAMANT_TOO_SMALL if it does not fit: then nothing is copied, and `value_bytes` says
/// how large a buffer has to be.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_get_into(
    keyspace: In<KeyspaceHandle>,
    key: Slice,
    buffer: Buffer,
    buffer_bytes: usize,
    value_bytes: Out<usize>,
) -> c_int {
    run(|| {
        let copied = look(keyspace.keyspace()?, key.bytes()?, |value| {
            value_bytes.set(value.len());
            buffer.fill(buffer_bytes, value).map(|is_copied| (is_copied, value.len()))
        })?;
        match copied.transpose()? {
            None => Ok(ADAMANT_NOT_FOUND),
            Some((true, _)) => Ok(ADAMANT_OK),
            Some((false, needed)) => Err(Failure::new(
                ADAMANT_TOO_SMALL,
                format!("the value has {needed} bytes, the buffer {buffer_bytes}"),
            )),
        }
    })
}

/// Lends the value of a key to a function, without a copy, and returns when that has;
/// ADAMANT_NOT_FOUND, without calling it, if it has none. Writers wait meanwhile, and other
/// functions behind them; reads do not.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_get_with(
    keyspace: In<KeyspaceHandle>,
    key: Slice,
    reader: Reader,
    context: Context,
) -> c_int {
    run(|| {
        let reader = reader.with(context)?;
        Ok(found(keyspace.keyspace()?.get_with(key.bytes()?, reader)?.is_some()))
    })
}

/// Whether a key has a value: ADAMANT_OK or ADAMANT_NOT_FOUND.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_contains(keyspace: In<KeyspaceHandle>, key: Slice) -> c_int {
    run(|| Ok(found(keyspace.keyspace()?.contains(key.bytes()?)?)))
}

/// How many entries a keyspace has. The engine lsm counts them.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_len(keyspace: In<KeyspaceHandle>, entries: Out<u64>) -> c_int {
    run(|| {
        entries.need("number of entries")?;
        entries.set(keyspace.keyspace()?.len()?);
        Ok(ADAMANT_OK)
    })
}
