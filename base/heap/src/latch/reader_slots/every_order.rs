//! Every order in which threads can go through the lock, under the memory model.

use loom::cell::UnsafeCell;

use super::*;
use crate::sync;

/// The value behind the lock: loom reports a read that overlaps a write.
struct Behind {
    readers: ReaderSlots,
    value: UnsafeCell<u32>,
}

// SAFETY: the test verifies that the lock orders all reads and writes of `value`.
unsafe impl Sync for Behind {}
// SAFETY: as above.
unsafe impl Send for Behind {}

impl Behind {
    fn look(&self) -> u32 {
        // SAFETY: as above; loom looks after it.
        self.value.with(|value| unsafe { *value })
    }

    fn change(&self) {
        // SAFETY: as above; loom looks after it.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }
}

fn explore<const N: usize>(threads: [fn(&Behind); N], last: fn(&Behind)) {
    let make = || Behind { readers: ReaderSlots::default(), value: UnsafeCell::new(0) };
    let work = move |behind: &Behind, at| threads.get(at).unwrap_or(&last)(behind);
    sync::explore(2, N, make, work, |behind, _| {
        assert!(behind.readers.try_shut(), "nobody was left inside");
    });
}

fn read(behind: &Behind) {
    let _reading = behind.readers.enter(0);
    behind.look();
}

fn write(behind: &Behind) {
    behind.readers.shut(OPEN);
    behind.change();
    behind.readers.open(OPEN);
}

fn try_write(behind: &Behind) {
    if behind.readers.try_shut() {
        behind.change();
        behind.readers.open(OPEN);
    }
}

#[test]
fn nobody_reads_while_it_is_shut() {
    explore([read, write], |behind| {
        let _reading = behind.readers.enter(1);
        behind.look();
    });
}

#[test]
fn readers_of_one_slot_keep_writers_out() {
    explore([read, try_write], read);
    explore([read, write], read);
}

fn read_long(behind: &Behind) {
    let _reading = behind.readers.enter_long(0);
    behind.look();
}

#[test]
fn brief_readers_come_in_while_a_writer_waits_for_a_long_one() {
    explore([read_long, write], read);
    explore([read_long, write], read_long);
}

fn write_in_two_changes(behind: &Behind) {
    behind.readers.shut(OPEN);
    behind.change();
    behind.readers.open(READERS);
    behind.readers.shut(READERS);
    behind.change();
    behind.readers.open(OPEN);
}

#[test]
fn who_waits_is_let_in_between_two_changes() {
    explore([read], write_in_two_changes);
    explore([read_long], write_in_two_changes);
}
