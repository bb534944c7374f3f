//! Blocking calls, off the threads that run tasks.
//!
//! Purpose: passes openraft's asynchronous calls to a store, and errors back.

use openraft::{AnyError, ErrorSubject, ErrorVerb, StorageIOError};
use tokio::task;

use crate::error::{Error, Result};
use crate::node::Node;
use crate::types::StorageError;

impl Node {
    /// Makes a call on a thread where it may block. An error ends the node's part in the cluster,
    /// until it is started again.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        subject: ErrorSubject<u64>,
        verb: ErrorVerb,
        call: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, StorageError> {
        let node = self.clone();
        let done = match task::spawn_blocking(move || call(&node)).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Error::Stopped),
            },
        };
        done.map_err(|error| StorageIOError::new(subject, verb, AnyError::new(&error)).into())
    }
}
