//! Counts the memory that strings take; see `adamant_peers::slice::memory`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use adamant_peers::slice::memory;

/// Bytes that are allocated.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting what it was asked for.
struct Counting;

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        USED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> ExitCode {
    let strings = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let Some(strings) = strings.filter(|&count| count > 0) else {
        eprintln!("usage: adamant-peers-memory STRINGS");
        return ExitCode::from(2);
    };
    memory::count(strings, &|| USED.load(Ordering::Relaxed));
    ExitCode::SUCCESS
}
