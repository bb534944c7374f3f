//! The shutdown of a server: requests and notifications.
//!
//! Thread safety: any thread may request it and wait; the first reason counts.

use std::any::Any;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

/// Whether the server is to end.
#[derive(Debug)]
pub(crate) struct Ending {
    /// The failure; an inner `None` for a requested end.
    reason: Mutex<Option<Option<String>>>,
    changed: Condvar,
    tasks: watch::Sender<bool>,
    /// Connections of clients that requested the end: they are closed after it, which tells the
    /// clients.
    witnesses: Mutex<Vec<Box<dyn Any + Send>>>,
}

impl Default for Ending {
    fn default() -> Self {
        Self {
            reason: Mutex::default(),
            changed: Condvar::new(),
            tasks: watch::Sender::new(false),
            witnesses: Mutex::default(),
        }
    }
}

impl Ending {
    /// Begins the shutdown, with the failure that caused it, if any.
    pub(crate) fn begin(&self, failure: Option<String>) {
        self.reason.lock().get_or_insert(failure);
        self.changed.notify_all();
        self.tasks.send_replace(true);
    }

    /// Waits up to `longest` for the shutdown; returns whether it has begun.
    pub(crate) fn wait(&self, longest: Duration) -> bool {
        let mut reason = self.reason.lock();
        if reason.is_none() {
            self.changed.wait_for(&mut reason, longest);
        }
        reason.is_some()
    }

    /// Whether it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.reason.lock().is_some()
    }

    /// The failure that caused the shutdown, if any.
    pub(crate) fn failure(&self) -> Option<String> {
        self.reason.lock().clone().flatten()
    }

    /// Keeps a connection open until the shutdown is complete.
    pub(crate) fn keep(&self, connection: Box<dyn Any + Send>) {
        self.witnesses.lock().push(connection);
    }

    /// Closes the kept connections: the shutdown is complete.
    pub(crate) fn release(&self) {
        self.witnesses.lock().clear();
    }

    /// A receiver for tasks that wait for the shutdown.
    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.tasks.subscribe()
    }
}
