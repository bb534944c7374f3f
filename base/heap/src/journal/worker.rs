//! A thread that sleeps until there is something to do.
//!
//! Purpose: what the background threads of a heap have in common.
//! Invariants: a signal raised while the thread works is seen when it is done; stopping ends every
//! wait at once. Thread safety: any thread may raise and stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Wakes a worker, or all that share it.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    raised: AtomicBool,
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// There is something to do. Costs one load while the worker has not seen the last time.
    pub(crate) fn raise(&self) {
        if !self.raised.load(Ordering::Acquire) && !self.raised.swap(true, Ordering::AcqRel) {
            // Under the lock, so that it cannot fall between the worker's look and its wait.
            let _stopped = self.stopped.lock();
            self.changed.notify_all();
        }
    }

    /// Ends the worker.
    pub(crate) fn stop(&self) {
        *self.stopped.lock() = true;
        self.changed.notify_all();
    }

    /// Waits until raised, and lowers it; false when it is time to end.
    pub(crate) fn wait(&self) -> bool {
        let mut stopped = self.stopped.lock();
        loop {
            if *stopped {
                return false;
            }
            if self.raised.load(Ordering::Acquire) {
                return true;
            }
            self.changed.wait(&mut stopped);
        }
    }

    /// Takes notice: what is raised from now on is new.
    pub(crate) fn lower(&self) {
        self.raised.store(false, Ordering::Release);
    }

    /// Whether it is time to end.
    pub(crate) fn is_stopped(&self) -> bool {
        *self.stopped.lock()
    }

    /// Waits for a time, less if it is time to end.
    pub(crate) fn sleep(&self, duration: Duration) {
        let mut stopped = self.stopped.lock();
        if !*stopped {
            // A signal raised before is still raised, so only `stop` wakes this.
            self.changed.wait_for(&mut stopped, duration);
        }
    }
}

/// A running thread and its signal. Ends and is joined on drop.
#[derive(Debug)]
pub(crate) struct Worker {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn spawn(
        name: &str,
        signal: &Arc<Signal>,
        work: impl FnOnce(&Signal) + Send + 'static,
    ) -> std::io::Result<Self> {
        let its = Arc::clone(signal);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || work(&its))?;
        Ok(Self { signal: Arc::clone(signal), thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.signal.stop();
        if let Some(thread) = self.thread.take() {
            // A panic in there was reported by its own hook; what it had to do, the callers do.
            let _ = thread.join();
        }
    }
}
