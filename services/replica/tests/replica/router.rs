//! A network within the process: messages go from node to node as bytes, and those that are down
//! get none.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use adamant_replica::Types;
use openraft::Raft;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::link::{self, Answer, Ask, Carrier};

/// All nodes that are up.
#[derive(Clone, Default)]
pub(crate) struct Router {
    nodes: Arc<Mutex<BTreeMap<u64, Raft<Types>>>>,
}

impl Router {
    pub(crate) fn connect(&self, node: u64, raft: Raft<Types>) {
        self.nodes.lock().insert(node, raft);
    }

    pub(crate) fn disconnect(&self, node: u64) {
        self.nodes.lock().remove(&node);
    }
}

/// A message as it comes out of the network.
fn sent<T: Serialize + DeserializeOwned>(message: &T) -> T {
    postcard::from_bytes(&postcard::to_stdvec(message).unwrap()).unwrap()
}

impl Carrier for Router {
    async fn ask(&self, target: u64, ask: Ask) -> io::Result<Answer> {
        let raft = self.nodes.lock().get(&target).cloned();
        let raft = raft.ok_or_else(|| io::Error::other("it is down"))?;
        Ok(sent(&link::answer(&raft, sent(&ask)).await))
    }
}
