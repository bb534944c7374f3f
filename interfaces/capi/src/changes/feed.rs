//! The feed of changes: commits in order, live and from the past.

use std::ffi::c_int;
use std::sync::Mutex;

use adamant::Changes;

use crate::border::change::ChangeReader;
use crate::border::code::{ADAMANT_NOT_FOUND, ADAMANT_OK};
use crate::border::failure::run;
use crate::border::hold::hold;
use crate::border::pointers::{Changed, Context, In, Opaque, Out, Taken};
use crate::changes::follow::wait;
use crate::whole::store::StoreHandle;

/// Commits in order. For one thread at a time. To be freed by adamant_changes_free.
pub enum ChangesHandle {}

impl Opaque for ChangesHandle {
    type Content = Mutex<Changes>;
    const KIND: u32 = 0xADA1_000E;
    const NAME: &'static str = "a feed of changes";
}

/// The commits behind the one of a number, in order: those of the past, and those to come. 0 begins
/// with the first, what adamant_last_change gives with the next one to come.
///
/// Of a store that was opened beside a writer it gives what the other process commits: it is a
/// reader of its own then, and follows by itself, also when that store was closed. Fails with
/// ADAMANT_CHANGES_NOT_RECORDED; with ADAMANT_CHANGES_UNKNOWN if the history does not have all
/// commits behind that one.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_changes_open(
    store: In<StoreHandle>,
    after: u64,
    changes: Out<*mut ChangesHandle>,
) -> c_int {
    run(|| {
        changes.need_handle()?;
        changes.give(Mutex::new(store.store()?.changes(after)?));
        Ok(ADAMANT_OK)
    })
}

/// Gives the changes of the next commit to a function, one after the other, on this thread. It
/// waits for a commit for so many milliseconds at most, with UINT64_MAX for ever: ADAMANT_NOT_FOUND
/// if there is none by then, and the function was not called.
///
/// Fails with ADAMANT_CHANGES_UNKNOWN if this reader is so far behind that the commit was removed.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_changes_next(
    changes: Changed<ChangesHandle>,
    time_ms_max: u64,
    reader: ChangeReader,
    context: Context,
) -> c_int {
    run(|| {
        let reader = reader.with(context)?;
        let mut changes = hold(changes.get()?)?;
        let commit = wait(time_ms_max, |longest| Ok(changes.next_within(longest)?))?;
        let Some(commit) = commit else { return Ok(ADAMANT_NOT_FOUND) };
        reader(commit)?;
        Ok(ADAMANT_OK)
    })
}

/// The number of the last commit that was given, or behind which the feed began.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_changes_after(changes: In<ChangesHandle>, number: Out<u64>) -> c_int {
    run(|| {
        number.need("number of the commit")?;
        number.set(hold(changes.get()?)?.after());
        Ok(ADAMANT_OK)
    })
}

/// Frees a feed of changes; NULL is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_changes_free(changes: Taken<ChangesHandle>) {
    run(|| changes.free().map(|()| ADAMANT_OK));
}
