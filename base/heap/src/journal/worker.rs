//! A background thread that sleeps until it is signalled.
//!
//! Purpose: the common part of the heap's background threads.
//! Invariants: a signal raised while the thread works is seen when it is done; stopping ends every
//! wait at once. Thread safety: any thread may raise and stop.

use std::fmt;
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
    /// Threads that start when it is first raised, and where their handles go.
    asleep: Mutex<Vec<Asleep>>,
}

/// A thread that was not needed yet.
struct Asleep {
    name: &'static str,
    work: Arc<dyn Fn(&Signal) + Send + Sync>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl fmt::Debug for Asleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asleep").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Signal {
    /// Signals work. Costs one load until the worker has seen the last signal.
    pub(crate) fn raise(self: &Arc<Self>) {
        if !self.raised.load(Ordering::Acquire) && !self.raised.swap(true, Ordering::AcqRel) {
            self.start();
            // Under the lock, so that it cannot fall between the worker's check and its wait.
            let _stopped = self.stopped.lock();
            self.changed.notify_all();
        }
    }

    /// Starts the threads that wait for the first signal. A thread that the system refuses is tried
    /// again the next time; until then the callers do its work.
    fn start(self: &Arc<Self>) {
        self.asleep.lock().retain(|asleep| {
            let (signal, work) = (Arc::clone(self), Arc::clone(&asleep.work));
            let thread = std::thread::Builder::new().name(asleep.name.into());
            match thread.spawn(move || work(&signal)) {
                Ok(thread) => *asleep.thread.lock() = Some(thread),
                Err(_) => {
                    self.lower();
                    return true;
                }
            }
            false
        });
    }

    /// Whether a thread has not started: the signal was never raised, or the system refused it.
    pub(crate) fn is_asleep(&self) -> bool {
        !self.asleep.lock().is_empty()
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

    /// Clears the signal: a later one is new.
    pub(crate) fn lower(&self) {
        self.raised.store(false, Ordering::Release);
    }

    /// Whether it is time to end.
    pub(crate) fn is_stopped(&self) -> bool {
        *self.stopped.lock()
    }

    /// Sleeps for a time, less if it is time to end.
    pub(crate) fn sleep(&self, duration: Duration) {
        let mut stopped = self.stopped.lock();
        if !*stopped {
            // A signal raised before is still raised, so only `stop` wakes this.
            self.changed.wait_for(&mut stopped, duration);
        }
    }
}

/// A running thread and its signal. Ends, with all that share the signal, and is joined on drop.
#[derive(Debug)]
pub(crate) struct Worker {
    signal: Arc<Signal>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Worker {
    /// Starts a thread.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn spawn(
        name: &str,
        signal: &Arc<Signal>,
        work: impl FnOnce(&Signal) + Send + 'static,
    ) -> std::io::Result<Self> {
        let its = Arc::clone(signal);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || work(&its))?;
        let thread = Arc::new(Mutex::new(Some(thread)));
        Ok(Self { signal: Arc::clone(signal), thread })
    }

    /// A thread that starts when its signal is first raised: a store that is hardly used has none.
    pub(crate) fn when_raised(
        name: &'static str,
        signal: &Arc<Signal>,
        work: impl Fn(&Signal) + Send + Sync + 'static,
    ) -> Self {
        let thread = Arc::<Mutex<Option<JoinHandle<()>>>>::default();
        let asleep = Asleep { name, work: Arc::new(work), thread: Arc::clone(&thread) };
        signal.asleep.lock().push(asleep);
        Self { signal: Arc::clone(signal), thread }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.signal.stop();
        // The work refers to an owner of the signal.
        let never_started = std::mem::take(&mut *self.signal.asleep.lock());
        drop(never_started);
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // The panic hook reported a panic in there; the callers do the thread's work.
            let _ = thread.join();
        }
    }
}

/// The threads of an owner.
#[derive(Debug)]
pub(crate) struct Workers(Mutex<Vec<Worker>>);

impl Workers {
    pub(crate) fn new(threads: Vec<Worker>) -> Self {
        Self(Mutex::new(threads))
    }

    /// Whether there are none, or none any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Stops the threads and joins them. The caller holds no lock that they take.
    pub(crate) fn stop(&self) {
        let threads = std::mem::take(&mut *self.0.lock());
        drop(threads);
    }

    /// Call it in the child of a fork: the threads stayed with the parent.
    pub(crate) fn forget(&mut self) {
        std::mem::forget(std::mem::take(self.0.get_mut()));
    }
}
