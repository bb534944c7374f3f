//! Expiring keyspaces: each change is a commit of its own.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use adamant::{Deadline, Expiring, KeyspaceOptions};

use crate::border::code::{ADAMANT_NEVER, ADAMANT_NOT_FOUND, ADAMANT_OK};
use crate::border::failure::{Result, run, run_or};
use crate::border::keyspace_options::KeyspaceOptionsHandle;
use crate::border::options::durability_of;
use crate::border::pointers::{Changed, Clock, Context, In, Opaque, Out, Slice, Taken};
use crate::border::value::{Content, Value};
use crate::whole::keyspace::{found, name_of, options_of};
use crate::whole::store::StoreHandle;

/// A keyspace whose entries may have a deadline, from which on they are not there, whether anybody
/// has taken them away by then or not (adamant_expiring_remove_expired does), and whether the store
/// was open or not. Keys have up to 65,527 bytes, values up to 4 GiB - 9. To be freed by
/// adamant_expiring_free.
pub enum ExpiringHandle {}

impl Opaque for ExpiringHandle {
    type Content = Expiring;
    const KIND: u32 = 0xADA1_000A;
    const NAME: &'static str = "a keyspace of entries that end";
}

/// The deadline for a number of the header.
pub(crate) fn deadline_of(deadline_ms: u64) -> Option<Deadline> {
    (deadline_ms != ADAMANT_NEVER).then(|| Deadline::from_millis(deadline_ms))
}

/// The number of a deadline.
pub(crate) fn millis_of(deadline: Option<Deadline>) -> u64 {
    deadline.map_or(ADAMANT_NEVER, Deadline::millis)
}

/// Opens the keyspace of a name for entries that may end, which is created if there is none, with
/// one beside it that has their deadlines in order, called as it and `.deadlines`. `engine` as in
/// adamant_keyspace_open.
///
/// Fails with ADAMANT_NOT_EXPIRING if there is one of that name with other entries.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_open(
    store: Changed<StoreHandle>,
    name: In<c_char>,
    engine: In<c_char>,
    expiring: Out<*mut ExpiringHandle>,
) -> c_int {
    run(|| open(&store, (&name, &engine, KeyspaceOptions::new()), &expiring))
}

/// Opens such a keyspace as adamant_expiring_open, with options as adamant_keyspace_open_with; they
/// are of its entries, not of the deadlines.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_open_with(
    store: Changed<StoreHandle>,
    name: In<c_char>,
    engine: In<c_char>,
    options: In<KeyspaceOptionsHandle>,
    expiring: Out<*mut ExpiringHandle>,
) -> c_int {
    run(|| open(&store, (&name, &engine, options.options()?), &expiring))
}

fn open(
    store: &In<StoreHandle>,
    (name, engine, options): (&In<c_char>, &In<c_char>, KeyspaceOptions),
    expiring: &Out<*mut ExpiringHandle>,
) -> Result<c_int> {
    expiring.need_handle()?;
    let options = options_of(engine, options)?;
    expiring.give(store.store()?.expiring_with(name_of(name)?, options)?);
    Ok(ADAMANT_OK)
}

/// Drops a keyspace of entries that end, and their deadlines; ADAMANT_NOT_FOUND if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_drop(store: Changed<StoreHandle>, name: In<c_char>) -> c_int {
    run(|| Ok(found(store.store()?.drop_expiring(name_of(&name)?)?)))
}

/// Another handle, whose writes wait for ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_with_durability(
    expiring: In<ExpiringHandle>,
    durability: c_int,
    other: Out<*mut ExpiringHandle>,
) -> c_int {
    run(|| {
        other.need_handle()?;
        other.give(expiring.get()?.with_durability(durability_of(durability)?));
        Ok(ADAMANT_OK)
    })
}

/// Another handle, which asks a function what time it is, and not the system: for tests, and for
/// those who have a better clock. It goes to whatever is made with the handle.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_with_clock(
    expiring: In<ExpiringHandle>,
    clock: Clock,
    context: Context,
    other: Out<*mut ExpiringHandle>,
) -> c_int {
    run(|| {
        other.need_handle()?;
        other.give(expiring.get()?.with_clock(clock.with(context)?));
        Ok(ADAMANT_OK)
    })
}

/// Frees a handle; NULL is none. The keyspace stays.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_free(expiring: Taken<ExpiringHandle>) {
    run(|| expiring.free().map(|()| ADAMANT_OK));
}

/// What time it is by the clock: milliseconds since 1970. 0 for what is no handle.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_now(expiring: In<ExpiringHandle>) -> u64 {
    run_or(0, || Ok(expiring.get()?.now()))
}

/// The deadline of what is to end after so many milliseconds. 0, which is over, for what is no
/// handle.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_after(expiring: In<ExpiringHandle>, time_ms: u64) -> u64 {
    run_or(0, || Ok(expiring.get()?.after(Duration::from_millis(time_ms)).millis()))
}

/// Sets the value of a key, whether it had one or not, and when it expires: at
/// adamant_expiring_after(...) or ADAMANT_NEVER, at once if that is over. O(log n); it finds the
/// old entry first, in the engine lsm by a search that may read the device, since its deadline
/// goes.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_put(
    expiring: Changed<ExpiringHandle>,
    key: Slice,
    value: Slice,
    deadline_ms: u64,
) -> c_int {
    run(|| {
        expiring.get()?.put(key.bytes()?, value.bytes()?, deadline_of(deadline_ms))?;
        Ok(ADAMANT_OK)
    })
}

/// Deletes a key, whether it exists or not. Costs as adamant_expiring_put.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_delete(expiring: Changed<ExpiringHandle>, key: Slice) -> c_int {
    run(|| {
        expiring.get()?.delete(key.bytes()?)?;
        Ok(ADAMANT_OK)
    })
}

/// Like adamant_expiring_put, at the same cost, and says whether it replaced a value that was not
/// over (1) or not (0); `replaced` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_insert(
    expiring: Changed<ExpiringHandle>,
    key: Slice,
    value: Slice,
    deadline_ms: u64,
    replaced: Out<c_int>,
) -> c_int {
    run(|| {
        let (key, value) = (key.bytes()?, value.bytes()?);
        let was_there = expiring.get()?.insert(key, value, deadline_of(deadline_ms))?;
        replaced.set(c_int::from(was_there));
        Ok(ADAMANT_OK)
    })
}

/// Like adamant_expiring_delete, at the same cost, but ADAMANT_NOT_FOUND if the key did not exist,
/// or was over.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_remove(expiring: Changed<ExpiringHandle>, key: Slice) -> c_int {
    run(|| Ok(found(expiring.get()?.remove(key.bytes()?)?)))
}

/// Gives an entry another deadline; ADAMANT_NEVER: it stays. ADAMANT_NOT_FOUND if it is not there.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_set_deadline(
    expiring: Changed<ExpiringHandle>,
    key: Slice,
    deadline_ms: u64,
) -> c_int {
    run(|| Ok(found(expiring.get()?.set_deadline(key.bytes()?, deadline_of(deadline_ms))?)))
}

/// The value of a key, as a copy to be freed by adamant_value_free, and when it ends;
/// ADAMANT_NOT_FOUND, and NULL for the value, if it has none that is not over. `value` and
/// `deadline_ms` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_get(
    expiring: In<ExpiringHandle>,
    key: Slice,
    value: Out<*mut Value>,
    deadline_ms: Out<u64>,
) -> c_int {
    run(|| {
        value.set(std::ptr::null_mut());
        let Some((had, ends)) = expiring.get()?.get_with_deadline(key.bytes()?)? else {
            return Ok(ADAMANT_NOT_FOUND);
        };
        deadline_ms.set(millis_of(ends));
        if !value.is_null() {
            value.give(Content::copy(&had));
        }
        Ok(ADAMANT_OK)
    })
}

/// Whether a key has a value that is not over: ADAMANT_OK or ADAMANT_NOT_FOUND.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_contains(expiring: In<ExpiringHandle>, key: Slice) -> c_int {
    run(|| Ok(found(expiring.get()?.contains(key.bytes()?)?)))
}

/// How many entries are not over: exact. What is over and was not taken away is looked at one by
/// one.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_len(expiring: In<ExpiringHandle>, entries: Out<u64>) -> c_int {
    run(|| {
        entries.need("number of entries")?;
        entries.set(expiring.get()?.len()?);
        Ok(ADAMANT_OK)
    })
}

/// When the next entry will be over, or was; ADAMANT_NEVER if none ever is.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_next_deadline(
    expiring: In<ExpiringHandle>,
    deadline_ms: Out<u64>,
) -> c_int {
    run(|| {
        deadline_ms.need("deadline")?;
        deadline_ms.set(millis_of(expiring.get()?.next_deadline()?));
        Ok(ADAMANT_OK)
    })
}

/// Takes entries away that are over, at most so many, in one commit, and says how many; `removed`
/// may be NULL. To be called now and then, best at adamant_expiring_next_deadline: they take room
/// until then.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_expiring_remove_expired(
    expiring: Changed<ExpiringHandle>,
    entries_max: usize,
    removed: Out<u64>,
) -> c_int {
    run(|| {
        removed.set(expiring.get()?.remove_expired(entries_max)?);
        Ok(ADAMANT_OK)
    })
}
