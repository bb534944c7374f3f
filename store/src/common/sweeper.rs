//! The thread of the background sweep: when it runs, and of which keyspaces.
//!
//! Purpose: knows the expiring keyspaces that were opened, and runs a sweep over them: at once,
//! then whenever the sweep asks for it. What a sweep does is the caller's (`expiring/sweep.rs`).
//! Invariants: the thread ends before the store is closed; it holds no lock while a sweep runs.
//! Thread safety: any thread.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::common::state::KeyspaceState;

/// The entries and the deadlines of an expiring keyspace.
#[derive(Clone)]
pub(crate) struct SweptPair {
    pub(crate) entries: Arc<KeyspaceState>,
    pub(crate) deadlines: Arc<KeyspaceState>,
}

#[derive(Default)]
struct State {
    /// By the number of the keyspace of entries.
    pairs: BTreeMap<u64, SweptPair>,
    /// Whether one was added that no sweep has seen.
    has_new: bool,
    is_stopped: bool,
    thread: Option<JoinHandle<()>>,
}

impl State {
    fn add(&mut self, pair: SweptPair) {
        let is_new = self.pairs.insert(pair.entries.id, pair).is_none();
        self.has_new |= is_new;
    }
}

/// The background sweep of a store.
#[derive(Default)]
pub(crate) struct Sweeper {
    state: Mutex<State>,
    woken: Condvar,
}

impl Sweeper {
    /// Adds an expiring keyspace; the first one starts the thread. A sweep returns how long the
    /// thread shall wait before the next one.
    ///
    /// # Errors
    /// The system starts no thread; the next call tries again.
    pub(crate) fn watch(
        self: &Arc<Self>,
        pair: SweptPair,
        sweep: impl FnOnce() -> Box<dyn FnMut(&Self) -> Duration + Send>,
    ) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.is_stopped {
            return Ok(());
        }
        if state.thread.is_none() {
            let (sweeper, mut sweep) = (Arc::clone(self), sweep());
            // Whoever ends the thread joins it, so that it never holds the last reference.
            let run = move || sweeper.run(&mut sweep);
            let thread = std::thread::Builder::new().name("adamant-sweep".into());
            state.thread = Some(thread.spawn(run)?);
        }
        state.add(pair);
        self.woken.notify_one();
        Ok(())
    }

    /// Adds a keyspace for a sweep that a test drives.
    #[cfg(test)]
    pub(crate) fn note(&self, pair: SweptPair) {
        self.state.lock().add(pair);
    }

    #[cfg(test)]
    pub(crate) fn has_thread(&self) -> bool {
        self.state.lock().thread.is_some()
    }

    /// The keyspaces to sweep.
    pub(crate) fn pairs(&self) -> Vec<SweptPair> {
        let mut state = self.state.lock();
        state.has_new = false;
        state.pairs.values().cloned().collect()
    }

    /// Forgets a keyspace that is not there any more.
    pub(crate) fn forget(&self, pair: &SweptPair) {
        self.state.lock().pairs.remove(&pair.entries.id);
    }

    /// Whether the thread shall end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// Ends the thread: after the step of a sweep that is running. Keyspaces opened later start
    /// none.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.is_stopped = true;
        state.pairs.clear();
        let thread = state.thread.take();
        self.woken.notify_one();
        drop(state);
        if let Some(thread) = thread {
            // Its panic hook has reported a panic.
            let _ = thread.join();
        }
    }

    /// The loop of the thread.
    fn run(&self, sweep: &mut dyn FnMut(&Self) -> Duration) {
        while !self.is_stopped() {
            let next = Instant::now() + sweep(self);
            let mut state = self.state.lock();
            while !state.is_stopped && !state.has_new {
                if self.woken.wait_until(&mut state, next).timed_out() {
                    break;
                }
            }
        }
    }
}
