//! A network within the process: messages go from node to node as bytes, and those that are down get none.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use adamant_replica::Types;
use openraft::error::{InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, Raft};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// All nodes that are up.
#[derive(Clone, Default)]
pub(crate) struct Router {
    nodes: Arc<Mutex<BTreeMap<u64, Raft<Types>>>>,
}

/// The way to one node.
pub(crate) struct Link {
    router: Router,
    target: u64,
}

type Failure<E = openraft::error::Infallible> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl Router {
    pub(crate) fn connect(&self, node: u64, raft: Raft<Types>) {
        self.nodes.lock().insert(node, raft);
    }

    pub(crate) fn disconnect(&self, node: u64) {
        self.nodes.lock().remove(&node);
    }
}

impl Link {
    fn target(&self) -> Result<Raft<Types>, Unreachable> {
        let target = self.router.nodes.lock().get(&self.target).cloned();
        target.ok_or_else(|| Unreachable::new(&io::Error::other("it is down")))
    }
}

/// A message as it comes out of the network.
fn sent<T: Serialize + DeserializeOwned>(message: &T) -> T {
    postcard::from_bytes(&postcard::to_stdvec(message).unwrap()).unwrap()
}

impl RaftNetworkFactory<Types> for Router {
    type Network = Link;

    async fn new_client(&mut self, target: u64, _node: &BasicNode) -> Link {
        Link { router: self.clone(), target }
    }
}

impl RaftNetwork<Types> for Link {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Failure> {
        let answer = self.target()?.append_entries(sent(&request)).await;
        Ok(sent(&answer.map_err(|error| RemoteError::new(self.target, error))?))
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        _option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Failure<InstallSnapshotError>> {
        let answer = self.target()?.install_snapshot(sent(&request)).await;
        Ok(sent(&answer.map_err(|error| RemoteError::new(self.target, error))?))
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _option: RPCOption,
    ) -> Result<VoteResponse<u64>, Failure> {
        let answer = self.target()?.vote(sent(&request)).await;
        Ok(sent(&answer.map_err(|error| RemoteError::new(self.target, error))?))
    }
}
