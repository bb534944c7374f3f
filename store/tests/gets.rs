//! The cost of a get: no allocation for values that fit into the slice, one copy into one
//! allocation for a value of up to 4 KiB, and a borrowed block for a longer one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use adamant::{Keyspace, Slice, Store};

thread_local!(static COUNT: Cell<u64> = const { Cell::new(0) });
thread_local!(static BYTES: Cell<u64> = const { Cell::new(0) });

/// Counts the allocations of each thread.
struct Counting;

// SAFETY: every call goes to the system's allocator as it is; counting touches cells of the thread,
// which need no memory and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        BYTES.set(BYTES.get() + layout.size() as u64);
        // SAFETY: our caller's promises are those that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; all memory came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The longest value that is copied.
const COPIED_BYTES_MAX: usize = 4096;
const GETS: u64 = 200;

/// A value, and what getting it allocated: calls and bytes.
fn get(keyspace: &Keyspace, key: &str) -> (Slice, u64, u64) {
    let before = (COUNT.get(), BYTES.get());
    let value = keyspace.get(key).unwrap().unwrap();
    (value, COUNT.get() - before.0, BYTES.get() - before.1)
}

#[test]
fn gets_allocate_and_copy_no_more_than_they_must() {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace("values").unwrap();
    let lengths = [0, 1, 20, 21, 100, 1000, COPIED_BYTES_MAX, 4097, 40_000, 3_000_000];
    for len in lengths {
        keyspace.insert(len.to_string(), vec![len as u8; len]).unwrap();
    }
    for len in lengths {
        let key = len.to_string();
        // One-time work of a thread's first get is not part of a get.
        drop(get(&keyspace, &key));
        for _ in 0..GETS {
            let there = keyspace.get_with(&key, |value| value.as_ptr().addr()).unwrap();
            let (value, allocations, bytes) = get(&keyspace, &key);
            assert_eq!(value, vec![len as u8; len]);
            let is_lent = Some(value.as_ptr().addr()) == there;
            if len <= adamant_slice::INLINE_BYTES_MAX {
                assert!(value.is_inline());
                assert_eq!(allocations, 0, "{len} bytes");
            } else if len <= COPIED_BYTES_MAX {
                // One allocation that has room for the value and the slice's header, and no more:
                // so there is one copy.
                assert_eq!((allocations, bytes), (1, len as u64 + 8), "{len} bytes");
                assert!(!is_lent);
            } else {
                assert_eq!((allocations, bytes), (0, 0), "{len} bytes");
                assert!(is_lent, "{len} bytes are where they were");
            }
        }
    }
}

#[test]
fn many_values_can_be_held_at_once_for_one_small_allocation_each() {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace("values").unwrap();
    for number in 0..300_u32 {
        keyspace.insert(number.to_le_bytes(), vec![number as u8; 5_000]).unwrap();
    }
    let bytes = BYTES.get();
    let held: Vec<Slice> =
        (0..300_u32).map(|number| keyspace.get(number.to_le_bytes()).unwrap().unwrap()).collect();
    let each = (BYTES.get() - bytes) / 300;
    assert!(each < 300, "{each} bytes for each value of 5,000");
    for (number, value) in (0..).zip(&held) {
        assert_eq!(*value, vec![number as u8; 5_000]);
    }
}
