//! The end of a server: who asks for it, and who has to know.
//!
//! Thread safety: any thread may ask and wait; the first reason counts.

use std::any::Any;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

/// Whether the server is to end.
#[derive(Debug)]
pub(crate) struct Ending {
    /// Why: `None` within: somebody asked for it.
    reason: Mutex<Option<Option<String>>>,
    changed: Condvar,
    tasks: watch::Sender<bool>,
    /// Connections of those who asked for the end: closed after it, which is how they learn of it.
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
    /// The server is to end; with what has failed, if something has.
    pub(crate) fn begin(&self, failure: Option<String>) {
        self.reason.lock().get_or_insert(failure);
        self.changed.notify_all();
        self.tasks.send_replace(true);
    }

    /// Waits so long for the end; whether it has begun.
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

    /// What failed, if the server ends because of that.
    pub(crate) fn failure(&self) -> Option<String> {
        self.reason.lock().clone().flatten()
    }

    /// Keeps a connection open until all has ended.
    pub(crate) fn keep(&self, connection: Box<dyn Any + Send>) {
        self.witnesses.lock().push(connection);
    }

    /// Closes the connections that were kept: all has ended.
    pub(crate) fn release(&self) {
        self.witnesses.lock().clear();
    }

    /// For tasks, to wait for the end.
    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.tasks.subscribe()
    }
}
