//! openraft's network over whatever brings a message to another node, and the answer back.

use std::io;

use adamant_replica::Types;
use openraft::error::{
    Infallible, InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable,
};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, Raft};
use serde::{Deserialize, Serialize};

/// What one node asks of another one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Snapshot(InstallSnapshotRequest<Types>),
}

/// What it is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Append(Result<AppendEntriesResponse<u64>, RaftError<u64>>),
    Vote(Result<VoteResponse<u64>, RaftError<u64>>),
    Snapshot(Result<InstallSnapshotResponse<u64>, RaftError<u64, InstallSnapshotError>>),
}

/// What a node that is asked does.
pub(crate) async fn answer(raft: &Raft<Types>, ask: Ask) -> Answer {
    match ask {
        Ask::Append(request) => Answer::Append(raft.append_entries(request).await),
        Ask::Vote(request) => Answer::Vote(raft.vote(request).await),
        Ask::Snapshot(request) => Answer::Snapshot(raft.install_snapshot(request).await),
    }
}

/// Brings messages to nodes.
pub(crate) trait Carrier: Clone + Send + Sync + 'static {
    fn ask(&self, target: u64, ask: Ask) -> impl Future<Output = io::Result<Answer>> + Send;
}

/// The ways to all nodes.
#[derive(Clone)]
pub(crate) struct Network<C>(pub(crate) C);

/// The way to one node.
pub(crate) struct Link<C> {
    carrier: C,
    target: u64,
}

type Failure<E = Infallible> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl<C: Carrier> RaftNetworkFactory<Types> for Network<C> {
    type Network = Link<C>;

    async fn new_client(&mut self, target: u64, _node: &BasicNode) -> Link<C> {
        Link { carrier: self.0.clone(), target }
    }
}

impl<C: Carrier> Link<C> {
    async fn ask<T, E: std::error::Error>(
        &self,
        ask: Ask,
        part: impl FnOnce(Answer) -> Option<Result<T, RaftError<u64, E>>> + Send,
    ) -> Result<T, Failure<E>> {
        let answer = self.carrier.ask(self.target, ask).await;
        let answer = answer.map_err(|error| Unreachable::new(&error))?;
        let answer = part(answer).expect("each question has its answer");
        Ok(answer.map_err(|error| RemoteError::new(self.target, error))?)
    }
}

impl<C: Carrier> RaftNetwork<Types> for Link<C> {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Failure> {
        let part = |answer| if let Answer::Append(answer) = answer { Some(answer) } else { None };
        self.ask(Ask::Append(request), part).await
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        _option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Failure<InstallSnapshotError>> {
        let part = |answer| if let Answer::Snapshot(answer) = answer { Some(answer) } else { None };
        self.ask(Ask::Snapshot(request), part).await
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _option: RPCOption,
    ) -> Result<VoteResponse<u64>, Failure> {
        let part = |answer| if let Answer::Vote(answer) = answer { Some(answer) } else { None };
        self.ask(Ask::Vote(request), part).await
    }
}
