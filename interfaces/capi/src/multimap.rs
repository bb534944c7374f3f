//! Multimaps: a key has any number of sorted values; each change is a commit of its own.

use std::ffi::{c_char, c_int};
use std::ops::Bound;

use adamant::{KeyspaceOptions, Multimap};

use crate::border::code::{ADAMANT_END, ADAMANT_OK};
use crate::border::failure::{Result, run};
use crate::border::options::durability_of;
use crate::border::pointers::{Changed, In, Opaque, Out, Slice, Taken};
use crate::border::value::{Content, Value};
use crate::whole::keyspace::{found, name_of, options_of};
use crate::whole::store::StoreHandle;

/// A map of keys to sets of values, both sorted by their bytes. A key and a value have up to 65,533
/// bytes together, and one less for each zero in the key. To be freed by adamant_multimap_free.
pub enum MultimapHandle {}

impl Opaque for MultimapHandle {
    type Content = Multimap;
    const KIND: u32 = 0xADA1_000F;
    const NAME: &'static str = "a multimap";
}

/// Opens the multimap of a name, which is created if there is none. `engine` as in
/// adamant_keyspace_open. It is renamed and dropped as any keyspace.
///
/// Fails with ADAMANT_WRONG_KIND if there is a keyspace of that name with other entries.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multimap_open(
    store: Changed<StoreHandle>,
    name: In<c_char>,
    engine: In<c_char>,
    multimap: Out<*mut MultimapHandle>,
) -> c_int {
    run(|| {
        multimap.need_handle()?;
        let options = options_of(&engine, KeyspaceOptions::new())?;
        multimap.give(store.store()?.multimap_with(name_of(&name)?, options)?);
        Ok(ADAMANT_OK)
    })
}

/// Another handle, whose writes wait for ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multimap_with_durability(
    multimap: In<MultimapHandle>,
    durability: c_int,
    other: Out<*mut MultimapHandle>,
) -> c_int {
    run(|| {
        other.need_handle()?;
        other.give(multimap.get()?.with_durability(durability_of(durability)?));
        Ok(ADAMANT_OK)
    })
}

/// Frees a handle; NULL is none. The multimap stays.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multimap_free(multimap: Taken<MultimapHandle>) {
    run(|| multimap.free().map(|()| ADAMANT_OK));
}

/// Gives a key one more value, and says whether it is new (1) or was there (0), when nothing is
/// changed; `is_new` may be NULL. O(log n). ADAMANT_KEY_LENGTH if both are too long together.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multimap_insert(
    multimap: Changed<MultimapHandle>,
    key: Slice,
    value: Slice,
    is_new: Out<c_int>,
) -> c_int {
    run(|| {
        let inserted = multimap.get()?.insert(key.bytes()?, value.bytes()?)?;
        is_new.set(c_int::from(inserted));
        Ok(ADAMANT_OK)
    })
}

/// Takes a value from a key; ADAMANT_NOT_FOUND if the key did not have it. O(log n).
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multimap_remove(
    multimap: Changed<MultimapHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| Ok(found(multimap.get()?.remove(key.bytes()?, value.bytes()?)?)))
}

/// Takes all values from a key, in one commit, and says how many there were; `values` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multimap_remove_all(
    multimap: Changed<MultimapHandle>,
    key: Slice,
    values: Out<u64>,
) -> c_int {
    run(|| {
        values.set(multimap.get()?.remove_all(key.bytes()?)?);
        Ok(ADAMANT_OK)
    })
}

/// Whether a key has a value: ADAMANT_OK or ADAMANT_NOT_FOUND. O(log n).
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multimap_contains(
    multimap: In<MultimapHandle>,
    key: Slice,
    value: Slice,
) -> c_int {
    run(|| Ok(found(multimap.get()?.contains(key.bytes()?, value.bytes()?)?)))
}

/// How many values a key has, which are counted.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multimap_count(
    multimap: In<MultimapHandle>,
    key: Slice,
    values: Out<u64>,
) -> c_int {
    run(|| {
        values.set(multimap.get()?.count(key.bytes()?)?);
        Ok(ADAMANT_OK)
    })
}

/// How many pairs of a key and a value there are.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multimap_len(multimap: In<MultimapHandle>, pairs: Out<u64>) -> c_int {
    run(|| {
        pairs.set(multimap.get()?.len()?);
        Ok(ADAMANT_OK)
    })
}

/// The lowest value of a key above another value, as a copy to be freed by adamant_value_free;
/// ADAMANT_END, and NULL, if there is none. NULL bytes for `above`: the lowest of all. So a loop
/// that gives the value found last goes through all of them, O(log n) each.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multimap_next_value(
    multimap: In<MultimapHandle>,
    key: Slice,
    above: Slice,
    value: Out<*mut Value>,
) -> c_int {
    run(|| {
        let range = (bound_above(&above)?, Bound::Unbounded);
        let next = multimap.get()?.values_range(key.bytes()?, range).next().transpose();
        give(&value, next)
    })
}

/// The lowest key above another one that has a value, as adamant_multimap_next_value.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_multimap_next_key(
    multimap: In<MultimapHandle>,
    above: Slice,
    key: Out<*mut Value>,
) -> c_int {
    run(|| {
        let range = (bound_above(&above)?, Bound::Unbounded);
        let next = multimap.get()?.keys(range).next().transpose();
        give(&key, next)
    })
}

/// The bound of what lies above bytes; none for NULL.
pub(crate) fn bound_above(bytes: &Slice) -> Result<Bound<Vec<u8>>> {
    if bytes.is_none() {
        return Ok(Bound::Unbounded);
    }
    Ok(Bound::Excluded(bytes.bytes()?.to_vec()))
}

/// Gives a copy of what was found, or NULL.
pub(crate) fn give(
    target: &Out<*mut Value>,
    found: adamant::Result<Option<adamant::Slice>>,
) -> Result<c_int> {
    target.need_handle()?;
    match found? {
        Some(bytes) => {
            target.give(Content::copy(&bytes));
            Ok(ADAMANT_OK)
        }
        None => Ok(ADAMANT_END),
    }
}
