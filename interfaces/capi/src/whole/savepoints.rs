//! Persistent savepoints of a store: named moments of all of it.

use std::ffi::{CString, c_char, c_int};
use std::time::UNIX_EPOCH;

use adamant::SavepointState;

use crate::border::code::{ADAMANT_NOT_FOUND, ADAMANT_OK};
use crate::border::failure::{Failure, Result, run, run_or};
use crate::border::options::{OptionsHandle, options_of};
use crate::border::pointers::{Changed, In, Opaque, Out, Taken};
use crate::whole::store::{Content, StoreHandle, path_of};

/// A list of savepoints, as they were when it was made. To be freed by adamant_savepoint_list_free.
pub enum SavepointList {}

/// A savepoint in a list.
#[derive(Debug)]
pub struct Listed {
    name: CString,
    commit: u64,
    made_ms: u64,
    bytes: u64,
    state: c_int,
}

impl Opaque for SavepointList {
    type Content = Vec<Listed>;
    const KIND: u32 = 0xADA1_000F;
    const NAME: &'static str = "a list of savepoints";
}

/// A savepoint that can be read.
pub const ADAMANT_SAVEPOINT_WHOLE: c_int = 0;
/// A savepoint that was given up, since the device had no space for what it needed.
pub const ADAMANT_SAVEPOINT_LOST: c_int = 1;
/// A savepoint whose file is not what was written.
pub const ADAMANT_SAVEPOINT_DAMAGED: c_int = 2;

fn name_of(name: &In<c_char>) -> Result<&str> {
    let name = name.text("name of a savepoint")?;
    let text = name.to_str();
    text.map_err(|_| Failure::invalid(format!("expected a name in UTF-8, found {name:?}")))
}

/// Makes a savepoint: all keyspaces as they are now, under a name of 1 to 255 bytes, to be read or
/// gone back to, even after the store was closed. It is durable when this returns. It costs room
/// for what changes; where there is none, the oldest savepoint is given up, and commits go on.
///
/// Fails with ADAMANT_INVALID if there is one of that name, or the name has another length.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_create_savepoint(store: Changed<StoreHandle>, name: In<c_char>) -> c_int {
    run(|| {
        store.store()?.create_savepoint(name_of(&name)?)?;
        Ok(ADAMANT_OK)
    })
}

/// Deletes a savepoint and gives back what only it held; ADAMANT_NOT_FOUND if there is none of that
/// name. Needs no space. Fails with ADAMANT_MISUSE while it is open.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_delete_savepoint(store: Changed<StoreHandle>, name: In<c_char>) -> c_int {
    run(|| match store.store()?.delete_savepoint(name_of(&name)?)? {
        true => Ok(ADAMANT_OK),
        false => Ok(ADAMANT_NOT_FOUND),
    })
}

/// Opens what a savepoint shows as a store that is only read, while this one goes on. This one
/// stays open as long, unless it is closed by adamant_close: then the savepoint cannot be read any
/// more.
///
/// Fails with ADAMANT_MISSING if there is none of that name, or it was given up.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_open_savepoint(
    store: In<StoreHandle>,
    name: In<c_char>,
    savepoint: Out<*mut StoreHandle>,
) -> c_int {
    run(|| {
        savepoint.need_handle()?;
        savepoint.give(Content::new(store.store()?.open_savepoint(name_of(&name)?)?));
        Ok(ADAMANT_OK)
    })
}

/// Makes the store at a path, which nobody has open, what one of its savepoints shows: all later
/// commits are undone, and all savepoints stay. Takes as much space as the file pool. A crash
/// leaves the store as it was, or as it is to be. NULL for the default options.
///
/// Fails with ADAMANT_MISSING if there is none of that name, ADAMANT_LOCKED if the store is open.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_go_back(
    path: In<c_char>,
    name: In<c_char>,
    options: In<OptionsHandle>,
) -> c_int {
    run(|| {
        let path = path_of(path.text("path")?)?;
        adamant::go_back_with(path, name_of(&name)?, options_of(&options)?)?;
        Ok(ADAMANT_OK)
    })
}

/// Lists all savepoints, the oldest first, and behind them those that were given up.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_savepoints(
    store: In<StoreHandle>,
    list: Out<*mut SavepointList>,
) -> c_int {
    run(|| {
        list.need_handle()?;
        let all = store.store()?.savepoints()?.into_iter();
        list.give(
            all.map(|found| {
                let since = found.made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
                Listed {
                    // One with a zero byte in its name was not made by C.
                    name: CString::new(found.name).unwrap_or_default(),
                    commit: found.commit,
                    made_ms: since.map_or(0, |since| since.as_millis() as u64),
                    bytes: found.bytes,
                    state: match found.state {
                        SavepointState::Whole => ADAMANT_SAVEPOINT_WHOLE,
                        SavepointState::Lost => ADAMANT_SAVEPOINT_LOST,
                        _ => ADAMANT_SAVEPOINT_DAMAGED,
                    },
                }
            })
            .collect(),
        );
        Ok(ADAMANT_OK)
    })
}

/// How many savepoints are in a list.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_savepoint_list_count(list: In<SavepointList>) -> usize {
    run_or(0, || Ok(list.get()?.len()))
}

/// The savepoint at an index of a list: its name, which is there until the list is freed, the
/// number of the last commit that it shows, when it was made in milliseconds since 1970 (0: not
/// known), the bytes that it holds, and ADAMANT_SAVEPOINT_WHOLE, _LOST or _DAMAGED. Each place may
/// be NULL. ADAMANT_NOT_FOUND beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_savepoint_list_get(
    list: In<SavepointList>,
    index: usize,
    name: Out<*const c_char>,
    commit: Out<u64>,
    made_ms: Out<u64>,
    bytes: Out<u64>,
    state: Out<c_int>,
) -> c_int {
    run(|| {
        let Some(found) = list.get()?.get(index) else { return Ok(ADAMANT_NOT_FOUND) };
        name.set(found.name.as_ptr());
        commit.set(found.commit);
        made_ms.set(found.made_ms);
        bytes.set(found.bytes);
        state.set(found.state);
        Ok(ADAMANT_OK)
    })
}

/// Frees a list; NULL is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_savepoint_list_free(list: Taken<SavepointList>) {
    run(|| list.free().map(|()| ADAMANT_OK));
}
