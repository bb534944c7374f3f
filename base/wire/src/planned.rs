//! Planned faults where no medium can fail: for builds that test their handling.
//!
//! Purpose: most blocks of the heap are reserved without asking the medium for anything, so a full
//! disk is not noticed there. A test counts the reservations of a workload, and has one after the
//! other refused. Compiled under the feature `faults` alone, which only test programs turn on.
//! Invariants: at most one reservation is refused, until another one is planned.
//! Thread safety: each thread counts its own, so that concurrent tests do not disturb each other.

use std::cell::Cell;

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
    static PLANNED: Cell<u64> = const { Cell::new(0) };
}

/// Whether the block that is about to be reserved is refused for want of space. Counts it.
pub fn refuses_reservation() -> bool {
    let number = MADE.get() + 1;
    MADE.set(number);
    number == PLANNED.get()
}

/// Begins to count this thread's reservations from 1, and has the one of this number refused; 0:
/// none.
pub fn plan_reservation(number: u64) {
    MADE.set(0);
    PLANNED.set(number);
}

/// How many reservations this thread has made since the last plan.
pub fn reservations() -> u64 {
    MADE.get()
}
