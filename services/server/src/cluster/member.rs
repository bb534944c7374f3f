//! A node's membership in its cluster.
//!
//! Thread safety: shared by all tasks that serve clients and nodes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adamant_replica::{Node, Types};
use openraft::Raft;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::address::Address;
use super::peers::Peers;
use super::reads::Reads;
use crate::commit::committer::Queue;
use crate::commit::ending::Ending;
use crate::commit::world::World;
use crate::error::{Error, Result};

/// Pause between two looks for a leader.
const PAUSE: Duration = Duration::from_millis(20);

/// A node's membership in its cluster.
pub(crate) struct Member {
    pub(super) id: u64,
    pub(super) address: Address,
    pub(super) node: Node,
    pub(super) raft: Raft<Types>,
    pub(super) peers: Arc<Peers>,
    pub(super) reads: Reads,
    /// How long a client waits while there is no leader.
    pub(super) patience: Duration,
    pub(super) runtime: Handle,
    pub(super) world: Arc<World>,
    pub(super) queue: Arc<Queue>,
    pub(super) ending: Arc<Ending>,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Member {
    /// The leader, as far as this node knows.
    pub(super) fn leader(&self) -> Option<(u64, Address)> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let id = metrics.current_leader?;
        let node = metrics.membership_config.membership().get_node(&id)?;
        Some((id, node.addr.parse().ok()?))
    }

    /// Whether this node leads, as far as it knows.
    pub(super) fn leads(&self) -> bool {
        self.raft.metrics().borrow().current_leader == Some(self.id)
    }

    /// Why the node has stopped taking part, if it has.
    pub(super) fn failure(&self) -> Option<String> {
        if let Err(error) = self.node.check_writable() {
            return Some(error.to_string());
        }
        let metrics = self.raft.metrics();
        let state = &metrics.borrow().running_state;
        state.as_ref().err().map(|fatal| format!("the node has stopped: {fatal}"))
    }

    /// Waits a little for a leader; false if the time is over.
    pub(super) async fn waits(&self, deadline: Instant) -> bool {
        tokio::time::sleep(PAUSE).await;
        Instant::now() < deadline && !self.ending.has_begun()
    }

    /// The deadline of a client that arrives now.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// Stops taking part, and closes the node.
    ///
    /// # Errors
    /// Those of closing.
    pub(crate) async fn end(&self) -> Result<()> {
        let stopped = self.raft.shutdown().await;
        let closed = self.node.close();
        stopped.map_err(|error| Error::Cluster { cause: error.to_string() })?;
        closed.map_err(|error| Error::Cluster { cause: error.to_string() })
    }
}
