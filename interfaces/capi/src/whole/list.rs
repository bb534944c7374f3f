//! Lists of the keyspaces of a store.

use std::ffi::{CStr, CString, c_char, c_int};

use crate::border::code::{ADAMANT_NOT_FOUND, ADAMANT_OK};
use crate::border::failure::{run, run_or};
use crate::border::pointers::{In, Opaque, Out, Taken};
use crate::whole::keyspace::engine_name;
use crate::whole::store::StoreHandle;

/// A list of keyspaces, as they were when it was made. To be freed by adamant_keyspace_list_free.
pub enum List {}

/// A keyspace in a list.
#[derive(Debug)]
pub struct Entry {
    name: CString,
    engine: &'static CStr,
    entries: u64,
    merge_operator: Option<CString>,
}

impl Opaque for List {
    type Content = Vec<Entry>;
    const KIND: u32 = 0xADA1_0005;
    const NAME: &'static str = "a list of keyspaces";
}

/// Lists all keyspaces, by name.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspaces(store: In<StoreHandle>, list: Out<*mut List>) -> c_int {
    run(|| {
        list.need_handle()?;
        let all = store.store()?.keyspaces()?.into_iter();
        list.give(
            all.map(|info| Entry {
                // One with a zero byte in its name was not made by C, which cannot express it
                // either.
                name: CString::new(info.name).unwrap_or_default(),
                engine: engine_name(info.engine),
                entries: info.entries,
                merge_operator: info.merge_operator.and_then(|name| CString::new(name).ok()),
            })
            .collect(),
        );
        Ok(ADAMANT_OK)
    })
}

/// How many keyspaces are in a list.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_list_count(list: In<List>) -> usize {
    run_or(0, || Ok(list.get()?.len()))
}

/// The keyspace at an index of a list: its name and engine, which are there until the list is
/// freed, and how many entries it has (of the engine lsm: about). Each place may be NULL.
/// ADAMANT_NOT_FOUND beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_list_get(
    list: In<List>,
    index: usize,
    name: Out<*const c_char>,
    engine: Out<*const c_char>,
    entries: Out<u64>,
) -> c_int {
    run(|| {
        let Some(entry) = list.get()?.get(index) else { return Ok(ADAMANT_NOT_FOUND) };
        name.set(entry.name.as_ptr());
        engine.set(entry.engine.as_ptr());
        entries.set(entry.entries);
        Ok(ADAMANT_OK)
    })
}

/// The name of the merge operator of the keyspace at an index of a list, which is there until the
/// list is freed; NULL: it has none. ADAMANT_NOT_FOUND beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_list_merge_operator(
    list: In<List>,
    index: usize,
    name: Out<*const c_char>,
) -> c_int {
    run(|| {
        name.need("name")?;
        let Some(entry) = list.get()?.get(index) else { return Ok(ADAMANT_NOT_FOUND) };
        name.set(entry.merge_operator.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()));
        Ok(ADAMANT_OK)
    })
}

/// Frees a list; NULL is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_list_free(list: Taken<List>) {
    run(|| list.free().map(|()| ADAMANT_OK));
}
