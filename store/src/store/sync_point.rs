//! Sync points: waiting for the device apart from committing.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::common::shared::Shared;
use crate::error::Result;

/// A moment in a store's sequence of commits: [`Store::sync_point`](crate::Store::sync_point). It
/// does not keep the store open or data alive.
#[must_use = "nothing is promised until it was waited for"]
pub struct SyncPoint {
    shared: Arc<Shared>,
    commit: u64,
    start: Instant,
}

impl SyncPoint {
    pub(crate) fn new(shared: &Arc<Shared>) -> Result<Self> {
        let commit = shared.heap()?.last_commit();
        Ok(Self { shared: Arc::clone(shared), commit, start: Instant::now() })
    }

    /// Returns when the device has all commits up to the point; at once if it has them. Concurrent
    /// waits share a flush. In [`CommitStats::synced`](crate::CommitStats::synced) the wait counts
    /// from the creation of the point.
    ///
    /// # Errors
    /// As [`Store::sync`](crate::Store::sync).
    pub fn wait(self) -> Result<()> {
        self.shared.heap()?.sync_to(self.commit)?;
        self.shared.metrics().waited(self.start.elapsed());
        Ok(())
    }
}

impl fmt::Debug for SyncPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncPoint").field("commit", &self.commit).finish()
    }
}
