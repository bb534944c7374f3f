//! openraft's network: its messages are calls of other nodes.

use std::sync::Arc;
use std::time::Duration;

use adamant_replica::Types;
use openraft::error::{
    Infallible, InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable,
};
use openraft::network::{Backoff, RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{AnyError, BasicNode};

use super::address::{Address, NoAddress};
use super::messages::{Answer, Ask};
use super::peers::{CallError, Peers};

/// Pause between two attempts to reach an unreachable node.
const PAUSE: Duration = Duration::from_millis(100);

/// The links to all nodes.
#[derive(Clone, Debug)]
pub(super) struct Network(pub(super) Arc<Peers>);

/// The link to one node.
#[derive(Debug)]
pub(super) struct Link {
    peers: Arc<Peers>,
    target: u64,
    address: Result<Address, NoAddress>,
}

type Failure<E = Infallible> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl RaftNetworkFactory<Types> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Link {
        Link { peers: Arc::clone(&self.0), target, address: node.addr.parse() }
    }
}

impl Link {
    async fn call<E: std::error::Error>(&self, ask: Ask) -> Result<Answer, Failure<E>> {
        let address = self.address.as_ref().map_err(Unreachable::new)?;
        match self.peers.call(self.target, address, &ask).await {
            Ok(answer) => Ok(answer),
            Err(error @ CallError::Unreached(_)) => Err(Unreachable::new(&error).into()),
            Err(error @ CallError::Lost(_)) => Err(NetworkError::new(&error).into()),
        }
    }
}

fn other<E: std::error::Error>(answer: &Answer) -> Failure<E> {
    let error = AnyError::error(format!("a node has answered something else: {answer:?}"));
    NetworkError::new(&error).into()
}

impl RaftNetwork<Types> for Link {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Failure> {
        match self.call(Ask::Append(request)).await? {
            Answer::Append(answer) => {
                Ok(answer.map_err(|error| RemoteError::new(self.target, error))?)
            }
            answer => Err(other(&answer)),
        }
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        _option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Failure<InstallSnapshotError>> {
        match self.call(Ask::Snapshot(request)).await? {
            Answer::Snapshot(answer) => {
                Ok(answer.map_err(|error| RemoteError::new(self.target, error))?)
            }
            answer => Err(other(&answer)),
        }
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _option: RPCOption,
    ) -> Result<VoteResponse<u64>, Failure> {
        match self.call(Ask::Vote(request)).await? {
            Answer::Vote(answer) => {
                Ok(answer.map_err(|error| RemoteError::new(self.target, error))?)
            }
            answer => Err(other(&answer)),
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(PAUSE))
    }
}
