//! Keyspaces: creating, opening, dropping.

use std::ffi::{CStr, CString, c_char, c_int};

use adamant::{Engine, Keyspace, KeyspaceOptions, Store};

use crate::border::code::{ADAMANT_NAME, ADAMANT_NOT_FOUND, ADAMANT_OK};
use crate::border::failure::{Failure, Result, run, run_or};
use crate::border::keyspace_options::{KeyspaceOptionsHandle, value_compression_of};
use crate::border::options::{durability_of, number_of};
use crate::border::pointers::{Changed, In, Opaque, Out, Slice, Taken};
use crate::border::value::{Content as ValueContent, Value};
use crate::whole::store::StoreHandle;

/// A keyspace: a named, ordered map of a store. To be freed by adamant_keyspace_free.
pub enum KeyspaceHandle {}

/// A keyspace and its name for C.
#[derive(Debug)]
pub struct Content {
    pub(crate) keyspace: Keyspace,
    name: CString,
}

impl Content {
    fn new(keyspace: Keyspace) -> Self {
        let name = CString::new(keyspace.name()).unwrap_or_default();
        Self { keyspace, name }
    }
}

impl Opaque for KeyspaceHandle {
    type Content = Content;
    const KIND: u32 = 0xADA1_0004;
    const NAME: &'static str = "a keyspace";
}

impl In<KeyspaceHandle> {
    /// The keyspace.
    pub(crate) fn keyspace(&self) -> Result<&Keyspace> {
        Ok(&self.get()?.keyspace)
    }
}

/// The name of a keyspace.
pub(crate) fn name_of(name: &In<c_char>) -> Result<&str> {
    let name = name.text("name of a keyspace")?;
    name.to_str()
        .map_err(|_| Failure::new(ADAMANT_NAME, "the name of a keyspace is UTF-8, this is not"))
}

fn engine_of(name: &In<c_char>) -> Result<Option<Engine>> {
    let Some(name) = name.text_or_none() else { return Ok(None) };
    Ok(Some(name.to_string_lossy().parse()?))
}

/// The options with the keyspace's engine; NULL: any engine.
pub(crate) fn options_of(engine: &In<c_char>, options: KeyspaceOptions) -> Result<KeyspaceOptions> {
    Ok(engine_of(engine)?.map_or(options, |engine| options.engine(engine)))
}

/// Gives the keyspace that a function of the store creates or opens.
fn make(
    by: fn(&Store, &str, KeyspaceOptions) -> adamant::Result<Keyspace>,
    store: &In<StoreHandle>,
    (name, engine, options): (&In<c_char>, &In<c_char>, KeyspaceOptions),
    keyspace: &Out<*mut KeyspaceHandle>,
) -> Result<c_int> {
    keyspace.need_handle()?;
    let made = by(&store.store()?, name_of(name)?, options_of(engine, options)?)?;
    keyspace.give(Content::new(made));
    Ok(ADAMANT_OK)
}

/// Opens the keyspace of a name (1 to 255 bytes of UTF-8), which is created if there is none.
/// `engine` is "bplus" (the default), "lsm", "btree", "critbit", "redblack", or NULL: the default
/// for a new one, any for one that exists.
///
/// Fails with ADAMANT_WRONG_ENGINE if another engine keeps it.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_open(
    store: Changed<StoreHandle>,
    name: In<c_char>,
    engine: In<c_char>,
    keyspace: Out<*mut KeyspaceHandle>,
) -> c_int {
    let none = KeyspaceOptions::new();
    run(|| make(Store::keyspace_with, &store, (&name, &engine, none), &keyspace))
}

/// Opens a keyspace as adamant_keyspace_open, with options of the engine lsm; NULL for none. Those
/// that an existing keyspace does not have yet are recorded with it, in a commit of its own.
///
/// Fails with ADAMANT_WRONG_ENGINE, too, if options are set and the engine is not lsm; with
/// ADAMANT_INVALID for an option that cannot be used.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_open_with(
    store: Changed<StoreHandle>,
    name: In<c_char>,
    engine: In<c_char>,
    options: In<KeyspaceOptionsHandle>,
    keyspace: Out<*mut KeyspaceHandle>,
) -> c_int {
    run(|| make(Store::keyspace_with, &store, (&name, &engine, options.options()?), &keyspace))
}

/// Creates a keyspace, as adamant_keyspace_open; fails with ADAMANT_KEYSPACE_EXISTS if there is
/// one.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_create(
    store: Changed<StoreHandle>,
    name: In<c_char>,
    engine: In<c_char>,
    keyspace: Out<*mut KeyspaceHandle>,
) -> c_int {
    let none = KeyspaceOptions::new();
    run(|| make(Store::create_keyspace_with, &store, (&name, &engine, none), &keyspace))
}

/// Creates a keyspace as adamant_keyspace_create, with options as adamant_keyspace_open_with.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_create_with(
    store: Changed<StoreHandle>,
    name: In<c_char>,
    engine: In<c_char>,
    options: In<KeyspaceOptionsHandle>,
    keyspace: Out<*mut KeyspaceHandle>,
) -> c_int {
    run(|| {
        let of = (&name, &engine, options.options()?);
        make(Store::create_keyspace_with, &store, of, &keyspace)
    })
}

/// Opens a keyspace that exists; fails with ADAMANT_UNKNOWN_KEYSPACE if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_open_existing(
    store: In<StoreHandle>,
    name: In<c_char>,
    keyspace: Out<*mut KeyspaceHandle>,
) -> c_int {
    run(|| {
        keyspace.need_handle()?;
        let opened = store.store()?.open_keyspace(name_of(&name)?)?;
        keyspace.give(Content::new(opened));
        Ok(ADAMANT_OK)
    })
}

/// Another handle of a keyspace, whose writes wait for ADAMANT_SYNC, ADAMANT_BUFFERED or
/// ADAMANT_DEFERRED.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_with_durability(
    keyspace: In<KeyspaceHandle>,
    durability: c_int,
    other: Out<*mut KeyspaceHandle>,
) -> c_int {
    run(|| {
        other.need_handle()?;
        let made = keyspace.keyspace()?.with_durability(durability_of(durability)?);
        other.give(Content::new(made));
        Ok(ADAMANT_OK)
    })
}

/// The durability of writes by a handle, ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED: its
/// own, or the one that is recorded with the keyspace, or that of the store.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_durability(
    keyspace: In<KeyspaceHandle>,
    durability: Out<c_int>,
) -> c_int {
    run(|| {
        durability.need("durability")?;
        durability.set(number_of(keyspace.keyspace()?.durability()));
        Ok(ADAMANT_OK)
    })
}

/// Frees the handle of a keyspace; NULL is none. The keyspace stays.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_free(keyspace: Taken<KeyspaceHandle>) {
    run(|| keyspace.free().map(|()| ADAMANT_OK));
}

/// The name, until the handle is freed. NULL for what is no keyspace.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_name(keyspace: In<KeyspaceHandle>) -> *const c_char {
    run_or(std::ptr::null(), || Ok(keyspace.get()?.name.as_ptr()))
}

/// The name of the engine that kept it when the handle was opened. Not to be freed. NULL for what
/// is no keyspace.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_engine(keyspace: In<KeyspaceHandle>) -> *const c_char {
    run_or(std::ptr::null(), || Ok(engine_name(keyspace.keyspace()?.engine()).as_ptr()))
}

/// The name of an engine for C.
pub(crate) fn engine_name(engine: Engine) -> &'static CStr {
    match engine {
        Engine::Bplus => c"bplus",
        Engine::Btree => c"btree",
        Engine::Critbit => c"critbit",
        Engine::Redblack => c"redblack",
        Engine::Lsm => c"lsm",
        _ => c"?",
    }
}

/// Drops a keyspace with all that it holds, in one commit; ADAMANT_NOT_FOUND if there is none. Its
/// handles get ADAMANT_KEYSPACE_DROPPED from then on.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_drop(store: Changed<StoreHandle>, name: In<c_char>) -> c_int {
    run(|| Ok(found(store.store()?.drop_keyspace(name_of(&name)?)?)))
}

/// Gives a keyspace another name, in one commit. Its handles stay good.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_rename(
    store: Changed<StoreHandle>,
    name: In<c_char>,
    new_name: In<c_char>,
) -> c_int {
    run(|| {
        store.store()?.rename_keyspace(name_of(&name)?, name_of(&new_name)?)?;
        Ok(ADAMANT_OK)
    })
}

/// Makes a keyspace one of another engine, in one commit. Its handles stay good, but are better
/// opened again.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_convert(
    store: Changed<StoreHandle>,
    name: In<c_char>,
    engine: In<c_char>,
) -> c_int {
    run(|| {
        let none = || Failure::invalid("expected the name of an engine, found NULL");
        let engine = engine_of(&engine)?.ok_or_else(none)?;
        store.store()?.convert_keyspace(name_of(&name)?, engine)?;
        Ok(ADAMANT_OK)
    })
}

/// Has a keyspace store its values by another compression, as of
/// adamant_keyspace_options_set_value_compression: those that are there and all later ones, in one
/// commit. `dictionary` is one for zstd, of 64 KiB at most, or adamant_text(NULL) for none. Handles
/// of the keyspace stay good. Readers and writers wait until it is done.
///
/// Fails with ADAMANT_INVALID for bytes that are no dictionary, and for one without zstd.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_compress_values(
    store: Changed<StoreHandle>,
    name: In<c_char>,
    compression: In<c_char>,
    dictionary: Slice,
) -> c_int {
    run(|| {
        let values = value_compression_of(&compression)?;
        let bytes = if dictionary.is_none() { None } else { Some(dictionary.bytes()?) };
        store.store()?.compress_values(name_of(&name)?, values, bytes)?;
        Ok(ADAMANT_OK)
    })
}

/// Trains a dictionary of at most so many bytes, 256 to 65536, from the values of a keyspace, for
/// adamant_keyspace_compress_values; 16384 are a good size. It is to be freed by
/// adamant_value_free.
///
/// Fails with ADAMANT_INVALID for too few values, values that have nothing in common, and where
/// zstd is not built in.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_train_dictionary(
    store: In<StoreHandle>,
    name: In<c_char>,
    bytes_max: usize,
    dictionary: Out<*mut Value>,
) -> c_int {
    run(|| {
        dictionary.need_handle()?;
        let bytes = store.store()?.train_dictionary(name_of(&name)?, bytes_max)?;
        dictionary.give(ValueContent::copy(&bytes));
        Ok(ADAMANT_OK)
    })
}

/// The code for found or not found.
pub(crate) fn found(is_found: bool) -> c_int {
    if is_found { ADAMANT_OK } else { ADAMANT_NOT_FOUND }
}
