//! openraft's types, as this crate uses them.

use openraft::BasicNode;

use crate::request::{Request, Response};

openraft::declare_raft_types!(
    /// The type configuration: nodes are numbers with addresses, requests are changes of keyspaces,
    /// and snapshots are files.
    pub Types:
        D = Request,
        R = Response,
        NodeId = u64,
        Node = BasicNode,
        Entry = openraft::Entry<Types>,
        SnapshotData = tokio::fs::File,
        AsyncRuntime = openraft::TokioRuntime,
);

pub(crate) type Entry = openraft::Entry<Types>;
pub(crate) type LogId = openraft::LogId<u64>;
pub(crate) type Membership = openraft::StoredMembership<u64, BasicNode>;
pub(crate) type Snapshot = openraft::Snapshot<Types>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<u64, BasicNode>;
pub(crate) type StorageError = openraft::StorageError<u64>;
pub(crate) type Vote = openraft::Vote<u64>;
