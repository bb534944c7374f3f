//! The space that a keyspace of one entry takes, by counts: in the pool, and in memory beside it. A
//! program may have one for each of thousands of users.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use adamant::{Durability, Engine, KeyspaceOptions, Options, Store};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it is; counting needs no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: our caller's promises are those that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above; all memory came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const KEYSPACES: usize = 500;

/// Bytes of the pool and of memory that each keyspace of one entry takes.
fn cost(engine: Engine) -> (usize, usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let options =
        Options::new().background(false).durability(Durability::Buffered).log_bytes_max(4 << 20);
    let store = Store::open_with(directory.path().join("store"), options).expect("opens");
    let mut kept = Vec::new();
    let mut make = |number: usize| {
        let options = KeyspaceOptions::new().engine(engine);
        let keyspace = store.keyspace_with(&format!("user-{number:06}"), options).expect("is made");
        keyspace.insert("name", "value").expect("an insert");
        kept.push(keyspace);
    };
    // One-time costs.
    (0..KEYSPACES).for_each(&mut make);
    let pool = || store.occupancy().expect("an occupancy").allocated_bytes() as usize;
    let (pool_before, before) = (pool(), LIVE.load(Ordering::Relaxed));
    (KEYSPACES..2 * KEYSPACES).for_each(make);
    let memory = (LIVE.load(Ordering::Relaxed) - before) / KEYSPACES;
    ((pool() - pool_before) / KEYSPACES, memory)
}

#[test]
fn a_keyspace_of_one_entry_takes_little() {
    // 20,000 must take less than 100 MiB: 5 KiB each, of memory, which also holds what the pool
    // has.
    for (engine, pool_max, memory_max) in [(Engine::Bplus, 700, 700), (Engine::Lsm, 1500, 3000)] {
        let (pool, memory) = cost(engine);
        println!("{engine}: {pool} bytes of the pool, {memory} of memory");
        assert!(pool <= pool_max && memory <= memory_max, "{engine}: {pool}, {memory}");
    }
}
