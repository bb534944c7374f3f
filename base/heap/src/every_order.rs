//! Loom models of the image latch, pins and snapshots: every order in which threads can meet, as
//! memory may show it to them.
//!
//! Purpose: loom checks what pins and snapshots rest on: that pinned blocks are not reused, and
//! that a snapshot sees one state wherever its opening falls among commits.
//! Invariants: the latch and the pins are those of the heap. Versions are the store's, which loom
//! cannot run as a whole: `Versioned` here makes the same accesses, in the same order and with the
//! same orderings, as `open`, `close`, `recorder` and `is_changed` of
//! `store/src/common/versions.rs`.

use std::sync::Arc;

use loom::cell::UnsafeCell;

use crate::latch::image_latch::ImageLatch;
use crate::space::pin::Pins;
use crate::sync::{self, AtomicBool, Mutex, Ordering};

fn explore<S: Send + Sync + 'static>(make: fn() -> S, threads: &'static [fn(&S)], last: fn(&S)) {
    let work = move |shared: &S, at| threads.get(at).unwrap_or(&last)(shared);
    sync::explore(2, threads.len(), make, work, |_, _| {});
}

/// Two blocks, one of which the root names; what readers see of it is what the commit said.
struct Pinned {
    latch: ImageLatch,
    pins: Arc<Pins>,
    /// Number of the last commit, and the block that it named: behind the latch.
    root: UnsafeCell<(u64, usize)>,
    blocks: [UnsafeCell<u32>; 2],
}

// SAFETY: loom checks the reads and writes of the cells, which is the purpose of the test.
unsafe impl Sync for Pinned {}
// SAFETY: as above.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new() -> Self {
        Self {
            latch: ImageLatch::default(),
            pins: Arc::default(),
            root: UnsafeCell::new((0, 0)),
            blocks: [UnsafeCell::new(0), UnsafeCell::new(1)],
        }
    }

    /// After passing the latch, reads the block that the root named when it was pinned.
    fn look(&self) {
        let (pin, block) = {
            let _reading = self.latch.read(0);
            // SAFETY: as above.
            let (sequence, block) = self.root.with(|root| unsafe { *root });
            (self.pins.pin(sequence), block)
        };
        // SAFETY: as above.
        let found = self.blocks[block].with(|value| unsafe { *value });
        assert_eq!(found, block as u32, "what was pinned");
        drop(pin);
    }

    /// A commit that names the other block, and frees the first one.
    fn replace(&self) {
        let _alone = self.latch.write();
        // SAFETY: as above.
        self.root.with_mut(|root| unsafe { *root = (1, 1) });
    }

    /// The first step of the next commit: it reuses the freed block if no pin can see it.
    fn reuse(&self) {
        let _alone = self.latch.write();
        if self.pins.released() >= 1 {
            // SAFETY: as above.
            self.blocks[0].with_mut(|value| unsafe { *value = 7 });
        }
    }

    fn commits(&self) {
        self.replace();
        self.reuse();
    }
}

#[test]
fn what_is_pinned_is_not_reused() {
    explore(Pinned::new, &[Pinned::look], Pinned::commits);
}

#[test]
fn the_last_of_two_pins_lets_go() {
    explore(Pinned::new, &[Pinned::look, Pinned::look], Pinned::commits);
}

/// The state kept for snapshots.
#[derive(Debug, Default)]
struct State {
    number: u64,
    open: Vec<u64>,
    kept: Vec<(u64, u32)>,
}

/// A value that commits increment, and its versions.
struct Versioned {
    latch: ImageLatch,
    value: UnsafeCell<u32>,
    any: AtomicBool,
    is_changed: AtomicBool,
    state: Mutex<State>,
}

// SAFETY: loom checks the reads and writes of the value, which is the purpose of the test.
unsafe impl Sync for Versioned {}
// SAFETY: as above.
unsafe impl Send for Versioned {}

impl Versioned {
    fn new() -> Self {
        Self {
            latch: ImageLatch::default(),
            value: UnsafeCell::new(0),
            any: AtomicBool::new(false),
            is_changed: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    fn open(&self) -> u64 {
        let reading = self.latch.read(0);
        let mut state = self.state.lock();
        let number = state.number - u64::from(reading.is_early());
        state.open.push(number);
        self.any.store(true, Ordering::Release);
        number
    }

    fn read_at(&self, number: u64) -> u32 {
        let _reading = self.latch.read(0);
        if self.is_changed.load(Ordering::Acquire) {
            let state = self.state.lock();
            if let Some((_, value)) = state.kept.iter().find(|(at, _)| *at > number) {
                return *value;
            }
        }
        // SAFETY: as above.
        self.value.with(|value| unsafe { *value })
    }

    fn close(&self, number: u64) {
        let mut state = self.state.lock();
        let at = state.open.iter().position(|open| *open == number).expect("it is open");
        state.open.remove(at);
        if state.open.is_empty() {
            self.any.store(false, Ordering::Release);
            self.is_changed.store(false, Ordering::Release);
            state.kept.clear();
        }
    }

    fn commit(&self) {
        let _alone = self.latch.write();
        // SAFETY: as above.
        let before = self.value.with(|value| unsafe { *value });
        if self.any.load(Ordering::Acquire) {
            let mut state = self.state.lock();
            if !state.open.is_empty() {
                state.number += 1;
                let number = state.number;
                self.is_changed.store(true, Ordering::Release);
                state.kept.push((number, before));
            }
        }
        // SAFETY: as above.
        self.value.with_mut(|value| unsafe { *value = before + 1 });
    }

    /// A chunked commit: it has its number from the beginning, and admits readers before it changes
    /// what they see.
    fn commit_chunked(&self) {
        let mut alone = self.latch.write();
        let number = {
            let mut state = self.state.lock();
            state.number += 1;
            state.number
        };
        alone.admit_readers();
        alone.drain_readers();
        // SAFETY: as above.
        let before = self.value.with(|value| unsafe { *value });
        if self.any.load(Ordering::Acquire) {
            let mut state = self.state.lock();
            self.is_changed.store(true, Ordering::Release);
            state.kept.push((number, before));
        }
        // SAFETY: as above.
        self.value.with_mut(|value| unsafe { *value = before + 1 });
    }

    /// Opens a snapshot, reads twice, and closes it.
    fn look(&self) {
        let number = self.open();
        let first = self.read_at(number);
        assert_eq!(self.read_at(number), first, "a snapshot sees one state");
        self.close(number);
    }
}

#[test]
fn a_snapshot_sees_one_state_however_it_is_opened_among_commits() {
    explore(Versioned::new, &[Versioned::look], |versioned| {
        versioned.commit();
        versioned.commit();
    });
}

#[test]
fn one_that_is_closed_takes_nothing_from_another() {
    explore(Versioned::new, &[Versioned::look], |versioned| {
        let number = versioned.open();
        versioned.commit();
        versioned.close(number);
    });
}

#[test]
fn one_that_is_opened_within_a_commit_sees_what_was_before_it() {
    explore(Versioned::new, &[Versioned::look], Versioned::commit_chunked);
}
