//! Faults that a test plans where no medium can fail: for builds that test what becomes of them.
//!
//! Purpose: most blocks of the heap are reserved without asking the medium for anything, so that no full
//! disk is met there. A test counts the reservations of a workload, and has one after the other
//! refused. Compiled under the feature `faults` alone, which only test programs turn on.
//! Invariants: one reservation is refused at most, until another one is planned.
//! Thread safety: each thread counts its own, so that tests side by side do not disturb each other.

use std::cell::Cell;

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
    static PLANNED: Cell<u64> = const { Cell::new(0) };
}

/// Whether the block that is about to be reserved is to be refused for want of space. Counts it.
pub fn refuses_reservation() -> bool {
    let number = MADE.get() + 1;
    MADE.set(number);
    number == PLANNED.get()
}

/// Begins to count this thread's reservations from 1, and has the one of this number refused; 0: none.
pub fn plan_reservation(number: u64) {
    MADE.set(0);
    PLANNED.set(number);
}

/// How many reservations this thread has asked for since it was planned which to refuse.
pub fn reservations() -> u64 {
    MADE.get()
}
