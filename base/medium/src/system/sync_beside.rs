//! A sync in a thread of its own.

use std::sync::Arc;
use std::thread;

use crate::storage::{File, StartedSync};

/// Starts a sync of a file beside what the caller does.
pub(crate) fn sync_beside(file: Arc<dyn File>) -> StartedSync {
    let syncing = Arc::clone(&file);
    let thread = thread::Builder::new().name("adamant-sync".to_owned());
    match thread.spawn(move || syncing.sync()) {
        Ok(thread) => StartedSync::Running(thread),
        // The system has no more threads.
        Err(_) => StartedSync::Done(file.sync()),
    }
}
