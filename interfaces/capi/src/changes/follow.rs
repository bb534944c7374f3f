//! Stores that follow a process that writes, and what is recorded for those that read changes.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use crate::border::code::{ADAMANT_NOT_FOUND, ADAMANT_OK};
use crate::border::failure::{Result, run};
use crate::border::pointers::{Changed, In, Out};
use crate::whole::store::StoreHandle;

/// How long a call waits at a time, so that it sees that the store was closed.
const SLICE: Duration = Duration::from_millis(500);

/// Calls a closure that waits for no longer than it is told, until it has something or the time is
/// over.
pub(super) fn wait<T>(
    time_ms_max: u64,
    mut work: impl FnMut(Duration) -> Result<Option<T>>,
) -> Result<Option<T>> {
    // A time that no clock has is none.
    let end = Instant::now().checked_add(Duration::from_millis(time_ms_max));
    loop {
        let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()));
        let found = work(left.min(SLICE))?;
        if found.is_some() || end.is_some_and(|end| end <= Instant::now()) {
            return Ok(found);
        }
    }
}

/// Has a store that was opened beside a writer (adamant_options_beside_writer) show the last commit
/// that can be found. `later`, which may be NULL, is 1 if that is a later one than before, else 0,
/// as for all other stores. It never goes back.
///
/// Keyspaces, snapshots, cursors and so on that were made before stay good, and keep what they
/// show: make them anew. It is much faster if there are none left: free them first. Other threads
/// may use the handle of the store meanwhile, and wait for this.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_refresh(store: Changed<StoreHandle>, later: Out<c_int>) -> c_int {
    run(|| {
        let content = store.get()?;
        content.refuse_child()?;
        let is_later = content.hold()?.refresh()?;
        later.set(is_later.into());
        Ok(ADAMANT_OK)
    })
}

/// Waits until adamant_refresh would show a later commit, for so many milliseconds at most; with
/// UINT64_MAX for ever. ADAMANT_NOT_FOUND if there is none by then, and at once for a store that
/// was not opened beside a writer. The process that writes ends the wait.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_wait_for_change(store: In<StoreHandle>, time_ms_max: u64) -> c_int {
    run(|| {
        store.get()?.refuse_child()?;
        let store = store.store()?;
        if !store.is_beside_writer() {
            return Ok(ADAMANT_NOT_FOUND);
        }
        let found = wait(time_ms_max, |longest| Ok(store.wait_for_change(longest)?.then_some(())))?;
        Ok(found.map_or(ADAMANT_NOT_FOUND, |()| ADAMANT_OK))
    })
}

/// Records what each commit changes from now on, in the store, for adamant_changes_open; whoever
/// opens it. At most so many bytes of history are kept: the oldest commits make room for new ones.
/// Once more it changes the number of bytes.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_record_changes(store: Changed<StoreHandle>, bytes_max: u64) -> c_int {
    run(|| {
        store.store()?.record_changes(Some(bytes_max))?;
        Ok(ADAMANT_OK)
    })
}

/// Records no more changes, and removes the history and the cursors.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_end_changes(store: Changed<StoreHandle>) -> c_int {
    run(|| {
        store.store()?.record_changes(None)?;
        Ok(ADAMANT_OK)
    })
}

/// Which commits the history of changes has: the number of the first one and of the last one; if it
/// has none, `first` is one more than `last`. And the bytes that they take and may take. Each place
/// may be NULL. ADAMANT_CHANGES_NOT_RECORDED if changes are not recorded.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_changes_info(
    store: In<StoreHandle>,
    first: Out<u64>,
    last: Out<u64>,
    bytes: Out<u64>,
    bytes_max: Out<u64>,
) -> c_int {
    run(|| {
        let info = store.store()?.changes_info()?;
        first.set(info.first);
        last.set(info.last);
        bytes.set(info.bytes);
        bytes_max.set(info.bytes_max);
        Ok(ADAMANT_OK)
    })
}

/// The number of the last commit in the feed of changes; 0 before the first.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_last_change(store: In<StoreHandle>, number: Out<u64>) -> c_int {
    run(|| {
        number.need("number of the commit")?;
        number.set(store.store()?.last_change()?);
        Ok(ADAMANT_OK)
    })
}

/// The number of the last commit in the feed that this thread made in this store since it was
/// opened; ADAMANT_NOT_FOUND if it made none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_own_change(store: In<StoreHandle>, number: Out<u64>) -> c_int {
    run(|| {
        number.need("number of the commit")?;
        let Some(own) = store.store()?.own_change() else { return Ok(ADAMANT_NOT_FOUND) };
        number.set(own);
        Ok(ADAMANT_OK)
    })
}

/// Waits until the commit of a number survives power loss. ADAMANT_CHANGES_UNKNOWN if there is no
/// such commit yet.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_wait_durable(store: In<StoreHandle>, number: u64) -> c_int {
    run(|| {
        store.store()?.wait_durable(number)?;
        Ok(ADAMANT_OK)
    })
}
