//! The cluster status that a node reports.
//!
//! Purpose: one answer for clients, for INFO and for Prometheus, whether clusters are built in or
//! not.

/// A node's view of its cluster, and its own part in it.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) node: u64,
    /// As a word of the protocol.
    pub(crate) state: String,
    /// The leader, as far as this node knows, and its address for other nodes.
    pub(crate) leader: Option<(u64, String)>,
    pub(crate) term: u64,
    /// Numbers of entries: the last one of the log, the last applied one, the last one of the
    /// snapshot, and the last one that was purged from the log.
    pub(crate) last_entry: Option<u64>,
    pub(crate) applied: Option<u64>,
    pub(crate) snapshot: Option<u64>,
    pub(crate) purged: Option<u64>,
    pub(crate) members: Vec<Peer>,
}

/// A member of a cluster.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) node: u64,
    /// Its address for other nodes.
    pub(crate) place: String,
    pub(crate) is_voter: bool,
}

impl Standing {
    /// Whether the node leads, as far as it knows.
    pub(crate) fn leads(&self) -> bool {
        self.leader.as_ref().is_some_and(|(leader, _)| *leader == self.node)
    }
}

impl Peer {
    /// Whether it is a voter, in a word.
    pub(crate) fn role(&self) -> &'static str {
        if self.is_voter { "voter" } else { "learner" }
    }
}
