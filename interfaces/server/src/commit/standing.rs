//! What a node of a cluster says of itself.
//!
//! Purpose: one answer for clients, for INFO and for Prometheus, whether clusters are built in or not.

/// What a node knows of its cluster, and of its part in it.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) node: u64,
    /// In a word of the protocol.
    pub(crate) state: String,
    /// The node that leads, as far as this one knows, and where other nodes reach it.
    pub(crate) leader: Option<(u64, String)>,
    pub(crate) term: u64,
    /// Numbers of entries: the last one of the log, the last one that is applied, the last one of the snapshot, and the
    /// last one that the log has forgotten.
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
    /// Where other nodes reach it.
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
    /// Whether it has a voice, in a word.
    pub(crate) fn role(&self) -> &'static str {
        if self.is_voter { "voter" } else { "learner" }
    }
}
