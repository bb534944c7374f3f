//! Cursors of the feed of changes: durable positions, by name.

use std::ffi::{c_char, c_int};

use crate::border::code::{ADAMANT_NOT_FOUND, ADAMANT_OK};
use crate::border::failure::run;
use crate::border::pointers::{Changed, In, Out};
use crate::whole::keyspace::name_of;
use crate::whole::store::StoreHandle;

/// Sets a cursor of a name (1 to 255 bytes of UTF-8): the number of the last commit of the feed
/// that its owner is done with. One commit, which is not in the feed. adamant_batch_cursor_set and
/// adamant_transaction_cursor_set do it in the commit of what the owner made of the feed, so that
/// each commit is taken exactly once. ADAMANT_CHANGES_NOT_RECORDED if changes are not recorded.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_changes_cursor_set(
    store: Changed<StoreHandle>,
    name: In<c_char>,
    number: u64,
) -> c_int {
    run(|| {
        store.store()?.set_cursor(name_of(&name)?, number)?;
        Ok(ADAMANT_OK)
    })
}

/// The number that a cursor was set to; ADAMANT_NOT_FOUND if there is none of that name.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_changes_cursor_get(
    store: In<StoreHandle>,
    name: In<c_char>,
    number: Out<u64>,
) -> c_int {
    run(|| {
        number.need("number of the commit")?;
        let Some(found) = store.store()?.cursor(name_of(&name)?)? else {
            return Ok(ADAMANT_NOT_FOUND);
        };
        number.set(found);
        Ok(ADAMANT_OK)
    })
}

/// Removes a cursor, if there is one of that name.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_changes_cursor_remove(
    store: Changed<StoreHandle>,
    name: In<c_char>,
) -> c_int {
    run(|| {
        store.store()?.remove_cursor(name_of(&name)?)?;
        Ok(ADAMANT_OK)
    })
}
