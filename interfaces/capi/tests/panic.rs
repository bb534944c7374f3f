//! A panic in the middle of a call, as a defect of the library would be one: it becomes a code, and
//! the store, the handles and other threads go on.

use std::ffi::{CStr, c_void};
use std::panic;
use std::ptr;

use adamant_capi::border::code::{ADAMANT_OK, ADAMANT_PANIC};
use adamant_capi::border::failure::adamant_last_error;
use adamant_capi::border::pointers::{Changed, Context, In, Lent, Out, Reader, Slice, Taken};
use adamant_capi::entry::{adamant_get_with, adamant_put};
use adamant_capi::whole::keyspace::{KeyspaceHandle, adamant_keyspace_free, adamant_keyspace_open};
use adamant_capi::whole::store::{
    StoreHandle, adamant_close, adamant_open_in_memory, adamant_store_free,
};

/// Does what no reader may.
///
/// # Safety
/// None is needed: it looks at nothing.
unsafe extern "C-unwind" fn panics(_: *mut c_void, _: Lent) {
    panic!("in the middle of it");
}

/// Adds up bytes.
///
/// # Safety
/// The context is a number that nobody else uses; the value is lent until this returns.
unsafe extern "C-unwind" fn counts(context: *mut c_void, value: Lent) {
    // SAFETY: the caller vouches for it.
    let count = unsafe { &mut *context.cast::<usize>() };
    // SAFETY: the caller vouches for it.
    *count += unsafe { value.bytes() }.len();
}

fn slice(bytes: &'static [u8]) -> Slice {
    // SAFETY: they are there for ever.
    unsafe { Slice::new(bytes.as_ptr(), bytes.len()) }
}

#[test]
fn a_panic_becomes_a_code() {
    // Nothing of it is to be seen among what tests print.
    panic::set_hook(Box::new(|_| ()));
    let (mut store, mut keyspace) = (ptr::null_mut::<StoreHandle>(), ptr::null_mut());
    // SAFETY: a place of our own.
    assert_eq!(adamant_open_in_memory(unsafe { Out::new(&mut store) }), ADAMANT_OK);
    // SAFETY: a handle that was just made and is not freed before the end.
    let store_in = || unsafe { Changed::new(store) };
    // SAFETY: text that ends with a zero byte.
    let name = unsafe { In::new(c"words".as_ptr()) };
    // SAFETY: null: no engine.
    let engine = unsafe { In::new(ptr::null()) };
    // SAFETY: a place of our own.
    let place = unsafe { Out::new(&mut keyspace) };
    assert_eq!(adamant_keyspace_open(store_in(), name, engine, place), ADAMANT_OK);
    let keyspace: *mut KeyspaceHandle = keyspace;
    // SAFETY: a handle that was just made and is not freed before the end.
    let keyspace_in = || unsafe { In::new(keyspace.cast_const()) };
    // SAFETY: as above.
    let keyspace_to_change = || unsafe { Changed::new(keyspace) };
    assert_eq!(adamant_put(keyspace_to_change(), slice(b"key"), slice(b"value")), ADAMANT_OK);

    for round in 1..=3 {
        // SAFETY: it looks at nothing.
        let reader = unsafe { Reader::new(panics) };
        let code =
            adamant_get_with(keyspace_in(), slice(b"key"), reader, Context::new(ptr::null_mut()));
        assert_eq!(code, ADAMANT_PANIC);
        // SAFETY: text that is there until the next call that fails.
        let text = unsafe { CStr::from_ptr(adamant_last_error()) };
        assert!(text.to_string_lossy().contains("in the middle of it"), "{text:?}");
        // Nothing is locked, and nothing forgotten.
        assert_eq!(adamant_put(keyspace_to_change(), slice(b"key"), slice(b"value")), ADAMANT_OK);
        let mut count = 0_usize;
        // SAFETY: it gets a number of our own.
        let reader = unsafe { Reader::new(counts) };
        let context = Context::new((&raw mut count).cast());
        assert_eq!(adamant_get_with(keyspace_in(), slice(b"key"), reader, context), ADAMANT_OK);
        assert_eq!(count, 5, "round {round}");
    }
    assert_eq!(adamant_close(store_in()), ADAMANT_OK);
    // SAFETY: nobody uses it any more.
    adamant_keyspace_free(unsafe { Taken::new(keyspace) });
    // SAFETY: nobody uses it any more.
    adamant_store_free(unsafe { Taken::new(store) });
}
