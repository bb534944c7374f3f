//! openraft's state machine and snapshot builder.
//!
//! Purpose: passes each call to the node, on a thread where it may block.

use openraft::storage::RaftStateMachine;
use openraft::{ErrorSubject, ErrorVerb, OptionalSend, RaftSnapshotBuilder};
use tokio::fs::File;

use crate::node::Node;
use crate::request::Response;
use crate::state::Applied;
use crate::types::{Entry, LogId, Membership, Snapshot, SnapshotMeta, StorageError, Types};

/// The state machine of a node, in openraft's interface.
#[derive(Clone, Debug)]
pub struct StateMachine {
    node: Node,
}

/// The builder of a node's snapshots, which works beside the state machine.
#[derive(Clone, Debug)]
pub struct SnapshotBuilder {
    node: Node,
}

impl Node {
    /// The state machine, for `openraft::Raft::new`.
    pub fn state_machine(&self) -> StateMachine {
        StateMachine { node: self.clone() }
    }
}

impl RaftStateMachine<Types> for StateMachine {
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(
        &mut self,
    ) -> std::result::Result<(Option<LogId>, Membership), StorageError> {
        let Applied { log_id, membership } = self.node.state().applied();
        Ok((log_id, membership))
    }

    async fn apply<I>(&mut self, entries: I) -> std::result::Result<Vec<Response>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let apply = move |node: &Node| node.state().apply(&entries);
        self.node.blocking(ErrorSubject::StateMachine, ErrorVerb::Write, apply).await
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        SnapshotBuilder { node: self.node.clone() }
    }

    async fn begin_receiving_snapshot(&mut self) -> std::result::Result<Box<File>, StorageError> {
        let subject = ErrorSubject::Snapshot(None);
        let file = self.node.blocking(subject, ErrorVerb::Write, Node::receive_snapshot).await?;
        Ok(Box::new(File::from_std(file)))
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Box<File>,
    ) -> std::result::Result<(), StorageError> {
        // Waits for pending writes to it.
        let file = snapshot.into_std().await;
        let (subject, meta) = (ErrorSubject::Snapshot(Some(meta.signature())), meta.clone());
        let install = move |node: &Node| node.install_snapshot(&meta, file);
        self.node.blocking(subject, ErrorVerb::Write, install).await
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> std::result::Result<Option<Snapshot>, StorageError> {
        let subject = ErrorSubject::Snapshot(None);
        let current = self.node.blocking(subject, ErrorVerb::Read, Node::current_snapshot).await?;
        Ok(current.map(|(meta, file)| snapshot_of(meta, file)))
    }
}

impl RaftSnapshotBuilder<Types> for SnapshotBuilder {
    async fn build_snapshot(&mut self) -> std::result::Result<Snapshot, StorageError> {
        let subject = ErrorSubject::Snapshot(None);
        let build = Node::build_snapshot;
        let (meta, file) = self.node.blocking(subject, ErrorVerb::Write, build).await?;
        Ok(snapshot_of(meta, file))
    }
}

fn snapshot_of(meta: SnapshotMeta, file: std::fs::File) -> Snapshot {
    Snapshot { meta, snapshot: Box::new(File::from_std(file)) }
}
