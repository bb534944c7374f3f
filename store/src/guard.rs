//! Reentrancy guard: detects calls from within a closure that holds a store's lock.
//!
//! Purpose: a call on the store from within `get_with` would wait forever for a lock that its own
//! thread holds. It gets an error instead.
//! Invariants: a store's number is in a thread's list exactly while that thread runs a closure
//! under the store's shared lock. A closure that panics removes it too.
//! Thread safety: everything is local to the thread.

use std::cell::RefCell;

thread_local! {
    /// Stores whose lock this thread holds while it runs a caller's code. A list, because a closure
    /// may read another store; hardly ever more than one.
    static HELD: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Stands for all stores: for a caller's code that may run under the lock of any.
pub(crate) const ANY_STORE: usize = usize::MAX;

/// Marks a store as held by this thread until it is dropped.
pub(crate) struct Guard {
    store: usize,
}

impl Guard {
    /// Marks the store with this number.
    pub(crate) fn new(store: usize) -> Self {
        HELD.with_borrow_mut(|held| held.push(store));
        Self { store }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|held| {
            let at = held.iter().rposition(|store| *store == self.store);
            held.remove(at.expect("what a guard put in stays until it is dropped"));
        });
    }
}

/// Whether this thread runs a closure under that store's lock.
pub(crate) fn is_held(store: usize) -> bool {
    // While a thread exits, its list may be gone already; then no closure runs on it.
    HELD.try_with(|held| {
        let held = held.borrow();
        held.iter().any(|held| *held == store || *held == ANY_STORE)
    })
    .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_until_dropped_also_by_a_panic() {
        assert!(!is_held(1));
        {
            let _outer = Guard::new(1);
            let inner = Guard::new(2);
            assert!(is_held(1) && is_held(2) && !is_held(3));
            drop(inner);
            assert!(is_held(1) && !is_held(2));
            assert!(std::thread::spawn(|| !is_held(1)).join().unwrap());
        }
        let caught = std::panic::catch_unwind(|| {
            let _guard = Guard::new(1);
            panic!("closures may do this");
        });
        assert!(caught.is_err());
        assert!(!is_held(1));
    }
}
