//! Thread numbers.
//!
//! Purpose: tell threads apart that each want a slot, such as a thread cache or a reader slot.
//! Thread safety: any thread. The numbers belong to no heap: two heaps may see the same numbers
//! without sharing anything else.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of the calling thread: 0 for the first one that asked, and so on.
#[inline]
pub(crate) fn thread_number() -> usize {
    // One more than the number; 0: not asked yet. Known at compile time and without a destructor,
    // so that asking is one load, also while the thread ends.
    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(0) });
    match NUMBER.get() {
        0 => {
            let number = next();
            NUMBER.set(number + 1);
            number
        }
        number => number - 1,
    }
}

#[cold]
fn next() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_number_and_others_have_others() {
        let number = thread_number();
        assert_eq!(thread_number(), number);
        let other = std::thread::spawn(thread_number).join().expect("no panic");
        assert_ne!(other, number);
    }
}
